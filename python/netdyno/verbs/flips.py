"""`netdyno flips`: find the level of a factor at which the better of two contestants changes, in a stored run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from netdyno.analysis.flips import judge_flips
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.trials.split import ScenarioTrials, split
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.model import outcomes
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present.findings_json import convert_flip
from netdyno.present.plain import make_plain
from netdyno.present.prose import flips as prose
from netdyno.present.terminal.console import Console
from netdyno.store import read


def run(
    stored: str,
    first: str | None,
    second: str | None,
    factor: str | None,
    metric: str | None,
    results: Path,
    *,
    as_json: bool,
) -> int:
    """Print the flips of two contestants, or, where none is named, those that the run was made for. Return 0. Raises
    UserError where it has no such question."""
    run = outcomes.judge_run(read.load(read.find(results, stored)))
    parts = split(run)
    if first is None and second is None and factor is None and metric is None:
        findings = _find_own(run, parts)
    elif first is None or second is None or factor is None:
        raise UserError("name two contestants and --along FACTOR, or nothing for the flips that the run was made for")
    else:
        findings = _find_same(_find_own(run, parts, needed=False), first, second, factor, metric) or find_flips(
            parts, first, second, factor, metric
        )
    if as_json:
        print(json.dumps(make_plain([convert_flip(finding) for finding in findings]), allow_nan=False))
        return 0
    for finding in findings:
        Console().print(Text(f"{finding.question}: {prose.describe_flip(finding)}."), _build_table(finding))
    return 0


def _find_own(run: Run, parts: Sequence[ScenarioTrials], *, needed: bool = True) -> list[FlipFound]:
    """Find the flips that its experiment pursues."""
    if needed and not run.experiment.flips:
        raise UserError(
            f"the run {run.run_id} searched for no flip; name two of its contestants and --along FACTOR, or run an "
            "experiment with a [[flip]]"
        )
    by_name = {part.scenario.name: part for part in parts}
    return [judge_flips.follow_flip(flip, by_name[flip.scenario]) for flip in run.experiment.flips]


def _find_same(
    own_findings: Sequence[FlipFound], first: str, second: str, factor: str, metric: str | None
) -> list[FlipFound]:
    """Return the pursued flips that match the request, so that the same question always has the same answer."""
    return [
        finding
        for finding in own_findings
        if {finding.first, finding.second} == {first, second}
        and finding.factor == factor
        and metric in (None, finding.metric)
    ]


def find_flips(
    parts: Sequence[ScenarioTrials], first: str, second: str, factor: str, metric: str | None
) -> list[FlipFound]:
    """Find the flips in every question of the run that has several levels of the factor."""
    if metric is not None and metric not in METRICS:
        raise UserError(f"unknown metric {metric!r}{did_you_mean(metric, METRICS)}")
    varied = [part for part in parts if judge_flips.has_several_levels(part.scenario, factor)]
    if not varied:
        factors = {name: part for part in parts for name in part.scenario.factors}
        varied_factors = sorted(
            name for name, part in factors.items() if judge_flips.has_several_levels(part.scenario, name)
        )
        names = ", ".join(varied_factors) or "nothing"
        raise UserError(
            f"no two levels of {factor!r} in this run, and one level cannot show a flip; it has several of {names}"
        )
    for name in (first, second):
        measured = sorted({contestant for part in varied for contestant in part.contestants})
        if name not in measured:
            raise UserError(f"{name!r} was not measured across {factor}{did_you_mean(name, measured)}")
    if first == second:
        raise UserError(f"{first!r} is named twice: a flip is between two contestants")
    findings = [finding for part in varied for finding in judge_flips.find_flips(part, factor, first, second, metric)]
    if not findings:
        raise UserError(f"{first} and {second} have no level of {factor} with a valid trial of each in one block")
    return findings


def _build_table(finding: FlipFound) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in prose.list_headings(finding):
        table.add_column(heading, justify="left" if heading == "better" else "right")
    for row in prose.list_rows(finding):
        table.add_row(*row)
    return table

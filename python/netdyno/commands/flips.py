"""`netdyno flips`: along which level of one factor the better of two contestants changes, from a stored run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from netdyno.analysis.flips import judge
from netdyno.analysis.flips.found import FlipFound
from netdyno.analysis.split import Part, split
from netdyno.base.errors import UserError, did_you_mean
from netdyno.model import outcomes
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present import findings_json
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
    """Exit code 0. Of the flips that the run was made for where nothing is named. Raises UserError where it has no such
    question."""
    run = outcomes.judged(read.load(read.find(results, stored)))
    parts = split(run)
    if first is None and second is None and factor is None and metric is None:
        found = _own(run, parts)
    elif first is None or second is None or factor is None:
        raise UserError("name two contestants and --along FACTOR, or nothing for the flips that the run was made for")
    else:
        found = _same(_own(run, parts, needed=False), first, second, factor, metric) or answers(
            parts, first, second, factor, metric
        )
    if as_json:
        print(json.dumps([findings_json.flip(one) for one in found], allow_nan=False))
        return 0
    for one in found:
        Console().print(Text(f"{one.question}: {prose.sentence(one)}."), _table(one))
    return 0


def _own(run: Run, parts: Sequence[Part], *, needed: bool = True) -> list[FlipFound]:
    """Of those that its experiment asks for."""
    if needed and not run.experiment.flips:
        raise UserError(
            f"the run {run.run_id} was made for no flip; name two of its contestants and --along FACTOR, or run an "
            "experiment with a [[flip]]"
        )
    by_name = {part.scenario.name: part for part in parts}
    return [judge.pursued(flip, by_name[flip.scenario]) for flip in run.experiment.flips]


def _same(own: Sequence[FlipFound], first: str, second: str, factor: str, metric: str | None) -> list[FlipFound]:
    """Those that say the same as what is asked: the same question has the same answer, however it is asked."""
    return [
        one
        for one in own
        if {one.first, one.second} == {first, second} and one.factor == factor and metric in (None, one.metric)
    ]


def answers(parts: Sequence[Part], first: str, second: str, factor: str, metric: str | None) -> list[FlipFound]:
    """Of every question of the run that has several levels of the factor."""
    if metric is not None and metric not in METRICS:
        raise UserError(f"unknown metric {metric!r}{did_you_mean(metric, METRICS)}")
    asked = [part for part in parts if judge.can_be_asked(part.scenario, factor)]
    if not asked:
        factors = {name: part for part in parts for name in part.scenario.factors}
        had = sorted(name for name, part in factors.items() if judge.can_be_asked(part.scenario, name))
        several = ", ".join(had) or "nothing"
        raise UserError(
            f"no two levels of {factor!r} in this run, and one level cannot show a flip; it has several of {several}"
        )
    for name in (first, second):
        took_part = sorted({one for part in asked for one in part.contestants})
        if name not in took_part:
            raise UserError(f"{name!r} was not measured across {factor}{did_you_mean(name, took_part)}")
    if first == second:
        raise UserError(f"{first!r} twice: a flip is between two")
    found = [one for part in asked for one in judge.found(part, factor, first, second, metric)]
    if not found:
        raise UserError(f"{first} and {second} have no level of {factor} with a valid trial of each in one block")
    return found


def _table(one: FlipFound) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in prose.headings(one):
        table.add_column(heading, justify="left" if heading == "better" else "right")
    for row in prose.rows(one):
        table.add_row(*row)
    return table

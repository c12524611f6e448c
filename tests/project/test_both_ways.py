"""Every claim of the five studies can come out either way: on a machine that has what it needs, at its study's default
size and as published, there are figures that confirm it, and for each of its comparisons figures that refute it by this
one alone.

The figures are made from the comparisons. All cells begin alike; the two sides of a comparison that does not hold are
moved apart until each holds clearly. To refute, one of them is then moved to the other side of its threshold."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from statistics import fmean
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from netdyno.analysis.claims.across import judge_across_runs
from netdyno.analysis.claims.evidence import Evidence
from netdyno.analysis.claims.evidence import collect_evidence as evidence_of
from netdyno.analysis.claims.judge_claims import judge_claims
from netdyno.analysis.claims.needs import find_code_coordinate
from netdyno.analysis.claims.steps import list_steps
from netdyno.analysis.trials.split import split
from netdyno.kit.paths import ROOT
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells, Claim
from netdyno.model.contestant import About, CodeSize
from netdyno.model.experiment import Budget, Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.metrics import METRICS, TIME
from netdyno.model.run import Run
from netdyno.model.verdicts import ClaimComparison, ClaimVerdict
from tests.support.builders.made_claims import TruthPoint, of_points
from tests.support.studies import load_study

SIZES: tuple[Budget, ...] = ("normal", "full")
STUDIES = {size: {name: load_study(name, size) for name in load_study("sources").parts} for size in SIZES}


def list_claims(study: Experiment) -> list[Claim]:
    """The claims of a study, by their texts and by the program of their source."""
    by_script = (
        replace(claim, id=f"{claim.id} by its {claim.script.by}", tests=claim.script.tests, script=None)
        for claim in study.claims
        if claim.script is not None
    )
    return [*study.claims, *by_script]


CLAIMS = [
    pytest.param(study, claim, id=f"{claim.id}-{size}")
    for size, studies in STUDIES.items()
    for study in studies.values()
    for claim in list_claims(study)
]
ON_PLATFORMS = "second platform"
"""What a claim needs that is judged over the runs of two."""


class ClaimCell(NamedTuple):
    """A cell of a scenario, or the code of a contestant: then the scenario is its kind, and there are no levels."""

    scenario: str
    contestant: str
    levels: tuple[tuple[str, type_level], ...]


FiguresByCell = dict[tuple[str, ClaimCell], float]
"""A figure by metric and cell: a share as it is, any other as its logarithm."""


def is_share(metric: str) -> bool:
    return METRICS[metric].scale == "share"


# --- what a claim compares -----------------------------------------------------------------------------------------


def all_cells(scenario: Scenario) -> Iterator[ClaimCell]:
    for levels in combinations(scenario):
        for name in scenario.contestants:
            yield ClaimCell(scenario.name, name, tuple(levels.items()))


def cells_of(study: Experiment, selection: Cells, metric: str) -> list[ClaimCell]:
    if METRICS[metric].of_code is not None:
        kind, coordinate = find_code_coordinate(selection)
        return [ClaimCell(kind, str(name), ()) for name in selection.at[coordinate]]
    (scenario,) = (candidate for candidate in study.scenarios if candidate.name == selection.scenario)
    return [
        cell
        for cell in all_cells(scenario)
        if all(
            {CONTESTANT: cell.contestant, **dict(cell.levels)}.get(name) in chosen
            for name, chosen in selection.at.items()
        )
    ]


@lru_cache
def measured_once(name: str, size: Budget) -> Evidence:
    """A run of every cell of a study: the comparisons of some claims are those of the cells that were measured."""
    study = STUDIES[size][name].with_each(blocks=1)
    everywhere = (cell for scenario in study.scenarios for cell in all_cells(scenario))
    run = of_points(study, [TruthPoint(cell.scenario, cell.contestant, dict(cell.levels), {}) for cell in everywhere])
    return evidence_of(run, split(run))


def comparisons(study: Experiment, claim: Claim) -> list[ClaimComparison]:
    return [step for test in claim.tests for step in list_steps(test, measured_once(study.name, study.budget))]


# --- figures for which they hold -----------------------------------------------------------------------------------


Sides = list[tuple[int, list[tuple[str, ClaimCell]]]]


def sides(study: Experiment, step: ClaimComparison) -> Iterator[tuple[int, list[tuple[str, ClaimCell]]]]:
    """What is added up in a comparison, and what is taken off."""
    for sign, selection in zip((1, -1, -1, 1), (step.a, step.b, *(step.over or ())), strict=False):
        if selection is not None:
            yield sign, [(step.metric, cell) for cell in cells_of(study, selection, step.metric)]


def settle(step: ClaimComparison, moved: Sides, truth: FiguresByCell) -> bool:
    """Whether a comparison holds clearly; where it does not, its sides are moved so far that it does."""
    if step.subtracts:
        return settle_difference(step, moved, truth)
    share = is_share(step.metric)
    threshold = step.threshold if share else math.log(step.threshold)
    clear = 0.4 * min(threshold, 1 - threshold) if share and threshold else 0.02
    for _, keys in moved:
        for key in keys:
            truth.setdefault(key, 0.5 if share else math.log(1e6))
    way = 1 if step.side == "above" else -1
    lies = sum(sign * fmean(truth[key] for key in keys) for sign, keys in moved)
    short = clear - way * (lies - threshold)
    if short <= 0:
        return True
    for sign, keys in moved:
        for key in keys:
            truth[key] += sign * way * (short + clear) / len(moved)
    return False


def settle_difference(step: ClaimComparison, moved: Sides, truth: FiguresByCell) -> bool:
    """The same of a comparison of differences: whichever side is to be greater grows."""
    for _, keys in moved:
        for key in keys:
            truth.setdefault(key, math.log(1e6))
    way = 1 if step.side == "above" else -1
    clear = 0.05 * max(math.exp(truth[key]) for _, keys in moved for key in keys)
    lies = sum(sign * fmean(math.exp(truth[key]) for key in keys) for sign, keys in moved)
    short = clear - way * (lies - step.threshold)
    if short <= 0:
        return True
    for key in moved[0 if way > 0 else 1][1]:
        truth[key] = math.log(math.exp(truth[key]) + short + clear)
    return False


def can_fail(step: ClaimComparison) -> bool:
    """Whether a figure can show that a comparison does not hold; what overestimates something never shows that it is
    large."""
    return not (METRICS[step.metric].is_upper_bound and step.side == "below")


def settled(study: Experiment, plan: Sequence[ClaimComparison], truth: FiguresByCell) -> FiguresByCell:
    """Figures near these for which all of the plan holds."""
    figures, moved = dict(truth), [list(sides(study, step)) for step in plan]
    for _ in range(1000):
        if False not in [settle(step, of_step, figures) for step, of_step in zip(plan, moved, strict=True)]:
            assert all(0 <= value <= 1 for (metric, _), value in figures.items() if is_share(metric))
            return figures
    raise AssertionError("no figures were found for which all of its comparisons hold")


def against(step: ClaimComparison) -> ClaimComparison:
    return replace(step, side="below" if step.side == "above" else "above")


# --- runs with such figures ----------------------------------------------------------------------------------------


def run_of(study: Experiment, claim: Claim, truth: FiguresByCell) -> Run:
    """The run of a large machine that measured this, with its single claim."""
    figures: dict[ClaimCell, dict[str, float]] = defaultdict(dict)
    code: dict[ClaimCell, dict[str, float]] = defaultdict(dict)
    for (metric, cell), value in truth.items():
        where = figures if METRICS[metric].of_code is None else code
        where[cell][metric] = value if is_share(metric) else math.exp(value)
    points = [TruthPoint(cell.scenario, cell.contestant, dict(cell.levels), own) for cell, own in figures.items()]
    run = of_points(replace(study, claims=(claim,)), points)
    return on_platform(replace(run, about=tuple(about(cell, own) for cell, own in code.items())), "one")


def about(cell: ClaimCell, code: Mapping[str, float]) -> About:
    size = CodeSize(files=1, lines=0, functions=1, complexity=0, complexity_max=0)
    size = replace(size, **{metric: round(value) for metric, value in code.items()})
    return About(kind="client" if cell.scenario == "client" else "server", name=cell.contestant, code=size)


@cache
def _figures(name: str, size: Budget, claim_id: str) -> tuple[Run, tuple[tuple[ClaimComparison, Run], ...]]:
    study = STUDIES[size][name]
    (claim,) = (candidate for candidate in list_claims(study) if candidate.id == claim_id)
    plan = comparisons(study, claim)
    holds = settled(study, plan, {})
    fails = ((step, run_of(study, claim, settled(study, [against(step)], holds))) for step in plan)
    return run_of(study, claim, holds), tuple(fails)


def both_ways(study: Experiment, claim: Claim) -> tuple[Run, tuple[tuple[ClaimComparison, Run], ...]]:
    """A run in which all comparisons of a claim hold, and for each of them a run in which it does not. Made once: what
    a large machine and two smaller ones say of them differs by the environment alone."""
    return _figures(study.name, study.budget, claim.id)


def on_platform(run: Run, name: str) -> Run:
    return replace(run, run_id=name, environment=run.environment | {"cpu_model": name})


def verdict(run: Run) -> ClaimVerdict:
    (judged,) = judge_claims(run)
    return judged.verdict


def sent_in_the_window(scenario: Scenario, answer_s: float) -> bool:
    """Return whether a client in rounds whose answers take so long sends within the measured window."""
    apart_s = math.ceil(answer_s / scenario.round_s) * scenario.round_s
    return math.ceil(scenario.warmup_s / apart_s) * apart_s < scenario.warmup_s + scenario.duration_s


# --- both ways -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("study", "claim"), CLAIMS)
def test_every_claim_comes_out_both_ways(study: Experiment, claim: Claim) -> None:
    holds, fails = both_ways(study, claim)
    assert fails
    if ON_PLATFORMS not in claim.needs:
        assert verdict(holds) == "confirmed"
        expected = ["refuted" if can_fail(step) else "undecided" for step, _ in fails]
        assert [verdict(run) for _, run in fails] == expected
        assert "refuted" in expected
        return
    elsewhere = on_platform(fails[0][1], "other")
    (different,), (same,) = (
        judge_across_runs([holds, elsewhere]),
        judge_across_runs([holds, on_platform(holds, "alike")]),
    )
    assert (different.together, same.together) == ("confirmed", "refuted")


BOTH = {"confirmed", "refuted"}
CONFIRMED, REFUTED = {"confirmed"}, {"refuted"}
WITH_TWO_SERVER_CORES = {"A7": BOTH, "C1": BOTH, "C2": CONFIRMED, "C6": BOTH, "C7": CONFIRMED}
WITH_TWO_SERVER_CORES |= dict.fromkeys(("E1", "E2", "E5"), REFUTED)
WITH_ONE_SERVER_CORE = WITH_TWO_SERVER_CORES | dict.fromkeys(("C5", "C8", "C9", "D2"), BOTH) | {"C4": {"confirmed"}}
"""The verdicts that the needs of a claim forbid on a machine of two cores."""


@pytest.mark.parametrize(
    ("pinned", "forbidden"), [("0", WITH_ONE_SERVER_CORE), ("0,1", WITH_TWO_SERVER_CORES)], ids=["apart", "shared"]
)
@pytest.mark.parametrize(
    ("study", "claim"),
    [pytest.param(study, claim, id=claim.id) for study in STUDIES["normal"].values() for claim in list_claims(study)],
)
def test_two_cores_decide_all_that_no_need_forbids(
    study: Experiment, claim: Claim, pinned: str, forbidden: Mapping[str, set[ClaimVerdict]]
) -> None:
    holds, fails = both_ways(study, claim)
    environment = {"cores_allowed": 2, "pinning.server": pinned, "platforms": 1, "hosts": 1}
    verdicts = set[ClaimVerdict]()
    for run in (holds, *(run for step, run in fails if can_fail(step))):
        verdicts.add(verdict(replace(run, environment=environment)))
        if verdicts >= BOTH:
            break
    assert verdicts & BOTH == BOTH - forbidden.get(claim.id.partition(" ")[0], set())


@pytest.mark.parametrize("size", SIZES)
def test_a_window_can_hold_the_answers_that_confirm_a_claim(size: Budget) -> None:
    for study in STUDIES[size].values():
        in_rounds = {scenario.name: scenario for scenario in study.scenarios if scenario.round_s}
        for claim in study.claims:
            for (metric, cell), value in settled(study, comparisons(study, claim), {}).items():
                is_answer = cell.scenario in in_rounds and METRICS[metric].unit is TIME
                if is_answer:
                    assert sent_in_the_window(in_rounds[cell.scenario], math.exp(value) / 1e9), (claim.id, cell)


def test_the_page_has_every_claim_once() -> None:
    page = (ROOT / "docs" / "measurements" / "claims.md").read_text()
    listed = re.findall(r"^\* \*\*(\w+)\*\*", page, re.MULTILINE)
    assert listed == [claim.id for study in STUDIES["normal"].values() for claim in study.claims]

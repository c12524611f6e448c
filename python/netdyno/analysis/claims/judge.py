"""From a stored run to the verdicts on its claims. Pure: a verdict comes from data only, the same run gives the same
verdicts.

A comparison holds or fails where its 95% interval over blocks leaves out the threshold; else it is open. To be
confirmed, everything that the claim needs must hold, each at 5% by itself: more comparisons make that harder, so
nothing is corrected. To be refuted, one that fails is enough, and more of them make that easier, so there each has its
share of the 5% (docs/adr/claims.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from netdyno.analysis.claims.evidence import Evidence, coordinates
from netdyno.analysis.claims.evidence import evidence as evidence_of
from netdyno.analysis.claims.needs import missing_levels, missing_need, missing_trials, offered, whose_code
from netdyno.analysis.claims.steps import apart, neutral, steps, unpaired
from netdyno.analysis.split import split
from netdyno.contestants import codesize
from netdyno.model import outcomes, transports
from netdyno.model.claim import CONTESTANT, Bound, Cells, Claim, Ratio, Test
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, WHYS, Metric
from netdyno.model.run import Run
from netdyno.model.verdicts import (
    Check,
    ClaimVerdict,
    CountedBeside,
    Judged,
    Lacking,
    Outcome,
    Refused,
    SideCount,
    Step,
)
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Interval, Samples


def judge(run: Run, level: float = stats.LEVEL) -> tuple[Judged, ...]:
    """The verdict on every claim of the run's experiment, in their order."""
    return verdicts(run.experiment.claims, evidence_of(run, split(run)), level)


def verdicts(claims: Sequence[Claim], evidence: Evidence, level: float) -> tuple[Judged, ...]:
    """In the order of the claims."""
    return tuple(_judge(claim, evidence, level) for claim in claims)


def _judge(claim: Claim, evidence: Evidence, level: float) -> Judged:
    planned: Sequence[Step] = [step for test in claim.tests for step in steps(test, evidence)]
    scenarios = _scenarios(evidence)
    lacking = missing_need(claim.needs, evidence) or _names_refused(planned, evidence.refused)
    if lacking:
        return Judged(claim, "not_testable", lacking, (), None, {}, scenarios)
    planned, left_out = offered(planned, evidence)
    if left_out and not planned:
        return Judged(claim, "not_testable", left_out, (), None, {}, scenarios)
    gaps: list[Lacking | None] = [missing_levels(test, evidence) for test in claim.tests]
    gaps += [missing_trials(cells, evidence, METRICS[step.metric]) for step in planned for cells in step.all_cells]
    checks = _corrected([_check(step, evidence, level, len(planned)) for step in planned], level)
    gap = next((gap for gap in gaps if gap), None)
    verdict = _verdict(checks, gap)
    return Judged(
        claim=claim,
        verdict=verdict,
        lacking=gap if verdict == "not_testable" else None,
        checks=checks,
        beside=_beside(claim, evidence) if claim.why and verdict != "not_testable" else None,
        losses=_largest_losses(
            [cells for step in planned if METRICS[step.metric].latency for cells in step.all_cells], evidence
        ),
        scenarios=scenarios,
        left_out=left_out,
    )


def _scenarios(evidence: Evidence) -> Mapping[str, str]:
    """A scenario without the name of its study, which the claim is one of."""
    if len(evidence.parts) < 2:
        return {}
    parted = {name: name.partition(": ") for name in evidence.parts}
    return {
        name: short if found and study in evidence.studies else name for name, (study, found, short) in parted.items()
    }


def _names_refused(planned: Sequence[Step], refused: Mapping[str, str]) -> Refused | None:
    named = {str(name) for step in planned for cells in step.all_cells for name in cells.at.get(CONTESTANT, ())}
    found = {name: refused[name] for name in sorted(named.intersection(refused))}
    return Refused(found) if found else None


def _verdict(checks: Sequence[Check], gap: Lacking | None) -> ClaimVerdict:
    """All tests of a claim together: one that fails refutes it, whatever cannot be tested of the rest."""
    if any(one.outcome == "fails" for one in checks):
        return "refuted"
    if gap:
        return "not_testable"
    return "undecided" if any(one.needed and one.outcome == "open" for one in checks) else "confirmed"


# --- one comparison ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How two figures are compared, and what a mean of such contrasts says."""

    ratio: bool

    def contrast(self, a: float, b: float) -> float:
        return math.log(a / b) if self.ratio else a - b

    def effect(self, mean: float) -> float:
        return math.exp(mean) if self.ratio else mean


def _check(step: Step, evidence: Evidence, level: float, comparisons: int) -> Check:
    """One comparison of so many, before any correction."""
    metric = METRICS[step.metric]
    scale, one = Scale(metric.scale == "ratio"), neutral(step.metric)
    dropped, differ = unpaired(step, evidence), apart(step.a, step.b, evidence)
    sides = [_samples(evidence, metric, cells, dropped) for cells in step.cells]
    if step.over is not None:
        bases = [_samples(evidence, metric, cells, dropped) for cells in step.over]
        sides = [_divided(side, base) for side, base in zip(sides, bases, strict=True)]
    first, second = sides[0], sides[1] if step.b is not None else dict.fromkeys(sides[0], one)
    shared = stats.counted(first.keys() & second.keys())
    blank = Check(
        step=step,
        paired_by=tuple(name for name in step.a.at if name not in differ) if step.b is not None else (),
        effect=math.nan,
        interval=None,
        figures=(),
        losses=(),
        pairs=len(shared),
        blocks=len({block for block, _ in shared}),
        p=1.0,
        p_corrected=1.0,
        outcome="open",
        why_open="no_figures",
    )
    if not shared:
        return blank
    if scale.ratio and min(min(first[cell], second[cell]) for cell in shared) <= 0:
        return replace(blank, why_open="zero")
    both = {cell: (first[cell], second[cell]) for cell in shared}
    return _measured(blank, step, scale, both, evidence, level, comparisons)


def _measured(
    blank: Check,
    step: Step,
    scale: Scale,
    figures: Mapping[stats.Cell, tuple[float, float]],
    evidence: Evidence,
    level: float,
    comparisons: int,
) -> Check:
    metric = METRICS[step.metric]
    threshold = scale.contrast(step.threshold, neutral(step.metric))
    contrasts = {cell: scale.contrast(a, b) for cell, (a, b) in figures.items()}
    pairs = stats.pairs_of(contrasts)
    mean = stats.log_ratio(pairs)
    exact = metric.of_code is not None
    found = None if exact else stats.mean_interval(pairs, level)
    interval = found and Interval(scale.effect(found.low), scale.effect(found.high))
    p = 0.0 if exact else stats.mean_p(pairs, threshold)
    check = replace(
        blank,
        effect=scale.effect(mean),
        interval=interval,
        p=p,
        p_corrected=p,
        figures=tuple(_middle(scale, [pair[side] for pair in figures.values()]) for side, _ in enumerate(step.cells)),
        losses=tuple(_loss_beside(cells, metric, evidence) for cells in step.cells),
    )
    outcome = _outcome(_side(mean, found, threshold, exact=exact), step.side)
    if outcome == "holds" or exact:
        return replace(check, outcome=outcome, why_open=None)
    tends_to_hold = (mean > threshold) == (step.side == "above")
    # what is to fail must do so among all of them (_corrected)
    enough = stats.blocks_to_leave_out(pairs, threshold, level if tends_to_hold else level / comparisons)
    check = replace(check, blocks_to_decide=enough)
    if outcome == "fails":
        return replace(check, outcome=outcome, why_open=None)
    return replace(check, why_open="few_blocks" if check.blocks < FEWEST_BLOCKS else "near")


def _middle(scale: Scale, figures: Sequence[float]) -> float:
    """The mean as the scale has it: geometric where ratios are compared."""
    return scale.effect(sum(scale.contrast(one, 1.0 if scale.ratio else 0.0) for one in figures) / len(figures))


def _side(mean: float, interval: Interval | None, threshold: float, *, exact: bool) -> str:
    """On which side of the threshold the effect lies with its whole interval; empty where that cannot be said."""
    low, high = (mean, mean) if exact else (interval.low, interval.high) if interval else (-math.inf, math.inf)
    return "above" if low > threshold else "below" if high < threshold else ""


def _outcome(lies: str, claimed: str) -> Outcome:
    if not lies:
        return "open"
    return "holds" if lies == claimed else "fails"


def _corrected(checks: Sequence[Check], level: float) -> tuple[Check, ...]:
    """The same corrected for their number (Bonferroni): what fails only without that is open."""
    return tuple(_corrected_among(one, len(checks), level) for one in checks)


def _corrected_among(one: Check, comparisons: int, level: float) -> Check:
    p = min(1.0, comparisons * one.p)
    if one.outcome != "fails" or p <= level:
        return replace(one, p_corrected=p)
    return replace(one, p_corrected=p, outcome="open", why_open="unproven")


def _samples(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> Samples:
    """The metric by block and the coordinates that cells are paired by."""
    if metric.of_code is not None:
        return _of_code(evidence, metric, cells, dropped)
    found: dict[stats.Cell, float] = {}
    for trial, load in evidence.counted(cells, metric.statuses):
        figure = metric.of(trial, load)
        if figure is not None:
            kept = {name: value for name, value in coordinates(trial).items() if name not in dropped}
            found[trial.block, level_key(kept)] = figure
    return found


def _divided(samples: Samples, base: Samples) -> Samples:
    """Where both are known. Nothing can be divided by 0: such a cell is 0 itself, which has no ratio either."""
    return {
        cell: samples[cell] / base[cell] if base[cell] else 0.0 for cell in stats.counted(samples.keys() & base.keys())
    }


def _of_code(evidence: Evidence, metric: Metric, cells: Cells, dropped: set[str]) -> Samples:
    """Of a server's or a client's own code and what its family shares: a loop in servers/_shared/ is its code too."""
    assert metric.of_code is not None
    kind, coordinate = whose_code(cells)
    return {
        (0, "" if coordinate in dropped else about.name): float(metric.of_code(code))
        for about in evidence.about
        if about.kind == kind and about.name in cells.at.get(coordinate, (about.name,))
        if (code := codesize.with_family(about, evidence.about)) is not None
    }


# --- what goes with a verdict ------------------------------------------------------------------------------------


def _beside(claim: Claim, evidence: Evidence) -> CountedBeside:
    """What was counted on each side of the claim: where a test goes along something, at its ends."""
    sides: list[Cells] = []
    for test in claim.tests:
        for step in steps(_whole(test), evidence):
            sides += [cells for cells in step.cells if step.needed and cells not in sides]
    name = WHYS[claim.why]
    return CountedBeside(name, tuple(_side_count(METRICS[name], cells, evidence) for cells in sides))


def _side_count(metric: Metric, cells: Cells, evidence: Evidence) -> SideCount:
    trials = list(evidence.counted(cells, outcomes.MEASURED))
    return SideCount(cells, len(trials), metric.over(trials))


def _whole(test: Test) -> Test:
    """The test over all its cells together."""
    return msgspec.structs.replace(test, every=False) if isinstance(test, Ratio | Bound) else test


def _loss_beside(cells: Cells, metric: Metric, evidence: Evidence) -> float | None:
    """The largest loss of a trial that a latency is from; None where none can be lost."""
    most = _largest_losses([cells], evidence) if metric.latency else {}
    return max(most.values(), default=None)


def _largest_losses(selections: Sequence[Cells], evidence: Evidence) -> Mapping[str, float]:
    """By contestant the largest share of messages lost in a trial, of those whose transport may lose some."""
    most: dict[str, float] = {}
    for cells in selections:
        for trial, load in evidence.counted(cells, outcomes.VALID):
            lost = transports.share_lost(load)
            if lost is not None:
                most[trial.contestant] = max(lost, most.get(trial.contestant, 0.0))
    return dict(sorted(most.items()))

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

from netdyno.analysis import excluded, measured
from netdyno.analysis.claims.needs import missing_levels, missing_need, missing_trials
from netdyno.analysis.claims.steps import Step, apart, coordinates, is_in, neutral, steps
from netdyno.base import quantities
from netdyno.contestants import codesize
from netdyno.model import outcomes, transports
from netdyno.model.claim import CONTESTANT, Bound, Cells, Claim, Ratio, Test
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, WHYS, Counted, Metric
from netdyno.model.run import Run
from netdyno.model.verdicts import Check, ClaimVerdict, Judged, Outcome
from netdyno.present.prose import claims, loss
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Interval, Samples

MOST_SIDES = 6
"""Sides of a claim that its sentence of why tells one by one."""


def judge(run: Run, level: float = stats.LEVEL) -> tuple[Judged, ...]:
    """The verdict on every claim of the run's experiment, in their order. Who is unsafe or not ranked enters none."""
    safe, refused = excluded.without(run), excluded.refused(run)
    return tuple(_judge(claim, safe, refused, level) for claim in run.experiment.claims)


def _judge(claim: Claim, run: Run, refused: Mapping[str, str], level: float) -> Judged:
    planned = [step for test in claim.tests for step in steps(test, run)]
    lacking = missing_need(claim.needs, run) or _names_refused(planned, refused)
    if lacking:
        return Judged(claim, "not_testable", lacking, (), "", ())
    gaps = [missing_levels(test, run) for test in claim.tests]
    gaps += [missing_trials(cells, run, METRICS[step.metric]) for step in planned for cells in step.cells]
    checks = _corrected([_check(step, run, level) for step in planned], level)
    verdict, reason = _verdict(checks, next((gap for gap in gaps if gap), ""))
    return Judged(
        claim=claim,
        verdict=verdict,
        reason=reason,
        checks=checks,
        why=_why(claim, run) if verdict != "not_testable" else "",
        notes=_losses(planned, run),
    )


def _names_refused(planned: Sequence[Step], refused: Mapping[str, str]) -> str:
    named = {str(name) for step in planned for cells in step.cells for name in cells.at.get(CONTESTANT, ())}
    found = sorted(named.intersection(refused))
    what = " or ".join(sorted({refused[name] for name in found}))
    return f"{quantities.listed(found)} {'is' if len(found) == 1 else 'are'} {what} and in no claim" if found else ""


def _verdict(checks: Sequence[Check], gap: str) -> tuple[ClaimVerdict, str]:
    """All tests of a claim together: one that fails refutes it, whatever cannot be tested of the rest."""
    if any(one.outcome == "fails" for one in checks):
        return "refuted", ""
    if gap:
        return "not_testable", gap
    open_ones = [one for one in checks if one.needed and one.outcome == "open"]
    if not open_ones:
        return "confirmed", ""
    more = len(open_ones) - 1
    others = f"; and {more} more {'is' if more == 1 else 'are'} open" if more else ""
    first = open_ones[0]
    return "undecided", f"{first.what}: {first.why_open or _why_open(first)}{others}"


# --- one comparison ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How two figures are compared, and what a mean of such contrasts says."""

    ratio: bool

    def contrast(self, a: float, b: float) -> float:
        return math.log(a / b) if self.ratio else a - b

    def effect(self, mean: float) -> float:
        return math.exp(mean) if self.ratio else mean


def _check(step: Step, run: Run, level: float) -> Check:
    """One comparison, before any correction."""
    metric = METRICS[step.metric]
    scale, one = Scale(metric.scale == "ratio"), neutral(step.metric)
    dropped = apart(step.a, step.b, run)
    sides = [_samples(run, metric, cells, dropped) for cells in step.cells]
    first, second = sides[0], sides[1] if step.b is not None else dict.fromkeys(sides[0], one)
    shared = stats.counted(first.keys() & second.keys())
    blank = Check(
        what=claims.what(step, run),
        claimed=claims.claimed(step),
        effect=math.nan,
        interval=None,
        shown=quantities.DASH,
        figures=(),
        pairs=len(shared),
        blocks=len({block for block, _ in shared}),
        p=1.0,
        p_corrected=1.0,
        outcome="open",
        needed=step.needed,
    )
    if not shared:
        return replace(blank, why_open="no block has a figure of all it compares")
    if scale.ratio and min(min(first[cell], second[cell]) for cell in shared) <= 0:
        return replace(blank, why_open=f"a {metric.title} of 0 has no ratio")
    return _measured(blank, step, scale, {cell: (first[cell], second[cell]) for cell in shared}, run, level)


def _measured(
    blank: Check,
    step: Step,
    scale: Scale,
    figures: Mapping[stats.Cell, tuple[float, float]],
    run: Run,
    level: float,
) -> Check:
    metric = METRICS[step.metric]
    threshold = scale.contrast(step.threshold, neutral(step.metric))
    contrasts = {cell: scale.contrast(a, b) for cell, (a, b) in figures.items()}
    pairs = stats.pairs_of(contrasts)
    mean = stats.log_ratio(pairs)
    exact = metric.of_code is not None
    found = None if exact else stats.mean_interval(pairs, level)
    interval = found and Interval(scale.effect(found.low), scale.effect(found.high))
    beside = [_loss_beside(cells, metric, run) for cells in step.cells]
    p = 0.0 if exact else stats.mean_p(pairs, threshold)
    check = replace(
        blank,
        effect=scale.effect(mean),
        interval=interval,
        p=p,
        shown=claims.shown(step, scale.effect(mean), interval) + (beside[0] if step.b is None else ""),
        figures=tuple(
            metric.speak(_middle(scale, [pair[side] for pair in figures.values()])) + lost
            for side, lost in enumerate(beside)
        ),
    )
    lies = _side(mean, found, threshold, exact=exact)
    return replace(check, outcome=_outcome(lies, step.side), p_corrected=p)


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
    why = f"it fails, but not proven so among {comparisons} comparisons ({quantities.p_value(p)} corrected)"
    return replace(one, p_corrected=p, outcome="open", why_open=why)


def _why_open(one: Check) -> str:
    """Too few blocks, or an effect too near to the threshold."""
    if one.blocks < FEWEST_BLOCKS:
        return f"too few blocks: {one.blocks}, and a verdict needs {FEWEST_BLOCKS}"
    return f"{one.shown} cannot be told from the threshold ({quantities.p_value(one.p)})"


def _samples(run: Run, metric: Metric, cells: Cells, dropped: set[str]) -> Samples:
    """The metric by block and the coordinates that cells are paired by."""
    if metric.of_code is not None:
        return _of_code(run, metric, cells, dropped)
    found: dict[stats.Cell, float] = {}
    for trial, load in measured.first(run, cells.scenario, metric.statuses):
        figure = metric.of(trial, load) if is_in(cells, trial) else None
        if figure is not None:
            kept = {name: value for name, value in coordinates(trial).items() if name not in dropped}
            found[trial.block, level_key(kept)] = figure
    return found


def _of_code(run: Run, metric: Metric, cells: Cells, dropped: set[str]) -> Samples:
    """Of a server's own code and what its family shares: a loop in servers/_shared/ is its code too."""
    assert metric.of_code is not None
    return {
        (0, "" if CONTESTANT in dropped else about.name): float(metric.of_code(code))
        for about in run.about
        if about.kind == "server" and about.name in cells.at.get(CONTESTANT, (about.name,))
        if (code := codesize.with_family(about, run.about)) is not None
    }


# --- what goes with a verdict ------------------------------------------------------------------------------------


def _why(claim: Claim, run: Run) -> str:
    """What was counted on each side of the claim: where a test goes along something, at its ends."""
    if not claim.why:
        return ""
    told: list[Cells] = []
    for test in claim.tests:
        for step in steps(_whole(test), run):
            told += [cells for cells in step.cells if step.needed and cells not in told]
    told = told[:MOST_SIDES]
    same = claims.shared(told) if told else set()
    sides = [(f"({claims.cells(cells, run, same)})", _counted(cells, run)) for cells in told]
    return claims.why(METRICS[WHYS[claim.why]], sides)


def _counted(cells: Cells, run: Run) -> list[Counted]:
    return [one for one in measured.first(run, cells.scenario, outcomes.MEASURED) if is_in(cells, one[0])]


def _whole(test: Test) -> Test:
    """The test over all its cells together."""
    return msgspec.structs.replace(test, every=False) if isinstance(test, Ratio | Bound) else test


def _loss_beside(cells: Cells, metric: Metric, run: Run) -> str:
    """The largest loss of a trial that a latency is from, with a space before it; nothing where none can be lost."""
    most = _largest_losses([cells], run) if metric.latency else {}
    return f" ({loss.of_messages(max(most.values()))})" if most else ""


def _losses(planned: Sequence[Step], run: Run) -> tuple[str, ...]:
    """Latencies leave lost messages out: how many each contestant lost in the trials that a latency here is from, over
    a transport that may lose some. None at all is said, too: the reader must not have to guess."""
    most = _largest_losses([cells for step in planned if METRICS[step.metric].latency for cells in step.cells], run)
    return tuple(
        f"{name} lost up to {quantities.share(lost)} of its messages in a trial, and latencies leave those out"
        if lost
        else f"{name} lost none of its messages"
        for name, lost in sorted(most.items())
    )


def _largest_losses(selections: Sequence[Cells], run: Run) -> Mapping[str, float]:
    """By contestant the largest share of messages lost in a trial, of those whose transport may lose some."""
    most: dict[str, float] = {}
    for cells in selections:
        for trial, load in measured.first(run, cells.scenario, outcomes.VALID):
            lost = transports.share_lost(load)
            if is_in(cells, trial) and lost is not None:
                most[trial.contestant] = max(lost, most.get(trial.contestant, 0.0))
    return most

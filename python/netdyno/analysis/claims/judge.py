"""From a stored run to the verdicts on its claims. Pure: a verdict comes from data only, the same run gives the same
verdicts.

A comparison holds or fails where its 95% interval over blocks leaves out the threshold; else it is open. One of bounds
(claims/bounds.py) decides in its own direction only. To be confirmed, everything that the claim needs must hold, each
at 5% by itself: more comparisons make that harder, so nothing is corrected. To be refuted, one that fails is enough,
and more of them make that easier, so there each has its share of the 5% (docs/adr/claims.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from netdyno.analysis.claims.bounds import (
    BoundedFigure,
    contrast_sign,
    divided,
    less,
    limit_of,
    of_one_sign,
    samples_of,
)
from netdyno.analysis.claims.evidence import Evidence
from netdyno.analysis.claims.evidence import evidence as evidence_of
from netdyno.analysis.claims.needs import missing_levels, missing_need, missing_trials, offered
from netdyno.analysis.claims.steps import apart, neutral, steps, unpaired
from netdyno.analysis.split import split
from netdyno.model import outcomes, transports
from netdyno.model.claim import CONTESTANT, Bound, Cells, Claim, Ratio, Test
from netdyno.model.metrics import METRICS, WHYS, Metric
from netdyno.model.run import Run
from netdyno.model.verdicts import (
    Check,
    ClaimVerdict,
    CountedBeside,
    GeneratorAtLimit,
    Judged,
    Lacking,
    NotOffered,
    Outcome,
    Refused,
    SideCount,
    Step,
)
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Interval


def judge(run: Run, level: float = stats.LEVEL) -> tuple[Judged, ...]:
    """The verdict on every claim of the run's experiment, in their order."""
    return verdicts(run.experiment.claims, evidence_of(run, split(run)), level)


def verdicts(claims: Sequence[Claim], evidence: Evidence, level: float) -> tuple[Judged, ...]:
    """In the order of the claims."""
    return tuple(_judge(claim, evidence, level) for claim in claims)


def _judge(claim: Claim, evidence: Evidence, level: float) -> Judged:
    every: Sequence[Step] = [step for test in claim.tests for step in steps(test, evidence)]
    scenarios = _scenarios(evidence)
    lacking = missing_need(claim.needs, evidence, _named(every)) or _names_refused(every, evidence.refused)
    if lacking:
        return Judged(claim, "not_testable", lacking, (), None, {}, scenarios)
    asked, planned, left_out = _asked(claim, evidence)
    if left_out and not planned:
        return Judged(claim, "not_testable", left_out, (), None, {}, scenarios)
    gaps: list[Lacking | None] = [one.gap(evidence) for one in asked]
    gaps += [
        missing_trials(cells, evidence, METRICS[step.metric])
        for step in planned
        if not _owner(asked, step).test.only_refutes
        for cells in step.all_cells
    ]
    gaps += [] if any(step.needed for step in planned) else [left_out]
    found = _corrected([_check(step, evidence, level, len(planned)) for step in planned], level)
    checks: list[Check] = []
    for check in found:
        blocked = _owner(asked, check.step).blocked(check.outcome)
        gaps += [blocked, _generator_at_limit(check, evidence)]
        checks.append(replace(check, outcome="open", why_open="need") if blocked else check)
    gap = next((gap for gap in gaps if gap), None)
    verdict = _verdict(checks, gap)
    return Judged(
        claim=claim,
        verdict=verdict,
        lacking=gap if verdict == "not_testable" else None,
        checks=tuple(checks),
        beside=_beside(claim, evidence) if claim.why and verdict != "not_testable" else None,
        losses=_largest_losses(
            [cells for step in planned if METRICS[step.metric].latency for cells in step.all_cells], evidence
        ),
        scenarios=scenarios,
        left_out=left_out,
        system=str(evidence.environment.get("system", "")) if claim.published_on else "",
    )


@dataclass(frozen=True)
class _Asked:
    """A test with the comparisons that can be made for it, and what the machine lacks: for any verdict of it, to
    confirm, and to refute."""

    test: Test
    steps: tuple[Step, ...]
    lacking: Lacking | None
    to_confirm: Lacking | None
    to_refute: Lacking | None

    def gap(self, evidence: Evidence) -> Lacking | None:
        """Return what is missing for the test to be made; of one that only refutes nothing has to be there."""
        return None if self.test.only_refutes else self.lacking or missing_levels(self.test, evidence)

    def blocked(self, outcome: Outcome) -> Lacking | None:
        """Return what is missing for a comparison to count that came out so."""
        holds = None if self.test.only_refutes else self.to_confirm
        return {"holds": holds, "fails": self.to_refute, "open": None}[outcome]


def _owner(asked: Sequence[_Asked], step: Step) -> _Asked:
    """Return the test that a comparison is of."""
    return next(one for one in asked if any(step is own for own in one.steps))


def _asked(claim: Claim, evidence: Evidence) -> tuple[list[_Asked], list[Step], NotOffered | None]:
    """Return the tests, all comparisons that can be made, and the cells of those that the generator could not offer."""
    asked: list[_Asked] = []
    for test in claim.tests:
        own = steps(test, evidence)
        names = _named(own)
        lacking = missing_need(test.needs, evidence, names)
        confirm = missing_need((*claim.needs_to_confirm, *test.needs_to_confirm), evidence, names, "confirm")
        refute = missing_need((*claim.needs_to_refute, *test.needs_to_refute), evidence, names, "refute")
        asked.append(_Asked(test, () if lacking else own, lacking, confirm, refute))
    planned, left_out = offered([step for one in asked for step in one.steps], evidence)
    return asked, list(planned), left_out


def _named(planned: Sequence[Step]) -> tuple[str, ...]:
    """Return the scenarios of these comparisons."""
    return tuple(dict.fromkeys(cells.scenario for step in planned for cells in step.all_cells))


def _generator_at_limit(check: Check, evidence: Evidence) -> GeneratorAtLimit | None:
    """Return beside which contestant the generator was at its limit, where the bounds that this left do not decide."""
    if check.why_open != "bound" or not check.needed:
        return None
    for cells in check.step.all_cells:
        name = next((trial.contestant for trial in evidence.trials(cells) if evidence.is_limited(trial)), None)
        if name is not None:
            return GeneratorAtLimit(name if CONTESTANT in cells.at else None)
    return None


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
    scale, one = Scale(metric.scale == "ratio" and not step.subtracts), BoundedFigure(_no_difference(step), 0)
    dropped, differ = unpaired(step, evidence), apart(step.a, step.b, evidence)
    sides = [samples_of(evidence, metric, cells, dropped) for cells in step.cells]
    if step.over is not None:
        bases = [samples_of(evidence, metric, cells, dropped) for cells in step.over]
        relate = less if step.subtracts else divided
        sides = [relate(side, base) for side, base in zip(sides, bases, strict=True)]
    first, second = sides[0], sides[1] if step.b is not None else dict.fromkeys(sides[0], one)
    signs = {cell: contrast_sign(first[cell].sign, second[cell].sign) for cell in first.keys() & second.keys()}
    shared = stats.counted(of_one_sign(signs))
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
        why_open="bound" if signs else "no_figures",
        limit=limit_of(signs[cell] for cell in shared),
    )
    if not shared:
        return blank
    if scale.ratio and min(min(first[cell].value, second[cell].value) for cell in shared) <= 0:
        return replace(blank, why_open="zero")
    both = {cell: (first[cell].value, second[cell].value) for cell in shared}
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
    threshold = scale.contrast(step.threshold, _no_difference(step))
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
    can_be = {"at_least": "above", "at_most": "below", None: ""}[check.limit]
    outcome = _outcome(_side(mean, found, threshold, exact=exact), step.side, can_be)
    if outcome == "holds" or exact:
        return replace(check, outcome=outcome, why_open=None)
    if can_be and (mean > threshold) != (can_be == "above"):
        return replace(check, why_open="bound")
    tends_to_hold = (mean > threshold) == (step.side == "above")
    # what is to fail must do so among all of them (_corrected)
    enough = stats.blocks_to_leave_out(pairs, threshold, level if tends_to_hold else level / comparisons)
    check = replace(check, blocks_to_decide=enough)
    if outcome == "fails":
        return replace(check, outcome=outcome, why_open=None)
    if step.least_published is not None:
        check = _beside_published(check, pairs, scale, found, step.least_published, level / comparisons)
        if check.is_short_of_published:
            return check
    return replace(check, why_open="few_blocks" if check.blocks < FEWEST_BLOCKS else "near")


def _beside_published(
    check: Check, pairs: stats.Pairs, scale: Scale, found: Interval | None, published: float, level: float
) -> Check:
    """Return an open comparison as one that fails where its interval lies short of every published effect, or with the
    number of blocks that would show that, where these are fewer."""
    least, above = scale.contrast(published, 1.0), check.step.side == "above"
    mean = stats.log_ratio(pairs)
    is_towards = check.limit is None or check.limit == ("at_most" if above else "at_least")
    if (mean < least) != above or not is_towards:
        return check
    enough = stats.blocks_to_leave_out(pairs, least, level)
    fewer = min((one for one in (enough, check.blocks_to_decide) if one is not None), default=None)
    check = replace(check, blocks_to_decide=fewer)
    if found is None or (found.high >= least if above else found.low <= least):
        return check
    p = stats.mean_p(pairs, least)
    return replace(check, p=p, p_corrected=p, outcome="fails", why_open=None, is_short_of_published=True)


def _no_difference(step: Step) -> float:
    return 0.0 if step.subtracts else neutral(step.metric)


def _middle(scale: Scale, figures: Sequence[float]) -> float:
    """The mean as the scale has it: geometric where ratios are compared."""
    return scale.effect(sum(scale.contrast(one, 1.0 if scale.ratio else 0.0) for one in figures) / len(figures))


def _side(mean: float, interval: Interval | None, threshold: float, *, exact: bool) -> str:
    """On which side of the threshold the effect lies with its whole interval; empty where that cannot be said."""
    low, high = (mean, mean) if exact else (interval.low, interval.high) if interval else (-math.inf, math.inf)
    return "above" if low > threshold else "below" if high < threshold else ""


def _outcome(lies: str, claimed: str, can_be: str) -> Outcome:
    """`can_be`: the only side on which a bound can show an effect to lie; empty where it is none."""
    if not lies or (can_be and lies != can_be):
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


# --- what goes with a verdict ------------------------------------------------------------------------------------


def _beside(claim: Claim, evidence: Evidence) -> CountedBeside:
    """What was counted on each side of the claim: where a test goes along something, at its ends."""
    sides: list[Cells] = []
    for test in claim.tests:
        for step in steps(_whole(test), evidence):
            is_told = step.needed or test.only_refutes
            sides += [cells for cells in step.cells if is_told and cells not in sides]
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
        for trial, load in evidence.counted(cells, outcomes.RANKED):
            lost = transports.share_lost(load)
            if lost is not None:
                most[trial.contestant] = max(lost, most.get(trial.contestant, 0.0))
    return dict(sorted(most.items()))

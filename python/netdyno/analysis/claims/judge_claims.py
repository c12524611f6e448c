"""From a stored run to the verdicts on its claims. Pure: a verdict comes from data only, the same run gives the same
verdicts.

A comparison holds or fails where its 95% interval over blocks leaves out the threshold; else it is open. A comparison
of bounds (claims/bounds.py) decides in its own direction only. A claim is confirmed where every comparison that it
needs holds, each at 5% by itself: more comparisons make that harder, so nothing is corrected. It is refuted where a
single one fails: more of them make that easier, so each has its share of the 5% (docs/adr/claims.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from netdyno.analysis.claims.bounds import (
    BoundedFigure,
    collect_figures,
    combine_signs,
    limit_of,
    relate_figures,
    select_one_sign,
)
from netdyno.analysis.claims.evidence import Evidence
from netdyno.analysis.claims.evidence import collect_evidence as evidence_of
from netdyno.analysis.claims.needs import find_missing_levels, find_missing_need, find_missing_trials, select_offered
from netdyno.analysis.claims.steps import find_differing_coordinates, find_neutral, find_unpaired, list_steps
from netdyno.analysis.trials.split import split
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Interval
from netdyno.model import outcomes, transports
from netdyno.model.claim import CONTESTANT, Bound, Cells, Claim, Ratio, Test
from netdyno.model.metrics import METRICS, WHYS, Metric
from netdyno.model.run import Run
from netdyno.model.verdicts import (
    ClaimComparison,
    ClaimVerdict,
    ComparisonOutcome,
    ComparisonResult,
    CountsOfSides,
    GeneratorAtLimit,
    JudgedClaim,
    Lacking,
    NotOffered,
    Refused,
    SideCount,
)


def judge_claims(run: Run, significance: float = stats.SIGNIFICANCE) -> tuple[JudgedClaim, ...]:
    """Return the verdict on every claim of the run's experiment, in their order."""
    return decide_claims(run.experiment.claims, evidence_of(run, split(run)), significance)


def decide_claims(claims: Sequence[Claim], evidence: Evidence, significance: float) -> tuple[JudgedClaim, ...]:
    """Return the verdicts in the order of the claims."""
    return tuple(_judge_both(claim, evidence, significance) for claim in claims)


def _judge_both(claim: Claim, evidence: Evidence, significance: float) -> JudgedClaim:
    """Judge a claim by its text and, where it has such tests, as its source ran its own program."""
    judged = _judge(claim, evidence, significance)
    if claim.script is None:
        return judged
    tested_by_script = msgspec.structs.replace(claim, tests=claim.script.tests, script=None, differs="", why="")
    return replace(judged, by_script=_judge(tested_by_script, evidence, significance))


def _judge(claim: Claim, evidence: Evidence, significance: float) -> JudgedClaim:
    all_steps: Sequence[ClaimComparison] = [step for test in claim.tests for step in list_steps(test, evidence)]
    scenarios = _shorten_scenarios(evidence)
    lacking = find_missing_need(claim.needs, evidence, _list_scenarios(all_steps)) or _find_refused(all_steps, evidence)
    if lacking:
        return JudgedClaim(claim, "not_testable", lacking, (), None, {}, scenarios)
    tests, planned, left_out = _plan_tests(claim, evidence)
    if left_out and not planned:
        return JudgedClaim(claim, "not_testable", left_out, (), None, {}, scenarios)
    gaps: list[Lacking | None] = [test.gap(evidence) for test in tests]
    gaps += [
        find_missing_trials(cells, evidence, METRICS[step.metric])
        for step in planned
        if not _find_owner(tests, step).test.only_refutes
        for cells in step.all_cells
    ]
    gaps += [] if any(step.needed for step in planned) else [left_out]
    checks: list[ComparisonResult] = []
    for step in planned:
        check = _correct(_compare(step, evidence, significance, len(planned)), len(planned), significance)
        blocked = _find_owner(tests, check.step).find_obstacle(check.outcome)
        gaps += [blocked, _find_generator_limit(check, evidence)]
        checks.append(replace(check, outcome="open", why_open="need") if blocked else check)
    gap = next((gap for gap in gaps if gap), None)
    verdict = _decide_verdict(checks, gap)
    return JudgedClaim(
        claim=claim,
        verdict=verdict,
        lacking=gap if verdict == "not_testable" else None,
        checks=tuple(checks),
        counts=_count_sides(claim, evidence) if claim.why and verdict != "not_testable" else None,
        losses=_find_losses(
            [cells for step in planned if METRICS[step.metric].latency for cells in step.all_cells], evidence
        ),
        scenarios=scenarios,
        left_out=left_out,
        system=str(evidence.environment.get("system", "")) if claim.published_on else "",
    )


class _PlannedTest(msgspec.Struct, frozen=True):
    """A test with the comparisons that can be made for it, and the needs that the machine does not meet: for any
    verdict, to confirm, and to refute."""

    test: Test
    steps: tuple[ClaimComparison, ...]
    lacking: Lacking | None
    to_confirm: Lacking | None
    to_refute: Lacking | None

    def gap(self, evidence: Evidence) -> Lacking | None:
        """Return what the test lacks; a test that only refutes needs nothing."""
        return None if self.test.only_refutes else self.lacking or find_missing_levels(self.test, evidence)

    def find_obstacle(self, outcome: ComparisonOutcome) -> Lacking | None:
        """Return what is missing for a comparison with this outcome to count."""
        holds = None if self.test.only_refutes else self.to_confirm
        return {"holds": holds, "fails": self.to_refute, "open": None}[outcome]


def _find_owner(tests: Sequence[_PlannedTest], step: ClaimComparison) -> _PlannedTest:
    """Return the test of a comparison."""
    return next(test for test in tests if any(step is test_step for test_step in test.steps))


def _plan_tests(
    claim: Claim, evidence: Evidence
) -> tuple[list[_PlannedTest], list[ClaimComparison], NotOffered | None]:
    """Return the tests, all comparisons that can be made, and the cells that the generator could not offer."""
    tests: list[_PlannedTest] = []
    for test in claim.tests:
        test_steps = list_steps(test, evidence)
        names = _list_scenarios(test_steps)
        lacking = find_missing_need(test.needs, evidence, names)
        confirm = find_missing_need((*claim.needs_to_confirm, *test.needs_to_confirm), evidence, names, "confirm")
        refute = find_missing_need((*claim.needs_to_refute, *test.needs_to_refute), evidence, names, "refute")
        tests.append(_PlannedTest(test, () if lacking else test_steps, lacking, confirm, refute))
    planned, left_out = select_offered([step for test in tests for step in test.steps], evidence)
    return tests, list(planned), left_out


def _list_scenarios(planned: Sequence[ClaimComparison]) -> tuple[str, ...]:
    """Return the scenarios of these comparisons."""
    return tuple(dict.fromkeys(cells.scenario for step in planned for cells in step.all_cells))


def _find_generator_limit(check: ComparisonResult, evidence: Evidence) -> GeneratorAtLimit | None:
    """Return the contestant with which the generator was at its limit, where the resulting bounds do not decide."""
    if check.why_open != "bound" or not check.needed:
        return None
    for cells in check.step.all_cells:
        name = next((trial.contestant for trial in evidence.trials(cells) if evidence.is_limited(trial)), None)
        if name is not None:
            return GeneratorAtLimit(name if CONTESTANT in cells.at else None)
    return None


def _shorten_scenarios(evidence: Evidence) -> Mapping[str, str]:
    """Return the scenarios without the name of the study that they and the claim belong to."""
    if len(evidence.parts) < 2:
        return {}
    parted = {name: name.partition(": ") for name in evidence.parts}
    return {
        name: short if separator and study in evidence.studies else name
        for name, (study, separator, short) in parted.items()
    }


def _find_refused(planned: Sequence[ClaimComparison], evidence: Evidence) -> Refused | None:
    """Return the servers that are in no claim. Where clients never read, none can be wronged by mixed frames."""
    named = {
        str(name)
        for step in planned
        for cells in step.all_cells
        if not evidence.parts[cells.scenario].scenario.is_unread
        for name in cells.at.get(CONTESTANT, ())
    }
    reasons = {name: evidence.refused[name] for name in sorted(named.intersection(evidence.refused))}
    return Refused(reasons) if reasons else None


def _decide_verdict(checks: Sequence[ComparisonResult], gap: Lacking | None) -> ClaimVerdict:
    """Return the verdict of all tests of a claim: one that fails refutes it, even where others cannot be tested."""
    if any(check.outcome == "fails" for check in checks):
        return "refuted"
    if gap:
        return "not_testable"
    return "undecided" if any(check.needed and check.outcome == "open" for check in checks) else "confirmed"


# --- one comparison ----------------------------------------------------------------------------------------------


class EffectScale(msgspec.Struct, frozen=True):
    """The scale on which two figures are compared, and the effect that a mean of such contrasts stands for."""

    ratio: bool

    def contrast(self, first: float, second: float) -> float:
        return math.log(first / second) if self.ratio else first - second

    def effect(self, mean: float) -> float:
        return math.exp(mean) if self.ratio else mean


def _compare(step: ClaimComparison, evidence: Evidence, significance: float, comparisons: int) -> ComparisonResult:
    """Make one comparison out of `comparisons`, before any correction."""
    metric = METRICS[step.metric]
    scale, no_difference = (
        EffectScale(metric.scale == "ratio" and not step.subtracts),
        BoundedFigure(_choose_no_difference(step), 0),
    )
    dropped, differ = find_unpaired(step, evidence), find_differing_coordinates(step.a, step.b, evidence)
    sides = [collect_figures(evidence, metric, cells, dropped) for cells in step.cells]
    if step.over is not None:
        bases = [collect_figures(evidence, metric, cells, dropped) for cells in step.over]
        sides = [relate_figures(side, base, subtracts=step.subtracts) for side, base in zip(sides, bases, strict=True)]
    first, second = sides[0], sides[1] if step.b is not None else dict.fromkeys(sides[0], no_difference)
    signs = {cell: combine_signs(first[cell].sign, second[cell].sign) for cell in first.keys() & second.keys()}
    shared = stats.counted(select_one_sign(signs))
    blank = ComparisonResult(
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
    shared_figures = {cell: (first[cell].value, second[cell].value) for cell in shared}
    return _test_contrasts(blank, step, scale, shared_figures, evidence, significance, comparisons)


def _test_contrasts(
    blank: ComparisonResult,
    step: ClaimComparison,
    scale: EffectScale,
    figures: Mapping[stats.BlockLevel, tuple[float, float]],
    evidence: Evidence,
    significance: float,
    comparisons: int,
) -> ComparisonResult:
    metric = METRICS[step.metric]
    threshold = scale.contrast(step.threshold, _choose_no_difference(step))
    contrasts = {cell: scale.contrast(first, second) for cell, (first, second) in figures.items()}
    pairs = stats.pairs_of(contrasts)
    mean = stats.log_ratio(pairs)
    exact = metric.of_code is not None
    mean_interval = None if exact else stats.mean_interval(pairs, significance)
    interval = mean_interval and Interval(scale.effect(mean_interval.low), scale.effect(mean_interval.high))
    p_value = 0.0 if exact else stats.mean_p(pairs, threshold)
    check = replace(
        blank,
        effect=scale.effect(mean),
        interval=interval,
        p=p_value,
        p_corrected=p_value,
        figures=tuple(
            _compute_mean(scale, [pair[side] for pair in figures.values()]) for side, _ in enumerate(step.cells)
        ),
        losses=tuple(_find_largest_loss(cells, metric, evidence) for cells in step.cells),
    )
    can_be = {"at_least": "above", "at_most": "below", None: ""}[check.limit]
    outcome = _find_outcome(_find_side(mean, mean_interval, threshold, exact=exact), step.side, can_be)
    if outcome == "holds" or exact:
        return replace(check, outcome=outcome, why_open=None)
    if can_be and (mean > threshold) != (can_be == "above"):
        return replace(check, why_open="bound")
    tends_to_hold = (mean > threshold) == (step.side == "above")
    # To refute, a comparison must fail when it is corrected for all of them (_correct).
    enough = stats.blocks_to_leave_out(pairs, threshold, significance if tends_to_hold else significance / comparisons)
    check = replace(check, blocks_to_decide=enough)
    if outcome == "fails":
        return replace(check, outcome=outcome, why_open=None)
    if step.least_published is not None:
        check = _test_published(check, pairs, scale, mean_interval, step.least_published, significance / comparisons)
        if check.is_short_of_published:
            return check
    return replace(check, why_open="few_blocks" if check.blocks < FEWEST_BLOCKS else "near")


def _test_published(
    check: ComparisonResult,
    pairs: stats.Pairs,
    scale: EffectScale,
    mean_interval: Interval | None,
    published: float,
    significance: float,
) -> ComparisonResult:
    """Let an open comparison fail where its interval lies short of every published effect; else lower its
    `blocks_to_decide` to the blocks that would show that, where these are fewer."""
    least, above = scale.contrast(published, 1.0), check.step.side == "above"
    mean = stats.log_ratio(pairs)
    is_towards = check.limit is None or check.limit == ("at_most" if above else "at_least")
    if (mean < least) != above or not is_towards:
        return check
    enough = stats.blocks_to_leave_out(pairs, least, significance)
    fewer = min((count for count in (enough, check.blocks_to_decide) if count is not None), default=None)
    check = replace(check, blocks_to_decide=fewer)
    if mean_interval is None or (mean_interval.high >= least if above else mean_interval.low <= least):
        return check
    p_value = stats.mean_p(pairs, least)
    return replace(check, p=p_value, p_corrected=p_value, outcome="fails", why_open=None, is_short_of_published=True)


def _choose_no_difference(step: ClaimComparison) -> float:
    return 0.0 if step.subtracts else find_neutral(step.metric)


def _compute_mean(scale: EffectScale, figures: Sequence[float]) -> float:
    """Return the mean on this scale: geometric where ratios are compared."""
    return scale.effect(sum(scale.contrast(figure, 1.0 if scale.ratio else 0.0) for figure in figures) / len(figures))


def _find_side(mean: float, interval: Interval | None, threshold: float, *, exact: bool) -> str:
    """Return the side of the threshold on which the whole interval lies; empty where it holds the threshold."""
    low, high = (mean, mean) if exact else (interval.low, interval.high) if interval else (-math.inf, math.inf)
    return "above" if low > threshold else "below" if high < threshold else ""


def _find_outcome(lies: str, claimed: str, can_be: str) -> ComparisonOutcome:
    """Return the outcome. `can_be`: the only side on which a bound can show an effect to lie; empty for no bound."""
    if not lies or (can_be and lies != can_be):
        return "open"
    return "holds" if lies == claimed else "fails"


def _correct(check: ComparisonResult, comparisons: int, significance: float) -> ComparisonResult:
    """Correct a check for the number of all (Bonferroni): one that fails only without the correction is open."""
    p_value = min(1.0, comparisons * check.p)
    if check.outcome != "fails" or p_value <= significance:
        return replace(check, p_corrected=p_value)
    return replace(check, p_corrected=p_value, outcome="open", why_open="unproven")


# --- the figures beside a verdict --------------------------------------------------------------------------------


def _count_sides(claim: Claim, evidence: Evidence) -> CountsOfSides:
    """Count each side of the claim; the sides of a test along a factor are its two ends."""
    sides: list[Cells] = []
    for test in claim.tests:
        pooled: Test = replace(test, every=False) if isinstance(test, Ratio | Bound) else test
        for step in list_steps(pooled, evidence):
            is_shown = step.needed or test.only_refutes
            sides += [cells for cells in step.cells if is_shown and cells not in sides]
    name = WHYS[claim.why]
    return CountsOfSides(name, tuple(_count_side(METRICS[name], cells, evidence) for cells in sides))


def _count_side(metric: Metric, cells: Cells, evidence: Evidence) -> SideCount:
    trials = list(evidence.counted(cells, outcomes.MEASURED))
    return SideCount(cells, len(trials), metric.pooled(trials))


def _find_largest_loss(cells: Cells, metric: Metric, evidence: Evidence) -> float | None:
    """Return the largest loss of a trial behind a latency; None where no message can be lost."""
    most = _find_losses([cells], evidence) if metric.latency else {}
    return max(most.values(), default=None)


def _find_losses(selections: Sequence[Cells], evidence: Evidence) -> Mapping[str, float]:
    """Return the largest share of messages lost in a trial by contestant, over transports that may lose messages."""
    most: dict[str, float] = {}
    for cells in selections:
        for trial, load in evidence.counted(cells, outcomes.RANKED):
            lost = transports.share_lost(load)
            if lost is not None:
                most[trial.contestant] = max(lost, most.get(trial.contestant, 0.0))
    return dict(sorted(most.items()))

"""The contestants to take, from a run of one scenario; and while it runs, those that get another block. Pure functions.

A run is judged after numbers of blocks that are fixed beforehand, and when its time is used. Each look has an equal
share of the significance, so that the intervals hold together whichever contestants were left out on the way and
whatever ended the blocks (docs/adr/gate.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from netdyno.analysis.flips import judge_flips as flips
from netdyno.analysis.found.advice import AcrossFactor, Advice, Kept, LeftOut, ObjectiveOutcome, TermKept
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking import answers, axes
from netdyno.analysis.ranking.answers import Basis, find_comparison
from netdyno.analysis.ranking.samples import collect_metric
from netdyno.analysis.scenario import compute_block_seconds
from netdyno.analysis.trials.peers import group_peers
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.kit.statistics.stats import Better, Comparison, Interval
from netdyno.model import objective
from netdyno.model.base import type_level
from netdyno.model.experiment import Advise, Scenario
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.model.objective import LOST, Term

THROUGHPUT = "throughput"


def choose_significance(advise: Advise) -> float:
    """Return the ranking's share of the significance at each look; an objective has as much again."""
    return looks.ADVICE.divide_significance(stats.SIGNIFICANCE) / (2 if advise.objective else 1)


def judge_advice(advise: Advise, findings: ScenarioFindings, part: ScenarioTrials) -> Advice:
    """Return the advice on a scenario with findings made at that of `choose_significance`."""
    kept = check_objective(advise, part)
    outcome, names = _select_among(kept, _list_sound(part))
    able = [name for name in _list_sound(part) if _may_meet(kept, name)]
    rivals = able or names
    share = choose_significance(advise)
    candidates = _narrow(findings, names, share, compute_block_seconds(part))
    narrowed, take = _choose(candidates, rivals, findings.comparisons, share)
    worst = _compute_deficit_bound(take[0], rivals, findings.comparisons, findings.better, share) if take else None
    hidden = tuple(sorted(_find_hidden(part) & {*rivals} - {*take[:1]})) if take else ()
    return Advice(
        findings=narrowed,
        objective=advise.objective,
        kept=kept,
        outcome=outcome,
        take=take,
        by_metric=narrowed.decision.recommended != candidates.decision.recommended,
        behind=None if hidden else worst,
        hidden=hidden,
        blocks=part.blocks,
        left_out=tuple(_list_left_out(part, able, findings.comparisons, findings.better)),
        settled=bool(take) and _is_settled(kept, able, take[0], worst, read_margin(findings.scenario)),
    )


def select_remaining(advise: Advise, part: ScenarioTrials) -> tuple[str, ...]:
    """Return the contestants that get another block; none where the answer is settled. Nothing changes between
    looks."""
    running = _list_running(part)
    if part.blocks not in ADVICE_LOOKS:
        return running
    kept = check_objective(advise, part)
    sound = _list_sound(part)
    rivals = [name for name in sound if _may_meet(kept, name)]
    metric = part.scenario.metric
    share = choose_significance(advise)
    family = axes.compare_contestants({metric: collect_metric(part.ranked, metric)}, [sound], share)[metric]
    direction = METRICS[metric].better
    shown = [name for name in rivals if not advise.objective or _find_outcome(kept, name) == "meets"]
    left = [name for name in rivals if name in running and not _is_beaten(name, shown, family, direction)]
    first, _ = axes.order(shown or left, family, direction)
    best = next(iter(first), None)
    worst = None if best is None else _compute_deficit_bound(best, rivals, family, direction, share)
    settled = _is_settled(kept, rivals, best, worst, read_margin(part.scenario))
    return () if settled else tuple(left)


def _list_running(part: ScenarioTrials) -> tuple[str, ...]:
    """Return the contestants of the last block that can be run at all."""
    last = max((trial.block for trial in part.trials), default=0)
    able = {trial.contestant for trial in part.trials if trial.status != "skipped"}
    in_last = {trial.contestant for trial in part.trials if trial.block == last}
    return tuple(name for name in part.contestants if name in able and name in in_last)


def _list_left_out(
    part: ScenarioTrials, rivals: Sequence[str], family: Sequence[Comparison], direction: Better
) -> list[LeftOut]:
    """Return the contestants that were left out at a look, beaten or no rival; for the rest the time was over. Those of
    another ground do not count: the advice is not about them."""
    blocks = {
        name: {trial.block for trial in part.trials if trial.contestant == name and trial.status != "skipped"}
        for name in itertools.chain.from_iterable(group_peers(part)[0])
    }
    ended = {name: max(block_numbers) for name, block_numbers in blocks.items() if block_numbers}
    return [
        LeftOut(name, block)
        for name, block in ended.items()
        if block in ADVICE_LOOKS
        and block < max(ended.values())
        and (name not in rivals or _is_beaten(name, rivals, family, direction))
    ]


def _list_sound(part: ScenarioTrials) -> list[str]:
    """Return the measured contestants of the first ground without a fault, or all of it where each has one."""
    first = group_peers(part)[0]
    measured = {trial.contestant for trial, _ in part.ranked}
    able = [name for name in first.sound if name in measured]
    return able or [name for name in part.contestants if name in measured and any(name in group for group in first)]


def _find_hidden(part: ScenarioTrials) -> frozenset[str]:
    """Return those that may be faster by any amount, for the generator was at its limit with them."""
    rates = part.scenario.metric == THROUGHPUT
    return frozenset(limit.contestant for limit in part.saturated) if rates else frozenset()


# --- the objective -------------------------------------------------------------------------------------------------


def check_objective(advise: Advise, part: ScenarioTrials) -> tuple[Kept, ...]:
    """Return each contestant's outcome for the objective, over all levels of the scenario; empty without an
    objective."""
    if not advise.objective:
        return ()
    terms = objective.parse(advise.objective, "objective").terms
    by_name: dict[str, dict[stats.BlockLevel, list[float]]] = {}
    for trial, load in part.ranked:
        cell = trial.block, level_key(trial.levels)
        by_name.setdefault(trial.contestant, {})[cell] = [term.value(load) for term in terms]
    share = choose_significance(advise) / max(1, len(by_name) * len(terms))
    measured_levels = {level_key(trial.levels) for trial, _ in part.ranked}
    bounds = any(limit.level in measured_levels for limit in part.saturated)
    return tuple(
        Kept(
            name,
            len({block for block, _ in figures}),
            tuple(
                _test_term(term, {cell: values[number] for cell, values in figures.items()}, share, bounds=bounds)
                for number, term in enumerate(terms)
            ),
        )
        for name, figures in sorted(by_name.items())
    )


def _test_term(term: Term, figures: Mapping[stats.BlockLevel, float], significance: float, *, bounds: bool) -> TermKept:
    """Test a term: a time against its limit as a ratio, a share as a difference. Where the generator was at its limit,
    figures are upper bounds: they may show that a limit is kept, and not that it is broken."""
    if any(not math.isfinite(figure) for figure in figures.values()):
        return TermKept(term, math.nan, None, "breaks")
    ratios = term.name != LOST
    contrasts = {
        cell: math.log(figure / term.limit) if ratios else figure - term.limit for cell, figure in figures.items()
    }
    pairs = stats.pairs_of(contrasts)

    def back(contrast: float) -> float:
        return term.limit * math.exp(contrast) if ratios else max(0.0, contrast + term.limit)

    interval = stats.mean_interval(pairs, significance)
    if interval is None:
        return TermKept(term, back(stats.log_ratio(pairs)), None, "open")
    outcome: ObjectiveOutcome = (
        "meets" if interval.high < 0 else "breaks" if interval.low >= 0 and not bounds else "open"
    )
    return TermKept(term, back(stats.log_ratio(pairs)), Interval(back(interval.low), back(interval.high)), outcome)


def _find_outcome(kept: Sequence[Kept], name: str) -> ObjectiveOutcome:
    return next((entry.outcome for entry in kept if entry.contestant == name), "open")


def _may_meet(kept: Sequence[Kept], name: str) -> bool:
    return not kept or _find_outcome(kept, name) != "breaks"


def _select_among(kept: Sequence[Kept], names: Sequence[str]) -> tuple[ObjectiveOutcome, list[str]]:
    """Return the best outcome for the objective, and the contestants that have it."""
    if not kept:
        return "meets", list(names)
    for outcome in ("meets", "open"):
        selected = [name for name in names if _find_outcome(kept, name) == outcome]
        if selected:
            return outcome, selected
    return "breaks", list(names)


# --- the ranking ---------------------------------------------------------------------------------------------------


def read_margin(scenario: Scenario) -> float:
    """Return the factor up to which the distance of the recommended contestant from the best does not matter."""
    return 1 + scenario.margin


def _narrow(
    findings: ScenarioFindings, names: Collection[str], significance: float, block_s: float | None
) -> ScenarioFindings:
    """Return the same ranking of fewer contestants."""

    def narrow(family: Sequence[Comparison]) -> tuple[Comparison, ...]:
        return tuple(comparison for comparison in family if comparison.a in names and comparison.b in names)

    standings = tuple(standing for standing in findings.standings if standing.contestant in names)
    family = narrow(findings.comparisons)
    scored = tuple(
        replace(
            axis,
            scores=tuple(score for score in axis.scores if score.contestant in names),
            comparisons=narrow(axis.comparisons),
        )
        for axis in findings.axes
    )
    decision = answers.decide(Basis(findings.scenario, standings, family, scored, significance, block_s))
    return replace(findings, standings=standings, comparisons=family, axes=scored, decision=decision, elsewhere=())


def _choose(
    findings: ScenarioFindings, rivals: Sequence[str], family: Sequence[Comparison], significance: float
) -> tuple[ScenarioFindings, tuple[str, ...]]:
    """Choose the contestants to take: those of the ranking that are shown to be close to the best of all rivals; where
    none is, the first: the scenario's own metric comes before the other axes."""
    decision, margin = findings.decision, read_margin(findings.scenario)
    first = (decision.front or decision.eligible)[:1]
    if decision.verdict not in ("equal", "undecided"):
        return findings, decision.recommended or first
    bounds = {
        name: _compute_deficit_bound(name, rivals, family, findings.better, significance)
        for name in decision.recommended
    }
    recommended = tuple(name for name, bound in bounds.items() if bound is not None and bound <= margin) or first
    if recommended == decision.recommended:
        return findings, recommended
    trade_offs = answers.find_trade_offs(findings.axes, decision.eligible, recommended, margin)
    return replace(findings, decision=replace(decision, recommended=recommended, trade_offs=trade_offs)), recommended


def _compute_deficit_bound(
    name: str, rivals: Sequence[str], family: Sequence[Comparison], direction: Better, significance: float
) -> float | None:
    """Return the factor by which no other is better; None where it is not known."""
    bound = answers.compute_deficit_bound(name, rivals, family, direction, significance)
    return bound if math.isfinite(bound) else None


def _is_beaten(name: str, rivals: Sequence[str], family: Sequence[Comparison], direction: Better) -> bool:
    compared = [
        comparison
        for rival in rivals
        if rival != name and (comparison := find_comparison(rival, name, family)) is not None
    ]
    return any(comparison.different and (comparison.ratio > 1) == (direction == "higher") for comparison in compared)


def _is_settled(
    kept: Sequence[Kept], able: Sequence[str], best: str | None, worst: float | None, margin: float
) -> bool:
    """Whether more blocks cannot change the answer: none is `able` to meet the objective, or the outcome of the `best`
    is known and no rival is better by more than the margin (`worst`: by which factor one may be)."""
    if not able:
        return True
    is_known = best is not None and (not kept or _find_outcome(kept, best) != "open")
    return is_known and worst is not None and worst <= margin


def compare_across_factor(part: ScenarioTrials, advise: Advise, first: str, rivals: Sequence[str]) -> AcrossFactor:
    """Compare `first` with each other contestant across the factor of a scenario that has one."""
    ((factor, levels),) = part.scenario.factors.items()
    flips_found = [flip for rival in rivals for flip in flips.find_flips(part, factor, first, rival)]
    return AcrossFactor(
        factor,
        levels,
        first,
        tuple(flips_found),
        tuple(_find_outcome_at(part, advise, first, factor, level) for level in levels),
    )


def _find_outcome_at(
    part: ScenarioTrials, advise: Advise, first: str, factor: str, level: type_level
) -> ObjectiveOutcome | None:
    key = level_key({factor: level})
    part_at_level = replace(
        part, ranked=tuple(counted for counted in part.ranked if level_key(counted[0].levels) == key)
    )
    return next((kept.outcome for kept in check_objective(advise, part_at_level) if kept.contestant == first), None)

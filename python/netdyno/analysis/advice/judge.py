"""Whom to take, from a run of one scenario; and while it goes on, who is given another block. Pure functions.

It may be looked at after some numbers of blocks that are fixed beforehand, and when its time is used. Each look has an
equal share of the level, so that the intervals hold together whoever was left out on the way and whatever ended the
blocks (docs/adr/gate.md)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from netdyno.analysis import answers, axes
from netdyno.analysis.advice.found import Advice, Kept, LeftOut, Outcome, TermKept
from netdyno.analysis.answers import Basis, against
from netdyno.analysis.findings import ScenarioFindings
from netdyno.analysis.peers import peers
from netdyno.analysis.samples import of_metric
from netdyno.analysis.scenario import seconds_of_block
from netdyno.analysis.split import Part
from netdyno.model import objective
from netdyno.model.experiment import Advise, Scenario
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.model.objective import LOST, Term
from netdyno.statistics import stats
from netdyno.statistics.block_counts import ADVICE_LOOKS
from netdyno.statistics.stats import Better, Comparison, Interval

THROUGHPUT = "throughput"


def level_of(advise: Advise, level: float = stats.LEVEL) -> float:
    """What the ranking has of the level at each look; an objective has as much beside it."""
    return level / (len(ADVICE_LOOKS) + 1) / (2 if advise.slo else 1)


def judge(advise: Advise, findings: ScenarioFindings, part: Part, level: float = stats.LEVEL) -> Advice:
    """Of a scenario whose findings were made at `level_of` this level."""
    kept = keeps(advise, part, level)
    among, names = _among(kept, _sound(part))
    able = [name for name in _sound(part) if _may_meet(kept, name)]
    rivals = able or names
    share = level_of(advise, level)
    of_those = _narrowed(findings, names, share, seconds_of_block(part))
    narrowed, take = _taken(of_those, rivals, findings.comparisons, share)
    worst = _behind(take[0], rivals, findings.comparisons, findings.better, share) if take else None
    hidden = tuple(sorted(_at_least(part) & {*rivals} - {*take[:1]})) if take else ()
    return Advice(
        findings=narrowed,
        slo=advise.slo,
        kept=kept,
        among=among,
        take=take,
        by_metric=narrowed.decision.taken != of_those.decision.taken,
        behind=None if hidden else worst,
        hidden=hidden,
        blocks=part.blocks,
        left_out=tuple(_left_out(part, able, findings.comparisons, findings.better)),
        settled=bool(take) and (not able or _is_settled(kept, take[0], worst, margin_of(findings.scenario))),
    )


def going_on(advise: Advise, part: Part, level: float = stats.LEVEL) -> tuple[str, ...]:
    """Who is to have another block; nobody where the answer is settled. Between two looks nothing changes."""
    running = _running(part)
    if part.blocks not in ADVICE_LOOKS:
        return running
    kept = keeps(advise, part, level)
    sound = _sound(part)
    rivals = [name for name in sound if _may_meet(kept, name)]
    if not rivals:
        return ()
    metric = part.scenario.metric
    share = level_of(advise, level)
    family = axes.compared({metric: of_metric(part.ranked, metric)}, [sound], share)[metric]
    direction = METRICS[metric].better
    shown = [name for name in rivals if not advise.slo or _outcome(kept, name) == "meets"]
    left = [name for name in rivals if name in running and not _is_beaten(name, shown, family, direction)]
    first, _ = axes.order(shown or left, family, direction)
    best = next(iter(first), None)
    if best is not None:
        worst = _behind(best, rivals, family, direction, share)
        if _is_settled(kept, best, worst, margin_of(part.scenario)):
            return ()
    return tuple(left)


def _running(part: Part) -> tuple[str, ...]:
    """Who was in the last block, and can be run at all."""
    last = max((trial.block for trial in part.trials), default=0)
    able = {trial.contestant for trial in part.trials if trial.status != "skipped"}
    in_last = {trial.contestant for trial in part.trials if trial.block == last}
    return tuple(name for name in part.contestants if name in able and name in in_last)


def _left_out(part: Part, rivals: Sequence[str], family: Sequence[Comparison], direction: Better) -> list[LeftOut]:
    """Who had no block after a look, being beaten, or no rival; of the others the time was over. Not who is on another
    ground: nothing is said of those."""
    blocks = {
        name: {trial.block for trial in part.trials if trial.contestant == name and trial.status != "skipped"}
        for name in itertools.chain.from_iterable(peers(part)[0])
    }
    ended = {name: max(found) for name, found in blocks.items() if found}
    return [
        LeftOut(name, block)
        for name, block in ended.items()
        if block in ADVICE_LOOKS
        and block < max(ended.values())
        and (name not in rivals or _is_beaten(name, rivals, family, direction))
    ]


def _sound(part: Part) -> list[str]:
    """Those whom an answer is about: of the first ground, without a fault, or all of it where everybody has one."""
    first = peers(part)[0]
    measured = {trial.contestant for trial, _ in part.ranked}
    able = [name for name in first.sound if name in measured]
    return able or [name for name in part.contestants if name in measured and any(name in group for group in first)]


def _at_least(part: Part) -> frozenset[str]:
    """Those that may be faster by any amount, for the generator was at its limit with them."""
    rates = part.scenario.metric == THROUGHPUT
    return frozenset(one.contestant for one in part.saturated) if rates else frozenset()


# --- the objective -------------------------------------------------------------------------------------------------


def keeps(advise: Advise, part: Part, level: float = stats.LEVEL) -> tuple[Kept, ...]:
    """What everybody makes of the objective, at every level of the scenario together; nothing where there is none."""
    if not advise.slo:
        return ()
    terms = objective.parse(advise.slo, "slo").terms
    by_name: dict[str, dict[stats.Cell, list[float]]] = {}
    for trial, load in part.ranked:
        at = trial.block, level_key(trial.levels)
        by_name.setdefault(trial.contestant, {})[at] = [term.value(load) for term in terms]
    share = level_of(advise, level) / max(1, len(by_name) * len(terms))
    here = {level_key(trial.levels) for trial, _ in part.ranked}
    bounds = any(one.level in here for one in part.saturated)
    return tuple(
        Kept(
            name,
            len({block for block, _ in figures}),
            tuple(
                _kept(term, {at: each[number] for at, each in figures.items()}, share, bounds=bounds)
                for number, term in enumerate(terms)
            ),
        )
        for name, figures in sorted(by_name.items())
    )


def _kept(term: Term, figures: Mapping[stats.Cell, float], level: float, *, bounds: bool) -> TermKept:
    """A time is held against its limit as a ratio, a share as a difference. Where the generator was at its limit,
    figures are what it is at most: they may show that a limit is kept, and not that it is broken."""
    if any(not math.isfinite(figure) for figure in figures.values()):
        return TermKept(term, math.nan, None, "breaks")
    ratios = term.name != LOST
    contrasts = {at: math.log(figure / term.limit) if ratios else figure - term.limit for at, figure in figures.items()}
    pairs = stats.pairs_of(contrasts)

    def back(contrast: float) -> float:
        return term.limit * math.exp(contrast) if ratios else max(0.0, contrast + term.limit)

    found = stats.mean_interval(pairs, level)
    if found is None:
        return TermKept(term, back(stats.log_ratio(pairs)), None, "open")
    outcome: Outcome = "meets" if found.high < 0 else "breaks" if found.low >= 0 and not bounds else "open"
    return TermKept(term, back(stats.log_ratio(pairs)), Interval(back(found.low), back(found.high)), outcome)


def _outcome(kept: Sequence[Kept], name: str) -> Outcome:
    return next((one.outcome for one in kept if one.contestant == name), "open")


def _may_meet(kept: Sequence[Kept], name: str) -> bool:
    return not kept or _outcome(kept, name) != "breaks"


def _among(kept: Sequence[Kept], names: Sequence[str]) -> tuple[Outcome, list[str]]:
    """Whom the answer is among, and what these make of the objective."""
    if not kept:
        return "meets", list(names)
    for outcome in ("meets", "open"):
        found = [name for name in names if _outcome(kept, name) == outcome]
        if found:
            return outcome, found
    return "breaks", list(names)


# --- the ranking ---------------------------------------------------------------------------------------------------


def margin_of(scenario: Scenario) -> float:
    """Return the factor up to which nobody needs to know how far the one to take is from the best."""
    return 1 + scenario.margin


def _narrowed(
    findings: ScenarioFindings, names: Collection[str], level: float, block_s: float | None
) -> ScenarioFindings:
    """The same ranking of fewer."""

    def of(family: Sequence[Comparison]) -> tuple[Comparison, ...]:
        return tuple(one for one in family if one.a in names and one.b in names)

    standings = tuple(one for one in findings.standings if one.contestant in names)
    family = of(findings.comparisons)
    scored = tuple(
        replace(
            axis,
            scores=tuple(one for one in axis.scores if one.contestant in names),
            comparisons=of(axis.comparisons),
        )
        for axis in findings.axes
    )
    decision = answers.decide(Basis(findings.scenario, standings, family, scored, level, block_s))
    return replace(findings, standings=standings, comparisons=family, axes=scored, decision=decision, elsewhere=())


def _taken(
    findings: ScenarioFindings, rivals: Sequence[str], family: Sequence[Comparison], level: float
) -> tuple[ScenarioFindings, tuple[str, ...]]:
    """Whom to take: as the ranking has it, if these are shown to be close to the best of all rivals; where none is, the
    first: what was asked about comes before the other axes."""
    decision, margin = findings.decision, margin_of(findings.scenario)
    first = (decision.front or decision.among)[:1]
    if decision.verdict not in ("equal", "undecided"):
        return findings, decision.taken or first
    bounds = {one: _behind(one, rivals, family, findings.better, level) for one in decision.taken}
    taken = tuple(one for one, bound in bounds.items() if bound is not None and bound <= margin) or first
    if taken == decision.taken:
        return findings, taken
    others = answers.beside(findings.axes, decision.among, taken, margin)
    return replace(findings, decision=replace(decision, taken=taken, beside=others)), taken


def _behind(
    name: str, others: Sequence[str], family: Sequence[Comparison], direction: Better, level: float
) -> float | None:
    """The factor by which no other is better. None where nobody knows."""
    bound = answers.behind(name, others, family, direction, level)
    return bound if math.isfinite(bound) else None


def _is_beaten(name: str, by: Sequence[str], family: Sequence[Comparison], direction: Better) -> bool:
    compared = [one for other in by if other != name and (one := against(other, name, family)) is not None]
    return any(one.different and (one.ratio > 1) == (direction == "higher") for one in compared)


def _is_settled(kept: Sequence[Kept], first: str, worst: float | None, margin: float) -> bool:
    return (not kept or _outcome(kept, first) != "open") and worst is not None and worst <= margin

"""The reason why the blocks of a scenario with a precision ended: from the stored run, by the rule that ended them.
Pure functions of a scenario's part of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from netdyno.analysis.found.ranking import EndOfBlocks, EndReason
from netdyno.analysis.ranking.samples import collect_samples
from netdyno.analysis.trials.peers import group_peers
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import precision, stats
from netdyno.kit.statistics.stats import Pairs
from netdyno.model.base import Name
from netdyno.question import blocks

ComparisonFamily = Mapping[tuple[Name, Name], Pairs]
"""The comparisons of a ranking, each by the names of both."""


def needs_more_blocks(part: ScenarioTrials) -> bool:
    """Return whether another block would serve the precision of a scenario, by its trials so far."""
    family = _compare_ranked(part)
    return (
        part.scenario.precision is not None and bool(family) and not _are_all_settled(family, part.scenario.precision)
    )


def sort_by_gain(parts: Sequence[ScenarioTrials]) -> list[ScenarioTrials]:
    """Sort scenarios by their gain from another block: the widest interval first, of comparisons that are not beyond
    doubt. The width decides, never the place of the interval: blocks must not be added until a difference appears.
    Where nothing can be compared yet, the fewest blocks come first."""
    widths = {part.scenario.name: _find_widest(part) for part in parts}
    return sorted(parts, key=lambda part: (-widths[part.scenario.name], part.blocks))


def _find_widest(part: ScenarioTrials) -> float:
    return max(
        (
            width
            for pairs in _compare_ranked(part).values()
            if not precision.is_clear(pairs, width := precision.half_width(pairs))
        ),
        default=0.0,
    )


def find_ending(part: ScenarioTrials, *, finished: bool, time_budget_s: float | None) -> EndOfBlocks | None:
    """Return why a scenario's blocks ended; None where it asks for no precision."""
    goal = part.scenario.precision
    if goal is None:
        return None
    family = _compare_ranked(part)
    widths = {names: precision.half_width(pairs) for names, pairs in family.items()}
    names = max(widths, key=lambda names: widths[names], default=("", ""))
    return EndOfBlocks(
        why=_find_reason(part, family, goal, finished=finished),
        blocks=part.blocks,
        requested=goal,
        widest=widths.get(names),
        pair=names,
        time_budget_s=time_budget_s,
    )


def _find_reason(part: ScenarioTrials, family: ComparisonFamily, goal: float, *, finished: bool) -> EndReason:
    if family and _are_all_settled(family, goal):
        return "precise"
    if not finished:
        return "unfinished"
    if not family:
        return "alone"
    return "blocks" if part.blocks >= blocks.find_most(part.scenario) else "time"


def _are_all_settled(family: ComparisonFamily, goal: float) -> bool:
    return all(precision.settled(pairs, goal) for pairs in family.values())


def _compare_ranked(part: ScenarioTrials) -> ComparisonFamily:
    """Return the comparisons of its ranking. A pair that shares no cell cannot be compared, however many blocks there
    are."""
    figures = collect_samples(part)
    groups = itertools.chain.from_iterable(group_peers(part))
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    pairs = {
        (first, second): stats.pair(figures[first], figures[second])
        for first, second in itertools.combinations(figures, 2)
        if group_of[first] == group_of[second]
    }
    return {names: paired for names, paired in pairs.items() if len(paired)}

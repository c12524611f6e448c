"""Why the blocks of a scenario ended, where it asks for a precision: from what is stored, by the rule that ended them.
Pure functions of a scenario's part of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from netdyno.analysis.findings import Ending, EndReason
from netdyno.analysis.peers import peers
from netdyno.analysis.samples import samples
from netdyno.analysis.split import Part
from netdyno.experiment import blocks
from netdyno.model.base import Name
from netdyno.statistics import precision, stats
from netdyno.statistics.stats import Pairs

Family = Mapping[tuple[Name, Name], Pairs]
"""The comparisons of a ranking, each by the names of both."""


def wants_more(part: Part) -> bool:
    """Whether another block would serve the precision that a scenario asks for, with the trials that there are."""
    family = _family(part)
    return part.scenario.precision is not None and bool(family) and not _all_settled(family, part.scenario.precision)


def widest_first(parts: Sequence[Part]) -> list[Part]:
    """Who has most to gain from another block: whose metric has the widest interval, of comparisons that are not beyond
    doubt. How wide an interval is decides, and never what it says: blocks cannot be added until a difference appears.
    Where nothing can be compared yet, the fewest blocks come first."""
    widths = {part.scenario.name: _widest(part) for part in parts}
    return sorted(parts, key=lambda part: (-widths[part.scenario.name], part.blocks))


def _widest(part: Part) -> float:
    return max(
        (
            width
            for pairs in _family(part).values()
            if not precision.is_clear(pairs, width := precision.half_width(pairs))
        ),
        default=0.0,
    )


def ending(part: Part, *, finished: bool, time_budget_s: float | None) -> Ending | None:
    """Why its blocks ended; None where it asks for no precision."""
    asked = part.scenario.precision
    if asked is None:
        return None
    family = _family(part)
    widths = {of: precision.half_width(pairs) for of, pairs in family.items()}
    of = max(widths, key=lambda one: widths[one], default=("", ""))
    return Ending(
        why=_why(part, family, asked, finished=finished),
        blocks=part.blocks,
        asked=asked,
        widest=widths.get(of),
        of=of,
        time_budget_s=time_budget_s,
    )


def _why(part: Part, family: Family, asked: float, *, finished: bool) -> EndReason:
    if family and _all_settled(family, asked):
        return "precise"
    if not finished:
        return "unfinished"
    if not family:
        return "alone"
    return "blocks" if part.blocks >= blocks.most(part.scenario) else "time"


def _all_settled(family: Family, asked: float) -> bool:
    return all(precision.settled(pairs, asked) for pairs in family.values())


def _family(part: Part) -> Family:
    """The comparisons of its ranking. Two that share no cell cannot be compared, however many blocks there are."""
    figures = samples(part)
    groups = itertools.chain.from_iterable(peers(part))
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    pairs = {
        (a, b): stats.pair(figures[a], figures[b])
        for a, b in itertools.combinations(figures, 2)
        if group_of[a] == group_of[b]
    }
    return {of: one for of, one in pairs.items() if len(one)}

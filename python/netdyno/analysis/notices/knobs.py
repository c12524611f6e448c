"""What a knob of a user's own server gains: contestants that differ in its level alone. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netdyno.analysis.found.notices import Knob
from netdyno.analysis.found.ranking import Standing
from netdyno.analysis.ranking.answers import find_comparison
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Better, Comparison
from netdyno.model.contestant import About, Own


def find_knobs(
    standings: Sequence[Standing], family: Sequence[Comparison], better: Better, about: Iterable[About]
) -> tuple[Knob, ...]:
    """Return each knob of the servers without fault, once for each level of the other knobs."""
    healthy = {standing.contestant for standing in standings if standing.kind == 0}
    servers = {program.name: program.own for program in about if program.own and program.name in healthy}
    return tuple(
        _judge_knob(knob, at, siblings, family, better)
        for (_, knob, at), siblings in group_siblings(servers).items()
        if len(siblings) > 1
    )


def group_siblings(servers: dict[str, Own]) -> dict[tuple[str, str, str], dict[str, str]]:
    """Group servers of one template that differ in one knob alone. Returns each one's level by its name, in the order
    of the servers; the key is the template, the knob, and the levels of the other knobs in words."""
    siblings: dict[tuple[str, str, str], dict[str, str]] = {}
    for name, own in servers.items():
        for knob, level in own.knobs.items():
            at = ", ".join(f"{other} = {value}" for other, value in own.knobs.items() if other != knob)
            siblings.setdefault((own.template, knob, at), {})[name] = level
    return siblings


def _judge_knob(knob: str, at: str, levels: dict[str, str], family: Sequence[Comparison], better: Better) -> Knob:
    names = list(levels)
    between = [comparison for comparison in family if {comparison.a, comparison.b} <= levels.keys()]
    if not any(comparison.decidable or comparison.different for comparison in between):
        return Knob(knob, at, levels, "", None, (), ())
    unbeaten = stats.unbeaten(names, between, better)
    enough = next(name for name in names if name in unbeaten)
    later = names[names.index(enough) + 1 :]
    to_later = {name: find_comparison(name, enough, between) for name in later}
    worse = tuple(comparison for comparison in to_later.values() if comparison is not None and comparison.different)
    return Knob(
        knob=knob,
        other_levels=at,
        levels=levels,
        enough=enough,
        gain=None if enough == names[0] else find_comparison(enough, names[0], between),
        equal=tuple(name for name, comparison in to_later.items() if comparison is None or not comparison.different),
        worse=worse,
    )

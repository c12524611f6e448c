"""The best within a language: across languages a ranking compares runtimes as well as models. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from netdyno.analysis.found.ranking import Standing, Within
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Better, Comparison
from netdyno.model.contestant import About


def find_leaders(
    standings: Sequence[Standing], family: Sequence[Comparison], better: Better, about: Collection[About]
) -> tuple[Within, ...]:
    """Return, for each language with several contestants, those that no other of it is proven better than, in the order
    of the ranking, and for each ground by itself. None on a ground where all ranked contestants with a known language
    share one; none at all where nothing can be decided. Contestants that are ranked apart do not count."""
    languages = {program.name: program.language for program in about if program.kind == "server" and program.language}
    by_ground: dict[int, dict[str, list[str]]] = {}
    for standing in standings:
        if standing.kind == 0 and standing.contestant in languages:
            by_language = by_ground.setdefault(standing.group, {})
            by_language.setdefault(languages[standing.contestant], []).append(standing.contestant)
    if not any(comparison.decidable for comparison in family):
        return ()
    return tuple(
        Within(language, tuple(stats.unbeaten(names, family, better)), len(names), ground)
        for ground, by_language in sorted(by_ground.items())
        if len(by_language) > 1
        for language, names in by_language.items()
        if len(names) > 1
    )

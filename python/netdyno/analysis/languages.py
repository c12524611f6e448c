"""Who is best within a language: across languages a ranking compares runtimes as well as models. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from netdyno.analysis.findings import Standing, Within
from netdyno.model.contestant import About
from netdyno.statistics import stats
from netdyno.statistics.stats import Better, Comparison


def within(
    standings: Sequence[Standing], family: Sequence[Comparison], better: Better, about: Collection[About]
) -> tuple[Within, ...]:
    """By each language of which there are several, those that no other of it is proven better than, in the order of the
    ranking, and for each ground by itself. None on a ground where all that are ranked, and known, are of one language;
    none at all where nothing can be decided. Who is ranked apart is not among them."""
    languages = {one.name: one.language for one in about if one.kind == "server" and one.language}
    by_ground: dict[int, dict[str, list[str]]] = {}
    for standing in standings:
        if standing.kind == 0 and standing.contestant in languages:
            by_language = by_ground.setdefault(standing.ground, {})
            by_language.setdefault(languages[standing.contestant], []).append(standing.contestant)
    if not any(one.decidable for one in family):
        return ()
    return tuple(
        Within(language, tuple(stats.unbeaten(names, family, better)), len(names), ground)
        for ground, by_language in sorted(by_ground.items())
        if len(by_language) > 1
        for language, names in by_language.items()
        if len(names) > 1
    )

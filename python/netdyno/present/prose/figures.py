"""A figure of an experiment in words: where its cells stand, and who has no figure. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from netdyno.analysis.findings import Chart, ChartPanel, Spot
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import SCENARIO
from netdyno.model.levels import level_words
from netdyno.present.prose import set_aside
from netdyno.present.prose.statuses import STATUS_WORDS

MOST_OF_A_REASON = 110
"""Characters of a reason that are told."""
MOST_PLACES = 3
"""Cells without a figure that are told one by one."""
NOT_RECORDED = "no such figure"


def name_of(coordinate: str, value: type_level, unsafe: Collection[str] = ()) -> str:
    """A value as titles and legends say it; `unsafe` are the contestants that are marked as such."""
    if coordinate == CONTESTANT and value in unsafe:
        return f"{value}, UNSAFE"
    return str(value) if coordinate in (CONTESTANT, SCENARIO, "client") else level_words(coordinate, value)


def title(panel: ChartPanel) -> str:
    """Of a panel; empty where a figure has a single one."""
    return ", ".join(name_of(name, value, panel.unsafe) for name, value in panel.at.items())


def missing(spot: Spot) -> str:
    """Why a cell has no figure, in short; empty where it has one."""
    if spot.missing is None:
        return ""
    if spot.missing.status is None or spot.missing.cause is None:
        return NOT_RECORDED
    cause = set_aside.cause(spot.missing.cause)
    short = cause if len(cause) <= MOST_OF_A_REASON else f"{cause[:MOST_OF_A_REASON].rstrip()}…"
    return f"{STATUS_WORDS[spot.missing.status]} ({short})"


def missing_word(spot: Spot) -> str:
    """The same without the cause, where there is little room."""
    return missing(spot).partition(" (")[0]


def gaps(chart: Chart) -> tuple[str, ...]:
    """Who has no figure and why, the cells of a contestant with the same reason together; a few of them with where."""
    cells = Counter(spot.contestant for spot in chart.spots)
    found: dict[tuple[str, str], list[Spot]] = {}
    for spot in chart.spots:
        if spot.missing is not None:
            found.setdefault((spot.contestant, missing(spot)), []).append(spot)
    return tuple(_gap(who, why, spots, cells[who]) for (who, why), spots in found.items())


def _gap(who: str, why: str, found: Sequence[Spot], cells: int) -> str:
    if len(found) == cells:
        return f"{who}: {why}"
    if len(found) > MOST_PLACES:
        return f"{who}: {len(found)} of {cells} cells {why}"
    places = [
        ", ".join(name_of(name, value) for name, value in spot.at.items() if name != CONTESTANT) for spot in found
    ]
    return f"{who}: {why} at {'; '.join(places)}"

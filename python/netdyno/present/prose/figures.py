"""A figure of an experiment in words: the places of its cells, and the contestants without a figure. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from netdyno.analysis.found.charts import Chart, ChartPanel, Spot
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT
from netdyno.model.figure import SCENARIO
from netdyno.model.levels import level_words
from netdyno.present.prose import exclusions

MOST_OF_A_REASON = 110
"""The most characters of a reason that are shown."""
MOST_PLACES = 3
"""The most cells without a figure that are listed one by one."""
NOT_RECORDED = "no such figure"


def name_of(coordinate: str, value: type_level, unsafe: Collection[str] = ()) -> str:
    """Name a value for titles and legends; `unsafe` are the contestants that are marked as such."""
    if coordinate == CONTESTANT and value in unsafe:
        return f"{value}, UNSAFE"
    return str(value) if coordinate in (CONTESTANT, SCENARIO, "client") else level_words(coordinate, value)


def name_panel(panel: ChartPanel) -> str:
    """The title of a panel; empty where a figure has a single one."""
    return ", ".join(name_of(name, value, panel.unsafe) for name, value in panel.coordinates.items())


def explain_missing(spot: Spot) -> str:
    """Say why a cell has no figure, in short; empty where it has one."""
    if spot.missing is None:
        return ""
    if spot.missing.status is None or spot.missing.cause is None:
        return NOT_RECORDED
    cause = exclusions.describe_cause(spot.missing.cause)
    short = cause if len(cause) <= MOST_OF_A_REASON else f"{cause[:MOST_OF_A_REASON].rstrip()}…"
    return f"{exclusions.STATUS_WORDS[spot.missing.status]} ({short})"


def name_missing_status(spot: Spot) -> str:
    """Say why a cell has no figure, without the cause, where there is little room."""
    return explain_missing(spot).partition(" (")[0]


def list_gaps(chart: Chart) -> tuple[str, ...]:
    """List the contestants without a figure, one entry for each and reason; with the cells where these are few."""
    cells = Counter(spot.contestant for spot in chart.spots)
    missing_spots: dict[tuple[str, str], list[Spot]] = {}
    for spot in chart.spots:
        if spot.missing is not None:
            missing_spots.setdefault((spot.contestant, explain_missing(spot)), []).append(spot)
    return tuple(
        _describe_gap(contestant, why, spots, cells[contestant]) for (contestant, why), spots in missing_spots.items()
    )


def _describe_gap(contestant: str, why: str, spots: Sequence[Spot], cells: int) -> str:
    if len(spots) == cells:
        return f"{contestant}: {why}"
    if len(spots) > MOST_PLACES:
        return f"{contestant}: {len(spots)} of {cells} cells {why}"
    places = [
        ", ".join(name_of(name, value) for name, value in spot.coordinates.items() if name != CONTESTANT)
        for spot in spots
    ]
    return f"{contestant}: {why} at {'; '.join(places)}"

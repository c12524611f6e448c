"""Response times that no load changes: those of a timer, or of a delay on the way, not of work. Pure functions.

An idle server answers as soon as it can, and an overloaded one the later the more is asked of it. A time that is
nearly the same for every message, and the same at several loads, is neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.found.cells import CellFigures, LevelInfo
from netdyno.analysis.found.notices import Constant
from netdyno.analysis.found.ranking import Standing
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings

SHORTEST_NS = 30e6
"""The shortest of TCP's own timers, the delayed ACK's, is 40 ms (TCP_DELACK_MIN in include/net/tcp.h), and the time
since the segment that set it off may be missing from it."""
CONSTANT, TICK_NS = 0.05, 10e6
"""The most by which p99 may exceed p50 in a distribution of nearly one value: this share of p50, or a tick of the
kernel's timers, the coarsest of which are 10 ms (CONFIG_HZ)."""
SAME = 1.02
"""The largest median divided by the smallest is below this where no load changed it."""
AMOUNTS = ("connections", "depth", "rate", "rate-per-connection")
"""The factors that are more or less load. A size is not: a queue of few connections is as long with any."""


def find_constants(
    standings: Sequence[Standing],
    cells: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    scenario: Scenario,
) -> tuple[Constant, ...]:
    """Return every contestant with a response time that is the same constant at several loads, all else being equal,
    and that the question does not ask for."""
    by_key = {level.key: level for level in levels}
    constant = []
    for standing in standings:
        groups: dict[tuple[tuple[str, type_level], ...], list[CellFigures]] = {}
        for cell in cells:
            values = by_key[cell.level].values
            if cell.contestant == standing.contestant and not _is_requested(scenario, values):
                rest = tuple((name, value) for name, value in values.items() if name not in AMOUNTS)
                groups.setdefault(rest, []).append(cell)
        constant += [
            _describe_constant(standing.contestant, alike)
            for alike in groups.values()
            if len(alike) > 1 and _is_constant(alike)
        ]
    return tuple(constant)


def _is_requested(scenario: Scenario, levels: Mapping[str, type_level]) -> bool:
    """Return whether the question itself has a constant time: a service time, or a link with a delay."""
    cell_settings = settings(scenario, levels)
    return cell_settings.is_impaired or cell_settings.longest_service_time_s > 0


def _is_constant(cells: Sequence[CellFigures]) -> bool:
    medians = [cell.value("p50") for cell in cells]
    if min(medians) < SHORTEST_NS or max(medians) / min(medians) >= SAME:
        return False
    return all(
        cell.value("p99") - median < max(CONSTANT * median, TICK_NS)
        for cell, median in zip(cells, medians, strict=True)
    )


def _describe_constant(contestant: str, alike: Sequence[CellFigures]) -> Constant:
    return Constant(
        contestant=contestant,
        levels=tuple(cell.level for cell in alike),
        p50_ns=min(cell.value("p50") for cell in alike),
        p99_ns=max(cell.value("p99") for cell in alike),
    )

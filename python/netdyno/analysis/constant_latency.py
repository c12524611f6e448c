"""Response times that no load changes: a timer's, or a delay's on the way, and not those of work. Pure functions.

Who has nothing else to do answers as soon as it can, and who has more to do than it can answers later the more is asked
of it. A time that is nearly the same for every message, and the same at several loads, is neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.findings import CellFigures, LevelInfo, Standing
from netdyno.base import quantities
from netdyno.base.units import parse_duration
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings
from netdyno.present.prose import loss

SHORTEST_NS = 30e6
"""The shortest of TCP's own timers, the delayed ACK's, is 40 ms (TCP_DELACK_MIN in include/net/tcp.h), and the time
since the segment that set it off may be missing of it."""
CONSTANT, TICK_NS = 0.05, 10e6
"""How far p99 may lie above p50 where a distribution is nearly one value: this share of it, or a tick of the kernel's
timers, the coarsest of which are 10 ms (CONFIG_HZ)."""
SAME = 1.02
"""The largest median divided by the smallest, below which no load changed it."""
AMOUNTS = ("connections", "depth", "rate", "rate-per-connection")
"""The factors that are more or less load. A size is not: a queue of few connections is as long with any."""


def notes(
    standings: Sequence[Standing],
    cells: Sequence[CellFigures],
    levels: Sequence[LevelInfo],
    scenario: Scenario,
) -> tuple[str, ...]:
    """A sentence for every contestant whose response time is the same constant at several loads, all else being equal,
    and not asked for."""
    by_key = {level.key: level for level in levels}
    told = []
    for standing in standings:
        groups: dict[tuple[tuple[str, type_level], ...], list[CellFigures]] = {}
        for cell in cells:
            values = by_key[cell.level].values
            if cell.contestant == standing.contestant and not _is_asked_for(scenario, values):
                rest = tuple((name, value) for name, value in values.items() if name not in AMOUNTS)
                groups.setdefault(rest, []).append(cell)
        told += [
            _sentence(standing, found, by_key) for found in groups.values() if len(found) > 1 and _is_constant(found)
        ]
    return tuple(told)


def _is_asked_for(scenario: Scenario, levels: Mapping[str, type_level]) -> bool:
    """Whether a time that load does not change is part of the question: a service time, or a way that takes time."""
    wanted = settings(scenario, levels)
    service = (wanted.service_time, str(wanted.server.get("service-time", "0s")))
    return scenario.link not in ("loopback", "lan") or any(parse_duration(one) > 0 for one in service)


def _is_constant(found: Sequence[CellFigures]) -> bool:
    medians = [cell.response_ns.p50.value for cell in found]
    if min(medians) < SHORTEST_NS or max(medians) / min(medians) >= SAME:
        return False
    return all(
        cell.response_ns.p99.value - median < max(CONSTANT * median, TICK_NS)
        for cell, median in zip(found, medians, strict=True)
    )


def _sentence(standing: Standing, found: Sequence[CellFigures], levels: Mapping[str, LevelInfo]) -> str:
    low = min(cell.response_ns.p50.value for cell in found)
    high = max(cell.response_ns.p99.value for cell in found)
    loads = quantities.listed([levels[cell.level].label for cell in found])
    return (
        f"{loss.named(standing)} answers in {quantities.duration(low)} to {quantities.duration(high)} (p50 to p99) at "
        f"{loads} alike. A time that load does not change smells of a timer (a delayed ACK, a resend, a timeout) and "
        "not of work; no service time and no delay of the link was asked for."
    )

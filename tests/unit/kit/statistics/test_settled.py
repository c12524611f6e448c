"""From when on a series stays what it is, in what was recorded of servers with a JIT on two cores.

CPU per message in microseconds, in slices of half a second from the first message on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netdyno.kit.statistics.settled import LEAST, settled_from

RECORDED = {
    "netty, echo at 5,000/s": (
        [136, 60, 61, 92, 61, 31, 27, 29, 28, 26, 26, 27, 26, 26, 30, 32, 32, 33, 30, 31],
        5,
    ),
    "java-virtual-threads, the same": (
        [82, 78, 88, 57, 45, 42, 45, 45, 44, 47, 42, 44, 45, 45, 49, 44, 47, 43, 46, 44],
        4,
    ),
    "node-events, the same": (
        [65, 41, 35, 39, 38, 39, 38, 36, 34, 39, 36, 38, 43, 38, 36, 33, 33, 37, 38, 37],
        1,
    ),
    "netty, a closed loop": (
        [167, 95, 65, 29, 40, 29, 29, 29, 29, 29, 28, 29, 33, 29, 30, 30, 29, 29, 29, 33],
        4,
    ),
    "netty, waiting: its compiler works evenly for more than a second": (
        [234, 84, 214, 238, 198, 63, 47, 43, 44, 43, 43, 45, 51, 41, 44, 52, 38, 43, 42, 43],
        6,
    ),
    "netty in chat": (
        [1758, 2577, 1381, 1108, 780, 605, 551, 468, 472, 567, 384, 517, 390, 385, 459, 424, 434, 407, 445, 427],
        6,
    ),
    "netty, echo, a neighbour took the core": (
        [148, 44, 35, 6, 35, 69, 46, 18, 7, 16, 14, 4, 23, 17, 20, 16, 17, 18, 7, 6],
        12,
    ),
}
"""With the number of the slice that the probe finds: the first that costs about what all after it do."""


def find_settled(costs: Sequence[float]) -> int | None:
    """As the probe asks: after each slice, until there is an answer."""
    ends = range(1, len(costs) + 1)
    return next((first for end in ends if (first := settled_from(costs[:end])) is not None), None)


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_recorded_settles_where_the_compiler_was_done(name: str) -> None:
    costs, expected = RECORDED[name]
    assert find_settled(costs) == expected


def test_what_gets_cheaper_and_cheaper_has_not_settled() -> None:
    assert find_settled([100 * 0.9**number for number in range(20)]) is None


def test_a_plateau_that_is_short_or_a_single_value_decides_nothing() -> None:
    assert find_settled([200, 200, 200, 200, 100, 100, 100, 100]) is None
    assert find_settled([100.0] * LEAST) == 0
    assert find_settled([100.0] * (LEAST - 1)) is None
    assert find_settled([100, 100, 900, 100, 100, 100]) == 0

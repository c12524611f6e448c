"""The clock offset of two hosts, from questions that were delayed on their way."""

from __future__ import annotations

import asyncio
import time

from netdyno.measure.cluster.clocks import Exchange, estimate_offset, measure
from tests.support.patience import PATIENCE_S


def test_the_shortest_exchange_says_how_far_the_clocks_are_apart() -> None:
    held_up_there = Exchange(sent_ns=0, there_ns=1_000_900, answered_ns=1000)
    shortest = Exchange(sent_ns=2000, there_ns=1_002_050, answered_ns=2100)
    held_up_back = Exchange(sent_ns=3000, there_ns=1_003_050, answered_ns=4000)
    estimate = estimate_offset([held_up_there, shortest, held_up_back])
    assert (estimate.offset_ns, estimate.round_trip_ns) == (1_000_000, 100)


def test_a_clock_that_is_behind_has_a_negative_offset() -> None:
    assert estimate_offset([Exchange(sent_ns=500, there_ns=100, answered_ns=700)]).offset_ns == -500


def test_a_clock_is_read_as_often_as_requested() -> None:
    questions = []

    async def ask() -> int:
        questions.append(True)
        return time.monotonic_ns() + 10**12

    estimate = asyncio.run(measure(ask, PATIENCE_S, 7))
    assert len(questions) == 7
    assert abs(estimate.offset_ns - 10**12) <= estimate.round_trip_ns

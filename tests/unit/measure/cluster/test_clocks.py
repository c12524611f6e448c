"""The clock offset of two hosts, from questions that were delayed on their way."""

from __future__ import annotations

import asyncio
import time

import pytest

from netdyno.measure.cluster.clocks import Offset, estimate_offset, measure
from tests.support.patience import PATIENCE_S


def test_the_shortest_exchange_says_how_far_the_clocks_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    held_up_there, shortest, held_up_back = (0, 1_000_900, 1000), (2000, 1_002_050, 2100), (3000, 1_003_050, 4000)
    exchanges = (held_up_there, shortest, held_up_back)
    here = iter([moment for sent, _, answered in exchanges for moment in (sent, answered)])
    there = iter([moment for _, moment, _ in exchanges])

    async def ask() -> int:
        return next(there)

    monkeypatch.setattr(time, "monotonic_ns", lambda: next(here))
    assert asyncio.run(measure(ask, PATIENCE_S, 3)) == Offset(offset_ns=1_000_000, round_trip_ns=100)


def test_a_clock_that_is_behind_has_a_negative_offset() -> None:
    assert estimate_offset(sent_ns=500, there_ns=100, answered_ns=700).offset_ns == -500


def test_a_clock_is_read_as_often_as_requested() -> None:
    questions = []

    async def ask() -> int:
        questions.append(True)
        return time.monotonic_ns() + 10**12

    estimate = asyncio.run(measure(ask, PATIENCE_S, 7))
    assert len(questions) == 7
    assert abs(estimate.offset_ns - 10**12) <= estimate.round_trip_ns

"""Every vector of protocol/golden.json against the sessions of the servers in Python, sliced in many ways."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from netdyno_server.options import Options
from netdyno_server.session import Effect, Totals, burn_cpu
from netdyno_server.workloads import make_session
from tests.support.golden import VECTORS, JsonWords, cuts, joined, undated


def in_words(effect: Effect) -> JsonWords:
    """As golden.json has it."""
    match effect:
        case ("write", bytes(data)):
            return {"write": undated(data).hex()}
        case ("broadcast", tuple(parts)):
            return {"broadcast": [part.hex() for part in parts]}
        case ("close", _):
            return {"close": True}
    return {effect[0]: effect[1]}


def expect_golden(vector: JsonWords, slices: Iterable[bytes]) -> None:
    options = Options("server", vector["resolved"])
    totals = Totals()
    session = make_session(options, totals)
    effects = [effect for data in slices for effect in session.receive(data)]
    if vector["ends"]:
        effects += session.end()
    may_join = not options.split or vector["workload"] == "echo"
    words = [in_words(effect) for effect in effects]
    assert (joined(words) if may_join else words) == (joined(vector["effects"]) if may_join else vector["effects"])
    assert totals.protocol_errors == vector["protocol_errors"]
    assert vector["requests"] in (None, totals.requests)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden(vector: JsonWords) -> None:
    chunks = [bytes.fromhex(chunk) for chunk in vector["chunks"]]
    expect_golden(vector, chunks)
    for pieces in cuts(b"".join(chunks)):
        expect_golden(vector, pieces)


def test_burning_ends_with_the_work_or_with_the_time_for_it() -> None:
    begin = time.thread_time_ns()
    assert burn_cpu(2_000_000, longest=60_000_000_000) == 0
    assert time.thread_time_ns() - begin >= 2_000_000
    begin = time.thread_time_ns()
    left_ns = burn_cpu(60_000_000_000, longest=2_000_000)
    assert 60_000_000_000 - left_ns <= time.thread_time_ns() - begin
    assert left_ns > 0

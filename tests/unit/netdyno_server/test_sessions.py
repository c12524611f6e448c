"""Every vector of protocol/golden.json against the sessions of the servers in Python, sliced in many ways."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pytest

from netdyno.base.paths import ROOT
from netdyno_server.options import parse
from netdyno_server.session import Effect, Totals, burn_cpu
from netdyno_server.workloads import make_session

Words: TypeAlias = dict[str, Any]
VECTORS: list[Words] = json.loads((ROOT / "protocol" / "golden.json").read_text())["vectors"]


def in_words(effect: Effect) -> Words:
    """As golden.json has it."""
    match effect:
        case ("write", bytes(data)):
            return {"write": data.hex()}
        case ("broadcast", tuple(parts)):
            return {"broadcast": [part.hex() for part in parts]}
        case ("close", _):
            return {"close": True}
    return {effect[0]: effect[1]}


def joined(effects: Iterable[Words]) -> list[Words]:
    """A write joins the one before it: where a server read twice, it may write twice."""
    made: list[Words] = []
    for effect in effects:
        if "write" in effect and made and "write" in made[-1]:
            made[-1] = {"write": made[-1]["write"] + effect["write"]}
        else:
            made.append(effect)
    return made


def expect_golden(vector: Words, slices: Iterable[bytes]) -> None:
    given = {"workload": vector["workload"], **vector["options"]}
    options = parse("server", [f"--{name}={value}" for name, value in given.items()])
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


def cuts(stream: bytes) -> Iterator[list[bytes]]:
    yield [stream] if stream else []
    yield [stream[at : at + 1] for at in range(len(stream))]
    step = 1 + len(stream) // 512  # every place, except in the few long streams
    for at in range(1, len(stream), step):
        yield [stream[:at], stream[at:]]
    for seed in range(5):
        rolled, pieces, at = random.Random(seed), [], 0
        while at < len(stream):
            size = rolled.randint(1, 60)
            pieces.append(stream[at : at + size])
            at += size
        yield pieces


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden(vector: Words) -> None:
    chunks = [bytes.fromhex(chunk) for chunk in vector["chunks"]]
    expect_golden(vector, chunks)
    for pieces in cuts(b"".join(chunks)):
        expect_golden(vector, pieces)


def test_burning_ends_with_the_work_or_with_the_time_for_it() -> None:
    begin = time.thread_time_ns()
    assert burn_cpu(2_000_000, longest=60_000_000_000) == 0
    assert time.thread_time_ns() - begin >= 2_000_000
    begin = time.thread_time_ns()
    left = burn_cpu(60_000_000_000, longest=2_000_000)
    assert 60_000_000_000 - left <= time.thread_time_ns() - begin
    assert left > 0

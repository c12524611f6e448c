"""Stalled hosts of one load, each compared with the others."""

from __future__ import annotations

import pytest

from netdyno.measure.audits.host_audits import client_slower, client_stalled
from netdyno.model.load_result import Audit, Part
from tests.support.builders.made_load import load

FIRST, SECOND = "tls://10.0.0.1:8787", "tls://10.0.0.2:8787"


def judged(first: tuple[int, ...], second: tuple[int, ...]) -> Audit:
    """Return the audit of two hosts, from the answers of each interval."""
    total = load([sum(counts) for counts in zip(first, second, strict=True)])
    return client_stalled({FIRST: load(first), SECOND: load(second)}, total)


def test_a_server_that_stands_still_is_named_though_all_did_at_another_time() -> None:
    audit = judged((9, 0, 0, 9, 9, 9, 9, 9, 9, 9), (9, 0, 0, 9, 9, 0, 0, 0, 9, 9))
    assert not audit.passed
    silence = "the longest time without an answer: 300 ms, in whole intervals (limit 150 ms)"
    assert audit.detail == f"{SECOND} stalled while other hosts did not: {silence}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((9, 9, 9, 0, 0, 9, 9, 9, 9, 9), (9, 9, 9, 0, 0, 0, 0, 9, 9, 9)),  # the server sees to the one before the other
        ((9, 9, 9, 0, 0, 9, 9, 9, 9, 9), (9, 9, 0, 0, 0, 0, 9, 9, 9, 9)),  # and was late with its last answers
    ],
)
def test_how_a_server_stops_and_catches_up_is_no_standstill_of_a_host(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    assert judged(first, second).passed


def test_a_server_that_stands_still_and_then_with_all_others_is_named_for_its_part() -> None:
    audit = judged((9, 9, 9, 9, 0, 0, 9, 9, 9, 9), (9, 9, 0, 0, 0, 0, 0, 9, 9, 9))
    assert audit.detail.startswith(f"{SECOND} stalled while other hosts did not: ")
    assert "200 ms, in whole" in audit.detail


def test_a_server_that_is_never_answered_is_named() -> None:
    audit = judged((9,) * 10, (0,) * 10)
    assert audit.detail == f"{SECOND} got no answer at all while other hosts did"
    assert judged((2,) + (0,) * 9, (0,) * 10).passed
    assert judged((0,) * 10, (0,) * 10).passed


def test_a_server_that_is_answered_too_seldom_is_not_called_judged() -> None:
    """A hundred answers a second of two hosts: of one that stood still for so long, chance might have made seven be
    missing."""
    audit = judged((5,) * 20, (5,) * 4 + (0,) * 3 + (5,) * 13)
    assert audit.passed
    far_between = "not judged, because answers are rare: the longest time without an answer"
    assert audit.detail == (
        f"{FIRST}: {far_between}: 0 ns, in whole intervals; {SECOND}: {far_between}: 300 ms, in whole intervals"
    )
    slower = judged((9,) * 20, (5,) * 20)
    assert slower.passed
    assert slower.detail.startswith(f"{SECOND}: not judged, ")


def test_a_server_that_is_never_answered_is_not_the_fastest() -> None:
    parts = [
        Part(host=host, connections=1, completed=count, p50_ns=p50_ns, p99_ns=p50_ns, cores_used=0.1)
        for host, count, p50_ns in ((FIRST, 9, 900_000), (SECOND, 0, 0))
    ]
    assert client_slower(parts).passed

"""The audit of requested work: a server that sleeps where it should compute, or answers before its time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.measure.audits.requested_work import RequestedWork, work
from netdyno.model.load_result import Audit
from netdyno.model.observation import ServerObservation
from tests.support.builders.made_load import MS, changed, distribution, load, observed

LOAD = load()
"""A thousand messages in a second, ten at a time, each after 10 ms."""
COMPUTES = RequestedWork(service_s=0.0005, burns=True, at_a_time=10)


def using(cpu_s: float) -> ServerObservation:
    return replace(observed(), cpu_user_s=cpu_s, cpu_system_s=0.0, run_queue_wait_s=0.0)


@pytest.mark.parametrize(("cpu_s", "passed"), [(0.52, True), (0.46, True), (0.42, False), (0.01, False)])
def test_a_server_that_computes_has_used_the_cpu(cpu_s: float, passed: bool) -> None:
    """990 requests of 500 µs are 495 ms, of which clocks may miss a tenth."""
    assert work(LOAD, using(cpu_s), COMPUTES).passed is passed


def test_the_wait_for_a_core_counts_as_a_server_may_burn_by_the_clock() -> None:
    assert work(LOAD, replace(using(0.3), run_queue_wait_s=0.2), COMPUTES).passed
    assert not work(LOAD, replace(using(0.3), run_queue_wait_s=0.1), COMPUTES).passed


def test_the_detail_has_both_figures() -> None:
    assert work(LOAD, using(0.01), COMPUTES).detail == (
        "it used 10.0 ms of CPU, and 1000 requests of 500 µs take 495 ms or more"
    )


@pytest.mark.parametrize(("service_s", "passed"), [(0.0, True), (0.012, True), (0.013, False)])
def test_no_reply_comes_before_its_time(service_s: float, passed: bool) -> None:
    """A timer may end a tenth and a millisecond too early."""
    waits = RequestedWork(service_s, burns=False, at_a_time=10)
    assert work(LOAD, using(0.0), waits).passed is passed


def test_one_early_reply_of_many_is_seen() -> None:
    times = distribution(999, 10 * MS)
    early = changed(LOAD, "latency.service_ns", times)
    assert work(early, using(0.0), RequestedWork(0.01, burns=False, at_a_time=10)).passed
    sooner = changed(LOAD, "latency.service_ns", distribution(1, 5 * MS))
    audit = work(sooner, using(0.0), RequestedWork(0.01, burns=False, at_a_time=10))
    assert audit.detail == "a reply came after 5.00 ms, and a request takes 10.0 ms"


def test_what_is_not_known_or_too_little_is_not_judged() -> None:
    def judge(cpu: ServerObservation | None, request: RequestedWork = COMPUTES, answers: int = 1000) -> Audit:
        return work(changed(LOAD, "requests.completed", answers), cpu, request)

    assert judge(None).passed, "the server's process is unknown"
    assert judge(using(0.0), answers=10).passed, "each may have been worked on before the window"
    assert judge(using(0.0), COMPUTES._replace(at_a_time=1000)).passed, "as many at a time"
    assert work(changed(LOAD, "latency.service_ns", distribution(0, 0)), using(0.0), COMPUTES).passed, "no reply"

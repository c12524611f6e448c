"""The limits of a trial, from its cell and its cores."""

from __future__ import annotations

import os

import pytest

from netdyno.measure.audits.requested_work import RequestedWork
from netdyno.measure.trial import limits
from netdyno.measure.trial.limits import find_limits, find_requested_work
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Pinning
from netdyno.model.options import settings

UNPINNED = Pinning(server=(), generator=(), note="a test")
PINNED = Pinning(server=(0, 1), generator=(2,), note="")


def test_cores_are_those_of_the_pinning_or_all() -> None:
    requested = settings(Scenario(name="echo", workload="echo"), {})
    allowed = len(os.sched_getaffinity(0))
    free, bound = find_limits(requested, UNPINNED), find_limits(requested, PINNED)
    assert (free.server_cores, free.generator_cores, free.all_cores) == (allowed, allowed, allowed)
    assert (bound.server_cores, bound.generator_cores, bound.all_cores) == (2, 1, allowed)
    assert find_limits(requested, PINNED, load_elsewhere=True).all_cores == allowed + 1


def test_the_overruns_of_all_slices_count() -> None:
    requested = settings(Scenario(name="echo", workload="echo"), {})
    assert find_limits(requested, PINNED, overruns_s=(0.1, 0.2)).overrun_s == pytest.approx(0.3)
    assert find_limits(requested, PINNED).overrun_s == 0


@pytest.mark.parametrize(
    ("link", "rate_hz", "delay_s"), [("loopback", None, 0.0), ("lan", 10_000_000, 0.0), ("wan", 10_000_000, 0.02)]
)
def test_only_a_link_has_a_rate_and_only_a_wan_a_delay(link: str, rate_hz: int | None, delay_s: float) -> None:
    scenario = Scenario(name="echo", workload="echo", link_rate="10mbit", link_delay_s=0.02)
    link_limits = find_limits(settings(scenario, {"link": link}), UNPINNED)
    assert (link_limits.rate_hz, link_limits.delay_s) == (rate_hz, delay_s)


def test_the_service_time_is_the_requests_and_the_servers() -> None:
    server: dict[str, type_level] = {"service-time": "3ms"}
    scenario = Scenario(name="rpc", workload="rpc", service_time_s=0.002, server=server, busy_connections=5)
    assert find_requested_work(settings(scenario, {})) == RequestedWork(0.005, burns=False, at_a_time=5)
    assert find_requested_work(settings(scenario, {"service-time": "10ms"})).service_s == pytest.approx(0.013)
    computes = Scenario(name="http", workload="http", connections=20, server=server | {"service-kind": "cpu"})
    assert find_requested_work(settings(computes, {})) == RequestedWork(0.003, burns=True, at_a_time=20)
    assert find_requested_work(settings(Scenario(name="echo", workload="echo", server=server), {})).service_s == 0.0


def test_memory_is_copied_at_some_speed_which_is_measured_once() -> None:
    first = limits.measure_bytes_hz()
    assert first > 50e6, "a core of forty years ago"
    assert limits.measure_bytes_hz() == first

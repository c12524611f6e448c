"""Half the cores each, and never one physical core on both sides unless there is no other."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.machine import cpu_quota
from netdyno.machine import pinning as of_machine
from netdyno.machine.pinning import (
    apply_placement,
    choose,
    generator_cores,
    give_server,
    may_run_realtime,
    of_one_side,
    prioritise,
    punctual,
    relay_cores,
    relay_note,
    server_cores,
    split,
    within_quota,
)
from netdyno.machine.process import REALTIME_PRIORITY, RELAY_PRIORITY, Process

pytestmark = pytest.mark.quiet


def test_one_core_is_shared_and_that_is_said() -> None:
    pinning = split({3: "3"})
    assert (pinning.server, pinning.generator) == ((), ())
    assert "not pinned" in pinning.note


def test_two_cores_are_one_each() -> None:
    pinning = split({0: "0", 1: "1"})
    assert (pinning.server, pinning.generator) == ((0,), (1,))
    assert pinning.note == "server pinned to core 0, generator to core 1; the harness is not pinned"


def test_the_odd_core_goes_to_the_generator() -> None:
    pinning = split({2: "2", 4: "4", 6: "6"})
    assert (pinning.server, pinning.generator) == ((2,), (4, 6))


def test_hardware_threads_of_one_core_stay_together() -> None:
    # as numbered on most Intel machines: CPU n and n + cores/2 share a core
    pinning = split({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    assert (pinning.server, pinning.generator) == ((0, 2), (1, 3))


def test_two_threads_of_the_only_core_are_said_to_be_that() -> None:
    pinning = split({0: "0-1", 1: "0-1"})
    assert (pinning.server, pinning.generator) == ((0,), (1,))
    assert "same physical core" in pinning.note


def test_a_server_can_be_given_fewer_cores_and_the_generator_keeps_its_own() -> None:
    whole = split({cpu: str(cpu) for cpu in range(8)})
    one = give_server(whole, 1)
    assert (one.server, one.generator) == ((0,), (4, 5, 6, 7))
    assert "of the server's only core 0" in one.note
    assert give_server(whole, "all") == give_server(whole, 4) == whole
    assert give_server(split({0: "0"}), 1) == split({0: "0"})


def test_on_shared_cores_both_sides_have_all_of_them_and_nobody_goes_first() -> None:
    apart = prioritise(split({cpu: str(cpu) for cpu in range(4)}), allowed=True)
    shared = apply_placement(apart, "shared")
    assert (shared.server, shared.generator, shared.realtime) == ((0, 1, 2, 3), (0, 1, 2, 3), False)
    assert shared.note == (
        "server and generator share cores 0,1,2,3; the harness is not pinned; generator at normal priority"
    )
    assert (apart.is_shared, shared.is_shared) == (False, True)
    assert apply_placement(apart, "apart") == apart
    narrow = give_server(shared, 1)
    assert (narrow.server, narrow.generator, narrow.is_shared) == ((0,), (0, 1, 2, 3), True)
    only = split({0: "0"})
    assert apply_placement(only, "shared") == only
    assert only.is_shared


def test_a_quota_leaves_as_many_cores_as_it_fills() -> None:
    four = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    assert within_quota(four, None) == four
    assert within_quota(four, 8.0) == four
    assert sorted(within_quota(four, 2.5)) == [0, 1], "hardware threads of two physical cores"
    assert sorted(within_quota({0: "0,1", 1: "0,1", 2: "2,3", 3: "2,3"}, 2.0)) == [0, 2]
    assert sorted(within_quota(four, 0.6)) == [0]


@pytest.fixture
def restored_affinity() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("restored_affinity")
def test_what_a_quota_leaves_is_what_the_sides_are_counted_by(monkeypatch: pytest.MonkeyPatch) -> None:
    first = min(os.sched_getaffinity(0))
    monkeypatch.setattr(cpu_quota, "quota_cores", lambda: 0.6)
    found = choose()
    assert os.sched_getaffinity(0) == {first}, "what is not pinned would run on cores that are not counted"
    assert (found.server, found.generator) == ((), ())
    assert "the CPU quota of a control group leaves 0.6 cores' time" in found.note
    assert (server_cores(found), generator_cores(found)) == (1, 1)


def test_only_allowed_cores_are_used() -> None:
    pinning = choose()
    assert {*pinning.server, *pinning.generator} <= os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("cores", "server_of_load", "generator_of_load"),
    [((2, 3), (2,), (3,)), ((4, 5, 6), (4,), (5, 6)), ((2,), (0, 1, 3), (2,))],
)
def test_a_host_of_one_side_has_both_of_the_canarys_where_its_programs_are(
    cores: tuple[int, ...],
    server_of_load: tuple[int, ...],
    generator_of_load: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two on one core would take turns, and say nothing of it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(of_machine, "siblings", str)
    load = of_one_side(cores, is_load=True, realtime=True)
    assert (load.server, load.generator, load.realtime) == (server_of_load, generator_of_load, True)
    server = of_one_side(cores, is_load=False, realtime=False)
    swapped = len(cores) == 1
    assert (server.generator, server.server)[:: 1 if swapped else -1] == (server_of_load, generator_of_load)
    assert not server.realtime


def test_a_host_with_one_core_lets_nobody_before_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7})
    only = of_one_side((7,), is_load=True, realtime=True)
    assert (only.server, only.generator, only.realtime) == ((7,), (7,), False)


def test_the_generator_goes_before_everything_else_only_on_cores_of_its_own() -> None:
    apart = split({0: "0", 1: "1"})
    together = split({0: "0"})
    assert prioritise(apart, allowed=True).realtime
    assert not prioritise(together, allowed=True).realtime


def test_a_generator_without_the_right_to_priority_says_so_and_how_to_get_it() -> None:
    pinning = prioritise(split({0: "0", 1: "1"}), allowed=False)
    assert not pinning.realtime
    assert "normal priority" in pinning.note
    assert "ulimit -r" in pinning.note


def test_a_relay_runs_on_one_of_the_generators_cores() -> None:
    assert relay_cores(split({core: str(core) for core in range(6)})) == (5,)
    assert relay_cores(split({0: "0"})) == ()
    two = split({0: "0", 1: "1"})
    assert relay_note(prioritise(two, allowed=True)) == (
        "core 1, which is one of the generator's, at real-time priority, above the generator's"
    )
    assert relay_note(prioritise(two, allowed=False)) == "core 1, which is one of the generator's, at normal priority"
    assert relay_note(split({0: "0"})) == "not pinned"


def test_asking_for_real_time_leaves_this_process_as_it_was() -> None:
    before = os.sched_getscheduler(0)
    may_run_realtime()
    assert os.sched_getscheduler(0) == before


@pytest.mark.skipif(not may_run_realtime(), reason="this user may not use real-time priority (ulimit -r)")
def test_a_real_time_process_is_scheduled_so_with_all_its_threads(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, Process(["chrt", "-p", "0"], (), log, realtime=True) as child:
        assert child.wait(time.monotonic() + 10)
    assert "SCHED_FIFO" in (tmp_path / "log").read_text()


@pytest.mark.skipif(not may_run_realtime(), reason="this user may not use real-time priority (ulimit -r)")
def test_the_harness_is_punctual_for_a_while_and_its_children_are_not() -> None:
    before = os.sched_getscheduler(0)
    with punctual(allowed=True):
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        child = subprocess.run(["chrt", "-p", "0"], capture_output=True, text=True, check=True).stdout
        assert "SCHED_FIFO" not in child
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == before
    with punctual(allowed=False):
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == before


@pytest.mark.skipif(not may_run_realtime(), reason="this user may not use real-time priority (ulimit -r)")
def test_a_relay_goes_before_the_generator(tmp_path: Path) -> None:
    command = ["chrt", "-p", "0"]
    with (
        (tmp_path / "log").open("wb") as log,
        Process(command, (), log, realtime=True, priority=RELAY_PRIORITY) as child,
    ):
        assert child.wait(time.monotonic() + 10)
    assert RELAY_PRIORITY > REALTIME_PRIORITY
    assert f"priority: {RELAY_PRIORITY}" in (tmp_path / "log").read_text()

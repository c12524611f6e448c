"""The binding of a trial's programs to their cores, and their priorities there."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.measure.machine import topology
from netdyno.measure.machine.pinning import (
    apply_placement,
    choose,
    choose_relay_cores,
    count_generator_cores,
    count_server_cores,
    describe_relay_cores,
    give_server,
    keep_punctual,
    may_run_realtime,
    place_canary,
    prioritise,
)
from netdyno.measure.machine.process import REALTIME_PRIORITY, RELAY_PRIORITY, Process
from netdyno.measure.machine.topology import Processor, Topology, format_list, split
from netdyno.model.observation import Pinning
from tests.support.recorded_machine import unpack

pytestmark = pytest.mark.quiet


def split_alone(cores: int) -> Pinning:
    """Split a machine with so many cores, and a single thread on each."""
    processors = tuple(Processor(cpu, (cpu,), 0, 0, 0) for cpu in range(cores))
    return split(Topology(processors, frozenset(), None))


def test_a_server_can_be_given_fewer_cores_and_the_generator_keeps_its_own() -> None:
    whole = split_alone(8)
    single = give_server(whole, 1)
    assert (whole.server, single.server, single.generator, single.harness) == ((1, 2, 3), (1,), (4, 5, 6, 7), (0,))
    assert "of the server's only core 1" in single.note
    assert give_server(whole, "all") == give_server(whole, 4) == whole
    assert give_server(split_alone(1), 1) == split_alone(1)


def test_on_shared_cores_both_sides_have_all_of_them_and_none_goes_first() -> None:
    apart = prioritise(split_alone(5), allowed=True)
    shared = apply_placement(apart, "shared")
    assert (shared.server, shared.generator, shared.realtime) == ((1, 2, 3, 4), (1, 2, 3, 4), False)
    assert shared.harness == (0,)
    assert shared.note == "server and generator share cores 1-4; harness on core 0; generator at normal priority"
    assert "share cores 0-1; the harness is not pinned" in apply_placement(split_alone(2), "shared").note
    assert (apart.is_shared, shared.is_shared) == (False, True)
    assert apply_placement(apart, "apart") == apart
    narrow = give_server(shared, 1)
    assert (narrow.server, narrow.generator, narrow.is_shared) == ((1,), (1, 2, 3, 4), True)
    only = split_alone(1)
    assert apply_placement(only, "shared") == only
    assert only.is_shared


@pytest.fixture
def restored_affinity() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("restored_affinity")
def test_what_a_quota_leaves_is_what_the_sides_are_counted_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(topology, "ROOT", unpack("vm-2-quota", tmp_path, allowed=format_list(own)))
    chosen = choose()
    assert os.sched_getaffinity(0) == {own[0]}, "what is not pinned would run on cores that are not counted"
    assert (chosen.server, chosen.generator) == ((), ())
    assert "a CPU quota leaves 0.4 cores' time" in chosen.note
    assert (count_server_cores(chosen), count_generator_cores(chosen)) == (1, 1)


def test_only_allowed_cores_are_used() -> None:
    pinning = choose()
    assert {*pinning.server, *pinning.generator, *pinning.harness} <= os.sched_getaffinity(0)


@pytest.mark.parametrize(
    ("cores", "server_of_load", "generator_of_load"),
    [((2, 3), (2,), (3,)), ((1, 2, 3), (1,), (2, 3)), ((2,), (0, 1, 3), (2,))],
)
def test_a_host_of_one_side_has_both_of_the_canarys_where_its_programs_are(
    cores: tuple[int, ...],
    server_of_load: tuple[int, ...],
    generator_of_load: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Two canaries on one core would take turns, unnoticed."""
    monkeypatch.setattr(topology, "ROOT", unpack("vm-4", tmp_path))
    load = place_canary(cores, is_load=True, realtime=True)
    assert (load.server, load.generator, load.realtime) == (server_of_load, generator_of_load, True)
    server = place_canary(cores, is_load=False, realtime=False)
    swapped = len(cores) == 1
    assert (server.generator, server.server)[:: 1 if swapped else -1] == (server_of_load, generator_of_load)
    assert not server.realtime


def test_a_host_with_one_core_lets_none_before_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(topology, "ROOT", unpack("vm-1", tmp_path))
    only = place_canary((0,), is_load=True, realtime=True)
    assert (only.server, only.generator, only.realtime) == ((0,), (0,), False)


def test_the_generator_goes_before_everything_else_only_on_cores_of_its_own() -> None:
    apart = split_alone(2)
    together = split_alone(1)
    assert prioritise(apart, allowed=True).realtime
    assert not prioritise(together, allowed=True).realtime


def test_a_generator_without_the_right_to_priority_says_so_and_how_to_get_it() -> None:
    pinning = prioritise(split_alone(2), allowed=False)
    assert not pinning.realtime
    assert "normal priority" in pinning.note
    assert "ulimit -r" in pinning.note


def test_a_relay_runs_on_one_of_the_generators_cores() -> None:
    assert choose_relay_cores(split_alone(6)) == (5,)
    assert choose_relay_cores(split_alone(1)) == ()
    two = split_alone(2)
    assert describe_relay_cores(prioritise(two, allowed=True)) == (
        "core 1, which is one of the generator's, at real-time priority, above the generator's"
    )
    assert (
        describe_relay_cores(prioritise(two, allowed=False))
        == "core 1, which is one of the generator's, at normal priority"
    )
    assert describe_relay_cores(split_alone(1)) == "not pinned"


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
    with keep_punctual(realtime=True):
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
        child = subprocess.run(["chrt", "-p", "0"], capture_output=True, text=True, check=True).stdout
        assert "SCHED_FIFO" not in child
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == before
    with keep_punctual(realtime=False):
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == before


@pytest.mark.usefixtures("restored_affinity")
def test_the_harness_keeps_to_its_core_while_the_load_runs() -> None:
    before = os.sched_getaffinity(0)
    own = (max(before),)
    with keep_punctual(own, realtime=False):
        assert os.sched_getaffinity(0) == {*own}
    assert os.sched_getaffinity(0) == before
    with keep_punctual(own, realtime=may_run_realtime()):
        assert os.sched_getaffinity(0) == {*own}
    assert os.sched_getaffinity(0) == before
    with keep_punctual((), realtime=False):
        assert os.sched_getaffinity(0) == before


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

"""The use of the cores: the arithmetic on made-up readings, and readings of own processes and of orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.machine import cpu_quota, cpu_share, server_proc
from netdyno.measure.machine.cpu_share import MachineSnapshot
from netdyno.model.observation import MachineObservation

pytestmark = pytest.mark.quiet

STAT = """cpu  300 0 200 900 60 0 20 40 0 0
cpu0 100 0 100 400 50 0 10 30 0 0
cpu1 200 0 100 500 10 0 10 10 0 0
intr 17 1 2
ctxt 1000
"""
SECOND_LATER = """cpu  350 0 230 1000 70 0 20 50 0 0
cpu0 130 0 120 440 50 0 10 40 0 0
cpu1 220 0 110 560 20 0 10 10 0 0
intr 19 1 2
ctxt 6000
"""
BUSY = "while True: pass"


def test_work_is_what_idle_and_stolen_time_leave_of_the_window() -> None:
    before, after = MachineSnapshot(10.0, STAT, 3.0), MachineSnapshot(11.0, SECOND_LATER, 3.6)
    seen = cpu_share.compute_observation(before, after, {0, 1})
    assert seen is not None
    assert (seen.cores, seen.window_s) == (2, 1.0)
    assert seen.steal_s == pytest.approx(0.1)
    assert seen.own_s == pytest.approx(0.6)
    assert seen.foreign_s == pytest.approx(2.0 - 1.1 - 0.1 - 0.6)
    assert seen.switches == 5000


def test_a_span_that_is_left_out_counts_in_no_figure() -> None:
    """A second before it and one after it, of which each is that of the other tests."""
    third = STAT.replace("100 0 100 400 50 0 10 30", "160 0 140 480 50 0 10 50").replace("1000\n", "11000\n")
    third = third.replace("200 0 100 500 10 0 10 10", "240 0 120 620 30 0 10 10")
    first, second, last = (
        MachineSnapshot(10.0, STAT, 3.0),
        MachineSnapshot(11.0, SECOND_LATER, 3.6),
        MachineSnapshot(12.0, third, 4.0),
    )
    alone = cpu_share.compute_observation(second, last, {0, 1})
    left = cpu_share.compute_observation(first, last, {0, 1}, [(first, second)])
    assert alone is not None
    assert left is not None
    assert left.foreign_s == pytest.approx(alone.foreign_s)
    assert left.steal_s == pytest.approx(alone.steal_s) == pytest.approx(0.1)
    assert (left.window_s, left.own_s) == pytest.approx((1.0, 0.4))
    assert (left.switches, set(left.softirq_s)) == (5000, {0, 1})
    assert (
        cpu_share.compute_observation(first, last, {0, 1}, [(first, MachineSnapshot(11.0, "intr 17\n", 3.6))]) is None
    )


def test_steal_is_read_where_the_kernel_counts_it() -> None:
    assert cpu_share.compute_steal_s(STAT, SECOND_LATER, {0, 1}) == pytest.approx(0.1)
    assert cpu_share.compute_steal_s(STAT, SECOND_LATER, {1, 7}) == 0.0


def test_only_the_cores_that_the_harness_may_use_count() -> None:
    seen = cpu_share.compute_observation(
        MachineSnapshot(10.0, STAT, 3.0), MachineSnapshot(11.0, SECOND_LATER, 3.2), {1}
    )
    assert seen is not None
    assert (seen.cores, seen.steal_s) == (1, 0.0)
    assert seen.foreign_s == pytest.approx(1.0 - 0.7 - 0.2)


def test_ticks_that_round_against_us_are_no_negative_load() -> None:
    seen = cpu_share.compute_observation(
        MachineSnapshot(10.0, STAT, 0.0), MachineSnapshot(11.0, SECOND_LATER, 0.9), {0, 1}
    )
    assert seen is not None
    assert seen.foreign_s == 0.0


@pytest.mark.parametrize(
    "stat",
    ["intr 17\n", "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n", STAT.replace("cpu1", "cpu7")],
    ids=["no cores", "zeros only", "another core"],
)
def test_a_kernel_that_does_not_tell_of_every_core_is_not_guessed_at(stat: str) -> None:
    assert (
        cpu_share.compute_observation(MachineSnapshot(1.0, stat, 0.0), MachineSnapshot(2.0, stat, 0.0), {0, 1}) is None
    )


def test_descendants_are_children_and_theirs() -> None:
    parents = {1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20}
    assert server_proc.find_descendants(10, parents) == (11, 12)
    assert server_proc.find_descendants(12, parents) == ()


@pytest.fixture
def own() -> Iterator[int]:
    """A child of ours that never rests."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY]) as child:
        yield child.pid
        child.kill()


@pytest.fixture
def nobodys() -> Iterator[int]:
    """A process that never rests and that is not ours any more: the shell that began it is gone."""
    script = '"$0" -I -S -c "$1" >/dev/null 2>&1 & echo $!'
    pid = int(subprocess.run(["sh", "-c", script, sys.executable, BUSY], capture_output=True, check=True).stdout)
    yield pid
    os.kill(pid, signal.SIGKILL)


def used(pid: int) -> float:
    return time.clock_gettime(server_proc.cpu_clock(pid))


def until_used(pid: int, seconds: float) -> None:
    """Wait until a process has used so much more CPU time, however busy the machine is."""
    until = used(pid) + seconds
    while used(pid) < until:
        time.sleep(0.01)


def observed(own_processes: tuple[int, ...], busy: int) -> tuple[float, float]:
    """Return the own and the foreign load while a process uses a fifth of a second."""
    before = cpu_share.take(own_processes)
    until_used(busy, 0.2)
    seen = cpu_share.compute_observation(before, cpu_share.take(own_processes), os.sched_getaffinity(0))
    assert seen is not None
    assert seen.own_s + seen.foreign_s + seen.steal_s <= seen.cores * seen.window_s + 0.05
    return seen.own_s, seen.foreign_s


def test_what_we_have_started_is_our_own(own: int) -> None:
    processes = cpu_share.find_own_processes()
    assert own in processes
    assert os.getpid() not in processes  # it reads itself
    assert observed(processes, own)[0] >= 0.2


def test_what_another_runs_is_foreign(nobodys: int) -> None:
    processes = cpu_share.find_own_processes()
    assert nobodys not in processes
    own, foreign = observed(processes, nobodys)
    assert own < 0.2
    assert foreign >= 0.2 - 0.03


def test_what_a_child_used_stays_ours_when_it_has_ended(own: int) -> None:
    before = cpu_share.take(())
    until_used(own, 0.1)
    known = used(own)
    os.kill(own, signal.SIGKILL)
    os.waitpid(own, 0)
    after = cpu_share.take((own,)).own_cpu_s
    assert after - before.own_cpu_s >= known
    assert abs(cpu_share.take(()).own_cpu_s - after) < known / 2, "it is counted once"


def test_what_a_child_has_waited_for_is_ours() -> None:
    """A shell that has run a program of its own and goes on."""
    work = "import time\nwhile time.process_time() < 0.2: pass"
    script = '"$0" -I -S -c "$1"; echo done; read -r line'
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", script, sys.executable, work], stdin=pipe, stdout=pipe, text=True) as shell:
        assert shell.stdout is not None
        before = cpu_share.take(())
        assert shell.stdout.readline() == "done\n"
        assert cpu_share.take((shell.pid,)).own_cpu_s - before.own_cpu_s >= 0.18
        shell.kill()


def test_this_machine_tells() -> None:
    cores = cpu_share.parse_stat(Path("/proc/stat").read_text())
    assert os.sched_getaffinity(0) <= cores.keys()
    assert all(core.idle_s + core.busy_s > 0 for core in cores.values())


def test_softirqs_are_reported_of_each_core() -> None:
    softirq = SECOND_LATER.replace("cpu0 130 0 120 440 50 0 10 ", "cpu0 130 0 120 440 50 0 17 ")
    seen = cpu_share.compute_observation(MachineSnapshot(10.0, STAT, 3.0), MachineSnapshot(11.0, softirq, 3.6), {0, 1})
    assert seen is not None
    assert seen.softirq_s == pytest.approx({0: 0.07, 1: 0.0})
    assert msgspec.json.decode(msgspec.json.encode(seen), type=MachineObservation) == seen


QUOTA = """
import os, sys, time
from pathlib import Path
from netdyno.verbs.instruments.doctor.checks import core_users
from netdyno.verbs.instruments.doctor.system import System
from netdyno.measure.machine import cpu_share, environment
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
before = cpu_share.take(())
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
seen = cpu_share.compute_observation(before, cpu_share.take(()), os.sched_getaffinity(0))
recorded = environment.describe_machine(Path("/nonexistent"))["limit.cpu_quota_cores"]
print(recorded, seen.throttled_s, seen.throttled_periods, core_users.cpu_quota(System()).found)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group below one with 5% of a core, which a busy machine leaves it as well."""
    folders = {folder.name: folder for folder in map(Path, cpu_quota.group_folders()) if folder.is_dir()}
    own = next((folder for folder in folders.values() if (folder / "cpu.cfs_quota_us").exists()), None)
    parent = (own or Path("/sys/fs/cgroup")) / f"netdyno-test-{os.getpid()}"
    inner = parent / "inner"
    try:
        inner.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        try:
            if own is not None:
                (parent / "cpu.cfs_quota_us").write_text("5000")
            else:
                (parent.parent / "cgroup.subtree_control").write_text("+cpu")
                (parent / "cpu.max").write_text("5000 100000")
        except OSError as error:
            pytest.skip(f"no quota can be set here: {error}")
        yield inner
    finally:
        inner.rmdir()
        parent.rmdir()


def test_a_quota_above_the_own_group_is_known_and_what_it_holds_back_is_counted(group: Path) -> None:
    command = [sys.executable, "-c", QUOTA, str(group)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    recorded, seconds, periods, of_doctor = printed.split(" ", 3)
    assert recorded == "0.05"
    assert of_doctor.startswith("0.05 cores' time for")
    assert float(seconds) > 0.05
    assert int(periods) >= 2

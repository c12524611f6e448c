"""The bursts that bench/disturb.py takes the cores with: when they come, that they come, and that they end."""

from __future__ import annotations

import itertools
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from netdyno.kit.paths import ROOT
from tests.support import bench_script, proc
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.quiet

disturb = bench_script.load("disturb")

PROGRAM = (sys.executable, str(ROOT / "bench" / "disturb.py"))
TAKEN = re.compile(r"core (\d+): ([\d.]+)% of [\d.]+ s taken, in (\d+) bursts")
SPIN = """
import os, sys, time
end_s = time.monotonic() + 1.5
while time.monotonic() < end_s:
    os.sched_setaffinity(0, [int(core) for core in sys.argv[1:]])
"""


def test_bursts_are_of_50_to_800_ms_and_come_one_after_the_other() -> None:
    bursts = list(disturb.schedule(1, 0))
    lengths = [burst.end_s - burst.begin_s for burst in bursts[:-1]]
    assert min(lengths) == pytest.approx(0.05, abs=0.01)
    assert max(lengths) == pytest.approx(0.8, abs=0.01)
    assert bursts[0].begin_s > 0
    assert all(before.end_s < after.begin_s for before, after in itertools.pairwise(bursts))


@pytest.mark.parametrize("core", [0, 1])
def test_bursts_take_a_quarter_of_the_time(core: int) -> None:
    bursts = list(disturb.schedule(5, core, 100_000.0))
    taken_s = sum(burst.end_s - burst.begin_s for burst in bursts)
    assert taken_s / 100_000 == pytest.approx(0.25, abs=0.005)


def test_the_bound_cuts_the_last_burst_short() -> None:
    whole = list(disturb.schedule(1, 0))
    middle_s = (whole[7].begin_s + whole[7].end_s) / 2
    assert list(disturb.schedule(1, 0, middle_s)) == [*whole[:7], disturb.Burst(whole[7].begin_s, middle_s)]
    assert list(disturb.schedule(1, 0, whole[7].begin_s)) == whole[:7]


def test_the_seed_gives_the_same_bursts_again_and_each_core_its_own() -> None:
    first, second = list(disturb.schedule(1, 0)), list(disturb.schedule(1, 1))
    assert first == list(disturb.schedule(1, 0))
    assert first != list(disturb.schedule(2, 0))
    pairs = itertools.product(first, second)
    both_s = sum(max(0.0, min(left.end_s, right.end_s) - max(left.begin_s, right.begin_s)) for left, right in pairs)
    assert both_s / disturb.BOUND_S == pytest.approx(0.25**2, abs=0.02)  # as chance has it


def planned_s(seed: int, core: int, until_s: float) -> float:
    return float(sum(burst.end_s - burst.begin_s for burst in disturb.schedule(seed, core, until_s)))


def test_it_takes_the_cores_from_others_that_want_them() -> None:
    """By its own figures. A seed with much to do in the time of the spinner; one that only woke up would say 0.1%."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    seed = next(seed for seed in itertools.count() if all(planned_s(seed, core, until_s=1.5) > 0.5 for core in cores))
    spin = [sys.executable, "-c", SPIN, *map(str, cores)]
    done = subprocess.run([*PROGRAM, "--seed", str(seed), "--", *spin], check=True, capture_output=True, text=True)
    reports = [(int(core), float(percent), int(bursts)) for core, percent, bursts in TAKEN.findall(done.stderr)]
    assert [core for core, *_ in reports] == cores
    assert all(percent > 1 and bursts > 0 for _, percent, bursts in reports), done.stderr


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM), ("true", 0)])
def test_the_exit_code_is_the_commands(command: str, code: int) -> None:
    done = subprocess.run([*PROGRAM, "--", "sh", "-c", command], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert "priority" in done.stderr
    assert TAKEN.search(done.stderr)


def test_a_command_that_is_not_there_is_reported_in_one_line() -> None:
    done = subprocess.run([*PROGRAM, "--", "/nowhere/x"], check=False, capture_output=True, text=True)
    assert (done.returncode, "/nowhere/x cannot be started: No such file" in done.stderr) == (127, True)


@contextmanager
def disturbing(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """It, once both burners have begun, and a pidfd of each process that it has started."""
    with subprocess.Popen([*PROGRAM, *arguments], stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stderr is not None
        assert "bursts on cores" in parent.stderr.readline()
        children = [os.pidfd_open(pid) for pid in proc.children(parent.pid)]
        try:
            yield parent, children
        finally:
            parent.kill()
            for child in children:
                os.close(child)


def have_ended(children: list[int]) -> bool:
    return all(select.select([child], [], [], PATIENCE_S)[0] for child in children)


def test_kill_9_leaves_no_burner_behind() -> None:
    with disturbing("--seconds", "1000") as (parent, burners):
        assert len(burners) == min(2, len(os.sched_getaffinity(0)))
        parent.send_signal(signal.SIGKILL)
        assert have_ended(burners)


def test_a_signal_ends_a_time_early_and_what_was_taken_is_reported_all_the_same() -> None:
    with disturbing("--seconds", "1000") as (parent, burners):
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert have_ended(burners)
        assert parent.stderr is not None
        assert len(TAKEN.findall(parent.stderr.read())) == len(burners)


def test_burners_end_at_the_bound_also_where_none_ends_them() -> None:
    with disturbing("--seconds", "0.5") as (parent, burners):
        parent.send_signal(signal.SIGSTOP)
        assert have_ended(burners)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "either --seconds N or -- COMMAND"),
        (["--seconds", "1", "--", "true"], "either --seconds N or -- COMMAND"),
        (["--seconds", "1201"], "at most 1200"),
        (["--seconds", "1", "--cores", "0,0"], "each once"),
        (["--seconds", "1", "--cores", "99999"], "must name some of the cores"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        disturb.main(arguments)
    assert reason in capsys.readouterr().err

"""The canary beside trials: what is run, when a reading is repeated, and what becomes of one that cannot be had."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netdyno.kit.paths import build_dir, canary_path
from netdyno.measure.machine.process import Process
from netdyno.measure.trial import canary
from netdyno.measure.trial.canary import MOST_TAKES, Canary, build_command, compute_slowdown, select_faster
from netdyno.model.observation import CanaryReadings, Pinning
from netdyno.model.trial import Trial
from tests.support import proc
from tests.support.builders.made_canary import reading, trial

NOT_PINNED = Pinning(server=(), generator=(), note="not pinned: a test")
SOON_S = 60
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that holds tests up, a reading stays fresh."""
    monkeypatch.setattr(canary, "FRESH_S", 1e9)


@pytest.fixture
def program(tmp_path: Path, write_program: Callable[[Path, str], None], _unhurried: None) -> Path:
    path = tmp_path / "netdyno-canary"
    write_program(path, "canary.sh")
    (tmp_path / "logs").mkdir()
    return path


@pytest.fixture
def fake(program: Path, tmp_path: Path) -> Canary:
    return Canary(program, NOT_PINNED, tmp_path)


def speeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *factors: float) -> Path:
    """Set the speeds that the fake canary reports, call by call."""
    file = tmp_path / "speeds"
    file.write_text(" ".join(map(str, factors)))
    monkeypatch.setenv("FAKE_CANARY", f"speeds:{file}")
    return file


def ran() -> Trial:
    return replace(trial(1, 0), canary=None)


def readings(finished: Trial) -> CanaryReadings:
    assert finished.canary is not None
    return finished.canary


def round_trips(finished: Trial) -> list[float]:
    """Round trips before and after, as shares of what the fake canary reports for a machine of speed 1."""
    pair = readings(finished)
    assert pair.before is not None
    assert pair.after is not None
    return [canary_reading.round_trips_per_second / 20_000 for canary_reading in (pair.before, pair.after)]


def test_it_stands_where_the_programs_of_a_trial_stand() -> None:
    path = Path("/build/netdyno-canary")
    assert build_command(path, NOT_PINNED) == [str(path)]
    pinning = Pinning(server=(0, 2), generator=(1, 3), note="", realtime=True)
    assert build_command(path, pinning) == [
        *(str(path), "--server-cores", "0,2", "--generator-cores", "1,3"),
        *("--realtime", "1"),
    ]


def test_a_trial_gets_the_readings_around_it(fake: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = speeds(monkeypatch, tmp_path, 1.0, 1.0, 0.9, 1.1)
    said_before: list[str] = []

    def run() -> Trial:
        said_before.append(file.read_text())
        return ran()

    assert round_trips(fake.measure_around(run)) == [1.0, 0.9]
    assert said_before == ["0.9 1.1"]  # the first of a run is taken twice
    assert readings(fake.measure_around(ran)).unread == ""


def test_the_one_after_a_trial_is_the_one_before_the_next(
    fake: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    speeds(monkeypatch, tmp_path, 1.0, 1.0, 0.9, 1.1)
    first, second = fake.measure_around(ran), fake.measure_around(ran)
    assert round_trips(second) == [0.9, 1.1]
    assert readings(first).after == readings(second).before


def test_after_a_while_it_is_taken_again(fake: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    speeds(monkeypatch, tmp_path, 1.0, 1.0, 0.9, 1.1, 1.2)
    fake.measure_around(ran)
    monkeypatch.setattr(canary, "FRESH_S", -1.0)
    assert round_trips(fake.measure_around(ran)) == [1.1, 1.2]


def test_one_that_is_slower_than_the_last_is_taken_again_and_the_faster_counts(
    fake: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    speeds(monkeypatch, tmp_path, 0.2, 1.0, 0.5, 0.95, *[0.5] * MOST_TAKES, 0.42)
    first, second, third = (fake.measure_around(ran) for _ in range(3))
    assert round_trips(first) == [1.0, 0.95]  # a disturbance, gone by the second time; as that of the first reading
    assert round_trips(second) == [0.95, 0.5]  # the machine is slower, and says so each time
    assert round_trips(third) == [0.5, 0.42]  # not slower by as much than it was
    taken = [
        after.taken for finished in (first, second, third) for after in (readings(finished).after,) if after is not None
    ]
    assert taken == [2, MOST_TAKES, 1]


def test_how_much_slower_is_reported_by_the_figure_in_which_it_is_most() -> None:
    assert compute_slowdown(reading(1.0, server=0.5), reading(1.0)) == pytest.approx(2.0)
    assert compute_slowdown(reading(2.0), reading(1.0)) == pytest.approx(0.5)
    both = select_faster(reading(0.5, server=1.0), reading(1.0, server=0.7))
    assert both == replace(reading(1.0), seconds=0.06, taken=2, generator_millions_per_second=900.0)
    assert select_faster(reading(1.0), reading(0.5)).one_core_round_trips_per_second == 100_000


def test_a_trial_that_was_skipped_has_none(fake: Canary) -> None:
    skipped = replace(ran(), status="skipped")
    assert fake.measure_around(lambda: skipped) == skipped


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("fails", "the canary ended with exit code 1: netdyno-canary: cannot have real-time priority"),
        ("unreadable", "the canary printed '{' instead of a reading: "),
    ],
)
def test_where_it_cannot_be_read_the_trial_says_why(
    mode: str, why: str, fake: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CANARY", mode)
    pair = readings(fake.measure_around(ran))
    assert (pair.before, pair.after) == (None, None)
    assert pair.unread.startswith(why)


def test_one_that_cannot_be_read_leaves_the_other_and_the_next(fake: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Trial:
        monkeypatch.setenv("FAKE_CANARY", "fails")
        return ran()

    pair = readings(fake.measure_around(run))
    assert pair.before is not None
    assert pair.after is None
    assert pair.unread.startswith("the canary ended with exit code 1")
    monkeypatch.setenv("FAKE_CANARY", "good")
    assert readings(fake.measure_around(ran)).unread == ""


def test_one_that_could_not_be_read_before_is_reported_though_it_could_be_after(
    fake: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Trial:
        monkeypatch.setenv("FAKE_CANARY", "good")
        return ran()

    monkeypatch.setenv("FAKE_CANARY", "fails")
    pair = readings(fake.measure_around(run))
    assert pair.before is None
    assert pair.after is not None
    assert pair.unread.startswith("the canary ended with exit code 1")


def test_one_that_hangs_is_ended(fake: Canary, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    begun: list[int] = []

    class Remembered(Process):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self.pid)

    monkeypatch.setattr(canary, "Process", Remembered)
    monkeypatch.setattr(canary, "TIMEOUT_S", 0.1)
    pair = readings(fake.measure_around(ran))
    assert pair.unread == "the canary did not end within 0.1 s"
    assert len(begun) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in begun)


# --- the program ---------------------------------------------------------------------------------------------------


@pytest.mark.quiet
@pytest.mark.needs_build
def test_the_program_reads_the_machine(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    cores = sorted(os.sched_getaffinity(0))
    pinning = Pinning(server=(cores[0],), generator=(cores[-1],), note="")
    pair = readings(Canary(canary_path(build_dir()), pinning, tmp_path).measure_around(ran))
    assert pair.unread == ""
    for canary_reading in (pair.before, pair.after):
        assert canary_reading is not None
        assert canary_reading.round_trips_per_second > 0
        assert canary_reading.server_millions_per_second > 0
        assert canary_reading.generator_millions_per_second > 0
        assert canary_reading.one_core_round_trips_per_second > 0
        assert canary_reading.seconds >= canary_reading.taken * 0.03  # of the exchange and of the loop


@pytest.mark.quiet
@pytest.mark.needs_build
def test_by_hand_it_prints_one_line() -> None:
    done = subprocess.run(
        [canary_path(build_dir()), "--exchange", "2ms", "--loop", "2ms"],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    assert list(json.loads(line)) == [
        "round_trips_per_second",
        "server_millions_per_second",
        "generator_millions_per_second",
        "one_core_round_trips_per_second",
        "seconds",
    ]


@pytest.mark.quiet
@pytest.mark.needs_build
def test_it_leaves_nothing_behind_that_another_process_would_have_to_reap() -> None:
    """Two run beside each trial: where init reaps no orphans, as in many a container, they would pile up."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1) == 0  # its orphans come to this process
    try:
        command = [str(canary_path(build_dir())), "--exchange", "1ms", "--loop", "1ms"]
        for _ in range(20):  # else its second process is mostly, and not always, the one that ends first
            subprocess.run(command, stdout=subprocess.DEVNULL, timeout=SOON_S, check=True)
        assert "netdyno-canary" not in children()
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


def children() -> list[str]:
    """The names of this process's children."""
    return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in proc.children(os.getpid())]


@pytest.mark.quiet
@pytest.mark.needs_build
@pytest.mark.parametrize("missing", ["--server-cores", "--generator-cores"])
def test_cores_that_there_are_not_are_stated_in_one_line(missing: str) -> None:
    here = str(min(os.sched_getaffinity(0)))
    cores = {"--server-cores": here, "--generator-cores": here} | {missing: "1023"}
    command = [str(canary_path(build_dir())), *(word for option in cores.items() for word in option)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON_S, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "netdyno-canary: cannot run on the requested cores: Invalid argument; taskset -p $$ shows those allowed\n"
    )

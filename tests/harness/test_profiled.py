"""A profile that cannot be made has a reason, and never fails the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.measure.machine import perf
from netdyno.measure.machine.process import Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import profiled
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings
from netdyno.question.plan import Cell

SCENARIO = Scenario(name="echo", workload="echo", contestants=("fake",), connections=1, duration_s=0.1)


def task(contestant: Contestant) -> profiled.ProfileTask:
    cell = Cell(block=0, position=0, scenario="echo", contestant=contestant.name, levels={})
    return profiled.ProfileTask(cell, settings(SCENARIO, {}), contestant)


def tool(folder: Path, script: str) -> str:
    """Write a perf that runs the test's script."""
    path = folder / "perf"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def why_not(contestant: Contestant, context: TrialContext) -> list[str]:
    return [result.missing for result in profiled.profile(task(contestant), context) if not result.stacks]


def test_without_perf_it_is_stated_how_to_get_it(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiled, "which", lambda _: None)
    assert (
        why_not(contestant, context)
        == ["perf is not installed: apt-get install linux-perf (Ubuntu: linux-tools-generic)"] * 2
    )


def test_where_perf_may_nothing_its_own_words_and_the_way_out_are_stated(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiled, "which", lambda _: tool(context.folder, "echo 'Access is limited.' >&2; exit 255"))
    assert (
        why_not(contestant, context)
        == ["perf may not record here (Access is limited.): as root, sysctl -w kernel.perf_event_paranoid=1"] * 2
    )


def test_without_the_kernel_only_what_it_computes_is_looked_at(tmp_path: Path) -> None:
    rights = perf.find_rights(tool(tmp_path, 'case "$*" in *:k*) exit 255 ;; esac'), tmp_path)
    assert rights == perf.Rights(user=True, kernel=False)
    assert perf.build_on_cpu_options(rights.kernel, 99)[1] == "cpu-clock:u"


def test_what_perf_may_is_tried_once_for_all_servers_of_a_run(tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    program = tool(tmp_path, f"echo >>{tried}")
    for _ in range(2):
        assert perf.find_rights(program, tmp_path).kernel
    assert tried.read_text() == "\n"


def test_a_perf_that_does_not_begin_is_no_profile(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'case "$*" in *--control*) echo "unknown option control" >&2; exit 129 ;; esac'
    monkeypatch.setattr(profiled, "which", lambda _: tool(context.folder, script))
    assert why_not(contestant, context) == ["perf did not begin: unknown option control"] * 2


def test_a_perf_that_has_ended_before_it_is_spoken_to_is_reported_alike(context: TrialContext) -> None:
    gone = tool(context.folder, "exit 129")
    ready, closed = os.pipe()
    os.close(ready)
    log = TrialLog(context.folder / "log")
    with log.section("perf", [gone]) as output, Process([gone], (), output, name="perf") as process:
        recorder = perf.PerfRecorder(process, closed)
        recorder.tell("ping")
        with pytest.raises(TrialError, match="exit code 129"):
            recorder.end()
    os.close(closed)


def test_a_server_that_cannot_be_started_or_stands_already_is_not_looked_at(
    contestant: Contestant, context: TrialContext
) -> None:
    absent = replace(contestant, available=False, why_not="Folly not found")
    assert why_not(absent, context) == ["Folly not found"] * 2
    there = replace(contestant, own=Own(command="", workload="echo", address="tcp://127.0.0.1:9"))
    assert why_not(there, context)[0].startswith("an already running server is not profiled, because ")


@pytest.mark.parametrize(("switches", "expected"), [(0, 1), (1000, 1), (1001, 3), (20_000, 31), (10**9, 4093)])
def test_so_many_switches_are_looked_at_as_names_are_found_for_in_time(switches: int, expected: int) -> None:
    assert profiled.choose_interval(switches) == expected

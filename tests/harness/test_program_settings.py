"""The settings of every program before its exec: their choice, from those of this process, and their description."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import ROOT, generator_path
from netdyno.measure.machine import program_settings
from netdyno.measure.machine.program_settings import build_environment, choose_limits, choose_policy
from tests.support.ground import by_the_harness, expect_level, parse_limits

UNLIMITED = resource.RLIM_INFINITY
DEBIAN = {
    "CORE": (0, UNLIMITED),
    "MEMLOCK": (1 << 20, 1 << 23),
    "NOFILE": (1024, 1 << 30),
    "NPROC": (4000, 5000),
    "STACK": (1 << 23, UNLIMITED),
}

# A program that is ready as a server is, with a second thread that has changed something of its own.
CHANGED = """
import ctypes, os, threading
changed = threading.Event()
def other():
    {change}
    changed.set()
    threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
changed.wait()
print('{{"ready":true,"endpoint":"tcp://127.0.0.1:1","pid":%d}}' % os.getpid(), flush=True)
threading.Event().wait()
"""


def test_what_a_user_may_use_up_is_limited_by_the_hard_limits_alone() -> None:
    given = choose_limits(DEBIAN)
    assert (given["MEMLOCK"], given["NPROC"]) == ((1 << 23, 1 << 23), (5000, 5000))
    assert given["NOFILE"] == (1 << 20, 1 << 20)
    assert choose_limits(DEBIAN | {"NOFILE": (1024, 4096)})["NOFILE"] == (4096, 4096)
    assert choose_limits(DEBIAN | {"NOFILE": (UNLIMITED, UNLIMITED)})["NOFILE"] == (1 << 20, 1 << 20)
    # What an experiment needs has been raised by then (preparation.ensure_descriptors).
    assert choose_limits(DEBIAN | {"NOFILE": (1 << 21, 1 << 30)})["NOFILE"] == (1 << 21, 1 << 21)


def test_the_stack_of_a_thread_is_the_same_whatever_the_shell_says() -> None:
    assert choose_limits(DEBIAN | {"STACK": (UNLIMITED, UNLIMITED)})["STACK"] == (8 << 20, UNLIMITED)
    assert choose_limits(DEBIAN | {"STACK": (1 << 20, 1 << 20)})["STACK"] == (1 << 20, 1 << 20)
    assert choose_limits(DEBIAN | {"CORE": (UNLIMITED, UNLIMITED)})["CORE"] == (0, UNLIMITED)


def test_the_environment_is_a_list_of_what_is_allowed() -> None:
    own = {"PATH": "/bin", "HOME": "/home/ada", "LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "LD_PRELOAD": "x.so"}
    assert build_environment(own) == {"PATH": "/bin", "HOME": "/home/ada", "LANG": "C.UTF-8"}
    assert build_environment({}) == {"LANG": "C.UTF-8"}


def test_a_real_time_policy_is_not_passed_on_and_a_lower_one_is() -> None:
    assert choose_policy(os.SCHED_FIFO | os.SCHED_RESET_ON_FORK) == choose_policy(os.SCHED_OTHER) == os.SCHED_OTHER
    assert choose_policy(os.SCHED_BATCH) == os.SCHED_BATCH


def test_it_is_reported_in_a_few_keys() -> None:
    keys = msgspec.structs.replace(program_settings.choose(), limits=choose_limits(DEBIAN), nice=3).describe()
    assert keys["ground.limits"] == "core 0, memlock 8388608, nofile 1048576, nproc 5000, stack 8388608"
    assert (keys["ground.timer_slack_ns"], keys["ground.policy"], keys["ground.nice"]) == (1, "SCHED_OTHER", 3)
    assert "LANG" in str(keys["ground.environment"]).split()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("pass", None),
        ("ctypes.CDLL(None).prctl(29, 50000)", "timer slack of thread .*: 50000 ns"),
        ("os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)", "nice of thread .*: 5 where"),
        ("os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))", "policy of thread .*: 3 where"),
    ],
)
def test_a_thread_that_changes_its_own_is_found(change: str, message: str | None) -> None:
    command = [sys.executable, "-I", "-S", "-c", CHANGED.format(change=change)]
    with by_the_harness(command) as server:
        if message is None:
            expect_level(server.pid, command)
        else:
            with pytest.raises(AssertionError, match=message):
                expect_level(server.pid, command)


def test_a_limit_that_a_program_changes_is_found() -> None:
    change = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))"
    command = [sys.executable, "-I", "-S", "-c", CHANGED.format(change=change)]
    with by_the_harness(command) as server, pytest.raises(AssertionError, match="limits"):
        expect_level(server.pid, command)


def test_a_program_by_hand_has_the_same_as_in_a_trial(tmp_path: Path) -> None:
    # `load` becomes the generator: here one that prints its limits.
    generator = generator_path(tmp_path)
    generator.parent.mkdir()
    generator.write_text("#!/bin/sh\nenv; echo --; cat /proc/self/timerslack_ns; echo --; cat /proc/self/limits\n")
    generator.chmod(0o755)
    environment = os.environ | {"NETDYNO_BUILD": str(tmp_path), "PYTHONPATH": str(ROOT / "python"), "LD_BIND_NOW": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "netdyno", "load"], env=environment, capture_output=True, text=True, check=True
    )
    variables, slack, limits = done.stdout.split("--\n")
    given = program_settings.choose()
    of_the_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    assert {line.partition("=")[0] for line in variables.splitlines()} - of_the_shell == given.environment.keys()
    assert slack == "1\n"
    granted = parse_limits(limits)
    assert {name: granted[name] for name in given.limits} == given.limits

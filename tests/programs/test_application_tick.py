"""A server with `--application-tick on` says how late a timer of its main thread's loop was: the loop that an
application would share with it (protocol/WIRE.md, Totals)."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine.pinning import choose
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.serving import read_tick_lag
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Distribution
from netdyno.model.observation import ServerObservation
from netdyno.question.contestants.contestants import find_by_name
from netdyno.question.plan import Cell
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support.chosen import discover_once, startable
from tests.support.patience import eventually
from tests.support.server import Server, run, serving

pytestmark = pytest.mark.needs_build
WITH_TICKS = [contestant.name for contestant in discover_once() if "application-tick" in contestant.manifest.options]
INTERVAL_S = 0.010
STOPPED_S = 0.3
BURNT_S = 0.3


def ticking(name: str) -> Contestant:
    return startable(find_by_name(discover_once(), name), "server")


@contextmanager
def served(name: str, *options: str) -> Iterator[Server]:
    """A server whose main thread has begun its loop: after the ready line it sleeps nowhere else."""
    with serving(ticking(name).command, "--application-tick", "on", *options) as server:
        stat = main_thread(server) / "stat"
        eventually(lambda: stat.read_text().rpartition(") ")[2].startswith("S"), "its main thread does not sleep")
        yield server


def main_thread(server: Server) -> Path:
    return Path(f"/proc/{server.pid}/task/{server.pid}")


def tick_lag(server: Server) -> Distribution:
    """Stop the server, and return what its line of totals says of its ticks."""
    server.stop()
    lag = read_tick_lag(server.lines[-1])
    assert lag is not None, server.lines[-1]
    return lag


@pytest.mark.parametrize("name", WITH_TICKS)
def test_it_ticks_as_long_as_it_lives_and_says_when_it_could_not(name: str) -> None:
    """A stopped process is a blocked loop: each tick of that time is late, the first by all of it."""
    began = time.monotonic()
    with served(name) as server:
        with StreamTalk(server, "echo") as talk:
            talk.check()
        server.signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        server.signal(signal.SIGCONT)
        lag = tick_lag(server)
    assert STOPPED_S / INTERVAL_S - 1 <= lag.count <= (time.monotonic() - began) / INTERVAL_S
    assert lag.max / 1e9 >= STOPPED_S - INTERVAL_S
    assert lag.p50 <= lag.p99 <= lag.max


@pytest.mark.parametrize("name", WITH_TICKS)
def test_a_request_that_burns_cpu_does_not_block_the_loop(name: str) -> None:
    """In the loop of the thread that serves, a tick would be late by all of it. The time in which the main thread had
    no core to run on does not count (Documentation/scheduler/sched-stats.rst)."""
    one_thread = ("--threads", "1") if ticking(name).manifest.threads == "any" else ()
    work = ("--workload", "rpc", "--service-time", f"{BURNT_S:g}s", "--service-kind", "cpu")
    with served(name, *work, *one_thread) as server:
        with StreamTalk(server, "rpc") as talk:
            talk.check()
        starved_s = int((main_thread(server) / "schedstat").read_text().split()[1]) / 1e9
        lag = tick_lag(server)
    assert lag.count >= BURNT_S / INTERVAL_S - 1
    assert lag.max / 1e9 - starved_s < BURNT_S / 2, f"a tick came {lag.max / 1e9:g} s late"


@pytest.mark.parametrize("name", WITH_TICKS)
def test_without_the_option_nothing_ticks(name: str) -> None:
    with serving(ticking(name).command) as server:
        server.stop()
    assert "tick_lag_ns" not in json.loads(server.lines[-1])


def observed(name: str, folder: Path) -> ServerObservation:
    """Return what a trial knows of a server that is to tick if it can."""
    scenario = Scenario(
        name="s", workload="echo", warmup_s=0.1, duration_s=0.4, where_possible={"application-tick": "on"}
    )
    generator = (str(generator_path(build_dir())),)
    context = TrialContext(seed=1, generator=generator, pinning=choose(), folder=folder, foreign_load="count")
    cell = Cell(block=1, position=0, scenario="s", contestant=name, levels={})
    trial = run_trial(cell, scenario, ticking(name), context)
    assert trial.server is not None, trial.reason
    return trial.server


def test_a_trial_keeps_the_lag(tmp_path: Path) -> None:
    lag = observed("asio-callbacks", tmp_path).tick_lag_ns
    assert lag is not None
    assert lag.count >= 40
    assert observed("epoll-reactor", tmp_path).tick_lag_ns is None


def test_a_manifest_names_the_option_if_the_server_has_it() -> None:
    native = [
        contestant for contestant in discover_once() if contestant.available and contestant.manifest.kind == "cmake"
    ]
    has = {contestant.name for contestant in native if "--application-tick" in run(contestant.command, "--help").stdout}
    assert has == {*WITH_TICKS} & {contestant.name for contestant in native}

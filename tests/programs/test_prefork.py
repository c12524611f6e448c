"""What processes that a server forks beforehand mean for clients: a crash, and the server's end."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir
from netdyno.measure.run import runner
from netdyno.model.experiment import Experiment, Scenario
from netdyno.present.terminal.display import PlainDisplay
from netdyno.question.contestants.contestants import discover, find_by_name
from netdyno.store import read, schema
from tests.contract.tcp.stream_talk import StreamTalk
from tests.programs.test_process_per_connection import converse, find_child_of
from tests.support import proc
from tests.support.chosen import startable
from tests.support.patience import eventually
from tests.support.server import Server, serving

pytestmark = pytest.mark.needs_build
PROCESSES = 3
both = pytest.mark.parametrize("name", ["prefork", "prefork-reuseport"])


@contextmanager
def talking(name: str) -> Iterator[tuple[Server, StreamTalk]]:
    """A server, and a client that is served beside whatever the test does."""
    contestant = startable(find_by_name(discover(), name), "server")
    options = ("--workload", "echo", "--threads", str(PROCESSES))
    with serving(contestant.command, *options) as server, StreamTalk(server, "echo") as talk:
        talk.check()
        yield server, talk


def crash_process_of_client(server: Server, talk: StreamTalk) -> int:
    """Crash the process of a new client, which is not the one that talks, and return its number."""
    if proc.sanitized(server.pid):
        pytest.skip("a sanitizer reports the signal as a bug of the server")
    of_talk = find_child_of(server, talk.speaker)
    with ExitStack() as stack:
        while True:
            client = stack.enter_context(talk.client())
            converse(talk, client)
            if (child := find_child_of(server, client)) != of_talk:
                break
        os.kill(child, signal.SIGSEGV)
        assert client.rest_until_closed() == b""
    eventually(lambda: f"child {child} was ended by signal 11" in server.stderr(), "the crash is not reported")
    return child


def test_a_process_that_crashes_is_replaced() -> None:
    with talking("prefork") as (server, talk):
        crashed = crash_process_of_client(server, talk)
        eventually(lambda: len(proc.children(server.pid)) == PROCESSES, "no other process takes its place")
        assert crashed not in proc.children(server.pid)
        with talk.client() as client, talk.client() as other:
            for each_client in (client, other):
                converse(talk, each_client)
        talk.check()


def test_where_each_process_has_a_listener_the_others_take_the_clients_of_one_that_crashed() -> None:
    with talking("prefork-reuseport") as (server, talk):
        crash_process_of_client(server, talk)
        eventually(lambda: len(proc.children(server.pid)) == PROCESSES - 1, "the process that crashed is not reaped")
        for _ in range(20):
            with talk.client() as client:
                converse(talk, client)
        talk.check()


@both
def test_no_process_outlives_its_parent(name: str) -> None:
    with talking(name) as (server, _):
        children = [os.pidfd_open(child) for child in proc.children(server.pid)]
        assert len(children) == PROCESSES
        server.signal(signal.SIGKILL)
        server.process.wait()
        assert all(proc.ends(child) for child in children), "a process lives on"


@both
def test_a_process_that_does_not_end_is_killed(name: str) -> None:
    with talking(name) as (server, talk):
        os.kill(find_child_of(server, talk.speaker), signal.SIGSTOP)
        assert server.stop()["connections"] == 1


@pytest.mark.usefixtures("steady_canary")
def test_a_trial_counts_all_processes(tmp_path: Path) -> None:
    """CPU, switches, threads and memory. The parent works for no message."""
    contestants = [startable(find_by_name(discover(), name), "server") for name in ("prefork", "threads-pool-queue")]
    scenario = Scenario(
        name="e",
        workload="echo",
        contestants=("prefork", "threads-pool-queue"),
        connections=4,
        duration_s=0.3,
        blocks=2,
    )
    outcome = runner.execute(
        Experiment(name="processes", question="What is counted?", scenarios=(scenario,)),
        contestants,
        results=tmp_path,
        build=build_dir(),
        argv=["netdyno", "run"],
        display=PlainDisplay(io.StringIO()),
        foreign_load="count",
        trace="never",
    )
    run = read.load(outcome.folder / schema.FILE_NAME)
    observed = {trial.contestant: trial.server for trial in run.trials if trial.server is not None and trial.load}
    processes, threads = observed["prefork"], observed["threads-pool-queue"]
    assert processes.threads == 1 + 4
    assert threads.threads == 1 + 4 + 1
    assert 0.2 < processes.cpu_s / threads.cpu_s < 5
    assert processes.voluntary_switches > 100
    assert threads.rss_peak_bytes / 2 < processes.rss_peak_bytes < threads.rss_peak_bytes + 5 * (1 << 20)

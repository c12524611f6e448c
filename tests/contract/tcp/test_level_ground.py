"""Level ground: every contestant runs with the timer slack, priority, limits, environment and allocator that every
other has, in each of its threads and processes (docs/adr/level-ground.md)."""

from __future__ import annotations

from contextlib import ExitStack

from netdyno.model.contestant import Contestant
from tests.contract.tcp.conftest import serves_one_at_a_time, threads_for
from tests.contract.tcp.stream_talk import StreamTalk
from tests.contract.tcp.test_options import nodelay
from tests.support import proc
from tests.support.ground import by_the_harness, expect_level


def test_every_thread_stands_on_the_same_ground(contestant: Contestant) -> None:
    """Turn Nagle's algorithm on as well: every socket has it then."""
    workload = contestant.manifest.workloads[0]
    options = ("--workload", workload, "--nodelay", "off", *threads_for(contestant))
    started = by_the_harness(contestant.command, *options)
    with ExitStack() as stack:
        server = stack.enter_context(started)
        count = 1 if serves_one_at_a_time(contestant) else 3
        talks = [stack.enter_context(StreamTalk(server, workload)) for _ in range(count)]
        for talk in talks:
            talk.check()
        for pid in proc.family(server.pid):
            expect_level(pid, contestant.command)
        assert set(nodelay(server, talks[0].speaker)) == {False}

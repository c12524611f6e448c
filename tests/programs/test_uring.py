"""The servers over io_uring beyond the contract: a turn of the loop is one system call, more arrives than there are
buffers for, more is sent than one send takes, and a server may not have a ring."""

from __future__ import annotations

import errno
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import discover, find_by_name
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.stream_talk import expect_reply, joined
from tests.harness.test_kernel_needs import without_uring
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

CALL = re.compile(r"^(?P<thread>\d+) +(?:<\.\.\. )?(?P<call>\w+)")


@pytest.fixture(params=["uring-reactor", "uring-per-core"])
def uring(request: pytest.FixtureRequest) -> Contestant:
    """Each server over io_uring."""
    return startable(find_by_name(discover(), request.param), "server")


def test_a_turn_of_the_loop_is_one_system_call(uring: Contestant, strace_program: str, tmp_path: Path) -> None:
    """Receiving and sending are the kernel's own work within it. A message alone takes two turns: it arrives, and its
    reply is sent."""
    trace, messages = tmp_path / "trace", 50
    with (
        serving((strace_program, "-f", "-e", "signal=none", "-o", str(trace), *uring.command)) as server,
        Client(server.address) as client,
    ):
        client.send(message("echo", client.identity, 0))
        expect_reply("echo", client, 0)
        before = len(trace.read_text().splitlines())
        for number in range(1, messages + 1):
            client.send(message("echo", client.identity, number))
            expect_reply("echo", client, number)
        during = trace.read_text().splitlines()[before:]
        server.stop()
    traced = [match for line in during if (match := CALL.match(line))]
    turning = {match["thread"] for match in traced if match["call"] == "io_uring_enter"}
    # The main thread may only now begin to wait.
    calls = [match["call"] for match in traced if match["thread"] in turning]
    assert set(calls) == {"io_uring_enter"}, during
    assert messages <= len(calls) <= 2 * messages + 2, len(calls)


def test_more_arrives_at_once_than_there_are_buffers(uring: Contestant) -> None:
    """There are 16 of a megabyte (receive_buffers.cpp): where none is free, the kernel ends the receiving (ENOBUFS)."""
    with serving(uring.command, "--read-buffer", "1MiB") as server, ExitStack() as stack:
        crowd = [stack.enter_context(Client(server.address)) for _ in range(100)]
        for number in range(3):
            if number:  # all are known, and wait
                server.signal(signal.SIGSTOP)
            for client in crowd:
                client.send(message("echo", client.identity, number))
            server.signal(signal.SIGCONT)
            for client in crowd:
                expect_reply("echo", client, number)


def test_a_ring_that_is_forbidden_is_one_clear_line(uring: Contestant) -> None:
    done = without_uring(errno.EPERM, *uring.command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert "io_uring_setup (forbidden by sysctl kernel.io_uring_disabled" in done.stderr


def test_more_is_sent_at_once_than_one_send_takes(uring: Contestant) -> None:
    """IOV_MAX frames are gathered at most: sendmsg(2) refuses more."""
    with (
        serving(uring.command, "--workload", "chat") as server,
        joined(server, "chat") as speaker,
        joined(server, "chat") as listener,
    ):
        server.signal(signal.SIGSTOP)
        numbers = [speaker.next_number() for _ in range(3000)]
        speaker.send(b"".join(message("chat", speaker.identity, number) for number in numbers))
        server.signal(signal.SIGCONT)
        heard = [wire.read_stamp(listener.frame()) for _ in numbers]
        assert heard == [(speaker.identity, number) for number in numbers]
        assert server.stop()["slow_closed"] == 0

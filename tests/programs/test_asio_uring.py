"""asio-uring is asio-callbacks over io_uring: its threads read, write and wait by the ring and by nothing else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.chosen import startable
from tests.support.client import Client
from tests.support.server import serving

MESSAGES = 20


@pytest.mark.needs_build
def test_it_asks_the_ring_alone(strace_program: str, tmp_path: Path) -> None:
    command = startable(find_by_name(discover(), "asio-uring"), "server").command
    trace = tmp_path / "trace"
    with (
        serving((strace_program, "-f", "-e", "signal=none", "-o", str(trace), *command)) as server,
        Client(server.address) as client,
    ):
        for _ in range(MESSAGES):
            client.send(b"x")
            assert client.receive(1) == b"x"
        server.stop()
    calls = Counter(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE))
    assert calls["io_uring_enter"] >= 2 * MESSAGES, calls  # a read and a write each
    other_calls = ("recvfrom", "recvmsg", "writev", "sendto", "sendmsg", "epoll_create1", "epoll_wait", "epoll_pwait")
    assert sum(calls[name] for name in other_calls) == 0, calls

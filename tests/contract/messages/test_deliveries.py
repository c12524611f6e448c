"""How many system calls it takes to bring what one client says to the others, by `--deliveries` (protocol/WIRE.md)."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.messages.conftest import Spoken
from tests.contract.talk import message
from tests.support import proc
from tests.support.server import expect_refused
from tests.support.socket_calls import count_sending_calls

LISTENERS = 3
SAID_AT_ONCE = 8


@pytest.mark.transports("udp", "multicast")
@pytest.mark.workloads("chat")
@pytest.mark.parametrize("deliveries", ["joined", "single"])
def test_calls_for_each_delivery(
    spoken: Spoken, workload: str, deliveries: str, strace_program: str, tmp_path: Path
) -> None:
    with spoken.serving(workload, "--deliveries", deliveries) as server, ExitStack() as stack:
        clients = [stack.enter_context(spoken.transport.client(server)) for _ in range(1 + LISTENERS)]
        for client in clients:
            client.join()
        speaker, *listeners = clients

        def say(count: int) -> None:
            """All of it waits for the server's next turn. Returns when every listener has it."""
            messages = [message(workload, speaker.identity, speaker.next_number()) for _ in range(count)]
            server.signal(signal.SIGSTOP)
            for payload in messages:
                speaker.send(payload)
            server.signal(signal.SIGCONT)
            for listener in listeners:
                for payload in messages:
                    listener.expect(payload)

        say(1)
        sends = count_sending_calls(
            strace_program, server.pid, set(proc.sockets(server.pid)), lambda: say(SAID_AT_ONCE), tmp_path
        )
    recipients = 1 if spoken.transport.sends_once else LISTENERS
    if deliveries == "single":
        assert sends == SAID_AT_ONCE * recipients
    else:
        assert sends == 1


@pytest.mark.transports("zmq+tcp")
def test_libzmq_makes_the_calls(spoken: Spoken) -> None:
    """ZeroMQ joins what waits, up to 8 KiB, and has no option against it."""
    expect_refused(spoken.run("--deliveries", "single"), "--deliveries")

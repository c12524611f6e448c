"""The end: what has arrived is answered, every client gets its BYE!, and it takes at most the grace of two seconds."""

from __future__ import annotations

import itertools
import signal
import threading
import time

import pytest

from tests.contract.golden import wire
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import joined, talking
from tests.contract.messages.transport import BYE, control
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import eventually
from tests.support.server import Server, stand_still_in_grace

GRACE_S = 2.0
MARGIN_S = 6.0  # the long services below take 10 s


def stop_within(server: Server, limit_s: float, *, burns: bool = False) -> dict[str, int]:
    """Stop a server, which must end in time, and return its totals (under a sanitizer, at all). One that burns CPU
    stands still for most of the grace."""
    sanitized = proc.sanitized(server.pid)
    begin = time.monotonic()
    server.signal(signal.SIGTERM)
    if burns:
        stand_still_in_grace(server, signalled_s=begin, burns=True)
    totals = server.wait_stopped()
    assert sanitized or time.monotonic() - begin < limit_s
    return totals


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_every_member_gets_a_notice(spoken: Spoken, workload: str, how: signal.Signals) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server, 10) as crowd:
        totals = server.stop(how)
        for client in crowd:
            client.expect_bye()
        assert (totals["connections"], totals["peers_expired"]) == (10, 0)


def test_the_grace_is_not_used_up_where_nothing_is_in_flight(spoken: Spoken) -> None:
    """On a machine that stalls, one of several times."""
    took = GRACE_S
    for _ in range(10):
        with spoken.serving("echo") as server, joined(spoken.transport, server, 10):
            begin = time.monotonic()
            server.stop()
            took = min(took, time.monotonic() - begin)
        if took < GRACE_S:
            return
    raise AssertionError(f"it never ends before its grace of {GRACE_S:g} s is over")


@pytest.mark.workloads("echo", "rpc")
def test_in_mid_load_every_request_that_was_taken_is_answered(spoken: Spoken, workload: str) -> None:
    clients, warm = 8, 50
    answered: list[int] = []
    taken: list[int] = []
    started = threading.Barrier(clients + 1)

    def load(server: Server) -> None:
        with spoken.transport.client(server) as client:
            client.join()
            for count in itertools.count():
                client.send(message(workload, client.identity, count))
                got = client.receive()
                if got == control(BYE, client.token):
                    answered.append(count)
                    taken.append(client.taken)
                    return
                assert got == reply(workload, client.identity, count)
                if count == warm:
                    started.wait()

    with spoken.serving(workload) as server:
        threads = [threading.Thread(target=load, args=(server,), daemon=True) for _ in range(clients)]
        for thread in threads:
            thread.start()
        started.wait()
        totals = stop_within(server, GRACE_S + MARGIN_S)
        for thread in threads:
            thread.join()
    assert len(answered) == clients, "a client met something other than an answer or a farewell"
    assert totals["requests"] == sum(answered)
    assert totals["bytes_out"] == sum(taken)
    assert totals["connections"] == clients


@pytest.mark.workloads("rpc")
def test_requests_in_service_and_those_behind_them_are_answered(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload, "--service-time", "300ms") as server, joined(spoken.transport, server, 20) as crowd:
        for client in crowd:
            for number in range(2):
                client.send(message(workload, client.identity, number))
        server.signal(signal.SIGTERM)
        for client in crowd:
            for number in range(2):
                assert client.receive() == reply(workload, client.identity, number)
            client.expect_bye()
        assert server.wait_stopped()["requests"] == 40


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
@pytest.mark.parametrize("kind", ["wait", "cpu"])
def test_a_long_service_ends_with_the_grace(spoken: Spoken, workload: str, kind: str) -> None:
    with spoken.serving(workload, "--service-kind", kind) as server, joined(spoken.transport, server, 3) as crowd:
        cpu = proc.cpu_seconds(server.pid)
        for client in crowd:
            client.send(wire.frame(wire.request(1, b"s", 10_000_000)))
        if kind == "cpu":
            eventually(lambda: proc.cpu_seconds(server.pid) > cpu + 0.05, "no request burns CPU")
        totals = stop_within(server, GRACE_S + MARGIN_S, burns=kind == "cpu")
        assert totals["connections"] == 3
        for client in crowd:
            client.expect_bye()


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_second_signal_changes_nothing(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server) as (client,):
        client.send(wire.frame(wire.request(1, b"s", 700_000)))
        for how in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            server.signal(how)
        assert client.receive() == wire.frame(wire.response(1, b"s"))
        client.expect_bye()
        server.wait_stopped()


@pytest.mark.once_a_family
def test_being_stopped_and_continued_is_not_noticed(spoken: Spoken, workload: str) -> None:
    """signal(7): SIGCONT interrupts some system calls with EINTR even without a handler."""
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk:
            for _ in range(5):
                server.signal(signal.SIGSTOP)
                server.signal(signal.SIGCONT)
                talk.check()
        assert server.stop()["protocol_errors"] == 0

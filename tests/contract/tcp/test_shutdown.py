"""SIGTERM: stop accepting, finish what is in flight within the grace of 2 s, say the totals, exit 0."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import room_for, threads_for
from tests.contract.tcp.stream_talk import expect_reply, joined
from tests.support import proc
from tests.support.client import Client, ClosedError
from tests.support.patience import PATIENCE_S, eventually
from tests.support.server import TOTALS, Server, serving, stand_still_in_grace

GRACE_S = 2.0
# What a busy machine may add to the grace before a server counts as one that does not keep it.
MARGIN_S = 2.0
MARGINS_S = {"wait": MARGIN_S, "cpu": 4.0}
"""A server that stands still before it has seen the signal begins its grace after that; its work takes 10 s."""


def stop_within(server: Server, limit_s: float, how: signal.Signals = signal.SIGTERM) -> dict[str, int]:
    """The totals of a server that ends within the limit."""
    begin = time.monotonic()
    totals = server.stop(how)
    took = time.monotonic() - begin
    assert took < limit_s, f"it took {took:.1f} s to end"
    return totals


MALFORMED = {"rpc": wire.header(0xFFFF_FFFF), "http": b"nonsense\r\n\r\n"}
"""After which a server closes; http answers before."""


def expect_said_no_more(server: Server) -> None:
    """One that has ended has printed a ready line and a line of totals, and nothing else."""
    assert len(server.lines) == 2, server.lines  # stop() has checked what the second one holds
    assert server.stderr() == ""


@pytest.mark.several_clients(True)
@pytest.mark.quick
@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_the_totals_count_what_happened(contestant: Contestant, workload: str) -> None:
    """Up to a SIGINT, at which a server ends as it does at a SIGTERM (below): at once, for clients that have spoken and
    are silent now have nothing in flight."""
    with serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server, ExitStack() as stack:
        assert server.address[0] == "127.0.0.1"
        assert server.address[1] > 0
        assert Path(f"/proc/{server.pid}").exists()
        crowd = [stack.enter_context(Client(server.address)) for _ in range(10)]
        sent = sum(converse(workload, client, times=5) for client in crowd)
        for client in crowd[:3]:
            client.half_close()
            assert client.rest() == b""
        if malformed := MALFORMED.get(workload):
            crowd.append(stack.enter_context(Client(server.address)))
            crowd[-1].send(malformed)
            crowd[-1].rest_until_closed()
            sent += len(malformed)
        totals = stop_within(server, GRACE_S, signal.SIGINT)
        expect_said_no_more(server)
    counted = {key: totals[key] for key in TOTALS}  # a contestant may count more
    assert counted == {
        "requests": 50,
        "bytes_in": sent,
        "bytes_out": sum(client.taken for client in crowd),
        "connections": len(crowd),
        "protocol_errors": int(workload in MALFORMED),
        "slow_closed": 0,
    }


def converse(workload: str, client: Client, times: int) -> int:
    """Say something so often, and have it answered. Bytes sent."""
    sent = 0
    for _ in range(times):
        number = client.next_number()
        request = message(workload, client.identity, number)
        client.send(request)
        expect_reply(workload, client, number)
        sent += len(request)
    return sent


@pytest.mark.workloads("chat")
def test_the_totals_of_chat(contestant: Contestant, workload: str) -> None:
    with serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server, ExitStack() as stack:
        crowd = [stack.enter_context(joined(server, workload)) for _ in range(4)]
        payload = message(workload, crowd[0].identity, crowd[0].next_number())
        crowd[0].send(payload)
        crowd[0].half_close()
        crowd[0].rest()
        for client in crowd[1:]:
            while wire.read_stamp(client.frame()) != (crowd[0].identity, 1):
                pass
        totals = stop_within(server, GRACE_S)
        expect_said_no_more(server)
        for client in crowd[1:]:
            client.rest()  # members may have been passed on after what was said, which another connection brought
        taken = sum(client.taken for client in crowd)
    assert totals["requests"] == 4 + 1
    assert totals["bytes_in"] == 5 * len(payload)
    assert totals["bytes_out"] == taken
    assert totals["connections"] == 4
    assert (totals["protocol_errors"], totals["slow_closed"]) == (0, 0)


@pytest.mark.several_clients(True)
@pytest.mark.one_workload
@pytest.mark.workloads("rpc", "http")
def test_in_mid_load_every_request_that_was_taken_is_answered(contestant: Contestant, workload: str) -> None:
    replies: list[int] = []
    taken: list[int] = []
    started = threading.Barrier(9)

    def load(server: Server) -> None:
        with Client(server.address) as client:
            for count in itertools.count():
                number = client.next_number()
                try:
                    client.send(message(workload, client.identity, number))
                    expect_reply(workload, client, number)
                except (ClosedError, ConnectionError):
                    assert client.rest_until_closed() == b"", "half a reply"
                    replies.append(count)
                    taken.append(client.taken)
                    return
                if count == 20:
                    started.wait()

    with serving(contestant.command, "--workload", workload, *threads_for(contestant)) as server:
        threads = [threading.Thread(target=load, args=(server,), daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        started.wait()
        totals = stop_within(server, GRACE_S + MARGIN_S)
        for thread in threads:
            thread.join()
    assert len(replies) == 8, "a client met something other than the end of its connection"
    assert totals["connections"] == 8
    assert totals["requests"] == sum(replies)
    assert totals["bytes_out"] == sum(taken)
    assert totals["slow_closed"] == 0


@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc")
def test_requests_in_service_are_answered(contestant: Contestant, workload: str) -> None:
    """A second signal and a third change nothing."""
    options = ("--workload", workload, "--service-time", "500ms", *threads_for(contestant))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        clients = [stack.enter_context(Client(server.address)) for _ in range(20)]
        for client in clients:
            client.send(wire.frame(wire.request(client.identity, b"s")))
        server.wait_read(*(client.address for client in clients))
        for how in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            server.signal(how)
        for client in clients:
            assert client.frame() == wire.response(client.identity, b"s")
            assert client.rest() == b""
        assert server.wait_stopped()["requests"] == 20


@dataclass(frozen=True)
class Begun:
    """A server that cannot finish what it has begun, and what must hold when it has ended."""

    server: Server
    check: Callable[[dict[str, int]], None]


@pytest.mark.several_clients(True)
@pytest.mark.parametrize("kind", ["wait", "cpu"])
def test_what_cannot_be_finished_ends_with_the_grace(contestant: Contestant, kind: str) -> None:
    """The servers that wait get the signal together; one that burns CPU would take it from them. For most of the grace
    they stand still, so that they take no CPU from others: the grace ends by the clock."""
    with ExitStack() as stack:
        begun = [
            begin(contestant, stack)
            for workload, begin in UNFINISHED[kind]
            if workload in contestant.manifest.workloads
        ]
        if not begun:
            pytest.skip("it speaks nothing that can be left unfinished")
        signalled_s = time.monotonic()
        for service in begun:
            service.server.signal(signal.SIGTERM)
        stand_still_in_grace(*(service.server for service in begun), signalled_s=signalled_s, burns=kind == "cpu")
        ended = []
        for service in begun:
            ended.append(service.server.wait_stopped())
            took = time.monotonic() - signalled_s
            assert took < GRACE_S + MARGINS_S[kind], f"it took {took:.1f} s to end: {service.server.process.args!r}"
        for service, totals in zip(begun, ended, strict=True):
            service.check(totals)


def _with_stuck_readers(contestant: Contestant, stack: ExitStack) -> Begun:
    """What the kernel did not take is not counted either: a client that reads at last gets all that was counted."""
    options = ("--workload", "chat", "--outbox-limit", "1GiB", *threads_for(contestant))
    server = stack.enter_context(serving(contestant.command, *options))
    crowd = [stack.enter_context(Client(server.address, receive_buffer=4096)) for _ in range(4)]
    for stuck in crowd:
        stuck.send(message("chat", stuck.identity, 0))
        server.wait_read(stuck.address)
    speaker = stack.enter_context(joined(server, "chat"))
    payload = message("chat", speaker.identity, speaker.next_number(), 1 << 17)
    send_until_stuck(speaker, payload, 16)

    def check(totals: dict[str, int]) -> None:
        for client in (*crowd, speaker):
            client.socket.settimeout(PATIENCE_S)
            client.rest_until_closed()
        assert totals["bytes_out"] <= sum(client.taken for client in (*crowd, speaker))

    return Begun(server, check)


def send_until_stuck(client: Client, payload: bytes, times: int) -> None:
    """Send until the server is stuck in a send, or reads no more: then it gets SIGTERM."""
    client.socket.settimeout(0.5)
    with suppress(TimeoutError):
        for _ in range(times):
            client.send(payload)


def _with_a_long_service(contestant: Contestant, stack: ExitStack, kind: str) -> Begun:
    """Where a server waits, there is also a client that reads none of its replies; where it burns CPU, it does so for
    each request."""
    times = () if kind == "wait" else ("--service-time", "5ms")
    options = ("--workload", "rpc", "--service-kind", kind, *times, *room_for(contestant, 4))
    server = stack.enter_context(serving(contestant.command, *options))
    if kind == "wait":
        stuck = stack.enter_context(Client(server.address, receive_buffer=4096))
        send_until_stuck(stuck, message("rpc", stuck.identity, 0, 1 << 17), 48)
    clients = [stack.enter_context(Client(server.address)) for _ in range(3)]
    for client in clients:  # is accepted, before one may keep the loop
        client.send(wire.frame(wire.request(1, b"s")))
        assert client.frame() == wire.response(1, b"s")
    cpu = proc.cpu_seconds(server.pid)
    for client in clients:
        client.send(wire.frame(wire.request(1, b"s", 10_000_000)))
    if kind == "wait":
        server.wait_read(*(client.address for client in clients))
    else:
        eventually(lambda: proc.cpu_seconds(server.pid) > cpu + 0.02, "no request burns CPU")

    def check(totals: dict[str, int]) -> None:
        assert totals["connections"] == (4 if kind == "wait" else 3)
        for client in clients:
            assert client.rest_until_closed() == b""

    return Begun(server, check)


UNFINISHED: dict[str, list[tuple[str, Callable[[Contestant, ExitStack], Begun]]]] = {
    "wait": [
        ("chat", _with_stuck_readers),
        ("rpc", partial(_with_a_long_service, kind="wait")),
    ],
    "cpu": [("rpc", partial(_with_a_long_service, kind="cpu"))],
}


@pytest.mark.once_a_family
def test_signals_up_to_the_last_moment_change_nothing(contestant: Contestant) -> None:
    """Also those that come after the totals, while the run time takes itself apart."""
    with serving(contestant.command, "--workload", contestant.manifest.workloads[0]) as server:
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.0005)  # a signal for which the run time starts a thread must not keep it from ending
        server.wait_stopped()

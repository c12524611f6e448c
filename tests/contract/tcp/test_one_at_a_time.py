"""A model that serves one client at a time and accepts no other before it has left: all others wait in the kernel's
listen queue (docs/adr/limited-by-threads.md)."""

from __future__ import annotations

import resource
import select
import signal
import time
from contextlib import ExitStack

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.test_more_clients import Asker, accepted
from tests.contract.tcp.test_shutdown import GRACE_S, MALFORMED, MARGINS_S, converse, send_until_stuck, stop_within
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import TOTALS, serving

pytestmark = pytest.mark.several_clients(False)


def test_the_next_client_is_accepted_when_the_one_before_it_has_left(contestant: Contestant) -> None:
    asker = Asker(contestant)
    with serving(contestant.command, "--workload", asker.workload) as server, ExitStack() as stack:
        first, second, third = (stack.enter_context(Client(server.address)) for _ in range(3))
        asker.check(first)
        number = asker.ask(second)
        for _ in range(20):
            asker.check(first)
        assert accepted(server) == {first.address}
        answered, _, _ = select.select([second.socket], [], [], 0.5)
        assert not answered, "it does not wait: the manifest says too little of this contestant"
        first.close()
        asker.expect(second, number)
        asker.check(second)
        second.close()
        asker.check(third)
        assert server.stop()["connections"] == 3


@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_the_totals_count_what_happened_in_turn(contestant: Contestant, workload: str) -> None:
    """The last client stays until the signal. It has nothing in flight, so the server ends at once."""
    with serving(contestant.command, "--workload", workload) as server, ExitStack() as stack:
        crowd, sent = [], 0
        if malformed := MALFORMED.get(workload):
            crowd.append(stack.enter_context(Client(server.address)))
            crowd[-1].send(malformed)
            crowd[-1].rest_until_closed()
            sent += len(malformed)
        for _ in range(5):
            if crowd:
                crowd[-1].half_close()
                assert crowd[-1].rest_until_closed() == b""
            crowd.append(stack.enter_context(Client(server.address)))
            sent += converse(workload, crowd[-1], times=5)
        totals = stop_within(server, GRACE_S, signal.SIGINT)
    assert {key: totals[key] for key in TOTALS} == {
        "requests": 25,
        "bytes_in": sent,
        "bytes_out": sum(client.taken for client in crowd),
        "connections": len(crowd),
        "protocol_errors": int(workload in MALFORMED),
        "slow_closed": 0,
    }


@pytest.mark.workloads("rpc")
def test_a_request_in_service_is_answered_and_clients_in_the_queue_are_not(
    contestant: Contestant, workload: str
) -> None:
    """A second signal and a third change nothing."""
    with (
        serving(contestant.command, "--workload", workload, "--service-time", "500ms") as server,
        Client(server.address) as served,
        Client(server.address) as waiting,
    ):
        served.send(wire.frame(wire.request(1, b"s")))
        waiting.send(wire.frame(wire.request(2, b"s")))
        server.wait_read(served.address)
        for how in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            server.signal(how)
        assert served.frame() == wire.response(1, b"s")
        assert served.rest() == b""
        assert waiting.rest_until_closed() == b""
        totals = server.wait_stopped()
        assert (totals["requests"], totals["connections"]) == (1, 1)


@pytest.mark.workloads("rpc")
def test_what_the_only_client_cannot_finish_ends_with_the_grace(contestant: Contestant, workload: str) -> None:
    """A service that waits, one that burns CPU, and a client that reads none of its replies."""
    with ExitStack() as stack:
        kinds = ("wait", "cpu", "wait")
        servers = [
            stack.enter_context(serving(contestant.command, "--workload", workload, "--service-kind", kind))
            for kind in kinds
        ]
        waiting, burning, stuck = (stack.enter_context(Client(server.address, 4096)) for server in servers)
        for server, client in zip(servers, (waiting, burning), strict=False):
            client.send(wire.frame(wire.request(1, b"s", 10_000_000)))
            server.wait_read(client.address)
        send_until_stuck(stuck, message(workload, stuck.identity, 0, 1 << 17), 48)
        signalled_s = time.monotonic()
        for server in servers:
            server.signal(signal.SIGTERM)
        totals = [server.wait_stopped() for server in servers]
        took = time.monotonic() - signalled_s
        assert took < GRACE_S + MARGINS_S["cpu"], f"they took {took:.1f} s to end"
        assert waiting.rest_until_closed() == burning.rest_until_closed() == b""
        assert [counted["connections"] for counted in totals] == [1, 1, 1]


@pytest.mark.workloads("rpc")
def test_a_reset_lets_the_next_client_in(contestant: Contestant, workload: str) -> None:
    """A client that resets is not waited for until its service is over."""
    with serving(contestant.command, "--workload", workload) as server:
        begin = time.monotonic()
        for _ in range(3):
            with Client(server.address) as client:
                client.send(wire.frame(wire.request(1, b"s", 10_000_000)))
                server.wait_read(client.address)
                client.reset()
        with Client(server.address) as last:
            Asker(contestant, workload).check(last)
        assert time.monotonic() - begin < 10.0
        assert server.stop()["protocol_errors"] == 0


def test_a_client_waits_while_there_is_no_descriptor_for_it(contestant: Contestant) -> None:
    """Meanwhile the server does not spin."""
    asker = Asker(contestant)
    with serving(contestant.command, "--workload", asker.workload) as server:
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (proc.descriptors(server.pid), hard))
        with Client(server.address) as client:
            number, cpu = asker.ask(client), proc.cpu_seconds(server.pid)
            answered, _, _ = select.select([client.socket], [], [], 1.0)
            assert not answered, "the server has more descriptors than its limit"
            assert proc.cpu_seconds(server.pid) - cpu < 0.6, "the server spins while it is out of descriptors"
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
            asker.expect(client, number)
        eventually(lambda: not server.has_connections(), "a client that has left is kept")

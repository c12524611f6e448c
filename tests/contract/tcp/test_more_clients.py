"""More clients than threads: they are served together, or wait until others leave. The manifest says which of the two
(docs/adr/limited-by-threads.md), and a contestant that errs about itself fails here either way."""

from __future__ import annotations

import select
import signal
from contextlib import ExitStack

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.talk import message
from tests.contract.tcp.conftest import ServedContestant, room_for
from tests.contract.tcp.stream_talk import StreamTalk, expect_reply
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

limited = pytest.mark.clients("limited-by-threads")
kept_out = pytest.mark.clients("limited-by-processes")


class Asker:
    """Clients of one server that send one after the other. Chat has no answers, so another workload is spoken."""

    def __init__(self, contestant: Contestant, workload: str = "") -> None:
        spoken = [name for name in contestant.manifest.workloads if name != "chat"]
        self.workload = workload or (spoken[0] if spoken else pytest.skip("speaks nothing but chat"))

    def ask(self, client: Client) -> int:
        """Send a message. Its number."""
        number = client.next_number()
        client.send(message(self.workload, client.identity, number))
        return number

    def expect(self, client: Client, number: int) -> None:
        """This message is answered."""
        expect_reply(self.workload, client, number)

    def check(self, *clients: Client) -> None:
        """Each is answered."""
        for client in clients:
            self.expect(client, self.ask(client))


@pytest.mark.clients("any")
@pytest.mark.one_workload
@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_more_clients_than_threads_are_served_together(served: ServedContestant, talk: StreamTalk) -> None:
    """Than the three which it has at the most, beside those that come with connections."""
    with ExitStack() as stack:
        crowd = [stack.enter_context(talk.client()) for _ in range(7)]
        for _ in range(3):
            Asker(served.contestant, served.workload).check(*crowd)


def expect_late_client_to_wait(contestant: Contestant, *, is_let_in: bool) -> None:
    """With two threads a third client waits until another leaves: let in by the server, or in the kernel's queue."""
    asker = Asker(contestant)
    options = ("--workload", asker.workload, "--threads", "2")
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        served = [stack.enter_context(Client(server.address)) for _ in range(2)]
        asker.check(*served)
        late = stack.enter_context(Client(server.address))
        number = asker.ask(late)
        eventually(lambda: unread(server, late) > 0, "the kernel does not have what it said")
        if is_let_in:
            eventually(lambda: late.address in accepted(server), "it is not even let in")
        for _ in range(20):
            asker.check(*served)
        answered, _, _ = select.select([late.socket], [], [], 0.5)
        assert not answered, "it does not wait: the manifest says too little of this contestant"
        assert unread(server, late) > 0, "somebody has read what it said"
        assert accepted(server) == {client.address for client in (*served, *([late] if is_let_in else []))}
        served[0].close()
        asker.expect(late, number)
        asker.check(late, served[1])
        assert server.stop()["connections"] == 3


@pytest.mark.once_a_family
@limited
@pytest.mark.several_clients(True)
def test_one_more_client_than_threads_waits_until_another_leaves(contestant: Contestant) -> None:
    expect_late_client_to_wait(contestant, is_let_in=True)


@pytest.mark.once_a_family
@limited
@pytest.mark.several_clients(True)
def test_a_client_that_waits_is_bounded_by_the_backlog_and_served_in_turn(contestant: Contestant) -> None:
    asker = Asker(contestant)
    options = ("--workload", asker.workload, "--threads", "1", "--backlog", "3")
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = [stack.enter_context(Client(server.address)) for _ in range(6)]
        numbers = [asker.ask(client) for client in crowd]
        asker.expect(crowd[0], numbers[0])
        eventually(lambda: len(accepted(server)) == 4, lambda: f"let in: {len(accepted(server))}")
        for _ in range(20):
            asker.check(crowd[0])
        assert accepted(server) == {client.address for client in crowd[:4]}
        crowd[0].close()
        for client, number in zip(crowd[1:], numbers[1:], strict=True):
            asker.expect(client, number)
            client.close()
        assert server.stop()["connections"] == 6


@pytest.mark.once_a_family
@limited
@pytest.mark.several_clients(True)
def test_a_client_that_waits_when_the_server_ends_is_answered(contestant: Contestant) -> None:
    asker = Asker(contestant)
    options = ("--workload", asker.workload, "--threads", "1")
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        crowd = [stack.enter_context(Client(server.address)) for _ in range(4)]
        asker.check(crowd[0])
        numbers = [asker.ask(client) for client in crowd[1:]]
        eventually(lambda: len(accepted(server)) == 4, "not everybody is let in")
        server.signal(signal.SIGTERM)
        for client, number in zip(crowd[1:], numbers, strict=True):
            asker.expect(client, number)
            assert client.rest() == b""
        assert server.wait_stopped()["requests"] >= 4


@kept_out
def test_one_more_client_than_accept_is_not_accepted_until_another_leaves(contestant: Contestant) -> None:
    expect_late_client_to_wait(contestant, is_let_in=False)


@kept_out
def test_a_client_in_the_kernels_queue_is_reset_when_the_server_ends(contestant: Contestant) -> None:
    """The client that is served has its answer, and the end of its stream."""
    asker = Asker(contestant)
    options = ("--workload", asker.workload, "--threads", "1")
    with (
        serving(contestant.command, *options) as server,
        Client(server.address) as served,
        Client(server.address) as waiting,
    ):
        asker.check(served)
        asker.ask(waiting)
        eventually(lambda: unread(server, waiting) > 0, "the kernel does not have what it said")
        totals = server.stop()
        assert waiting.rest_until_closed() == b""
        assert served.rest() == b""
        assert (totals["connections"], totals["requests"]) == (1, 1)


MANY = 20


@pytest.mark.once_a_family
@pytest.mark.clients("any")
@pytest.mark.one_workload
@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_descriptors_per_client(served: ServedContestant, talk: StreamTalk) -> None:
    """The harness provides for as many as the manifest says."""
    with ExitStack() as stack:
        before = proc.descriptors(served.server.pid)
        crowd = [stack.enter_context(talk.client()) for _ in range(MANY)]
        Asker(served.contestant, served.workload).check(*crowd)
        taken = proc.descriptors(served.server.pid) - before
        assert taken == MANY * served.contestant.manifest.descriptors_per_client


@pytest.mark.once_a_family
@pytest.mark.clients("limited-by-threads")
@pytest.mark.several_clients(True)
def test_descriptors_per_client_and_thread(contestant: Contestant) -> None:
    """As above; what a client's thread takes when the server starts belongs to the client."""
    asker = Asker(contestant)
    options = ("--workload", asker.workload)
    with serving(contestant.command, *options) as server:
        with_one_thread = proc.descriptors(server.pid)
    with serving(contestant.command, *options, *room_for(contestant, MANY)) as server, ExitStack() as stack:
        asker.check(*(stack.enter_context(Client(server.address)) for _ in range(MANY)))
        taken = proc.descriptors(server.pid) - with_one_thread
        assert round(taken / MANY) == contestant.manifest.descriptors_per_client


def accepted(server: Server) -> set[tuple[str, int]]:
    """Return the clients' addresses of the connections that the server has accepted."""
    rows = proc.tcp_rows(server.pid, server.address[1])
    return {row.remote for row in rows if row.state != proc.LISTEN}


def unread(server: Server, client: Client) -> int:
    """Bytes that the client has sent and the server has not read."""
    return sum(row.unread for row in proc.tcp_table(server.address[1]) if row.remote == client.address)

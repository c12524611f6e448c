"""What bad company may cost a server in memory and descriptors, over many rounds."""

from __future__ import annotations

import random
import resource
import select
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.tcp.conftest import ServedContestant, room_for
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, serving

ROUNDS_BEFORE = 2
ROUNDS = 6
TRIES = 8
CONNECTIONS = 500
MEMORY_BOUND = CONNECTIONS * (8 << 10)
"""Half of what they would cost that each lost its read buffer of 16 KiB."""
MUCH_TO_SAY = 1 << 20
CROWD = 64
WITHOUT_MEMORY = CROWD + 2
"""The clients of `run_out_of_memory`."""


@dataclass(frozen=True)
class Unfinished:
    """What each of a crowd of clients leaves inside the server when it goes."""

    sent_bytes: bytes
    clients: int = 10

    @property
    def bound(self) -> int:
        """Growth in bytes within so many rounds that allocators and collectors are forgiven: two fifths of what a
        server would grow by that keeps what was said."""
        return ROUNDS * self.clients * len(self.sent_bytes) * 2 // 5


LARGE = 256 << 10
UNFINISHED = {
    "lines": Unfinished(b"x" * LARGE),
    "rpc": Unfinished(wire.header(LARGE + 1) + b"x" * LARGE),
    "chat": Unfinished(wire.header(LARGE + 1) + b"x" * LARGE),
    "http": Unfinished(b"GET /" + b"x" * (15 << 10), clients=100),  # a request has at most 16 KiB (WIRE.md)
}


@pytest.mark.several_clients(True)
@pytest.mark.once_a_family
@pytest.mark.workloads("lines", "rpc", "chat", "http")
def test_memory_does_not_grow_with_unfinished_messages(served: ServedContestant, talk: StreamTalk) -> None:
    """The first rounds fill what allocators and runtimes keep; after them memory stays where it is. How many those are
    is a collector's to choose, of each process (Node.js 18 takes its time), but a server that leaks grows in each six
    of them."""
    server, unfinished, ways = served.server, UNFINISHED[served.workload], random.Random(3)
    after: list[int] = []

    def play(rounds: int) -> None:
        for _ in range(rounds):
            crowd = [talk.client() for _ in range(unfinished.clients)]
            for client in crowd:
                client.send(unfinished.sent_bytes)
            server.wait_read(*(client.address for client in crowd))
            for client in crowd:
                ways.choice((client.close, client.reset))()
            talk.check()
            after.append(proc.resident_bytes(server.pid))

    play(ROUNDS_BEFORE)
    for _ in range(TRIES * len(proc.family(server.pid))):
        before = max(after)
        play(ROUNDS)
        if max(after) - before < unfinished.bound or proc.sanitized(server.pid):
            return
    pytest.fail(f"grows and grows, in MiB: {[size >> 20 for size in after]}")


@pytest.mark.one_workload
def test_connections_give_back_what_they_took(served: ServedContestant, talk: StreamTalk) -> None:
    """Each descriptor and thread, and its memory. A JIT may compile in the first what is hot, which takes memory of its
    own."""
    server, most, sizes = served.server, (0, 0), []

    def play(connections: int) -> None:
        nonlocal most
        for _ in range(connections):
            with talk.client() as client:
                number, message = talk.message(client)
                client.send(message)
                talk.expect(client, number)
                most = most if any(most) else held(server.pid)  # with the first client
        sizes.append(proc.resident_bytes(server.pid))

    play(CONNECTIONS // 4)
    for _ in range(TRIES):
        play(CONNECTIONS)
        if sizes[-1] - sizes[-2] < MEMORY_BOUND or proc.sanitized(server.pid):
            break
    else:
        pytest.fail(f"grows and grows, in MiB: {[size >> 20 for size in sizes]}")
    eventually(
        lambda: all(now <= then for now, then in zip(held(server.pid), most, strict=True)),
        lambda: f"descriptors and threads: {most} with one client, {held(server.pid)} when all have left",
    )


def held(pid: int) -> tuple[int, int]:
    """Descriptors and threads of a process."""
    return proc.descriptors(pid), proc.threads(pid)


@pytest.mark.several_clients(True)
@pytest.mark.one_workload
def test_running_out_of_descriptors(served: ServedContestant, talk: StreamTalk) -> None:
    """Connected clients are served on, and the server does not spin. The rest waits in the kernel's queue, and is
    served when others have left; or, where the manifest says so, it is closed, and newcomers are served then."""
    server = served.server
    if proc.carries(server.pid, "libubsan"):
        pytest.skip("UBSan probes memory through a pipe (IsAccessibleMemoryRange) and errs when it gets none")
    if len(proc.family(server.pid)) > 1:
        pytest.skip("each of its processes has a limit of its own (tests/programs/test_process_per_connection.py)")
    with ExitStack() as stack:
        limit = proc.descriptors(server.pid) + 5
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, hard))
        stack.callback(resource.prlimit, server.pid, resource.RLIMIT_NOFILE, (soft, hard))
        crowd = [stack.enter_context(talk.client()) for _ in range(20)]
        eventually(lambda: proc.descriptors(server.pid) >= limit, "the limit is never reached")
        talk.check()
        # Only now: threads that each accept for themselves do not accept in the order of connecting.
        last, waits = stack.enter_context(talk.client()), served.contestant.manifest.out_of_descriptors == "waits"
        number, message = talk.message(last)
        if waits:
            last.send(message)
        else:
            assert last.rest_until_closed() == b""
        cpu, spoken = proc.cpu_seconds(server.pid), len(server.stderr())
        answered, _, _ = select.select([last.socket if waits else talk.speaker.socket], [], [], 1.0)
        assert not answered, "the server has more descriptors than its limit"
        assert proc.cpu_seconds(server.pid) - cpu < 0.6, "the server spins while it is out of descriptors"
        assert len(server.stderr()) - spoken < MUCH_TO_SAY, "it says the same again and again"
        for client in crowd:
            client.close()
        if not waits:
            eventually(lambda: proc.descriptors(server.pid) < limit, "who has left still costs a descriptor")
            last = stack.enter_context(talk.client())
            number, message = talk.message(last)
            last.send(message)
        talk.expect(last, number)
        talk.check()


@pytest.mark.several_clients(True)
@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_running_out_of_memory(contestant: Contestant, workload: str) -> None:
    """A message for which there is no memory costs only the client that sends it."""
    if contestant.manifest.out_of_memory == "ends":
        pytest.skip("its run time ends the program, and its manifest says so")
    with serving(contestant.command, "--workload", workload, *room_for(contestant, WITHOUT_MEMORY)) as server:
        totals = run_out_of_memory(server, workload, Client)
        assert totals["protocol_errors"] + totals["memory_closed"] == CROWD


def run_out_of_memory(server: Server, workload: str, make_client: type[Client]) -> dict[str, int]:
    """Leave the server without memory for what a crowd of clients sends, and expect that it serves others. Returns its
    totals."""
    unfinished = wire.header(1 << 20) + b"x" * ((1 << 20) - 1)
    with StreamTalk(server, workload, make_client) as talk, ExitStack() as stack:
        if proc.sanitized(server.pid):
            pytest.skip("a sanitizer maps terabytes, and ends a program without memory")
        talk.check()
        descriptors = proc.descriptors(server.pid)
        crowd = [stack.enter_context(talk.client()) for _ in range(CROWD)]
        for client in crowd:  # has its thread, where each has one
            number, message = talk.message(client)
            client.send(message)
            talk.expect(client, number)
        room = 16 << 20
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_AS)
        resource.prlimit(server.pid, resource.RLIMIT_AS, ((proc.status(server.pid, "VmSize") << 10) + room, hard))
        closed = 0
        for client in crowd:
            try:
                client.send(unfinished)
            except (BrokenPipeError, ConnectionResetError):
                closed += 1
        # At rest: who has found no memory still holds some, until it is closed.
        server.wait_at_rest(*(client.address for client in crowd))
        if make_client is Client:  # to decrypt a request takes memory, which there may be none of
            talk.check()
        for client in crowd:
            client.close()
        # A newcomer may need memory as well, for its thread: what they took is given back first.
        eventually(
            lambda: proc.descriptors(server.pid) <= descriptors,
            lambda: f"descriptors: {descriptors} before they came, {proc.descriptors(server.pid)} when all have left",
        )
        with talk.client() as last:
            number, message = talk.message(last)
            last.send(message)
            talk.expect(last, number)
        talk.check()
        totals = server.stop()
        assert totals["memory_closed"] >= closed
        return totals


@pytest.mark.once_a_family
@pytest.mark.one_workload
def test_clients_that_leave_before_they_are_accepted(talk: StreamTalk) -> None:
    """accept(2): errors of the new socket come out of accept, and concern that peer alone."""
    for _ in range(15):
        crowd = [talk.client() for _ in range(20)]
        for client in crowd:
            with suppress(ConnectionResetError):
                client.send(b"x")
            client.reset()
    talk.check()

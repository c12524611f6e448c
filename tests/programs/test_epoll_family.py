"""The promise of docs/adr/one-work-function.md: callbacks, coroutines and fibers over one loop ask the kernel for the
same. The system calls of the pool show which thread serves which client."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import find_by_name
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.stream_talk import expect_reply, joined
from tests.support import proc
from tests.support.chosen import discover_once, startable
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import Server, run, serving

pytestmark = pytest.mark.quiet

SIBLINGS = ("epoll-reactor", "boost-fibers")
"""Servers that make the system calls of epoll-coroutines."""
# What allocators and stacks ask for, how often a service that burns CPU checks whether it was preempted, and what the
# first exception of a program does: the stacks of fibers that still wait at the end are unwound.
LEFT_OUT = {"brk", "mmap", "munmap", "mremap", "madvise", "mprotect", "clock_gettime", "futex"}
OPTIONS = ("--service-time", "15ms", "--read-buffer", "1000", "--audience", "all")
CALL = re.compile(r"^(\w+)\(.* = (-?\w+)")
ACCEPTED = re.compile(r"\baccept4(\(| resumed>).* = \d+$")


Conversation = Callable[[list[Client]], None]


def echo(clients: list[Client]) -> None:
    """One message at a time, of less than the read buffer and of more."""
    for text in (b"x", b"y" * 2500, b"z"):
        clients[0].send(text)
        assert clients[0].receive(len(text)) == text


def lines(clients: list[Client]) -> None:
    """Several lines in one write, and one that ends with the stream."""
    clients[0].send(b"one\ntwo\nthree")
    assert clients[0].receive(8) == b"one\ntwo\n"
    clients[0].half_close()
    assert clients[0].rest() == b"three"


def rpc(clients: list[Client]) -> None:
    """Services that take their time, two of them asked for in one write, and a message that is refused."""
    for number in range(3):
        clients[0].send(wire.frame(wire.request(number, b"s")) * 2)
        for _ in range(2):
            assert clients[0].frame() == wire.response(number, b"s")
    clients[0].send(wire.header(0))
    assert clients[0].rest_until_closed() == b""


def chat(clients: list[Client]) -> None:
    """Every member hears every member, then one leaves."""
    sent = message("chat", 1, 1)
    for speaker in clients:
        speaker.send(sent * 3)
        for member in clients:
            for _ in range(3):
                assert wire.frame(member.frame()) == sent
    clients[0].half_close()
    assert clients[0].rest() == b""
    clients[1].send(sent)
    for member in clients[1:]:
        assert wire.frame(member.frame()) == sent


def http(clients: list[Client]) -> None:
    """Pipelined requests, and a malformed one."""
    client = clients[0]
    client.send(message("http", client.identity, 0) + message("http", client.identity, 1))
    for number in range(2):
        expect_reply("http", client, number)
    client.send(b"nonsense\r\n\r\n")
    assert b" 400 " in client.rest_until_closed()


def connected(stack: ExitStack, server: Server, workload: str) -> list[Client]:
    """Three clients, each of which has had an answer: when a new connection is reported, and how often, is chance."""
    clients: list[Client] = []
    for _ in range(3):
        clients.append(stack.enter_context(Client(server.address)))
        clients[-1].send(message(workload, clients[-1].identity, 0))
        for member in clients if workload == "chat" else clients[-1:]:
            expect_reply(workload, member, 0, sender=clients[-1].identity)
    return clients


def traced(contestant: str, conversation: Conversation, options: tuple[str, ...], trace: Path) -> list[str]:
    """The system calls of a server from a conversation's beginning to the line of totals, each as name and result."""
    command = startable(find_by_name(discover_once(), contestant), "server").command
    strace = ("strace", "-e", "signal=none", "-o", str(trace))
    workload = conversation.__name__
    with serving((*strace, *command), "--workload", workload, *options) as server, ExitStack() as stack:
        clients = connected(stack, server, workload)
        with Client(server.address) as mark:  # its close is where the comparison begins
            mark.half_close()
            assert mark.rest() == b""
        conversation(clients)
        server.stop()
    matches = (CALL.match(line) for line in trace.read_text().splitlines())
    calls = [f"{call[1]} = {call[2]}" for call in matches if call and call[1] not in LEFT_OUT]
    ready = next(index for index, call in enumerate(calls) if call.startswith("write ="))
    begin = calls.index("close = 0", ready)
    totals = next(index for index in range(begin, len(calls)) if calls[index].startswith("write ="))
    # How often a connection is reported before it is read is chance, also of one that is made on the way.
    return [call for before, call in pairwise(calls[begin:totals]) if not before == call == "epoll_wait = 1"]


@pytest.mark.needs_build
@pytest.mark.usefixtures("strace_program")
@pytest.mark.parametrize("sibling", SIBLINGS)
@pytest.mark.parametrize("mode", ["gathered", "split"])
@pytest.mark.parametrize(
    ("conversation", "kind"),
    [(echo, "wait"), (lines, "wait"), (rpc, "wait"), (rpc, "cpu"), (chat, "wait"), (http, "wait")],
)
def test_callbacks_coroutines_and_fibers_make_the_same_system_calls(
    conversation: Conversation, kind: str, mode: str, sibling: str, tmp_path: Path
) -> None:
    options = (*OPTIONS, "--write-mode", mode, "--service-kind", kind)
    coroutines, others = (
        traced(name, conversation, options, tmp_path / name) for name in ("epoll-coroutines", sibling)
    )
    assert others == coroutines
    assert any(call.startswith("recvfrom") for call in coroutines), coroutines


@pytest.mark.needs_build
def test_the_pool_serves_in_turn_and_passes_a_message_on_once_to_each_thread(
    strace_program: str, tmp_path: Path
) -> None:
    command = find_by_name(discover_once(), "epoll-coroutine-pool").command
    trace = tmp_path / "trace"
    options = ("--workload", "chat", "--audience", "all", "--threads", "3")
    with (
        serving((strace_program, "-f", "-e", "signal=none", "-o", str(trace), *command), *options) as server,
        ExitStack() as stack,
    ):
        clients = [stack.enter_context(joined(server, "chat")) for _ in range(9)]
        for index, client in enumerate(clients):
            to_hear = {later.identity for later in clients[index:]}
            while to_hear:
                to_hear.discard(wire.read_stamp(client.frame())[0])
        clients[0].send(message("chat", clients[0].identity, 1, size=100))
        for client in clients:
            assert wire.read_stamp(client.frame()) == (clients[0].identity, 1)
        server.stop()
    assert connections_per_thread(server) == [3, 3, 3]
    lines = trace.read_text().splitlines()
    assert _calls_by_thread("recvfrom", 44, lines) == [3, 3, 3], "each has joined by a message of 44 bytes"
    begin = next(number for number, line in enumerate(lines) if _is_call(line, "recvfrom", 104))
    speaker, after = lines[begin].split()[0], lines[begin:]
    assert _calls_by_thread("writev", 104, after) == [3, 3, 3]
    passed_on = [line for line in after if re.match(speaker + r" +write\(\d+, \"\\1\\0", line)]
    assert len(passed_on) == 2, after


@pytest.mark.needs_build
def test_each_thread_accepts_for_itself_and_tells_how_many(strace_program: str, tmp_path: Path) -> None:
    """The chance that one thread of three gets none of 60 is below one in ten thousand millions."""
    command = find_by_name(discover_once(), "epoll-per-core").command
    trace = tmp_path / "trace"
    strace = (strace_program, "-f", "-e", "trace=accept4", "-e", "signal=none", "-o", str(trace))
    with serving((*strace, *command), "--workload", "echo", "--threads", "3") as server, ExitStack() as stack:
        for client in [stack.enter_context(Client(server.address)) for _ in range(60)]:
            client.send(b"x")
            assert client.receive(1) == b"x"
        totals = server.stop()
    accepted = Counter(line.split()[0] for line in trace.read_text().splitlines() if ACCEPTED.search(line))
    assert totals["connections"] == 60
    assert sorted(connections_per_thread(server)) == sorted(accepted.values())
    assert len(accepted) == 3, accepted


@pytest.mark.needs_build
@pytest.mark.parametrize(("accept", "listeners"), [("reuseport", 3), ("exclusive", 1)])
def test_threads_have_a_listener_each_or_share_one(
    accept: str, listeners: int, strace_program: str, tmp_path: Path
) -> None:
    command = find_by_name(discover_once(), "epoll-per-core").command
    trace = tmp_path / "trace"
    strace = (strace_program, "-f", "-e", "trace=epoll_ctl", "-e", "signal=none", "-o", str(trace))
    options = ("--workload", "echo", "--threads", "3", "--accept", accept)
    with serving((*strace, *command), *options) as server, ExitStack() as stack:
        rows = proc.tcp_rows(server.pid, server.address[1])
        assert sum(row.state == proc.LISTEN for row in rows) == listeners
        for client in [stack.enter_context(Client(server.address)) for _ in range(30)]:
            client.send(b"x")
            assert client.receive(1) == b"x"
        assert server.stop()["connections"] == 30
    assert sum(connections_per_thread(server)) == 30
    watched = sum("EPOLLEXCLUSIVE" in line for line in trace.read_text().splitlines())
    assert watched == (3 if accept == "exclusive" else 0)


@pytest.mark.needs_build
def test_a_shared_listener_waits_for_a_descriptor() -> None:
    command = ("prlimit", "--nofile=20", *find_by_name(discover_once(), "epoll-per-core").command)
    with serving(command, "--workload", "echo", "--accept", "exclusive") as server, ExitStack() as stack:
        clients = [stack.enter_context(Client(server.address)) for _ in range(30)]
        for client in clients:
            client.send(b"x")
        for client in clients:
            assert client.receive(1) == b"x"
            client.half_close()  # which leaves its descriptor to the next
        assert server.stop()["connections"] == 30


@pytest.mark.needs_build
@pytest.mark.parametrize("name", [server.name for server in discover_once() if "busy-poll" in server.manifest.options])
def test_a_loop_that_polls_busily_does_not_sleep(name: str) -> None:
    command = find_by_name(discover_once(), name).command
    with serving(command) as server:
        eventually(lambda: proc.all_threads_sleep(server.pid), "it does not sleep")
    with serving(command, "--busy-poll", "1m") as server:
        eventually(lambda: proc.cpu_seconds(server.pid) > 0.3, "it sleeps")


@pytest.mark.needs_build
@pytest.mark.parametrize("name", ["epoll-per-core", "monoio"])
def test_no_second_server_takes_part_of_the_connections_of_one_whose_listeners_share_a_port(name: str) -> None:
    command = startable(find_by_name(discover_once(), name), "server").command
    with serving(command, "--threads", "3") as server:
        finished = run(command, "--threads", "3", "--listen", server.endpoint)
        assert (finished.code, "port 0" in finished.stderr) == (1, True), finished


def connections_per_thread(server: Server) -> list[int]:
    """The counts in the line of totals."""
    counts: list[int] = json.loads(server.lines[-1])["connections_per_thread"]
    return counts


def _calls_by_thread(name: str, result: int, trace: list[str]) -> list[int]:
    """The number of such calls that each thread made, of those that made any."""
    return sorted(Counter(line.split()[0] for line in trace if _is_call(line, name, result)).values())


def _is_call(line: str, name: str, result: int) -> bool:
    """`strace -f` writes the thread first, and a call in two lines when others come in between."""
    return re.search(rf"\b{name}(\(| resumed>).* = {result}$", line) is not None

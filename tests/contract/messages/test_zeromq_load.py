"""The generator over ZeroMQ against the real servers: every count is exact, and what ends is seen."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.model.load_result import LoadResult
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import joined
from tests.contract.messages.transport import WELC
from tests.contract.messages.transports.zmq import ZmqClient
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import eventually
from tests.support.server import Server

pytestmark = pytest.mark.transports("zmq+tcp")

SHORT = ("--warmup", "50ms", "--duration", "300ms")
LONG = ("--warmup", "0", "--duration", "60s")
PATIENCE_S = 120.0


def started(url: str, *arguments: str, descriptors: int | None = None) -> subprocess.Popen[bytes]:
    """The generator, whose result comes on its stdout."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    return subprocess.Popen(
        [str(generator_path(build_dir())), url, *arguments, "--json", "-"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit if descriptors else None,
    )


def finished(process: subprocess.Popen[bytes]) -> LoadResult:
    """Its result; AssertionError when it has none."""
    out, error = process.communicate(timeout=PATIENCE_S)
    assert out, error.decode()
    return msgspec.json.decode(out, type=LoadResult)


def load(server: Server, *arguments: str) -> LoadResult:
    """The result of a run against a server."""
    return finished(started(server.endpoint, *arguments))


def failed_audits(result: LoadResult) -> list[str]:
    """Those that do not depend on how fast this machine is."""
    exact = ("verification", "bytes", "connections")
    return [f"{audit.name}: {audit.detail}" for audit in result.audits if audit.name in exact and not audit.passed]


@pytest.mark.once_a_family
@pytest.mark.parametrize("how", [("--depth", "3"), ("--rate", "1000"), ("--rate", "1000", "--arrivals", "poisson")])
def test_every_request_is_answered_once(spoken: Spoken, workload: str, how: tuple[str, ...]) -> None:
    clients = 10
    with spoken.serving(workload, "--audience", "all") as server:
        result = load(
            server, "--workload", workload, "-c", str(clients), "--threads", "2", "--audience", "all", *how, *SHORT
        )
        totals = server.stop()
    messages = result.messages
    copies = clients if workload == "chat" else 1
    assert failed_audits(result) == []
    assert result.connections.established == clients
    assert messages.sent > 0
    assert messages.expected == messages.received == messages.sent * copies
    assert (messages.lost, messages.duplicated, messages.reordered, messages.corrupt) == (0, 0, 0, 0)
    assert totals["connections"] == clients
    assert totals["bytes_out"] == result.bytes.received
    assert totals["bytes_in"] == result.bytes.sent
    if workload != "chat":  # there the generator also sends messages to see which clients have joined
        assert totals["requests"] == messages.sent
    assert {name: totals[name] for name in ("strangers", "send_dropped", "protocol_errors", "peers_expired")} == {
        "strangers": 0,
        "send_dropped": 0,
        "protocol_errors": 0,
        "peers_expired": 0,
    }


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
@pytest.mark.parametrize("audience", ["all", "others"])
def test_a_closed_loop_of_chat(spoken: Spoken, workload: str, audience: str) -> None:
    with spoken.serving(workload, "--audience", audience) as server:
        result = load(server, "--workload", workload, "-c", "30", "--audience", audience, *SHORT)
        assert server.stop()["send_dropped"] == 0
    assert failed_audits(result) == []
    assert result.messages.received == result.messages.sent * (30 if audience == "all" else 29)


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_large_messages(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        result = load(server, "-c", "4", "--size", "1000000", *SHORT)
    assert failed_audits(result) == []
    assert result.bytes.received == result.messages.sent * 1_000_000


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_a_thousand_clients(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        result = load(server, "-c", "1000", "--threads", "2", "--connect-timeout", "60s", "--timeout", "60s", *SHORT)
        totals = server.stop()
    assert failed_audits(result) == []
    assert result.connections.established == totals["connections"] == 1000
    assert totals["requests"] == result.messages.sent == result.messages.received


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_what_zeromqs_own_threads_use_is_the_generators(spoken: Spoken, workload: str) -> None:
    """Two threads, and an I/O thread of each, which does the TCP."""
    with spoken.serving(workload) as server:
        result = load(server, "-c", "4", "--threads", "2", "--warmup", "0", "--duration", "500ms")
    threads = result.generator.threads
    assert len(threads) == 4
    assert all(threads[number].cpu_user_s + threads[number].cpu_system_s > 0 for number in (1, 3))


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_more_is_sent_than_its_own_queue_takes(spoken: Spoken, workload: str) -> None:
    """The server stands still, so the high-water mark is reached; later everything goes out."""
    with spoken.serving(workload) as server:
        process = started(
            server.endpoint,
            *("-c", "2", "--rate", "20000", "--size", "2000"),
            *("--warmup", "0", "--duration", "1200ms", "--timeout", "10s"),
        )
        eventually(lambda: _known(server, 2), "they never connect")
        server.signal(signal.SIGSTOP)
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            server.signal(signal.SIGCONT)
        result = finished(process)
        totals = server.stop()
    assert result.messages.corrupt == result.messages.duplicated == result.messages.reordered == 0
    assert result.messages.lost == totals["send_dropped"] + totals["receive_dropped"]


def _known(server: Server, how_many: int) -> bool:
    """Return whether this many connections stand, as the kernel has them."""
    port = server.address[1]
    return sum(1 for row in proc.tcp_sockets(server.pid, port).values() if row.state != proc.LISTEN) >= how_many


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_is_noticed_at_once(spoken: Spoken, workload: str, how: signal.Signals) -> None:
    """By its farewell, or because its connections end."""
    with spoken.transport.launched(spoken.contestant, "--workload", workload) as server:
        server.wait_ready()
        process = started(server.endpoint, "-c", "10", *LONG)
        with ZmqClient(server) as client:
            assert client.hello() == WELC
        eventually(lambda: _known(server, 10), "they never connect")
        server.signal(how)
        result = finished(process)
    assert result.errors["closed_by_server"] == result.connections.established
    assert result.errors["timeout"] == 0


@pytest.mark.once_a_family
def test_nothing_listens(spoken: Spoken) -> None:
    """Refused is known at once. The port is bound and stays bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"zmq+tcp://127.0.0.1:{bound.getsockname()[1]}"
        result = finished(started(url, "-c", "3", "--connect-timeout", "60s", *SHORT))
    assert (result.connections.attempted, result.connections.refused, result.connections.established) == (3, 3, 0)


@pytest.mark.once_a_family
def test_a_server_that_says_nothing(spoken: Spoken) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"zmq+tcp://127.0.0.1:{mute.getsockname()[1]}"
        result = finished(started(url, "-c", "3", "--connect-timeout", "300ms", *SHORT))
    assert result.connections.timed_out == 3


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_a_server_that_is_full(spoken: Spoken, workload: str) -> None:
    """Full of clients that have spoken: one that has only sent HELO would give way."""
    with spoken.serving(workload, "--peers", "5") as server:
        with joined(spoken.transport, server, 5) as crowd:
            for client in crowd:
                client.send(message(workload, client.identity, 0))
                client.expect(reply(workload, client.identity, 0))
            result = load(server, "-c", "3", *SHORT)
        assert server.stop()["peers_refused"] >= 3  # each sends HELO until it gets FULL
    assert (result.connections.established, result.connections.refused) == (0, 3)


@pytest.mark.once_a_family
@pytest.mark.workloads("echo")
def test_connections_come_from_where_the_options_say(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        process = started(server.endpoint, "-c", "4", "--source-ips", "127.0.0.2,127.0.0.3", *LONG)
        eventually(lambda: _known(server, 4), "they never connect")
        table = _remotes(server)
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert sorted(table) == ["127.0.0.2"] * 2 + ["127.0.0.3"] * 2


def _remotes(server: Server) -> list[str]:
    rows = proc.tcp_sockets(server.pid, server.address[1]).values()
    return [row.remote[0] for row in rows if row.state != proc.LISTEN]


@pytest.mark.once_a_family
def test_too_few_descriptors_are_reported_before(spoken: Spoken) -> None:
    """A connection needs four: its socket's wake-up, its TCP connection, and two for its monitor."""
    process = started("zmq+tcp://127.0.0.1:9", "-c", "100", *SHORT, descriptors=300)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert b"100 connections need 424 file descriptors" in error

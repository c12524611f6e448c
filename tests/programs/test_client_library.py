"""The clients as libraries: the example of each is built as a program of others is, from its folder alone, and tells
which stage has failed, each within its own limit."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from tests.support.chosen import discover_once, startable
from tests.support.inside import inside
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.needs_build

EMBEDDABLE = [client for client in discover_once("client") if (ROOT / "clients" / client.name / "library").is_dir()]
HIDDEN = "10.9.0.2"
LARGE = b"x" * (6 << 20)
"""More than the sockets of both sides take: the sender's 4 MiB (tcp_wmem), and next to nothing of the reader's."""


@pytest.fixture(scope="module", params=EMBEDDABLE, ids=lambda client: client.name)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of a client, built outside the project."""
    startable(request.param, "client")  # skips where the library it needs is not installed
    source = ROOT / "clients" / request.param.name / "example"
    build = tmp_path_factory.mktemp(request.param.name)
    subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", build], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    return build / "example"


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Namespace]:
    """A namespace whose names the test knows."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    try:
        with make_namespace(hosts) as made:
            yield made
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")


def ask(*command: object, request: bytes = b"question") -> tuple[int, str, str]:
    done = subprocess.run([*map(str, command)], input=request, capture_output=True, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def failed(stage: str, reason: str) -> tuple[int, str, str]:
    return 1, "", f"the {stage} stage failed: {reason}\n"


@contextmanager
def server(answer: bytes | None, *, reads: bool = True) -> Iterator[int]:
    """The port of a server that reads a request and gives an answer; None: none, until the client has gone."""

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            if reads:
                length = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
                requests.append(peer.recv(length, socket.MSG_WAITALL))
            if answer is not None:
                peer.sendall(answer)
            else:
                over.wait(PATIENCE_S)

    requests: list[bytes] = []
    over = threading.Event()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            serving.join(PATIENCE_S)
    assert not reads or requests == [b"question"]


def test_an_answer(example: Path) -> None:
    with server(b"\0\0\0\x06answer") as port:
        assert ask(example, "localhost", port) == (0, "answer\n", "")


def test_a_name_that_none_knows(example: Path, private: Namespace) -> None:
    assert ask(*private.enter, example, "late.netdyno.test", 9) == failed("resolve", "other")


def test_a_name_server_that_says_nothing(example: Path, private: Namespace, tmp_path: Path) -> None:
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.1\n")
    private.run("mount", "--bind", str(resolver), "/etc/resolv.conf")
    with inside(private) as namespace, namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 53))
        assert ask(*private.enter, example, "late.netdyno.test", 9) == failed("resolve", "timed out")


def test_a_port_where_nothing_listens(example: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert ask(example, "127.0.0.1", bound.getsockname()[1]) == failed("connect", "refused")


def test_an_address_that_swallows_everything(example: Path, private: Namespace) -> None:
    private.run("ip", "route", "add", f"{HIDDEN}/32", "dev", "lo")
    assert ask(*private.enter, example, HIDDEN, 9) == failed("connect", "timed out")


def test_a_server_that_does_not_read(example: Path) -> None:
    with server(None, reads=False) as port:
        assert ask(example, "127.0.0.1", port, request=LARGE) == failed("write", "timed out")


def test_a_server_that_never_answers(example: Path) -> None:
    with server(None) as port:
        assert ask(example, "127.0.0.1", port) == failed("answer", "timed out")


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\0\x06ans"])
def test_a_server_that_ends_the_stream(example: Path, answer: bytes) -> None:
    with server(answer) as port:
        assert ask(example, "127.0.0.1", port) == failed("answer", "closed by the server")


@pytest.mark.parametrize("answer", [b"\0\0\0\0", b"\xff\xff\xff\xff"])
def test_a_length_that_cannot_be(example: Path, answer: bytes) -> None:
    with server(answer) as port:
        assert ask(example, "127.0.0.1", port) == failed("answer", "malformed")

"""Servers over TLS (--tls): the same replies, however the encrypted bytes come, and none in plain text."""

from __future__ import annotations

import select
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.kit.paths import build_dir, certificate_path
from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import room_for, threads_for
from tests.contract.tcp.stream_talk import expect_reply
from tests.contract.tcp.test_resources import CROWD, WITHOUT_MEMORY, run_out_of_memory
from tests.support import proc
from tests.support.background import in_background
from tests.support.client import Client, ClosedError
from tests.support.patience import eventually
from tests.support.server import Server, serving
from tests.support.tls_client import TlsClient

UNICAST = pytest.mark.workloads("echo", "lines", "rpc", "http")
pytestmark = [pytest.mark.speaks_tls(True), pytest.mark.needs_build]
LONGEST_US = 10_000_000
"""The longest service that a request can ask for (protocol/WIRE.md)."""
LENIENT = """
openssl_conf = openssl_init
[openssl_init]
ssl_conf = ssl_sect
[ssl_sect]
system_default = system_default_sect
[system_default_sect]
MinProtocol = TLSv1
CipherString = DEFAULT@SECLEVEL=0
"""
"""A configuration of OpenSSL that allows what its own defaults do not."""
UNSEALED = b"\x17\x03\x03\x00\x20" + bytes(32)
"""A record that no key has sealed."""
ENCRYPTS_LATE = {"netty"}
"""Its SslHandler encrypts what is flushed after a read, and has then met the next record as well."""
LARGE = 300_000
"""A message of many records, which hold 16 KiB at most (RFC 8446, 5.1)."""
CLIENTS = 3
MANY = 96
MEMORY_BOUND = 48 << 20


@contextmanager
def encrypting(contestant: Contestant, workload: str, *options: str) -> Iterator[Server]:
    certificate = str(certificate_path(build_dir()))
    with serving(
        contestant.command, "--workload", workload, "--tls", certificate, *threads_for(contestant, 2), *options
    ) as server:
        yield server


def talk(client: Client, workload: str, size: int = 40) -> int:
    """Have a message answered; returns its bytes."""
    number = client.next_number()
    text = message(workload, client.identity, number, size)
    client.send(text)
    expect_reply(workload, client, number, size)
    return len(text)


@pytest.mark.once_a_family
@UNICAST
def test_replies_are_those_of_the_workload(contestant: Contestant, workload: str) -> None:
    with encrypting(contestant, workload) as server:
        with TlsClient(server.address) as client:
            sizes = [talk(client, workload, size) for size in (40, 4000 if workload == "http" else LARGE, 40)]
            client.announce_end()
            assert client.rest() == b""
            assert client.tls.version() == "TLSv1.3"
        totals = server.stop()
    assert totals["protocol_errors"] == 0
    assert totals["connections"] == 1
    assert totals["requests"] >= len(sizes)
    assert totals["bytes_in"] > sum(sizes)  # what the kernel has seen


@pytest.mark.one_workload
def test_every_server_encrypts(contestant: Contestant, workload: str) -> None:
    """Also each process of those that fork, whose OpenSSL was its parent's."""
    with encrypting(contestant, workload) as server:
        for _ in range(CLIENTS):
            with TlsClient(server.address) as client:
                talk(client, workload)
                client.announce_end()
                assert client.rest() == b""
        totals = server.stop()
    assert (totals["connections"], totals["protocol_errors"]) == (CLIENTS, 0)


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_tls_1_2_is_spoken(contestant: Contestant, workload: str) -> None:
    with encrypting(contestant, workload) as server:
        with TlsClient(server.address, maximum_version=ssl.TLSVersion.TLSv1_2) as client:
            for size in (40, LARGE, 40):
                talk(client, workload, size)
            assert client.tls.version() == "TLSv1.2"
            client.announce_end()
            assert client.rest() == b""
        assert server.stop()["protocol_errors"] == 0


@pytest.mark.once_a_language
@pytest.mark.workloads("lines", "rpc")
def test_any_slicing_of_the_encrypted_bytes(contestant: Contestant, workload: str) -> None:
    with encrypting(contestant, workload) as server, TlsClient(server.address, piece=1) as client:
        talk(client, workload)
        talk(client, workload, 500)


@pytest.mark.once_a_language
@pytest.mark.workloads("rpc")
def test_what_comes_during_a_service_is_served_after_it(contestant: Contestant, workload: str) -> None:
    """Each request in records of its own, of which one read brings several, and all of them before an end."""
    with encrypting(contestant, workload, "--service-time", "5ms") as server, TlsClient(server.address) as client:
        begin = time.monotonic()
        numbers = [client.next_number() for _ in range(50)]
        for number in numbers:
            client.send(message(workload, client.identity, number))
        client.announce_end()
        for number in numbers:
            expect_reply(workload, client, number)
        assert time.monotonic() - begin >= len(numbers) * 0.005
        assert client.rest() == b""


@pytest.mark.once_a_language
@pytest.mark.workloads("lines")
def test_a_client_that_announces_an_end_gets_what_is_pending(contestant: Contestant, workload: str) -> None:
    """An unterminated line is echoed at the end of the stream, which close_notify is as well as a FIN."""
    with encrypting(contestant, workload) as server:
        for is_announced in (True, False):
            with TlsClient(server.address) as client:
                client.send(b"first\nrest")
                client.announce_end() if is_announced else client.half_close()
                assert client.rest() == b"first\nrest"
        assert server.stop()["protocol_errors"] == 0


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_an_end_behind_more_replies_than_the_socket_buffers_hold(contestant: Contestant, workload: str) -> None:
    with encrypting(contestant, workload) as server, TlsClient(server.address) as client:
        numbers, size = [client.next_number() for _ in range(20)], 200_000
        records = [client.encrypt(message(workload, client.identity, number, size)) for number in numbers]
        stream = b"".join((*records, client.encrypt_end()))
        with in_background(lambda: client.send_encrypted(stream)):
            for number in numbers:
                expect_reply(workload, client, number, size)
            assert client.rest() == b""
        assert server.stop()["protocol_errors"] == 0


@pytest.mark.once_a_family
@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc")
def test_a_client_that_asks_and_never_reads(contestant: Contestant, workload: str) -> None:
    """The server stops reading from it, or closes it; it neither hoards replies nor lets others wait."""
    with encrypting(contestant, workload) as server, TlsClient(server.address) as first:
        talk(first, workload)
        with TlsClient(server.address, receive_buffer=4096) as greedy:
            memory = proc.resident_bytes(server.pid)
            stream = b"".join(message(workload, greedy.identity, greedy.next_number(), 1000) for _ in range(1000))
            assert _send_until_it_blocks(greedy, stream, MANY) < MANY, "the server takes requests without end"
            talk(first, workload)
            if not proc.sanitized(server.pid):
                assert proc.resident_bytes(server.pid) - memory < MEMORY_BOUND
        talk(first, workload)


def _send_until_it_blocks(client: TlsClient, stream: bytes, times: int) -> int:
    """Send `stream` over and over until nothing more is taken for a while, or the server closes. Return how often."""
    client.socket.setblocking(False)
    for sent in range(times):
        encrypted = memoryview(client.encrypt(stream))
        while encrypted:
            _, writable, _ = select.select([], [client.socket], [], 0.5)
            if not writable:
                return sent
            try:
                encrypted = encrypted[client.socket.send(encrypted) :]
            except (BrokenPipeError, ConnectionResetError):
                return sent
    return times


@pytest.mark.once_a_language
@pytest.mark.several_clients(True)
@pytest.mark.workloads("echo")
def test_plain_text_is_refused_and_others_go_on(contestant: Contestant, workload: str) -> None:
    with encrypting(contestant, workload) as server:
        with TlsClient(server.address) as client:
            talk(client, workload)
            with Client(server.address) as plain:
                plain.send(b"GET / HTTP/1.1\r\nHost: netdyno\r\n\r\n")
                assert b"HTTP/1.1" not in plain.rest_until_closed()
            talk(client, workload)
            in_one_segment = contestant.name not in ENCRYPTS_LATE
            client.send_encrypted(client.encrypt(b"x") + (UNSEALED if in_one_segment else b""))
            assert client.receive(1) == b"x"
            if not in_one_segment:
                client.send_encrypted(UNSEALED)
            with pytest.raises((ClosedError, OSError)):
                client.receive(1)
        assert server.stop()["protocol_errors"] == 2


@pytest.mark.once_a_language
@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc")
def test_a_client_that_resets_is_let_go(contestant: Contestant, workload: str) -> None:
    """With the handshake, so that no reader takes the server's tickets; inside a message; and while it is served."""
    request = wire.frame(wire.request(1, b"s", LONGEST_US))
    with encrypting(contestant, workload) as server, TlsClient(server.address) as first:
        talk(first, workload)
        descriptors = proc.descriptors(server.pid)
        for text in (b"", request[:-1], request) * 5:
            client = TlsClient(server.address)
            if text:
                client.send(text)
            client.reset()
        eventually(
            lambda: proc.descriptors(server.pid) <= descriptors,
            lambda: f"{proc.descriptors(server.pid)} descriptors, {descriptors} without those who have reset",
            LONGEST_US / 1e6 / 2,
        )
        talk(first, workload)
        assert server.stop()["protocol_errors"] == 0


@pytest.mark.once_a_family
@pytest.mark.several_clients(True)
@pytest.mark.workloads("rpc")
def test_running_out_of_memory(contestant: Contestant, workload: str) -> None:
    """A record for which there is no memory costs only the client that sends it."""
    if contestant.manifest.out_of_memory == "ends":
        pytest.skip("its run time ends the program, and its manifest says so")
    options = ("--workload", workload, "--tls", str(certificate_path(build_dir())))
    with serving(contestant.command, *options, *room_for(contestant, WITHOUT_MEMORY)) as server:
        totals = run_out_of_memory(server, workload, TlsClient)
        assert totals["memory_closed"] <= CROWD


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_session_is_taken_up_again(contestant: Contestant, workload: str, version: ssl.TLSVersion) -> None:
    with encrypting(contestant, workload) as server:
        with TlsClient(server.address, maximum_version=version) as client:
            talk(client, workload)  # the tickets come before the reply
            session = client.tls.session
            assert not client.tls.session_reused
        with TlsClient(server.address, session=session, maximum_version=version) as client:
            talk(client, workload)
            assert client.tls.session_reused


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
def test_older_versions_are_refused(
    contestant: Contestant, workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the server itself: the OpenSSL of this machine may do so too, unless it is configured otherwise."""
    configuration = tmp_path / "openssl.cnf"
    configuration.write_text(LENIENT)
    monkeypatch.setenv("OPENSSL_CONF", str(configuration))
    with encrypting(contestant, workload) as server:
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.address[1]}", "-tls1_1"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode != 0
        assert "alert protocol version" in done.stderr, done.stderr
        assert server.stop()["protocol_errors"] == 1


@pytest.mark.once_a_language
@pytest.mark.workloads("chat")
def test_chat_is_refused(contestant: Contestant, workload: str) -> None:
    done = refused(contestant, workload, certificate_path(build_dir()))
    assert "--tls: a message of chat" in done.stderr


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
def test_a_file_without_certificate_is_refused(contestant: Contestant, workload: str, tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate")
    done = refused(contestant, workload, tmp_path / "none.pem")
    assert "none.pem' holds no certificate with its key in PEM" in done.stderr
    assert "missing.pem' holds no" in refused(contestant, workload, tmp_path / "missing.pem").stderr


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
def test_a_key_that_needs_a_password_is_refused_and_none_is_requested(
    contestant: Contestant, workload: str, tmp_path: Path
) -> None:
    file, both = tmp_path / "locked.pem", certificate_path(build_dir())
    locked = openssl("pkey", "-in", both, "-aes256", "-passout", "pass:secret")
    file.write_bytes(openssl("x509", "-in", both) + locked)
    assert refused(contestant, workload, file).stderr.endswith(
        f"--tls: the key in '{file}' is encrypted, and no server asks for its password\n"
    )


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
@pytest.mark.parametrize("algorithm", ["RSA", "EC"])
def test_the_key_of_another_certificate_is_refused(
    contestant: Contestant, workload: str, tmp_path: Path, algorithm: str
) -> None:
    """Of the type of the certificate's own key, and of another: OpenSSL by itself takes the latter."""
    file, curve = tmp_path / "another.pem", ("-pkeyopt", "ec_paramgen_curve:P-256")
    key = openssl("genpkey", "-algorithm", algorithm, *(curve if algorithm == "EC" else ()))
    file.write_bytes(openssl("x509", "-in", certificate_path(build_dir())) + key)
    assert (
        f"--tls: the key in '{file}' is not that of the certificate there" in refused(contestant, workload, file).stderr
    )


def openssl(*arguments: str | Path) -> bytes:
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True).stdout


@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
def test_the_path_of_a_certificate_may_hold_anything(contestant: Contestant, workload: str, tmp_path: Path) -> None:
    file = tmp_path / 'a "quoted", \\{"port":1} place.pem'
    file.write_bytes(certificate_path(build_dir()).read_bytes())
    with (
        serving(contestant.command, "--workload", workload, "--tls", str(file), *threads_for(contestant, 2)) as server,
        TlsClient(server.address) as client,
    ):
        talk(client, workload)


@pytest.mark.speaks_tls(False)
@pytest.mark.once_a_language
@pytest.mark.workloads("echo")
def test_a_server_that_cannot_encrypt_refuses(contestant: Contestant, workload: str) -> None:
    assert "--tls: " in refused(contestant, workload, certificate_path(build_dir())).stderr


def refused(contestant: Contestant, workload: str, file: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*contestant.command, "--workload", workload, "--tls", str(file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        start_new_session=True,  # without a terminal
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done

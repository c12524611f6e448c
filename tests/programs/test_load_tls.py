"""netdyno-load over TLS: what it verifies, what it counts, and how it ends."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import pytest

from netdyno.model.load_result import LoadResult, Tls
from netdyno.question.contestants.stand_in import find_free_port, try_connect
from tests.support.certificates import NAMES, Authority, make_authority
from tests.support.foreign import (
    LAST,
    MANY,
    OK,
    QUICK,
    Serve,
    always,
    end,
    expect_all_right,
    expect_error,
    failed,
    lines_of,
    listening,
    load,
    replies_of,
    replying,
    requests,
    result_of,
)
from tests.support.patience import eventually

pytestmark = pytest.mark.needs_build


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = make_authority(tmp_path_factory.mktemp("certificates"))
    if made is None:
        pytest.skip("openssl is not installed")
    return made


@pytest.fixture(scope="module")
def context(authority: Authority) -> ssl.SSLContext:
    return authority.sign("localhost")


@pytest.fixture
def trusted(authority: Authority) -> tuple[str, ...]:
    return ("--cacert", str(authority.file))


def encrypted(serve: Serve, context: ssl.SSLContext) -> Serve:
    def shake_hands(connection: socket.socket, number: int) -> None:
        with context.wrap_socket(connection, server_side=True) as over_tls:
            serve(over_tls, number)

    return shake_hands


@contextmanager
def https(serve: Serve, context: ssl.SSLContext, host: str = "127.0.0.1") -> Iterator[str]:
    with listening(encrypted(serve, context)) as (_, port):
        yield f"https://{host}:{port}/"


def tls_of(result: LoadResult) -> Tls:
    assert isinstance(result.tls, Tls)
    return result.tls


@pytest.mark.parametrize("options", [(), ("--rate", "200"), ("--depth", "4")], ids=["closed", "open", "pipelined"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_requests_over_tls(
    authority: Authority, trusted: tuple[str, ...], version: ssl.TLSVersion, options: tuple[str, ...]
) -> None:
    context = authority.sign("versions")
    context.maximum_version = version
    with https(always(OK), context) as url:
        result = result_of(url, *trusted, "-c", "4", *options, *QUICK)
    expect_all_right(result)
    assert result.plan.url == url
    tls = tls_of(result)
    assert (tls.verified, tls.reuse, tls.resumed) == (True, False, 0)
    assert tls.protocol == f"TLSv1.{version - ssl.TLSVersion.TLSv1_2 + 2}"
    assert tls.handshake_ns.count == result.connections.established == 4
    assert 0 < tls.handshake_ns.p50 <= result.connect_ns.max


def test_a_first_connect_that_fails_is_tried_again(context: ssl.SSLContext, trusted: tuple[str, ...]) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        if number > 0:
            encrypted(always(OK), context)(connection, number)

    with listening(serve) as (_, port):
        result = result_of(f"https://127.0.0.1:{port}/", *trusted, "-c", "2", "--rate", "200", *MANY, ends={3})
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (40, 40, 0)
    assert (result.connections.established, result.connections.reset) == (2, 1)
    assert failed(result) == {"connections"}


def test_what_is_due_on_a_connection_that_never_stands_is_without_an_answer(
    context: ssl.SSLContext, trusted: tuple[str, ...]
) -> None:
    """It ends the count. Where no connection stands, there is nothing to wait for."""

    def serve(connection: socket.socket, number: int) -> None:
        if number == 1:
            encrypted(always(OK), context)(connection, number)

    with listening(serve) as (_, port):
        url = f"https://127.0.0.1:{port}/"
        result = result_of(url, *trusted, "-c", "2", "--rate", "200", *MANY, ends={3})
        nothing = load(url, *trusted, "-c", "2", "--rate", "200", *MANY)
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (20, 20, 20)
    assert result.errors["timeout"] >= 20
    assert result.connections.reset > 2
    assert ("no connection in time", 20) in {(kind.what, kind.count) for kind in replies_of(result).faults}
    assert failed(result) == {"connections", "verification"}
    assert nothing.returncode == 1
    assert nothing.stderr.endswith("got none: the connection ended in the TLS handshake\n")


def test_a_server_hears_its_name_and_which_http_is_spoken(context: ssl.SSLContext, trusted: tuple[str, ...]) -> None:
    seen: set[tuple[str | None, bytes]] = set()

    def serve(connection: socket.socket, _number: int) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        for request in requests(connection):
            seen.add((connection.selected_alpn_protocol(), request.split(b"\r\n")[1].split(b":")[1].strip()))
            connection.sendall(OK)

    names: set[str | None] = set()
    context.sni_callback = lambda _connection, name, _context: names.add(name)
    try:
        with https(serve, context, "localhost") as url:
            expect_all_right(result_of(url, *trusted, *QUICK))
        assert names == {"localhost"}
        with https(serve, context) as url:
            expect_all_right(result_of(url, *trusted, *QUICK))
        assert names == {"localhost", None}, "an address is no name (RFC 6066, 3)"
    finally:
        context.sni_callback = None
    assert seen == {("http/1.1", b"localhost"), ("http/1.1", b"127.0.0.1")}


def test_over_ipv6_and_a_socket_in_the_file_system(
    context: ssl.SSLContext, trusted: tuple[str, ...], tmp_path: Path
) -> None:
    serve = encrypted(always(OK), context)
    with listening(serve, socket.AF_INET6) as address:
        for host in ("::1", "::1%1"):  # a zone is in no certificate
            expect_all_right(result_of(f"https://[{host}]:{address[1]}/", *trusted, *QUICK))
    file = str(tmp_path / "socket")
    with listening(serve, socket.AF_UNIX, file):
        expect_all_right(result_of("https://localhost/", "--unix-socket", file, *trusted, *QUICK))


@pytest.mark.parametrize("reuse", ["on", "off"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_sessions_are_taken_up_where_that_is_requested(
    authority: Authority, trusted: tuple[str, ...], version: ssl.TLSVersion, reuse: str
) -> None:
    context = authority.sign("sessions")
    context.maximum_version = version

    with https(replying(LAST, last=0), context) as url:
        result = result_of(url, *trusted, "-c", "2", "--tls-reuse", reuse, *MANY)
    expect_all_right(result)
    tls = tls_of(result)
    assert tls.handshake_ns.count == result.connections.established > 4
    assert tls.reuse == (reuse == "on")
    first = 2  # they begin before a session is there
    assert tls.resumed == (tls.handshake_ns.count - first if reuse == "on" else 0)


def test_bytes_of_any_protocol(context: ssl.SSLContext, trusted: tuple[str, ...]) -> None:
    with listening(encrypted(replying(lambda _, line: b"+" + line, read=lines_of), context)) as (_, port):
        url = f"tls://127.0.0.1:{port}"
        result = result_of(url, *trusted, "--send", r"PING\r\n", "--expect", "+PING", "-c", "2", *QUICK)
    expect_all_right(result)
    assert result.plan.url == url


@pytest.mark.parametrize("size", ["31", "1MiB"])
def test_messages_with_stamps(context: ssl.SSLContext, trusted: tuple[str, ...], size: str) -> None:
    """A message of 1 MiB is larger than the buffers of the sockets."""

    def serve(connection: socket.socket, _number: int) -> None:
        while data := connection.recv(1 << 16):
            connection.sendall(data)

    with listening(encrypted(serve, context)) as (_, port):
        options = ("--size", size, "-c", "2", "--depth", "2", "--send-buffer", "8KiB", "-n", "20")
        result = result_of(f"tls://127.0.0.1:{port}", *trusted, *options)
    assert result.messages.received == result.messages.sent > 4
    assert failed(result) == set()
    assert result.bytes.received == result.bytes.expected


# --- certificates of clients ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientIdentity:
    """A client's certificate and its key, each in a file of its own."""

    certificate: Path
    key: Path

    @property
    def options(self) -> tuple[str, ...]:
        return "--cert", str(self.certificate), "--key", str(self.key)


def own_certificate(authority: Authority, name: str) -> ClientIdentity:
    authority.sign(name)
    return ClientIdentity(authority.folder / f"{name}.pem", authority.folder / f"{name}.key")


def demanding(authority: Authority, version: ssl.TLSVersion) -> ssl.SSLContext:
    """A server that refuses clients without a certificate of this authority."""
    context = authority.sign("demanding")
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    return context


VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@VERSIONS
@pytest.mark.parametrize("in_one_file", [True, False])
def test_a_server_that_asks_for_a_certificate_gets_it(
    authority: Authority, trusted: tuple[str, ...], version: ssl.TLSVersion, in_one_file: bool, tmp_path: Path
) -> None:
    own = own_certificate(authority, "client")
    options = own.options
    if in_one_file:
        both = tmp_path / "both"
        both.write_text(own.key.read_text() + own.certificate.read_text())
        options = ("--cert", str(both))
    names: set[object] = set()

    def serve(connection: socket.socket, number: int) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        names.add((connection.getpeercert() or {})["subject"])
        always(OK)(connection, number)

    with https(serve, demanding(authority, version)) as url:
        expect_all_right(result_of(url, *trusted, *options, "-c", "2", "--threads", "2", *MANY))
    assert names == {((("commonName", "client"),),)}


@VERSIONS
@pytest.mark.parametrize("scheme", ["https", "wss", "tls"])
def test_a_server_that_asks_for_a_certificate_and_gets_none_is_reported_by_its_alert(
    authority: Authority, trusted: tuple[str, ...], version: ssl.TLSVersion, scheme: str
) -> None:
    """In TLS 1.3 it comes when the handshake is done for the client (RFC 8446, 4.4.2.4)."""
    with https(always(OK), demanding(authority, version)) as url:
        send = ("--send", r"PING\r\n") if scheme == "tls" else ()
        address = url.replace("https", scheme) if scheme != "tls" else url.replace("https", scheme).rstrip("/")
        done = load(address, *trusted, *send, "-c", "2", *MANY)
    assert done.returncode == 1
    alert = "116: certificate required" if version is ssl.TLSVersion.TLSv1_3 else "40: handshake failure"
    words = f"the server refuses the connection, TLS alert {alert}; it asks for a certificate (--cert FILE, --key FILE)"
    assert words in done.stderr, done.stderr
    assert "no TLS" not in done.stderr + done.stdout


@VERSIONS
def test_a_certificate_that_the_server_does_not_trust_is_reported_by_its_alert(
    authority: Authority, trusted: tuple[str, ...], version: ssl.TLSVersion, tmp_path: Path
) -> None:
    stranger = make_authority(tmp_path)
    assert stranger is not None
    with https(always(OK), demanding(authority, version)) as url:
        done = load(url, *trusted, *own_certificate(stranger, "stranger").options, *MANY)
    assert done.returncode == 1
    words = r"the server refuses the connection, TLS alert \d+: .*; it had asked for the certificate of --cert"
    assert re.search(words, done.stderr), done.stderr


def test_openssls_server_that_asks_for_a_certificate_gets_it(authority: Authority, trusted: tuple[str, ...]) -> None:
    own = own_certificate(authority, "client")
    authority.sign("s_server")
    port = find_free_port("127.0.0.1")
    server = ("-accept", f"127.0.0.1:{port}", "-www", "-Verify", "1", "-verify_return_error", "-CAfile", authority.file)
    certificate = ("-cert", authority.folder / "s_server.pem", "-key", authority.folder / "s_server.key")
    with subprocess.Popen(
        ["openssl", "s_server", *server, *certificate], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            eventually(lambda: try_connect("127.0.0.1", port), lambda: "openssl s_server does not listen")
            url = f"https://127.0.0.1:{port}/"
            without = load(url, *trusted, "-n", "3", "--timeout", "2s")
            result = result_of(url, *trusted, *own.options, "-n", "3", "--timeout", "2s")
        finally:
            process.kill()
    assert "TLS alert 116: certificate required" in without.stderr, without.stderr
    assert (result.messages.received, replies_of(result).faults) == (3, ())


def test_a_certificate_that_cannot_be_used_is_reported_at_the_start(authority: Authority, tmp_path: Path) -> None:
    own, another = own_certificate(authority, "client"), own_certificate(authority, "another")
    locked = tmp_path / "locked"
    command = ("openssl", "pkey", "-in", own.key, "-aes256", "-passout", "pass:secret", "-out", locked)
    subprocess.run(command, check=True)
    rsa = tmp_path / "rsa"
    subprocess.run(("openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-out", rsa), check=True)
    der = tmp_path / "der"
    subprocess.run(("openssl", "x509", "-in", own.certificate, "-outform", "DER", "-out", der), check=True)
    cases = [
        ((tmp_path / "nowhere", own.key), f"--cert: '{tmp_path}/nowhere' holds no certificate in PEM"),
        ((der, own.key), f"--cert: '{der}' holds no certificate in PEM"),
        ((own.certificate, tmp_path / "nowhere"), f"--key: '{tmp_path}/nowhere' holds no private key in PEM"),
        ((own.certificate, own.certificate), f"--key: '{own.certificate}' holds no private key in PEM"),
        ((own.certificate, another.key), f"--key: the key in '{another.key}' is not that of the certificate in"),
        ((own.certificate, rsa), f"--key: the key in '{rsa}' is not that of the certificate in"),
        ((own.certificate, locked), f"--key: the key in '{locked}' is encrypted"),
        ((own.certificate, None), f"--cert: '{own.certificate}' holds no private key in PEM"),
    ]
    for (certificate, key), words in cases:
        options = ("--cert", str(certificate), *(("--key", str(key)) if key else ()))
        done = load("https://127.0.0.1:1/", *options)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"netdyno-load: {words}"), line


# --- what is wrong, in words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("authority", "the server's certificate is signed by no authority that is trusted here"),
        ("expired", "the server's certificate has expired"),
        ("name", "the server's certificate is not for localhost"),
        ("address", "the server's certificate is not for 127.0.0.1"),
    ],
)
def test_a_wrong_certificate_is_one_sentence(
    authority: Authority, trusted: tuple[str, ...], wrong: str, words: str
) -> None:
    wrong_names = {"name": "subjectAltName=DNS:example.org", "address": "subjectAltName=DNS:example.org,IP:127.0.0.2"}
    context = authority.sign(wrong, wrong_names.get(wrong, NAMES), days=0 if wrong == "expired" else 2)
    with https(always(OK), context, "localhost" if wrong == "name" else "127.0.0.1") as url:
        done = load(url, *(() if wrong == "authority" else trusted), "-c", "3", *QUICK)
        assert done.returncode == 1, done
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"netdyno-load: requested 3 connections to {url}, got none: {words} (")
        assert "--insecure" in line
        result = result_of(url, "--insecure", *QUICK)
    expect_all_right(result)
    assert not tls_of(result).verified


ALERT = b"\x15\x03\x03\x00\x02\x02\x28"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (OK, "what the server answers is no TLS"),
        (b"+PONG\r\n" * 3, "what the server answers is no TLS"),
        (ALERT, "the server refuses the connection, TLS alert 40: handshake failure"),
        (b"", "the connection ended in the TLS handshake"),
        (ALERT[:3], "the connection ended in the TLS handshake"),
    ],
    ids=["http", "redis", "alert", "nothing", "cut"],
)
def test_a_handshake_that_fails_is_one_sentence(answer: bytes, words: str) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        connection.recv(1 << 16)
        connection.sendall(answer)
        end(connection)

    with listening(serve) as (host, port):
        done = load(f"https://{host}:{port}/", *QUICK)
    assert done.returncode == 1, done
    (line,) = done.stderr.splitlines()
    assert f"got none: {words}" in line


@pytest.mark.parametrize("says_so", [True, False], ids=["said", "cut off"])
def test_a_body_that_ends_with_its_connection_is_whole_where_the_server_says_so(
    context: ssl.SSLContext, trusted: tuple[str, ...], says_so: bool
) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        for _ in requests(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhow much of it?")
            if says_so:
                end(connection.unwrap())
            return

    with https(serve, context) as url:
        if says_so:
            expect_all_right(result_of(url, *trusted, *QUICK))
        else:
            assert "the connection ended in the middle of a reply" in load(url, *trusted, *QUICK).stderr


def test_a_server_that_never_shakes_hands_ends_the_run_in_time() -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        while connection.recv(1 << 16):
            pass

    began = time.monotonic()
    with listening(serve) as (host, port):
        done = load(f"https://{host}:{port}/", "-c", "3", "--connect-timeout", "200ms", *QUICK)
    assert time.monotonic() - began < 10
    assert done.returncode == 1
    assert "got none: refused 0, timed out 3" in done.stderr


def test_a_reconnect_that_fails_says_why(authority: Authority, trusted: tuple[str, ...]) -> None:
    good, bad = authority.sign("good"), authority.sign("bad", days=0)

    def serve(connection: socket.socket, number: int) -> None:
        with (good if number == 0 else bad).wrap_socket(connection, server_side=True) as over_tls:
            for _ in requests(over_tls):
                over_tls.sendall(LAST)
                end(over_tls)
                return

    with listening(serve) as (host, port):
        options = ("--warmup", "0", "--duration", "1500ms", "--timeout", "500ms")
        result = result_of(f"https://{host}:{port}/", *trusted, *options, ends={3})
    assert result.messages.received == 1
    assert replies_of(result).faults[0].what.startswith("the server's certificate has expired")


def test_a_slow_handshake_is_not_reported_by_the_end_of_another_connection(
    context: ssl.SSLContext, trusted: tuple[str, ...]
) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        if number > 0:  # no handshake
            while connection.recv(1 << 16):
                pass
        with context.wrap_socket(connection, server_side=True) as over_tls:
            for _ in requests(over_tls):
                over_tls.sendall(OK)
                with raw(over_tls) as below:
                    below.sendall(b"garbage " * 100)

    with listening(serve) as (host, port):
        options = ("--warmup", "0", "--duration", "2s", "--timeout", "500ms", "--connect-timeout", "700ms")
        result = result_of(f"https://{host}:{port}/", *trusted, *options, ends={3})
    counts = {fault.what: fault.count for fault in replies_of(result).faults}
    last = 1  # the one that is under way when the run ends
    assert counts.pop("a connect took too long") >= result.connections.timed_out - last >= 1
    assert counts.pop("no connection in time", 1) == 1  # what was due on it
    (garbage,) = counts
    assert garbage.startswith("what the server sends is no TLS: ")
    assert counts[garbage] == 1


def raw(over_tls: ssl.SSLSocket) -> socket.socket:
    """The connection below, to be used instead."""
    return socket.socket(fileno=os.dup(over_tls.fileno()))


def test_what_is_no_tls_after_the_handshake_is_reported(context: ssl.SSLContext, trusted: tuple[str, ...]) -> None:
    def serve(connection: socket.socket, _number: int) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        for count, _ in enumerate(requests(connection), 1):
            connection.sendall(OK)
            if count == 3:
                with raw(connection) as below:
                    below.sendall(b"garbage " * 100)

    with https(serve, context) as url:
        result = result_of(url, *trusted, *MANY, ends={3})
    assert result.messages.received >= 3
    assert replies_of(result).faults[0].what.startswith("what the server sends is no TLS: ")
    assert result.errors["protocol"] == replies_of(result).faults[0].count


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_server_does_it_ends_in_time_and_says_so(
    context: ssl.SSLContext, trusted: tuple[str, ...], seed: int
) -> None:
    """Handshakes and records with bytes that are changed, missing or another's, resets, ends, and endless ones."""

    def damaged(random: Random, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(random.choice((0, 0, 0, 1, 2))):
            position = random.randrange(len(changed) + 1)
            if random.random() < 0.5:
                changed[position : position + 1] = random.randbytes(1)
            elif random.random() < 0.5:
                del changed[position : position + random.randrange(20)]
            else:
                changed[position:position] = random.choice(
                    (random.randbytes(40), ALERT, b"\x16\x03\x03\x40\x00", b"\x17\x03\x03\xff\xff")
                )
        return bytes(changed)

    def serve(connection: socket.socket, number: int) -> None:
        random = Random(1000 * seed + number)
        if number % 8 == 0:
            while True:  # records without end
                connection.sendall(b"\x17\x03\x03\x20\x00" + random.randbytes(0x2000))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        over_tls = context.wrap_bio(incoming, outgoing, server_side=True)
        shaken = False
        while data := connection.recv(1 << 16):
            incoming.write(data)
            try:
                if not shaken:
                    over_tls.do_handshake()
                    shaken = True
                while over_tls.read(1 << 16):
                    over_tls.write(OK * random.choice((1, 1, 1, 1, 2)))
            except ssl.SSLWantReadError:
                pass
            answer = outgoing.read()
            connection.sendall(damaged(random, answer) if shaken or number % 2 else answer)
            if random.random() < 0.05:
                if random.random() < 0.5:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return

    with listening(serve) as (host, port):
        began = time.monotonic()
        options = ("-c", "5", "--warmup", "0", "--duration", "300ms", "--timeout", "200ms", "--connect-timeout", "1s")
        done = load(f"https://{host}:{port}/", *trusted, *options, "--json", "-")
    assert time.monotonic() - began < 10
    assert done.returncode in {1, 3}, done
    assert all(line.startswith("netdyno-load: ") for line in done.stderr.splitlines()), done.stderr
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert 1 <= len(replies_of(result).faults) <= 8
    ended = result.messages.received + replies_of(result).unexpected + result.messages.lost
    assert 0 <= ended - result.messages.sent <= 5, "and what was due when the last connection had ended"
    assert result.generator.max_rss_bytes < 64 << 20


def test_the_summary_has_the_handshakes(context: ssl.SSLContext, trusted: tuple[str, ...]) -> None:
    with https(always(OK), context) as url:
        text = load(url, *trusted, "-c", "3", *QUICK).stdout
    assert re.search(r"^handshake( +[\d.]+ [mun]?s){6}$", text, re.MULTILINE), text
    assert re.search(r"^handshakes +3 of TLSv1\.3 \(TLS_AES_\w+\), 0 of which resumed a session$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("http://127.0.0.1/", "--insecure"), "is for https://"),
        (("tcp://127.0.0.1:1", "--cacert", "x"), "is for https://"),
        (("https://127.0.0.1/", "--cacert", "x", "--insecure"), "leave one of them out"),
        (("http://127.0.0.1/", "--cert", "x"), "is for https://"),
        (("https://127.0.0.1/", "--key", "x"), "--key goes with --cert"),
        (("https://127.0.0.1/", "--tls-reuse", "maybe"), "none of off|on"),
        (("tls://127.0.0.1",), "is no URL"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_exit_2(arguments: tuple[str, ...], words: str) -> None:
    expect_error(arguments, words)


def test_authorities_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    done = load("https://127.0.0.1:1/", "--cacert", str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "holds no certificate that can be read" in done.stderr

"""A cluster admits holders of a valid certificate of its own authority, and no other peer."""

from __future__ import annotations

import random
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.url import TcpUrl, parse_tls_url
from netdyno.measure.cluster import authority
from netdyno.verbs.cli import main
from tests.support.patience import PATIENCE_S

NETDYNO = (sys.executable, "-P", "-m", "netdyno")


def free_port() -> int:
    """Return a port outside the ephemeral range (ip_local_port_range, ip(7)), so that it is free a second later."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(first // 2, first), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    pytest.fail("a hundred ports are taken")


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command in the background and yield its first line; SIGTERM must end it with success."""
    with subprocess.Popen([*NETDYNO, "cluster", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cluster") / "ours"
    authority.create(made, f"tls://127.0.0.1:{free_port()}")
    return made


@pytest.fixture(scope="module")
def scheduler(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with started("scheduler", "--cluster", str(folder)) as (process, line):
        assert line.startswith("scheduler at ")
        yield process


@pytest.fixture(scope="module")
def host(folder: Path, scheduler: subprocess.Popen[str]) -> Iterator[tuple[subprocess.Popen[str], TcpUrl]]:
    assert scheduler.poll() is None
    address = authority.read_scheduler(folder)
    port = free_port()
    with started("join", address, "--as", "server", "--port", str(port), "--cluster", str(folder)) as (process, line):
        assert line == f"joined {address} as server, at tls://127.0.0.1:{port}\n"
        yield process, TcpUrl("127.0.0.1", port)


@pytest.fixture(params=["scheduler", "host"])
def door(request: pytest.FixtureRequest, folder: Path, host: tuple[object, TcpUrl]) -> TcpUrl:
    """The address of a daemon that listens for others."""
    return host[1] if request.param == "host" else parse_tls_url(authority.read_scheduler(folder))


def context(folder: Path, role: authority.Role | None, certificate: Path | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(folder / "ca.pem"))
    made.check_hostname = False
    if role is not None:
        files = authority.find_files(folder, role)
        made.load_cert_chain(files.certificate, files.key)
    elif certificate is not None:
        made.load_cert_chain(certificate, certificate.with_name("server-key.pem"))
    return made


def greeting(door: TcpUrl, context: ssl.SSLContext) -> bytes:
    """Return the greeting of an admitted peer; a refusal comes with the first reading (TLS 1.3)."""
    with (
        socket.create_connection((door.host, door.port), PATIENCE_S) as connection,
        context.wrap_socket(connection) as secure,
    ):
        return secure.recv(1)


def expired(folder: Path, into: Path) -> Path:
    """Return a certificate of the same authority whose days are over."""
    return signed(folder, into, "-startdate 20200101000000Z -enddate 20200201000000Z", "CN=netdyno server")


def signed(folder: Path, into: Path, days: str, subject: str) -> Path:
    """The files of a server, by the same authority."""
    for name in ("ca.pem", "ca-key.pem"):
        (into / name).write_bytes((folder / name).read_bytes())
    (into / "index.txt").touch()
    (into / "ca.cnf").write_text(
        "[ca]\ndefault_ca = ours\n[ours]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes\n"
        "default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n"
    )
    new = [
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-noenc",
        "-subj",
        f"/{subject}",
        "-out",
        "asked.pem",
    ]
    sign = f"ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca-key.pem -in asked.pem -out server.pem {days}"
    for words in ([*new, "-keyout", "server-key.pem"], sign.split()):
        done = subprocess.run(["openssl", *words], cwd=into, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return into


def test_a_host_that_has_a_role_that_may_ask_for_something_is_let_in(door: TcpUrl, folder: Path) -> None:
    """A scheduler admits every role but that of a scheduler."""
    is_scheduler = door == parse_tls_url(authority.read_scheduler(folder))
    for role in authority.ROLES:
        is_let_in = greeting(door, context(folder, role)) != b""
        assert is_let_in == (not is_scheduler or role != "scheduler")


def test_a_certificate_of_the_cluster_without_a_role_is_refused(door: TcpUrl, folder: Path, tmp_path: Path) -> None:
    without = signed(folder, tmp_path, "-days 2", "CN=netdyno")
    assert greeting(door, context(without, None, without / "server.pem")) == b""


def test_a_certificate_without_the_role_is_named_before_anything_is_connected_to(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Certificates of netdyno's have always had one; others do not."""
    signed(folder, tmp_path, "-days 2", "CN=netdyno")
    (tmp_path / authority.TOPOLOGY).write_text('scheduler = "tls://127.0.0.1:1"\n')
    for name in ("client.pem", "client-key.pem"):
        (tmp_path / name).write_bytes((folder / name.replace("client", "server")).read_bytes())
    for role, there in (("server", "no role"), ("client", "server")):
        words = ["cluster", "join", "tls://127.0.0.1:1", "--as", role, "--cluster", str(tmp_path)]
        assert main(words) == 2
        complaint = rf"is a certificate for {there}, not for {role}; \./netdyno cluster init makes such a folder"
        assert re.search(complaint, capsys.readouterr().err)


def test_a_certificate_that_has_expired_is_named_before_anything_is_connected_to(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"server\.pem cannot be used: .*certificate has expired.*cluster init"):
        authority.find_files(expired(folder, tmp_path), "server")


def test_no_certificate_is_refused(door: TcpUrl, folder: Path) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required|handshake failure"):
        greeting(door, context(folder, None))


def test_a_certificate_of_another_authority_is_refused(door: TcpUrl, folder: Path, tmp_path: Path) -> None:
    authority.create(tmp_path / "theirs", "tls://127.0.0.1:8786")
    theirs = context(tmp_path / "theirs", "server")
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.verify.failed"):
        greeting(door, theirs)  # we do not take the other side's either
    theirs.load_verify_locations(folder / "ca.pem")
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca|decrypt.error"):
        greeting(door, theirs)


def test_an_expired_certificate_is_refused(door: TcpUrl, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.expired"):
        greeting(door, context(folder, None, expired(folder, tmp_path) / "server.pem"))


def test_plain_text_is_refused(door: TcpUrl) -> None:
    with socket.create_connection((door.host, door.port), PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 10)
        heard = b""
        try:
            while received := connection.recv(4096):
                heard += received
        except ConnectionResetError:
            pass
    assert b"HTTP" not in heard
    assert len(heard) <= 7  # nothing, or an alert of TLS


def test_nothing_listens_but_what_was_requested(
    folder: Path, scheduler: subprocess.Popen[str], host: tuple[subprocess.Popen[str], TcpUrl]
) -> None:
    listed = subprocess.run(["ss", "-Hlntup"], check=True, capture_output=True, text=True).stdout
    worker, url = host
    for process, port in ((scheduler, parse_tls_url(authority.read_scheduler(folder)).port), (worker, url.port)):
        own = [line for line in listed.splitlines() if f"pid={process.pid}," in line]
        assert [re.split(r"\s+", line)[4] for line in own] == [f"127.0.0.1:{port}"]


def test_the_status_shows_the_host(
    folder: Path, host: tuple[object, TcpUrl], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "status", "--cluster", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert re.match(rf"server \S+ at tls://127\.0\.0\.1:{host[1].port}\n", printed)
    before, clock, findings = printed.partition(" s off ours\n")
    assert clock, printed
    assert re.search(r" from here and back; its clock is [+-]\d+\.\d{6}$", before)
    assert re.fullmatch(r"( {2}(bad|could be better): .+: .+\n)*", findings)


def test_a_host_that_is_not_let_in_reads_why(
    folder: Path, scheduler: subprocess.Popen[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scheduler.poll() is None
    theirs = tmp_path / "theirs"
    authority.create(theirs, authority.read_scheduler(folder))
    assert main(["cluster", "status", "--cluster", str(theirs)]) == 2
    assert re.fullmatch(r"netdyno: no scheduler of this cluster answers at \S+ .*\n", capsys.readouterr().err)


def test_what_was_made_is_for_its_owner_only(folder: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}

"""Who is let into a cluster: holders of a valid certificate of its own authority, and nobody else."""

from __future__ import annotations

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
from random import Random

import pytest

from netdyno.base.url import TcpUrl, parse_tls_url
from netdyno.cluster import authority
from tests.support.patience import PATIENCE_S

NETDYNO = (sys.executable, "-P", "-m", "netdyno")


def free_port() -> int:
    """Not one of those that the kernel gives to whoever asks for any (ip_local_port_range, ip(7)): such a one could be
    somebody else's before it is listened at."""
    for port in Random().sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("a hundred ports are taken")


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that stays, and its first line; it ends well when it is asked to."""
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
    authority.init(made, f"tls://127.0.0.1:{free_port()}")
    return made


@pytest.fixture(scope="module")
def scheduler(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with started("scheduler", "--cluster", str(folder)) as (process, line):
        assert line.startswith("scheduler at ")
        yield process


@pytest.fixture(scope="module")
def host(folder: Path, scheduler: subprocess.Popen[str]) -> Iterator[tuple[subprocess.Popen[str], TcpUrl]]:
    assert scheduler.poll() is None
    at = authority.scheduler_of(folder)
    port = free_port()
    with started("join", at, "--as", "server", "--port", str(port), "--cluster", str(folder)) as (process, line):
        assert line == f"joined {at} as server, at tls://127.0.0.1:{port}\n"
        yield process, TcpUrl("127.0.0.1", port)


@pytest.fixture(params=["scheduler", "host"])
def door(request: pytest.FixtureRequest, folder: Path, host: tuple[object, TcpUrl]) -> TcpUrl:
    """Each listens where others may knock."""
    return host[1] if request.param == "host" else parse_tls_url(authority.scheduler_of(folder))


def context(folder: Path, role: authority.Role | None) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(folder / "ca.pem"))
    made.check_hostname = False
    if role is not None:
        files = authority.files(folder, role)
        made.load_cert_chain(files.certificate, files.key)
    return made


def greeting(door: TcpUrl, context: ssl.SSLContext) -> bytes:
    """What is said to whoever was let in; the refusal comes with the first reading (TLS 1.3)."""
    with (
        socket.create_connection((door.host, door.port), PATIENCE_S) as connection,
        context.wrap_socket(connection) as secure,
    ):
        return secure.recv(1)


def expired(folder: Path, into: Path) -> Path:
    """A certificate that the same authority has made for days that are over."""
    for name in ("ca.pem", "ca-key.pem"):
        (into / name).write_bytes((folder / name).read_bytes())
    (into / "index.txt").touch()
    (into / "ca.cnf").write_text(
        "[ca]\ndefault_ca = ours\n[ours]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes\n"
        "default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n"
    )
    new = "req -new -newkey rsa:2048 -noenc -subj /CN=late -keyout server-key.pem -out asked.pem"
    sign = "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca-key.pem -in asked.pem -out server.pem"
    for words in (new, f"{sign} -startdate 20200101000000Z -enddate 20200201000000Z"):
        done = subprocess.run(["openssl", *words.split()], cwd=into, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return into


def test_a_certificate_of_the_cluster_is_let_in(door: TcpUrl, folder: Path) -> None:
    for role in authority.ROLES:
        assert greeting(door, context(folder, role)) != b""


def test_no_certificate_is_refused(door: TcpUrl, folder: Path) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.required|handshake failure"):
        greeting(door, context(folder, None))


def test_a_certificate_of_another_authority_is_refused(door: TcpUrl, folder: Path, tmp_path: Path) -> None:
    authority.init(tmp_path / "theirs", "tls://127.0.0.1:8786")
    theirs = context(tmp_path / "theirs", "server")
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.verify.failed"):
        greeting(door, theirs)  # we do not take the other side's either
    theirs.load_verify_locations(folder / "ca.pem")
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca|decrypt.error"):
        greeting(door, theirs)


def test_an_expired_certificate_is_refused(door: TcpUrl, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate.expired"):
        greeting(door, context(expired(folder, tmp_path), "server"))


def test_plain_text_is_refused(door: TcpUrl) -> None:
    with socket.create_connection((door.host, door.port), PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" * 10)
        heard = b""
        try:
            while some := connection.recv(4096):
                heard += some
        except ConnectionResetError:
            pass
    assert b"HTTP" not in heard
    assert len(heard) <= 7  # nothing, or an alert of TLS


def test_nothing_listens_but_what_was_asked_for(
    folder: Path, scheduler: subprocess.Popen[str], host: tuple[subprocess.Popen[str], TcpUrl]
) -> None:
    said = subprocess.run(["ss", "-Hlntup"], check=True, capture_output=True, text=True).stdout
    worker, at = host
    for process, port in ((scheduler, parse_tls_url(authority.scheduler_of(folder)).port), (worker, at.port)):
        own = [line for line in said.splitlines() if f"pid={process.pid}," in line]
        assert [re.split(r"\s+", line)[4] for line in own] == [f"127.0.0.1:{port}"]


def test_the_status_shows_the_host(folder: Path, host: tuple[object, TcpUrl]) -> None:
    done = subprocess.run(
        [*NETDYNO, "cluster", "status", "--cluster", str(folder)], check=True, capture_output=True, text=True
    )
    assert re.match(rf"server \S+ at tls://127\.0\.0\.1:{host[1].port}\n", done.stdout)
    assert "its clock shows " in done.stdout
    assert re.fullmatch(r"( {2}(bad|could be better): .+: .+\n)*", done.stdout.partition("of ours\n")[2])


def test_who_is_not_let_in_reads_why(folder: Path, scheduler: subprocess.Popen[str], tmp_path: Path) -> None:
    assert scheduler.poll() is None
    theirs = tmp_path / "theirs"
    authority.init(theirs, authority.scheduler_of(folder))
    words = ["cluster", "status", "--cluster", str(theirs)]
    done = subprocess.run([*NETDYNO, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r"netdyno: no scheduler answers at \S+ as one of this cluster's .*\n", done.stderr)


def test_what_was_made_is_for_its_owner_only(folder: Path) -> None:
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}

"""Starts a server that knows nothing of netdyno, and stands in for what it lacks of a contestant's contract
(protocol/WIRE.md): it finds a port, reports when the server accepts, and ends it on SIGTERM. A program of its own,
which imports the standard library only.

    stand_in.py [--settings JSON] COMMAND… --listen tcp://ADDRESS:0 [the options of a contestant]
    stand_in.py [--settings JSON] --at tcp://ADDRESS:PORT --listen … [the options of a contestant]

`{port}` and `{address}` in a word of the command stand for the place where it is to listen, `{threads}` and `{tls}` for
the options of these names. The options are not passed on. With `--at` the server runs already: it is looked for, and
neither started nor ended. The settings are those of ServerSettings."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import NamedTuple

POLL_SOONEST_S, POLL_SHARE, POLL_LATEST_S = 0.002, 0.05, 0.01
"""Nothing notifies a process that another's socket has begun to listen, so it is polled: after this share of the time
that the start has taken, within these bounds."""
NOT_READY_SHARE = 0.5
"""The share of the time that the server has after which it prints where it looked for it: before the harness gives it
up."""
ANSWER_S = 5.0
"""The time that an answer of the path by which it is ready may take."""
SETTINGS = "--settings"
PATIENCE_S = 4.0
"""The time that the server may take to end: a second less than the harness waits."""
AT = "--at"
BEGINNING = struct.Struct("dd")
"""The moment at which the server's program begins (time.monotonic) and the CPU seconds of its process."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class ServerSettings(NamedTuple):
    """How the server is started, where it listens, and when it is ready (Own in model/contestant.py)."""

    env: Mapping[str, str] = MappingProxyType({})
    directory: str = ""
    unix_socket: str = ""
    tls: bool = False
    ready_path: str = ""
    ready_timeout_s: float = 60.0


DEFAULTS = ServerSettings._field_defaults


class StandInRequest(NamedTuple):
    """The command of the server, and the address that it is to listen at."""

    command: tuple[str, ...]
    address: str
    settings: ServerSettings = ServerSettings()
    threads: str = ""
    tls: str = ""


def parse(words: Sequence[str]) -> StandInRequest:
    """Parse the command line: the harness's options begin with the last --listen."""
    settings = ServerSettings(**json.loads(words[1])) if words[0] == SETTINGS else ServerSettings()
    words = words[2:] if words[0] == SETTINGS else words
    listen_index = len(words) - 1 - list(reversed(words)).index("--listen")
    options = dict(zip(words[listen_index::2], words[listen_index + 1 :: 2], strict=False))
    address = place(options["--listen"])[0]
    threads, tls = options.get("--threads", ""), options.get("--tls", "")
    return StandInRequest(tuple(words[:listen_index]), address, settings, threads, tls)


def place(url: str) -> tuple[str, int]:
    """Return address and port of tcp://ADDRESS:PORT; the port is 0 where none is given. Pure."""
    host, _, port = url.partition("://")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def list_addresses(address: str) -> tuple[str, ...]:
    """The addresses at which a server may listen that was given this one, or only a port because its command has no
    place for an address: localhost is ::1, too. Pure."""
    return (address, "::1") if address == "127.0.0.1" else (address,)


def find_free_port(address: str) -> int:
    """Find a port that no socket listens at, at any address that the server may use. Another program may take it before
    the server does; then the server prints so and ends."""
    while True:
        with socket.create_server((address, 0), family=_choose_family(address)) as listener:
            port: int = listener.getsockname()[1]
            if all(_is_free(candidate, port) for candidate in list_addresses(address)[1:]):
                return port


def _choose_family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _is_free(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port), family=_choose_family(address)).close()
    except OSError as error:
        return error.errno != errno.EADDRINUSE  # else there is no such address here
    return True


def format_url(address: str, port: int) -> str:
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"


def fill_in(command: Sequence[str], address: str, port: int, threads: str = "", tls: str = "") -> list[str]:
    """Fill in the places in the words of the command. Pure."""
    places = {"{port}": str(port), "{address}": address, **({"{threads}": threads} if threads else {}), "{tls}": tls}
    words = list(command)
    for name, value in places.items():
        words = [word.replace(name, value) for word in words]
    return words


def try_connect(address: str, port: int, unix_socket: str = "") -> bool:
    try:
        _connect(address, port, unix_socket).close()
    except OSError:
        return False
    return True


def _connect(address: str, port: int, unix_socket: str) -> socket.socket:
    if not unix_socket:
        return socket.create_connection((address, port), timeout=1.0)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(1.0)
    try:
        connection.connect(unix_socket.replace("{port}", str(port)))
    except OSError:
        connection.close()
        raise
    return connection


def is_ready(address: str, port: int, settings: ServerSettings) -> bool:
    """Whether the server accepts connections, and answers 2xx where it has a path for that."""
    if not settings.ready_path:
        return try_connect(address, port, settings.unix_socket)
    with suppress(OSError), _connect(address, port, settings.unix_socket) as connection:
        connection.settimeout(ANSWER_S)
        return _requests_path(_encrypt(connection) if settings.tls else connection, settings.ready_path)
    return False


def _encrypt(connection: socket.socket) -> socket.socket:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection)


def _requests_path(connection: socket.socket, path: str) -> bool:
    """Request a path; return whether it answers 2xx."""
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    reply = b""
    while b"\n" not in reply and (piece := connection.recv(4096)):
        reply += piece
    return reply.startswith(b"HTTP/1.") and reply[8:10] == b" 2"


def start(command: Sequence[str], settings: ServerSettings, beginning: mmap.mmap) -> subprocess.Popen[bytes]:
    """Start the server, which dies with this process; its output goes to our stderr. `beginning` gets the moment at
    which its program begins, and the CPU seconds that its process has used by then. Raises OSError."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        beginning[:] = BEGINNING.pack(time.monotonic(), time.process_time())

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        preexec_fn=die_with_parent,
        cwd=settings.directory or None,
        env={**os.environ, **settings.env},
    )


def end_all() -> int:
    """Kill all processes that the server has started and left: as orphans they are children of this process
    (PR_SET_CHILD_SUBREAPER, prctl(2)). Returns their number."""
    ended = 0
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while pids := children.read_text().split():
        for pid in map(int, pids):
            os.kill(pid, signal.SIGKILL)
            ended += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    return ended


def _end_with_parent(_number: int, _frame: FrameType | None) -> None:
    end_all()
    os._exit(1)


def end_of(server: subprocess.Popen[bytes]) -> int:
    """The exit code as a shell gives it."""
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def wait(pid: int, wakeup_fd: int, at_most_s: float | None = None) -> None:
    """Wait until the server ends or a signal comes, without a single wake-up in between: a window may be open."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (pidfd, wakeup_fd):
        poll.register(descriptor, select.POLLIN)
    poll.poll(None if at_most_s is None else 1000 * at_most_s)
    os.close(pidfd)


def list_ending_signals() -> set[signal.Signals]:
    """Return the signals that end it, SIGHUP only where it is not ignored (nohup(1))."""
    hangup = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else set()
    return {signal.SIGTERM, signal.SIGINT} | hangup


def report_running(url: str, settings: ServerSettings) -> int:
    """Report where the server is, and end on a signal; the server goes on. The ready line has this process in its
    place (socket_holders.find_serving)."""
    end_signals = list_ending_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, end_signals)
    if not try_connect(*place(url), settings.unix_socket):
        sys.exit(f"no server accepts connections at {settings.unix_socket or url}")
    print(json.dumps({"ready": True, "endpoint": url, "pid": os.getpid()}), flush=True)
    signal.sigwait(end_signals)
    print("{}", flush=True)
    return 0


def describe_failure(may_listen: Sequence[str], port: int, settings: ServerSettings) -> str:
    """Say where the server was looked for. Pure."""
    urls = " or ".join(format_url(place, port) for place in may_listen)
    where = settings.unix_socket.replace("{port}", str(port)) or urls
    return (
        f"{settings.ready_path} does not answer 2xx at {where}"
        if settings.ready_path
        else f"it accepts no connection at {where}"
    )


def main() -> int:
    request = parse(sys.argv[1:])
    if request.command[0] == AT:
        return report_running(request.command[1], request.settings)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGUSR1, _end_with_parent)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)  # instead of SIGKILL, which would leave what the server started
    try:
        return serve(request)
    finally:
        end_all()


def serve(request: StandInRequest) -> int:
    """Serve until a signal or the server's end. Returns the exit code: 0 after the signal, else the server's."""
    port = find_free_port(request.address)
    signals: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        signals.append(number)

    wakeup_fd, wakeup_writer = os.pipe()
    os.set_blocking(wakeup_writer, False)
    signal.set_wakeup_fd(wakeup_writer)
    for number in list_ending_signals():
        signal.signal(number, end)
    try:
        beginning = mmap.mmap(-1, BEGINNING.size)  # shared with the child
        words = fill_in(request.command, request.address, port, request.threads, request.tls)
        server = start(words, request.settings, beginning)
    except OSError as error:
        sys.exit(f"{request.command[0]} cannot be started: {error.strerror}")
    may_listen = list_addresses(request.address)
    started_s, begun_cpu_s = BEGINNING.unpack(beginning[:])
    complain_at = started_s + NOT_READY_SHARE * request.settings.ready_timeout_s
    while not (listening_at := next((place for place in may_listen if is_ready(place, port, request.settings)), None)):
        if server.poll() is not None:
            code = end_of(server)
            if code == 0:
                print(
                    "it has ended; a server has to stay in the foreground (most have an option for it)", file=sys.stderr
                )
            return code or 1
        if signals:
            return 1
        if time.monotonic() > complain_at:
            complain_at = float("inf")
            print(describe_failure(may_listen, port, request.settings), file=sys.stderr)
        taken_s = time.monotonic() - started_s
        wait(server.pid, wakeup_fd, min(max(POLL_SOONEST_S, POLL_SHARE * taken_s), POLL_LATEST_S))
    ready = {
        "ready": True,
        "endpoint": format_url(listening_at, port),
        "pid": server.pid,
        "ready_s": time.monotonic() - started_s,
        "begun_cpu_s": begun_cpu_s,
    }
    print(json.dumps(ready), flush=True)
    wait(server.pid, wakeup_fd)
    if not signals:
        server.wait()
        return end_of(server) or 1
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        print(f"it did not end within {PATIENCE_S:g} s of SIGTERM", file=sys.stderr)
        server.kill()
        server.wait()
    print(json.dumps({"left_behind": end_all()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

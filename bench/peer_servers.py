"""The servers that bench/peers.py puts under load, each in its own folder, on a core of its own, and ended by its
id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from peer_programs import MEMCACHED_KEY, MEMCACHED_VALUE, REDIS_KEY, REDIS_VALUE
from serving import SERVER_CORE, RunningServer, pin_to_core, start_server

PATIENCE_S = 10


@dataclass(frozen=True)
class PeerServer:
    name: str
    needs: str  # the program that must be there; empty: the project's own
    how: str  # to get it
    start: Callable[[Path, Path], Iterator[RunningServer]]  # of a folder of its own and the project's build
    speaks: str = "http"


@contextmanager
def group(command: Sequence[str], port: int) -> Iterator[int]:
    """Run a program, from when it listens. At the end all of its process group end with it, also a stopped one."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        [*pin_to_core(SERVER_CORE), *command], stdin=silent, stdout=silent, stderr=silent, start_new_session=True
    ) as server:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_listening(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} does not listen")
                time.sleep(0.02)
            yield server.pid
        finally:
            for number in (signal.SIGCONT, signal.SIGTERM):
                send(server.pid, number)
            with suppress(subprocess.TimeoutExpired):
                server.wait(PATIENCE_S)
            send(server.pid, signal.SIGKILL)


def send(leader: int, number: signal.Signals) -> None:
    """Send a signal to all of a group, if it still exists."""
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_our_http(_: Path, build: Path) -> Iterator[RunningServer]:
    program = str(build / "servers/epoll-reactor")
    with start_server([*pin_to_core(SERVER_CORE), program, "--workload", "http"]) as served:
        yield RunningServer(f"http://{served.url.removeprefix('tcp://')}/{'x' * 63}", served.pid)


_NGINX = """daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; {what} }}
}}
"""


def _serve_nginx(folder: Path, location: str, path: str) -> Iterator[RunningServer]:
    """Serve with nginx's defaults (one worker, 1,000 requests a connection), without the access log, which fills
    disks."""
    port = find_free_port()
    settings = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # else its worker may not read the folder
    settings.write_text(_NGINX.format(folder=folder, port=port, what=location, user=user))
    with group(["nginx", "-p", str(folder), "-c", str(settings), "-e", str(folder / "error.log")], port) as pid:
        yield RunningServer(f"http://127.0.0.1:{port}{path}", pid)


def serve_nginx_reply(folder: Path, _: Path) -> Iterator[RunningServer]:
    yield from _serve_nginx(folder, 'location / { return 200 "Hello\\n"; }', "/")


def serve_nginx_file(folder: Path, _: Path) -> Iterator[RunningServer]:
    (folder / "file.bin").write_bytes(b"x" * (16 << 10))
    yield from _serve_nginx(folder, f"root {folder};", "/file.bin")


def serve_python_http(folder: Path, _: Path) -> Iterator[RunningServer]:
    port = find_free_port()
    (folder / "file.txt").write_text("Hello\n")
    options = ["--bind", "127.0.0.1", "--directory", str(folder)]
    with group([sys.executable, "-m", "http.server", str(port), *options], port) as pid:
        yield RunningServer(f"http://127.0.0.1:{port}/file.txt", pid)


def serve_redis(folder: Path, _: Path) -> Iterator[RunningServer]:
    port = find_free_port()
    with group(
        ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)], port
    ) as pid:
        say(port, f"SET {REDIS_KEY} {REDIS_VALUE}\r\n", "+OK")
        yield RunningServer(f"redis://127.0.0.1:{port}", pid)


def serve_memcached(_: Path, __: Path) -> Iterator[RunningServer]:
    port = find_free_port()
    user = ["-u", "root"] if os.geteuid() == 0 else []
    with group(["memcached", "-l", "127.0.0.1", "-p", str(port), *user], port) as pid:
        say(port, f"set {MEMCACHED_KEY} 0 0 {len(MEMCACHED_VALUE)}\r\n{MEMCACHED_VALUE}\r\n", "STORED")
        yield RunningServer(f"memcached://127.0.0.1:{port}", pid)


def say(port: int, request: str, expected_reply: str) -> None:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall(request.encode())
        if not connection.recv(100).startswith(expected_reply.encode()):
            raise RuntimeError(f"port {port} takes no value")


OUR_HTTP = PeerServer("http server of this project", "", "", serve_our_http)
SERVERS = (
    PeerServer("nginx, its defaults", "nginx", "Debian: apt-get install nginx", serve_nginx_reply),
    PeerServer("nginx, a file of 16 KiB", "nginx", "Debian: apt-get install nginx", serve_nginx_file),
    PeerServer("python3 -m http.server", "python3", "Debian: apt-get install python3", serve_python_http),
    PeerServer("redis, GET", "redis-server", "Debian: apt-get install redis-server", serve_redis, "redis"),
    PeerServer(
        "memcached, get of 1 KiB", "memcached", "Debian: apt-get install memcached", serve_memcached, "memcached"
    ),
)


@contextmanager
def run_server(server: PeerServer, folder: Path, build: Path) -> Iterator[RunningServer]:
    """Run a fresh server in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    yield from server.start(folder, build)

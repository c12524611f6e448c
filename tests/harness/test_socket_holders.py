"""Who serves an endpoint, by the kernel's tables and the descriptors of real processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.measure.machine import socket_holders
from netdyno.measure.machine.server_processes import Origin
from netdyno.model.own_requests import AT_FILE
from tests.support.fixtures import PYTHON

NET = Path("/proc/self/net")
DAEMON = """
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
os.read(0, 1)
"""
"""A daemon that keeps the descriptors that it was given: no descendant of who started it."""


def test_a_daemon_that_has_the_socket_is_found_and_its_keeper_is_not_queried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, subprocess.Popen(["sleep", "1000"]) as first:
        endpoint = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        daemon = start_daemon(listener)
        try:
            assert {os.getpid(), daemon} <= socket_holders.find_server_holders(NET, endpoint)
            assert socket_holders.find_elsewhere(Origin(first.pid), NET, endpoint) == (daemon,)
            assert socket_holders.find_elsewhere(Origin(daemon), NET, endpoint) == ()
        finally:
            os.kill(daemon, signal.SIGKILL)
            first.kill()


def test_a_daemon_that_has_but_an_accepted_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, subprocess.Popen(["sleep", "1000"]) as first:
        endpoint = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            daemon = start_daemon(accepted)
            try:
                assert socket_holders.find_elsewhere(Origin(first.pid), NET, endpoint) == (daemon,)
                assert socket_holders.find_client_holders(NET, endpoint) == {os.getpid()}
            finally:
                os.kill(daemon, signal.SIGKILL)
                first.kill()
                accepted.close()
                client.close()


@contextmanager
def serving(listener: socket.socket, *programs: str) -> Iterator[list[int]]:
    """Daemons of these programs that have the socket, which this process has no more."""
    daemons = [start_daemon(listener, program) for program in programs]
    listener.close()
    try:
        yield daemons
    finally:
        for daemon in daemons:
            os.kill(daemon, signal.SIGKILL)


def find_serving(started: int, endpoint: str) -> int | None:
    return socket_holders.find_serving(os.getpid(), started, NET, endpoint)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A child of this process that has no socket."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


def test_the_process_that_listens_serves(listener: socket.socket, sleeper: int) -> None:
    endpoint = format_endpoint(listener)
    with serving(listener, PYTHON[0]) as (daemon,):
        assert find_serving(daemon, endpoint) == daemon, "the process that was started"
        assert find_serving(sleeper, endpoint) == daemon, "a daemon had it"
        assert find_serving(os.getpid(), endpoint) == daemon, "none was started"
        elsewhere = "tcp://127.0.0.1:1"
        assert find_serving(sleeper, elsewhere) == sleeper, "nothing can be read"
        assert find_serving(os.getpid(), elsewhere) is None, "it may be on another machine"


def test_of_two_that_share_a_socket_none_is_the_server(listener: socket.socket) -> None:
    endpoint = format_endpoint(listener)
    with serving(listener, PYTHON[0], PYTHON[0]):
        assert find_serving(os.getpid(), endpoint) is None


def test_what_only_passes_on_is_not_the_server(listener: socket.socket, tmp_path: Path) -> None:
    (tmp_path / "pasta").symlink_to(PYTHON[0])
    endpoint = format_endpoint(listener)
    with serving(listener, str(tmp_path / "pasta")):
        assert find_serving(os.getpid(), endpoint) is None


def test_the_starter_of_the_load_is_not_taken_for_the_server(listener: socket.socket, sleeper: int) -> None:
    """Otherwise the load would be counted as the server's."""
    assert socket_holders.find_serving(sleeper, sleeper, NET, format_endpoint(listener)) is None


def test_a_server_at_a_file_is_found(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "file"))
        listener.listen()
        with serving(listener, PYTHON[0]) as (daemon,):
            assert find_serving(os.getpid(), f"tcp://127.0.0.1:1{AT_FILE}{tmp_path / 'file'}") == daemon


def test_a_descriptor_that_is_closed_meanwhile_hides_no_holder(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_or_miss(path: str) -> str:
        if path.endswith("/0"):
            raise FileNotFoundError(path)
        return readlink(path)

    readlink = os.readlink
    monkeypatch.setattr(os, "readlink", read_or_miss)
    assert os.getpid() in socket_holders.find_server_holders(NET, format_endpoint(listener))


def format_endpoint(listener: socket.socket) -> str:
    return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def start_daemon(held: socket.socket, program: str = PYTHON[0]) -> int:
    """Start a daemon that has this socket open, and return its process."""
    reading, _ = os.pipe()
    command = [program, *PYTHON[1:], "-c", DAEMON]
    done = subprocess.run(command, stdin=reading, stdout=subprocess.PIPE, pass_fds=[held.fileno()], check=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("endpoint", "place"),
    [
        ("tcp://127.0.0.1:8080", "0100007F:1F90"),
        ("tcp://127.0.0.1:8080", "0000000000000000FFFF00000100007F:1F90"),
        ("tcp://127.0.0.1:8080", "00000000:1F90"),
        ("tcp://[::1]:80", "00000000000000000000000001000000:0050"),
        ("udp://127.0.0.1:8080?x=1", "0100007F:1F90"),
    ],
)
def test_a_place_is_written_as_the_kernel_writes_it(endpoint: str, place: str) -> None:
    assert place in socket_holders.format_places(endpoint)

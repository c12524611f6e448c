"""Who serves an endpoint, by the kernel's tables and the descriptors of real processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from netdyno.measure.machine import socket_holders
from netdyno.measure.machine.server_processes import Origin
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


def start_daemon(held: socket.socket) -> int:
    """Start a daemon that has this socket open, and return its process."""
    reading, _ = os.pipe()
    command = [*PYTHON, "-c", DAEMON]
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

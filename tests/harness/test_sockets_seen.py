"""The contract suites' view of a server's sockets: they wait for it, and a blind helper would wait for nothing."""

from __future__ import annotations

import socket
import sys

from tests.support import proc
from tests.support.patience import eventually
from tests.support.server import launched

RELUCTANT = """
import json, os, signal, socket
listening = socket.create_server(("127.0.0.1", 0))
endpoint = "tcp://127.0.0.1:%d" % listening.getsockname()[1]
print(json.dumps({"ready": True, "endpoint": endpoint, "pid": os.getpid()}), flush=True)
accepted, _ = listening.accept()
signal.pause()
"""
"""A server that accepts a connection and never reads."""


def test_a_connection_and_what_none_has_read_of_it_are_seen() -> None:
    with launched([sys.executable, "-c", RELUCTANT]) as server:
        server.wait_ready()
        assert not server.has_connections()
        with socket.create_connection(server.address) as client:
            eventually(server.has_connections, "the connection is not seen")
            own: tuple[str, int] = client.getsockname()
            client.sendall(b"hello")
            eventually(lambda: proc.queued(server.address, own) == (5, 0), "what is not read is not seen")
            assert proc.queued(own, server.address) == (0, 0)
            seen = {(row.local, row.remote): row for row in proc.tcp_table(server.address[1])}
            assert seen[server.address, own].unread == 5
            assert seen[server.address, own].state == proc.ESTABLISHED
            assert seen[server.address, ("0.0.0.0", 0)].state == proc.LISTEN
        server.process.kill()
        server.process.wait()
        assert proc.queued(server.address, own) == (0, 0)  # a connection that is gone

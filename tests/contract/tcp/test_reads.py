"""How many system calls it takes to receive a request, which a client sends whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.client import Client
from tests.support.server import serving
from tests.support.socket_calls import count_receiving_calls

REQUESTS = 8
LOOKS_AGAIN = "a request costs a second read, which finds nothing"
PAUSE_S = 0.01
"""Before each request: then a server waits for it."""


@pytest.mark.workloads("rpc")
def test_a_request_is_one_read(contestant: Contestant, workload: str, strace_program: str, tmp_path: Path) -> None:
    """Some look for more before they wait, which their caveats say."""
    if "uring" in contestant.manifest.needs:
        pytest.skip("io_uring receives without a call of its own")
    with serving(contestant.command, "--workload", workload) as server, Client(server.address) as client:

        def ask() -> None:
            number = client.next_number()
            client.send(message(workload, client.identity, number))
            client.receive(len(reply(workload, client.identity, number)))

        def converse() -> None:
            for _ in range(REQUESTS):
                time.sleep(PAUSE_S)
                ask()

        ask()
        for pid, rows in proc.tcp_sockets_of_family(server.pid, server.address[1]):
            if descriptors := {fd for fd, row in rows.items() if row.remote == client.address}:
                read, in_vain = count_receiving_calls(strace_program, pid, descriptors, converse, tmp_path)
                break
        else:
            raise AssertionError("no process of the server has the client's socket")
    assert read == REQUESTS
    says = LOOKS_AGAIN in contestant.manifest.caveats
    assert says == (in_vain > REQUESTS / 2), f"{in_vain} reads in vain, and server.json's caveats: {LOOKS_AGAIN!r}"

"""How many system calls it takes to receive a request, which a client sends whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.tcp.stream_talk import ask
from tests.support import proc
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.server import serving
from tests.support.socket_calls import count_receiving_calls

REQUESTS = 8
LOOKS_AGAIN = "a request costs a second read, which finds nothing"


@pytest.mark.workloads("rpc")
def test_a_request_is_one_read(contestant: Contestant, workload: str, strace_program: str, tmp_path: Path) -> None:
    """Some look for more before they wait, which their caveats say."""
    read, in_vain = count_reads(contestant, (), workload, strace_program, tmp_path)
    assert read == REQUESTS
    says = LOOKS_AGAIN in contestant.manifest.caveats
    assert says == (in_vain > REQUESTS / 2), f"{in_vain} reads in vain, and server.json's caveats: {LOOKS_AGAIN!r}"


@pytest.mark.workloads("rpc")
def test_a_length_and_its_body_are_two_reads_where_that_is_requested(
    contestant: Contestant, workload: str, strace_program: str, tmp_path: Path
) -> None:
    if "read-mode" not in contestant.manifest.options:
        pytest.skip("it reads what is there")
    read, _ = count_reads(contestant, ("--read-mode", "apart"), workload, strace_program, tmp_path)
    assert read == 2 * REQUESTS


def count_reads(
    contestant: Contestant, options: tuple[str, ...], workload: str, strace_program: str, folder: Path
) -> tuple[int, int]:
    """How many reads brought something of REQUESTS requests, and how many found nothing."""
    if "uring" in contestant.manifest.needs:
        pytest.skip("io_uring receives without a call of its own")
    with serving(contestant.command, "--workload", workload, *options) as server, Client(server.address) as client:
        ask(workload, client)
        pid, descriptors = proc.find_holder(server.pid, server.address[1], {client.address})

        def converse() -> None:
            for _ in range(REQUESTS):
                eventually(lambda: proc.all_threads_sleep(pid), "not all of its threads wait for the request")
                ask(workload, client)

        return count_receiving_calls(strace_program, pid, descriptors, converse, folder)

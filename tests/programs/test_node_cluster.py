"""Workers of Node's cluster that cannot take a connection: it is closed, and nothing else is."""

from __future__ import annotations

import resource
from contextlib import ExitStack

import pytest

from netdyno.contestants.contestants import discover, find_by_name
from tests.contract.tcp.talk import Talk
from tests.support import proc
from tests.support.chosen import startable
from tests.support.server import serving

pytestmark = pytest.mark.needs_build


def test_a_worker_without_descriptors_loses_the_connection_that_it_is_dealt() -> None:
    contestant = startable(find_by_name(discover(), "node-cluster"), "server")
    with (
        serving(contestant.command, "--workload", "echo") as server,
        Talk(server, "echo") as talk,
        ExitStack() as stack,
    ):
        talk.check()
        (worker,) = proc.children(server.pid)
        soft, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (proc.descriptors(worker) + 5, hard))
        crowd = [stack.enter_context(talk.client()) for _ in range(5)]
        for client in crowd:
            number, message = talk.message(client)
            client.send(message)
            talk.expect(client, number)
        with talk.client() as refused:
            assert refused.rest_until_closed() == b""
        talk.check()
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (soft, hard))
        with talk.client() as last:
            number, message = talk.message(last)
            last.send(message)
            talk.expect(last, number)

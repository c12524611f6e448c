"""A worker of Node's cluster that cannot take a connection: the others take those that come later."""

from __future__ import annotations

import resource
import select
from contextlib import ExitStack

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support import proc
from tests.support.chosen import startable
from tests.support.server import serving

pytestmark = pytest.mark.needs_build


def test_a_worker_without_descriptors_leaves_newcomers_to_the_others() -> None:
    """But for the one that it was dealt, which the primary keeps: Node waits for the worker's answer."""
    contestant = startable(find_by_name(discover(), "node-cluster"), "server")
    with (
        serving(contestant.command, "--workload", "echo", "--threads", "2") as server,
        StreamTalk(server, "echo") as talk,
        ExitStack() as stack,
    ):
        talk.check()
        worker, _ = proc.children(server.pid)
        _, hard = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (proc.descriptors(worker) + 2, hard))
        silent = []
        for _ in range(12):
            client = stack.enter_context(talk.client())
            number, message = talk.message(client)
            client.send(message)
            if select.select([client.socket], [], [], 1.0)[0]:
                talk.expect(client, number)
            else:
                silent.append(client)
        assert len(silent) <= 1, "newcomers are dealt to a worker that cannot take them"
        talk.check()
        assert server.stop()["connections"] == 1 + 12 - len(silent)

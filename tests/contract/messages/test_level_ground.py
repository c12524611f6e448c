"""Level ground, as in tests/contract/tcp/test_level_ground.py, for servers that carry messages."""

from __future__ import annotations

from contextlib import ExitStack, closing

from tests.contract.messages.conftest import Spoken
from tests.support.ground import by_the_harness, expect_level


def test_every_thread_stands_on_the_same_ground(spoken: Spoken) -> None:
    transport, contestant = spoken.transport, spoken.contestant
    command = (*transport.prefix(), *contestant.command, *transport.arguments())
    threads = ("--threads", "3") if contestant.manifest.threads == "any" else ()
    with ExitStack() as stack:
        server = stack.enter_context(by_the_harness(command, *threads))
        for _ in range(3):
            stack.enter_context(closing(transport.client(server))).join()
        expect_level(server.pid, contestant.command)

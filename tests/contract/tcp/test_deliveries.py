"""How many system calls it takes to bring what one client says to the others, by `--deliveries` (protocol/WIRE.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.talk import message
from tests.contract.tcp.conftest import room_for
from tests.contract.tcp.stream_talk import joined
from tests.support import kernel, proc
from tests.support.client import Client
from tests.support.server import Server, serving
from tests.support.socket_calls import count_sending_calls

LISTENERS = 3
SAID_AT_ONCE = 8
"""Messages in one write of the speaker, which a server takes in one read. Fewer than what TCP sends before it waits for
an acknowledgement (RFC 6928), beyond which it joins by itself."""


class ListeningRoom:
    """A speaker, and listeners that have heard all it said so far."""

    def __init__(self, speaker: Client, listeners: list[Client]) -> None:
        self.speaker = speaker
        self.listeners = listeners

    def say(self, count: int) -> None:
        """Send this many messages in one write. Return when every listener has them."""
        numbers = [self.speaker.next_number() for _ in range(count)]
        self.speaker.send(b"".join(message("chat", self.speaker.identity, number) for number in numbers))
        for listener in self.listeners:
            while wire.read_stamp(listener.frame()) != (self.speaker.identity, numbers[-1]):
                pass


@contextmanager
def room(contestant: Contestant, deliveries: str) -> Iterator[tuple[Server, ListeningRoom]]:
    """A server, and a room in which nothing is on its way."""
    options = ("--workload", "chat", "--deliveries", deliveries, *room_for(contestant, 1 + LISTENERS))
    with serving(contestant.command, *options) as server, ExitStack() as stack:
        speaker, *listeners = (stack.enter_context(joined(server, "chat")) for _ in range(1 + LISTENERS))
        inside = ListeningRoom(speaker, listeners)
        inside.say(1)
        yield server, inside


def count_calls(tool: str, server: Server, inside: ListeningRoom, folder: Path) -> int:
    """Return the number of calls of the server that send to the listeners' sockets, which one process has."""
    remotes = {listener.address for listener in inside.listeners}
    pid, descriptors = proc.find_holder(server.pid, server.address[1], remotes)
    return count_sending_calls(tool, pid, descriptors, lambda: inside.say(SAID_AT_ONCE), folder)


def count_segments(inside: ListeningRoom) -> int:
    """What the listeners' kernel got (TCP_INFO, tcpi_data_segs_in): one for each send, where no call can be seen, as
    Nagle's algorithm is off."""

    def of_all() -> int:
        return sum(kernel.tcp_info(listener.socket, kernel.TCPI_DATA_SEGS_IN) for listener in inside.listeners)

    before = of_all()
    inside.say(SAID_AT_ONCE)
    return of_all() - before


@pytest.mark.workloads("chat")
@pytest.mark.parametrize("deliveries", ["joined", "single"])
def test_calls_for_each_delivery(
    contestant: Contestant, workload: str, deliveries: str, strace_program: str, tmp_path: Path
) -> None:
    with room(contestant, deliveries) as (server, inside):
        if "uring" in contestant.manifest.needs:
            sends = count_segments(inside)
        else:
            sends = count_calls(strace_program, server, inside, tmp_path)
    if deliveries == "single":
        assert sends == SAID_AT_ONCE * LISTENERS
    else:  # the first may leave at once, before the others wait
        assert LISTENERS <= sends <= 2 * LISTENERS

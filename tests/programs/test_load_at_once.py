"""--start at-once: clients of a chat speak while others still connect, and no figure of the load holds what they say
then."""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.model.load_result import LoadResult
from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.foreign import MEASURED
from tests.support.patience import PATIENCE_S
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

SIZE, FRAME = 28, 32
CONNECTIONS = 5
DEPTH = 3
CHAT = ("--workload", "chat", "--size", str(SIZE))
SLOWLY = ("--connect-rate", "20")
"""Connections a second: slow enough that connected clients have time to speak."""
SHORT = ("--warmup", "20ms", "--duration", "200ms", "--json", "-")


SILENCE_S = 0.5
MOST_TRIES = 5


@dataclass
class OneThreadRoom:
    """A chat server of one thread, which notes the order of what happens: `accepted`, or a number of messages. After
    two clients it accepts no other before these have said `waits_for` messages, or nothing for SILENCE_S."""

    listener: socket.socket
    waits_for: int = 0
    happened: list[str | int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        """Serve until the listener is closed. Small messages come whole."""
        clients: list[socket.socket] = []
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            while True:
                events = selector.select(SILENCE_S)
                if not events and self.listener not in selector.get_map():
                    selector.register(self.listener, selectors.EVENT_READ)
                for key, _ in events:
                    if key.fileobj is self.listener:
                        try:
                            client, _ = self.listener.accept()
                        except OSError:
                            return
                        self.happened.append("accepted")
                        clients.append(client)
                        selector.register(client, selectors.EVENT_READ)
                        if self.waits_for and len(clients) == 2:
                            selector.unregister(self.listener)
                        continue
                    speaker = next(client for client in clients if client is key.fileobj)
                    data = b""
                    with suppress(ConnectionError):
                        data = speaker.recv(1 << 16)
                    if not data:
                        selector.unregister(speaker)
                        clients.remove(speaker)
                        speaker.close()
                        continue
                    self.happened.append(len(data) // FRAME)
                    if self.listener not in selector.get_map() and self.count_messages() >= self.waits_for:
                        selector.register(self.listener, selectors.EVENT_READ)
                    for client in clients:
                        if client is not speaker:
                            with suppress(ConnectionError):
                                client.sendall(data)

    def count_messages(self) -> int:
        return sum(what for what in self.happened if isinstance(what, int))

    def said_before(self, accepted: int) -> int:
        """Messages that came while so many connections were not yet accepted; none where no more ever were."""
        places = [place for place, what in enumerate(self.happened) if what == "accepted"]
        before = self.happened[: places[accepted]] if accepted < len(places) else []
        return sum(what for what in before if isinstance(what, int))


@contextmanager
def room(backlog: int = 128, waits_for: int = 0) -> Iterator[OneThreadRoom]:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        made = OneThreadRoom(listener, waits_for)
        thread = threading.Thread(target=made.serve, daemon=True)
        thread.start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)


def load(url: str, *arguments: str) -> LoadResult:
    command = [str(generator_path(build_dir())), url, *CHAT, *SHORT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode in MEASURED, done
    return msgspec.json.decode(done.stdout, type=LoadResult)


def failed(result: LoadResult, *names: str) -> Sequence[str]:
    return [audit.detail for audit in result.audits if audit.name in names and not audit.passed]


@pytest.mark.calm
@pytest.mark.parametrize("start", ["together", "at-once"])
def test_a_client_that_is_connected_speaks_before_the_last_one_connects(start: str) -> None:
    with room() as made:
        result = load(made.url, "-c", str(CONNECTIONS), "--depth", str(DEPTH), *SLOWLY, "--start", start)
    assert result.plan.start == start
    if start == "together":
        assert made.said_before(CONNECTIONS - 1) == 0
    else:
        assert made.said_before(1) <= DEPTH, "nobody hears the first one, who says no more than may be in flight"
        assert made.said_before(CONNECTIONS - 1) > DEPTH * CONNECTIONS, "and the others go on as they are heard"


@pytest.mark.calm
@pytest.mark.parametrize("audience", ["others", "all"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_sent_before_the_load_is_in_its_bytes_and_in_no_figure(audience: str, threads: int) -> None:
    options = ("--audience", audience)
    command = str(build_dir() / "servers" / "threads-global-lock")
    at_once = ("--start", "at-once", *SLOWLY, "--depth", "2", "--threads", str(threads), *options)
    with serving((command, "--workload", "chat", *options)) as server:
        result = load(server.endpoint, "-c", "6", *at_once)
        totals = server.stop()
    assert failed(result, "verification", "bytes", "connections") == []
    messages = result.messages
    assert (messages.lost, messages.due) == (0, messages.sent)
    heard = 6 if audience == "all" else 5
    assert messages.received == messages.expected == heard * messages.sent
    early = result.bytes.received - FRAME * messages.received
    assert early > FRAME * 100, "beside what the load brought"
    assert (totals["bytes_in"], totals["bytes_out"]) == (result.bytes.sent, result.bytes.received)


@pytest.mark.calm
def test_members_of_the_client_in_python_send_before_the_last_one_connects() -> None:
    """One that waits to be accepted fills the queue; the SYN of the next one is repeated after a second. SYNs that are
    repeated in the same moment all come before the queue is full: then all are connected at once, and are silent; or
    the queue drops the last ACK of one (Linux then forgets it), which no message reaches, and all wait for it."""
    client = find_by_name(discover(kind="client"), "asyncio", "client")
    least_messages = DEPTH * 100
    command = [*client.command, *CHAT, *SHORT, "-c", "4", "--depth", str(DEPTH), "--start", "at-once"]

    def talk() -> tuple[OneThreadRoom, str]:
        with room(backlog=0, waits_for=least_messages) as made:
            try:
                done = subprocess.run(
                    [*command, made.url], capture_output=True, text=True, check=False, timeout=PATIENCE_S / 3
                )
            except subprocess.TimeoutExpired:
                return made, ""
            return made, done.stdout

    made, printed = talk()
    for _ in range(MOST_TRIES):
        if not printed or made.said_before(2) < least_messages:
            made, printed = talk()
    result = msgspec.json.decode(printed, type=LoadResult)
    assert (result.plan.start, result.connections.established) == ("at-once", 4)
    assert made.said_before(2) >= least_messages
    assert failed(result, "verification", "bytes", "connections") == []
    assert result.messages.received == result.messages.expected == 3 * result.messages.sent > 0
    assert result.bytes.received - FRAME * result.messages.received > FRAME * least_messages


@pytest.mark.calm
def test_the_summary_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with room() as made:
        command = [str(generator_path(build_dir())), made.url, *CHAT, "-c", "2", "--start", "at-once", *SHORT[:4]]
        subprocess.run(command, check=False, timeout=PATIENCE_S)
    assert "which send as soon as they are connected" in capfd.readouterr().out


ROOM_OF, BACKLOG, ROUNDS = 400, 10, 12
BRIEF = ("--warmup", "0", "--duration", "10ms", "--timeout", "100ms", "--connect-timeout", "300ms", "--json", "-")
"""Messages after the burst are not looked at."""


def share_connected(server: str) -> float:
    """The share of a burst that gets in while those who are in speak."""
    command = (str(build_dir() / "servers" / server), "--workload", "chat", "--backlog", str(BACKLOG))
    with serving(command) as serves:
        words = [str(generator_path(build_dir())), serves.endpoint, *CHAT, "-c", str(ROOM_OF), *BRIEF]
        words += ["--start", "at-once", "--depth", "4"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        connections = json.loads(done.stdout)["connections"]
        return float(connections["established"] / connections["attempted"])


@pytest.mark.quiet
@pytest.mark.costly
def test_a_lock_that_is_held_while_sending_keeps_clients_of_a_burst_out() -> None:
    """The accepting thread waits for it, while the burst overflows the queue; the snapshot lets it go at once."""
    servers = ("threads-global-lock", "threads-snapshot")
    # A busy machine's pauses keep others out, too: a round says little alone.
    rounds = [[share_connected(server) for server in servers] for _ in range(ROUNDS)]
    lock, snapshot = map(statistics.mean, zip(*rounds, strict=True))
    assert lock < 0.75 * snapshot, rounds

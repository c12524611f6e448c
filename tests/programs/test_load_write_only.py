"""netdyno-load --messages: clients that write and never read, and what becomes of a server that such a client ends."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import Contestant, Manifest
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import LoadResult, WriteOnly
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell
from tests.support.patience import PATIENCE_S
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

SIZE, FRAME = 40, 44
CLIENTS, MESSAGES = 4, 3
MANY = 100_000
"""They take minutes, unless the server ends them."""
WRITES = ("--workload", "chat", "--size", str(SIZE), "--every", "1ms", "--json", "-")


@dataclass
class SilentRoom:
    """A server that sends each client bytes which it does not read, and reads until the client has left."""

    listener: socket.socket
    unread: int = 600
    resets: int = 0
    received: list[int] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        for _ in range(CLIENTS):
            client, _ = self.listener.accept()
            self.threads.append(threading.Thread(target=self._read, args=(client,), daemon=True))
            self.threads[-1].start()

    def _read(self, client: socket.socket) -> None:
        count = 0
        with client:
            client.sendall(b"u" * self.unread)
            try:
                while data := client.recv(1 << 16):
                    count += len(data)
            except ConnectionResetError:
                self.resets += 1
        self.received.append(count)


@contextmanager
def listening(unread: int = 600) -> Iterator[SilentRoom]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = SilentRoom(server, unread)
        thread = threading.Thread(target=made.serve, daemon=True)
        thread.start()
        yield made
        for reader in (thread, *made.threads):
            reader.join(PATIENCE_S)


def run_load(url: str, clients: int = CLIENTS, messages: int = MESSAGES) -> tuple[int, LoadResult]:
    command = [str(generator_path(build_dir())), url, *WRITES, "-c", str(clients), "--messages", str(messages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    return done.returncode, msgspec.json.decode(done.stdout, type=LoadResult)


def writes_of(load: LoadResult) -> WriteOnly:
    assert isinstance(load.write_only, WriteOnly)
    return load.write_only


def test_each_client_writes_all_its_messages_reads_nothing_and_leaves() -> None:
    with listening() as server:
        code, load = run_load(server.url)
    writes = writes_of(load)
    assert code == 0
    assert (writes.messages_each, writes.every_s, writes.finished, writes.failed) == (MESSAGES, 0.001, CLIENTS, 0)
    assert writes.per_second == pytest.approx(CLIENTS * MESSAGES / load.plan.duration_s)
    assert server.received == [MESSAGES * FRAME] * CLIENTS
    assert (load.messages.sent, load.messages.due, load.bytes.sent) == (12, 12, 12 * FRAME)
    assert (load.messages.received, load.bytes.received, load.requests.per_second) == (0, 0, 0)
    least_s = 0.02 + MESSAGES * writes.every_s
    assert load.plan.duration_s >= least_s, "it waits before the first, after each and before it leaves"


@pytest.mark.parametrize(("unread", "resets"), [(100_000, 0), (700_000, CLIENTS)])
def test_a_client_takes_some_128_kib_off_its_socket_and_what_it_leaves_there_resets_the_connection(
    unread: int, resets: int
) -> None:
    """The second is more than twice what one read takes (256 KiB), and less than what a socket holds."""
    with listening(unread) as server:
        code, load = run_load(server.url, messages=20)
    assert (code, writes_of(load).finished, load.bytes.received) == (0, CLIENTS, 0)
    assert server.resets == resets


def test_a_client_whose_server_is_gone_has_an_error_and_what_it_wrote_does_not_count() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reset_first() -> None:
            client, _ = server.accept()
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()

        thread = threading.Thread(target=reset_first, daemon=True)
        thread.start()
        _, load = run_load(f"tcp://127.0.0.1:{server.getsockname()[1]}", clients=1, messages=MANY)
        thread.join(PATIENCE_S)
    writes = writes_of(load)
    assert (load.connections.established, writes.finished, writes.failed, writes.per_second) == (1, 0, 1, 0)
    assert load.errors["reset"] == 1


def test_without_a_listener_no_client_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, load = run_load(f"tcp://127.0.0.1:{port}")
    assert code == 1
    assert (load.connections.refused, writes_of(load).finished) == (CLIENTS, 0)


def test_the_summary_says_that_nothing_was_read() -> None:
    with listening() as server:
        command = [str(generator_path(build_dir())), server.url, *WRITES[:-2], "-c", "4", "--messages", "3"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert "written, by the 4 clients of 4 that finished without an error" in done.stdout
    assert "no client reads" in done.stdout


STUDIED = ("threads-global-lock", "threads-snapshot", "threads-snapshot-unlocked")
LEAVERS, ROUNDS, MOST_ROUNDS = 20, 5, 200
"""In a round so many clients leave at once, while another one's messages are sent to them. A server that one of them
can end has ended after a few."""
HELLO = b"\0\0\0\5hello"


def leave_in_crowds(endpoint: tuple[str, int], rounds: int, has_ended: Callable[[], bool]) -> None:
    with suppress(ConnectionError), socket.create_connection(endpoint) as writer:
        for _ in range(rounds):
            with ExitStack() as leavers:
                joined = [leavers.enter_context(socket.create_connection(endpoint)) for _ in range(LEAVERS)]
                while not select.select(joined[:1], [], [], 0.01)[0]:  # they are in the room, and hear what is said
                    writer.sendall(HELLO)
                writer.sendall(20 * HELLO)
            if has_ended():
                return


@pytest.mark.parametrize(
    ("server", "sigpipe"),
    [("threads-global-lock", "ends"), *((name, "ignored") for name in STUDIED)],
)
def test_a_client_that_leaves_ends_the_server_only_where_it_was_started_so(server: str, sigpipe: str) -> None:
    """A thread that waits for the lock has read its client's reset, and the one that holds it sends to that client.
    With a snapshot that is rarer: the thread that meets a reset first keeps all others from it."""
    command = (str(build_dir() / "servers" / server), "--workload", "chat", "--deliveries", "single")
    with serving((*command, "--sigpipe", sigpipe)) as served:
        rounds = MOST_ROUNDS if sigpipe == "ends" else ROUNDS
        leave_in_crowds(served.address, rounds, lambda: served.process.poll() is not None)
        if sigpipe == "ignored":
            served.stop()
        assert served.process.wait(PATIENCE_S) == (-signal.SIGPIPE if sigpipe == "ends" else 0)


# --- a trial ---------------------------------------------------------------------------------------------------------

ENDS = """
import json, os, signal, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
print(json.dumps({"ready": True, "endpoint": f"tcp://127.0.0.1:{port}", "pid": os.getpid()}), flush=True)
listener.accept()
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""
"""A server that its first client ends."""
SCENARIO = Scenario(
    name="writes", workload="chat", connections=CLIENTS, messages=MESSAGES, size=SIZE, generator_threads=1
)
CELL = Cell(block=1, position=0, scenario="writes", contestant="ends", levels={})


def try_server(context: TrialContext, how: str, sigpipe: str) -> Trial:
    manifest = Manifest(kind="command", model="", summary="", workloads=("chat",), options=("sigpipe",))
    command = (sys.executable, "-c", ENDS, how)
    contestant = Contestant(name="ends", manifest=manifest, command=command, available=True)
    scenario = msgspec.structs.replace(SCENARIO, server={"sigpipe": sigpipe})
    context = msgspec.structs.replace(context, generator=(str(generator_path(build_dir())),))
    return run_trial(CELL, scenario, contestant, context)


def test_the_end_of_a_server_by_sigpipe_is_measured_where_it_was_started_so(context: TrialContext) -> None:
    trial = try_server(context, "SIGPIPE", "ends")
    assert (trial.status, trial.ended_by) == ("valid", "signal SIGPIPE"), trial.reason
    assert trial.load is not None
    assert METRICS["server-ended"].value(trial, trial.load) == 1
    finished = METRICS["finished"].value(trial, trial.load)
    assert finished == 0


@pytest.mark.parametrize(("how", "sigpipe"), [("SIGPIPE", "ignored"), ("SIGSEGV", "ends")])
def test_any_other_end_is_a_fault_of_the_server(how: str, sigpipe: str, context: TrialContext) -> None:
    trial = try_server(context, how, sigpipe)
    assert (trial.status, trial.ended_by) == ("struck_out", "")
    assert trial.reason == f"died: signal {how}"

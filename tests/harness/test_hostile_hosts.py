"""The holder of a host's certificate gets nothing of the controller's, and nothing of the scheduler's."""

from __future__ import annotations

import asyncio
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from distributed import protocol
from distributed.comm import listen
from distributed.comm.core import CommClosedError
from distributed.core import clean_exception, connect
from distributed.protocol import ToPickle, pickle

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.cluster import authority, engine, secure_comm
from netdyno.measure.cluster.authority import Role
from netdyno.measure.cluster.controller import Controller
from netdyno.measure.cluster.stage import Stage
from netdyno.measure.trial.prepared import log_path
from netdyno.model.experiment import Scenario
from netdyno.question.plan import Cell
from tests.harness.test_cluster_certificates import context, free_port, started
from tests.support.hostile_host import IS_A_CLIENT, ODD, OPENED, SAYS_IT_IS_A_SERVER, WRITTEN, Trap, TrapError
from tests.support.patience import PATIENCE_S

SCENARIO = Scenario(name="echo", workload="echo")
MOST_GROWN_KIB = 300 << 10
REASONS = {
    "answer_for_another_cell": r"tls://\S+ answered for another trial",
    "send_pickled": "the host .* sent no reply that can be read: ",
    "send_serialized": "the host .* sent no reply that can be read: ",
    "send_a_pickle_as_bytes": "the host .* sent no reply that can be read: ",
    "send_an_exception": "the host .* was lost: oh",
    "send_a_gigabyte": "the host .* was lost: .* sends a message of 1073741824 bytes",
    "send_a_gigabyte_in_pieces": "the host .* was lost: its answer has more than 64 MiB",
    "say_that_it_is_a_scheduler": "the host .* was lost: .* as server, may not ask for 'event'",
}
CELL = Cell(block=1, position=0, scenario="echo", contestant="epoll-reactor", levels={})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cluster") / "ours"
    authority.create(made, f"tls://127.0.0.1:{free_port()}")
    return made


@pytest.fixture(scope="module")
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a running scheduler, which the host of every run's load has joined."""
    scheduler = authority.read_scheduler(folder)
    with started("scheduler", "--cluster", str(folder)) as (_, line):
        assert line.startswith("scheduler at ")
        port = str(free_port())  # not before the scheduler has its own, or it may be the same
        with started("join", scheduler, "--as", "client", "--port", port, "--cluster", str(folder)):
            yield scheduler


@contextmanager
def hostile(folder: Path, role: str, file: Path, *lie: str) -> Iterator[str]:
    """Start a hostile host, and yield its first line."""
    words = [sys.executable, "-m", "tests.support.hostile_host", str(folder), role, str(free_port()), str(file), *lie]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that an opened pickle would make."""
    return tmp_path_factory.mktemp("trap") / "made"


@pytest.fixture(autouse=True)
def _fresh(trap: Path) -> Iterator[None]:
    yield
    trap.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def control(scheduler: str, folder: Path, trap: Path) -> Iterator[Controller]:
    """The controller of a cluster whose host of servers is hostile."""
    with hostile(folder, "server", trap) as line, Controller(folder) as controller:
        assert line.startswith(f"joined {scheduler}")
        yield controller


@pytest.mark.parametrize("deed", [deed.__name__ for deed in (*OPENED, *ODD, *WRITTEN)])
def test_the_controller_opens_and_writes_nothing_of_what_a_host_of_servers_sends(
    deed: str, control: Controller, trap: Path, tmp_path: Path
) -> None:
    run = tmp_path / "results" / "run"
    run.mkdir(parents=True)
    stage = Stage(control)
    stage._folder = run
    cell = msgspec.structs.replace(CELL, contestant=deed)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trial = stage.trial(cell, SCENARIO, None)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert list(trap.parent.iterdir()) == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    if deed.startswith("name_a_log"):
        assert written == [run / log_path(cell)]
        assert trial.log == str(log_path(cell))
    else:
        assert trial.status == "failed"
        assert re.match(REASONS.get(deed, "the host .* was lost: "), trial.reason), trial.reason
        assert written == []
    assert grown_kib < MOST_GROWN_KIB


class EndedUnnoticed:
    """A connection that the peer has ended, and that seems open."""

    def closed(self) -> bool:
        return False

    async def write(self, *_: object) -> None:
        raise CommClosedError("Broken pipe")

    def abort(self) -> None: ...


def test_a_question_over_a_connection_that_has_ended_unnoticed_is_repeated_over_another(
    control: Controller,
) -> None:
    first = control.names()
    for address in list(control._comms):
        control._comms[address] = EndedUnnoticed()
    assert control.names() == first
    assert all(control.answers(address) for address in first)


def test_a_clients_certificate_does_not_join_as_server(scheduler: str, folder: Path, trap: Path) -> None:
    """It joins neither under a name of the other role, nor by a later claim to be one."""
    with hostile(folder, "server", trap, IS_A_CLIENT) as line:
        assert line.startswith(f"no scheduler lets this host in at {scheduler}")
        assert "its certificate is for client" in line
    with hostile(folder, "client", trap, SAYS_IT_IS_A_SERVER) as line, Controller(folder) as control:
        assert line.startswith(f"joined {scheduler}")
        with pytest.raises(UserError, match="says it is server, and its certificate is for client"):
            control.hosts()


def test_a_hosts_certificate_is_no_schedulers(folder: Path, trap: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(folder, theirs)
    (theirs / authority.TOPOLOGY).write_text(f'scheduler = "tls://127.0.0.1:{free_port()}"\n')
    with hostile(theirs, "scheduler", trap, IS_A_CLIENT) as line:
        assert line.startswith("scheduler at ")
        with pytest.raises(UserError, match="no scheduler of this cluster answers at "):
            Controller(theirs)
        with hostile(theirs, "server", trap) as line:
            assert line.startswith("no scheduler lets this host in at ")


WAYS: tuple[Callable[[], object], ...] = (
    lambda: pickle.loads(pickle.dumps(Trap())),
    lambda: protocol.loads(list(map(bytes, protocol.dumps(ToPickle(Trap()))))),
    lambda: protocol.deserialize(*protocol.serialize(Trap())),
    lambda: clean_exception(exception=pickle.dumps(TrapError())),
    lambda: protocol.deserialize(*protocol.serialize({"a": [Trap()]})),
)


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_dasks_to_open_a_pickle_is_left(
    way: Callable[[], object], trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a pickle would come in a message by another way than ours."""
    monkeypatch.setattr("tests.support.hostile_host.FILE", trap)
    secure_comm.install()
    with suppress(secure_comm.PickleRefusedError):
        way()
    assert not trap.exists()


ASKED: tuple[tuple[Role, dict[str, Any]], ...] = (
    ("client", {"op": "identity"}),
    ("client", {"op": "register-client", "client": "one"}),
    ("server", {"op": "run_function", "function": pickle.dumps(Trap())}),
    ("client", {"op": "register_scheduler_plugin", "plugin": pickle.dumps(Trap()), "name": "p"}),
    ("server", {"op": "register_worker_plugin", "plugin": pickle.dumps(Trap()), "name": "p"}),
    ("client", {"op": "feed", "function": pickle.dumps(Trap())}),
    ("control", {"op": "run_function", "function": pickle.dumps(Trap())}),
)


@pytest.mark.parametrize(("role", "asked"), ASKED)
def test_a_scheduler_does_nothing_that_is_not_the_roles_to_ask_for(
    role: Role, asked: dict[str, Any], control: Controller, folder: Path, trap: Path
) -> None:
    assert ask_at(authority.read_scheduler(folder), folder, role, asked) is None
    assert control.names()
    assert list(trap.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("role", "asked"),
    [
        ("client", {"op": "heartbeat_worker", "address": ToPickle(Trap())}),
        ("control", {"op": "identity", "n_workers": ToPickle(Trap())}),
    ],
)
def test_a_scheduler_opens_no_pickle_of_what_a_role_may_ask_for(
    role: Role, asked: dict[str, Any], control: Controller, folder: Path, trap: Path
) -> None:
    ask_at(authority.read_scheduler(folder), folder, role, asked)
    assert control.names()
    assert list(trap.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("role", "operation"),
    [
        ("client", "netdyno_perform"),
        ("server", "netdyno_perform"),
        ("client", "netdyno_load"),
        ("client", "netdyno_describe"),
        ("scheduler", "run"),
        ("control", "run"),
        ("control", "terminate"),
        ("control", "upload_file"),
        ("scheduler", "netdyno_perform"),
    ],
)
def test_a_host_does_nothing_that_is_not_the_roles_to_ask_for(
    role: Role, operation: str, control: Controller, folder: Path, trap: Path
) -> None:
    client = next(address for address, name in control.names().items() if name.startswith("client@"))
    message = {"op": operation, "function": pickle.dumps(Trap()), "request": b"{}"}
    assert ask_at(client, folder, role, message) is None
    assert control.answers(client)
    assert list(trap.parent.iterdir()) == []


def ask_at(address: str, folder: Path, role: Role, message: dict[str, Any]) -> object:
    """Return the answer to a holder of a role's certificate; None where the connection is closed."""
    security = engine.configure_security(folder, role, authority.read_scheduler(folder))

    async def ask() -> object:
        comm = await connect(address, PATIENCE_S, **security.get_connection_args("client"))
        try:
            await comm.write({"reply": True, **message})
            async with asyncio.timeout(PATIENCE_S):
                return await comm.read()
        except CommClosedError:
            return None
        finally:
            comm.abort()

    return asyncio.run(ask())


@pytest.mark.parametrize("speaks", ["nothing", "TLS alone", "a byte now and then"])
def test_a_stranger_without_a_name_is_dropped(speaks: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secure_comm, "GREETING_S", 0.3)

    begun = [b"\x16\x03\x01\x3f\xff"]  # a record of a handshake, of which 16,383 bytes are to come (RFC 8446, 5.1)

    def knock(port: int) -> bytes:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            if speaks == "TLS alone":
                connection = stack.enter_context(context(folder, "client").wrap_socket(connection))
            connection.settimeout(0.05 if speaks == "a byte now and then" else PATIENCE_S)
            latest = time.monotonic() + PATIENCE_S
            while time.monotonic() < latest:
                try:
                    if not (heard := connection.recv(1 << 16)):
                        return b"dropped"
                    assert speaks == "TLS alone", heard  # the other side's greeting
                except TimeoutError:
                    assert speaks == "a byte now and then"
                    connection.send(begun.pop(0) if begun else b"\0")
                except (ConnectionError, ssl.SSLError):
                    return b"dropped"
        return b"still there"

    async def knock_at_worker() -> bytes:
        security = engine.configure_security(folder, "server", authority.read_scheduler(folder))
        async with listen("tls://127.0.0.1:0", refuse, **security.get_listen_args("worker")) as door:
            return await asyncio.wait_for(asyncio.to_thread(knock, door.get_host_port()[1]), PATIENCE_S)

    async def refuse(_: object) -> None:
        raise AssertionError("it was let in")

    assert asyncio.run(knock_at_worker()) == b"dropped"

"""A server of the user's own in a run: started, loaded, observed with its children, judged as far as it can be, and
ended."""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir
from netdyno.measure.machine import socket_holders
from netdyno.measure.run import runner
from netdyno.measure.run.resume import resume
from netdyno.measure.trial import traced
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trace, Trial
from netdyno.present.terminal.display import PlainDisplay
from netdyno.question.contestants import own, stand_in
from netdyno.store import read, schema
from netdyno.verbs import permission
from netdyno.verbs.permission import Given
from tests.support.edit_store import edit_store
from tests.support.fixtures import FAKES, use_steady_canary
from tests.support.names import naming
from tests.support.patience import eventually

pytestmark = [
    pytest.mark.needs_build,
    pytest.mark.long,
    pytest.mark.xdist_group("servers of one's own"),
    pytest.mark.usefixtures("steady_canary"),
]

HTTP = FAKES / "own_http.py"
CONNECTIONS = 4


def run(results: Path, *how: str) -> Run:
    """Run one trial of each, named for how it behaves."""
    line = f"{shlex.join([sys.executable, '-I', '-S', str(HTTP)])} {{port}}"
    described = [Own(command=f"{line} {word}", workload="http", ready_timeout_s=3.0) for word in how]
    servers = own.make_contestants(described, how, [])
    return run_of(servers, results)


def run_of(servers: Sequence[Contestant], results: Path, trace: Trace = "never", duration_s: float = 0.2) -> Run:
    how = tuple(server.name for server in servers)
    scenario = Scenario(
        name="web", workload="http", contestants=how, blocks=1, connections=CONNECTIONS, duration_s=duration_s
    )
    outcome = runner.execute(
        Experiment(name="own", question="Whose?", scenarios=(scenario,)),
        servers,
        results=results,
        build=build_dir(),
        argv=["netdyno", "run"],
        display=PlainDisplay(io.StringIO()),
        foreign_load="count",
        trace=trace,
    )
    return read.load(outcome.folder / schema.FILE_NAME)


def undisturbed(servers: Sequence[Contestant], results: Path) -> Trial:
    """The trial of the only server, retried while the machine keeps the harness from reading it in time."""
    (name,) = (server.name for server in servers)
    trial = only(run_of(servers, results), name)
    for _ in range(7):
        if trial.status == "valid":
            break
        trial = only(run_of(servers, results), name)
    return trial


def only(run: Run, name: str) -> Trial:
    """The last trial of a server: earlier ones were invalid, and retried."""
    (*_, trial) = [trial for trial in run.trials if trial.contestant == name]
    return trial


def running() -> list[str]:
    """The command lines of own servers that are left."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has just ended
    return [line for line in lines if str(HTTP) in line]


@pytest.fixture(scope="module")
def run_of_all(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return one run of servers that behave in each of these ways, after which none of them is left."""
    with pytest.MonkeyPatch.context() as patch:
        use_steady_canary(patch)
        whole = run(tmp_path_factory.mktemp("all"), "serves", "forks", "ipv6", "closes", "drops")
    assert running() == []
    return whole


def test_it_is_loaded_verified_observed_and_ended(run_of_all: Run) -> None:
    for name in ("serves", "forks"):
        trial = only(run_of_all, name)
        audits = {audit.name: audit for audit in trial.audits}
        assert trial.load is not None
        assert trial.server is not None
        assert trial.load.messages.corrupt == 0
        assert trial.load.requests.completed > 10
        assert trial.server.cpu_user_s + trial.server.cpu_system_s > 0.01
        assert trial.server.totals == {}
        assert "not judged" in audits["server_totals"].detail
        assert audits["verification"].passed
        assert audits["server_alive"].passed
        assert trial.added == {}
        assert audits["left_behind"].passed == (name == "serves"), "the child that answers outlives its parent"
    serves, forks = (only(run_of_all, name).server for name in ("serves", "forks"))
    assert serves is not None
    assert forks is not None
    assert forks.threads > serves.threads  # two processes
    assert serves.rss_peak_bytes < forks.rss_peak_bytes < 1.8 * serves.rss_peak_bytes, "what they share counts once"


def test_how_long_each_takes_to_start_is_known_from_its_first_requests(run_of_all: Run) -> None:
    """An interpreter starts in more than 10 ms."""
    for server in own.restore_servers(run_of_all.about):
        assert server.own is not None
        assert server.own.overhead_s > 0.01


def expect_reconnected(trial: Trial) -> None:
    audits = {audit.name: audit for audit in trial.audits}
    assert trial.load is not None, trial.reason
    connections = trial.load.connections
    assert connections.established == connections.attempted > connections.closed_after_reply >= 4
    for name in ("connections", "verification", "bytes", "observation", "plausible", "server_alive"):
        assert audits[name].passed, audits[name].detail


@pytest.mark.parametrize("how", ["closes", "drops"])
def test_one_that_closes_connections_after_its_replies_is_measured_with_reconnects(run_of_all: Run, how: str) -> None:
    expect_reconnected(only(run_of_all, how))


def test_those_that_close_connections_take_turns(tmp_path: Path) -> None:
    whole = run(tmp_path, "closes", "drops")
    for how in ("closes", "drops"):
        trial = only(whole, how)
        assert any(audit.name == "turns" for audit in trial.audits), "in turns"
        expect_reconnected(trial)


DETACHES = "sh -c 'setsid -f {server} $0 serves; exec sleep 1000' {{port}}"
ASKS_A_DAEMON = "sh -c 'echo $0 >{asks}; exec sleep 1000' {{port}}"
"""A foreground process that only waits: for a server that it has detached, or that another has started for it, as a
daemon does that starts containers."""


def test_charged_is_the_process_that_serves_wherever_it_was_started(tmp_path: Path) -> None:
    server, asks = shlex.join([sys.executable, "-I", "-S", str(HTTP)]), tmp_path / "asks"
    os.mkfifo(asks)
    # Opened once: between two openings, what is written to a pipe is lost.
    script = f"exec 3<>{asks}; while read port <&3; do {server} $port serves & done"
    commands = [f"{server} {{port}} serves", DETACHES.format(server=server), ASKS_A_DAEMON.format(asks=asks)]
    owned = [Own(command=command, workload="http") for command in commands]
    with subprocess.Popen(["sh", "-c", script], stderr=subprocess.DEVNULL, start_new_session=True) as daemon:
        try:
            whole = run_of(own.make_contestants(owned, ["plain", "detaches", "asks"], []), tmp_path)
        finally:
            os.killpg(daemon.pid, signal.SIGKILL)
    costs = {}
    for name in ("plain", "detaches", "asks"):
        trial = only(whole, name)
        assert trial.load is not None, trial.reason
        assert trial.server is not None
        costs[name] = trial.server.cpu_s / trial.load.requests.completed
        assert trial.server.rss_peak_bytes > 5 << 20
    assert costs["plain"] < 3 * costs["detaches"]
    assert costs["plain"] < 3 * costs["asks"]
    eventually(lambda: running() == [], "a server is left")


@pytest.mark.usefixtures("strace_program")
def test_all_of_several_processes_are_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply in flight at either end of the window may be counted on one side only."""
    monkeypatch.setattr(traced, "WINDOW_S", 1.0)
    line = f"{shlex.join([sys.executable, '-I', '-S', str(HTTP)])} {{port}} forks"
    forks = own.make_contestants([Own(command=line, workload="http")], ["forks"], [])
    (trace,) = run_of(forks, tmp_path, trace="always", duration_s=1.0).traced
    if not trace.reason.startswith("strace may not trace here"):  # Yama allows the first process only
        assert trace.reason == ""
        calls = {call.name: call.calls for call in trace.calls}
        assert calls["sendto"] == pytest.approx(trace.messages, abs=CONNECTIONS), calls
    assert running() == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("leaves", "the server ended with exit code 1 before it was ready: I am not configured"),
        ("ends", "the server ended with exit code 3 at its first requests"),
        (
            "sleeps",
            r"the server was not ready within 3 s: .* at tcp://127\.0\.0\.1:(\d+) or tcp://\[::1\]:\1",
        ),
    ],
)
def test_one_that_does_not_serve_ends_the_run_at_its_start(tmp_path: Path, how: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"^{how}: {reason}$"):
        run(tmp_path, how)
    assert running() == []


def test_one_that_listens_at_the_other_address_of_localhost_is_loaded_there(run_of_all: Run) -> None:
    trial = only(run_of_all, "ipv6")
    assert trial.load is not None, trial.reason
    assert trial.load.plan.url.startswith("tcp://[::1]:")
    assert trial.load.requests.completed > 10


def test_an_address_is_the_first_of_its_host_where_a_server_accepts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (
            "import sys; from netdyno.question.contestants import own; "
            "print(own.resolve_server(*sys.argv[1:3], may_be_loaded=0).address)"
        )
        command = [*naming(tmp_path), sys.executable, "-c", script, f"TCP://localhost:{port}", "http"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert printed.stdout == f"tcp://127.0.0.1:{port}\n"


def test_a_run_with_it_can_be_gone_on_with(tmp_path: Path) -> None:
    whole = run(tmp_path, "serves")
    path = tmp_path / whole.run_id / schema.FILE_NAME
    with edit_store(path) as connection:
        connection.execute("DELETE FROM trial")
        connection.execute("UPDATE run SET finished_at = NULL")
    (command,) = (contestant.own.command for contestant in whole.about if contestant.own)
    permit = partial(permission.ask, given=Given((command,)), again=())
    resume(path, build=build_dir(), display=PlainDisplay(io.StringIO()), anyway=True, permit=permit)
    assert only(read.load(path), "serves").load is not None


@contextmanager
def standing(*how: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The same server, started by another program, and its URL."""
    port = stand_in.find_free_port("127.0.0.1")
    command = [sys.executable, "-I", "-S", str(HTTP), str(port), *how]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while not stand_in.try_connect("127.0.0.1", port):
                assert process.poll() is None
            yield process, f"tcp://127.0.0.1:{port}"
        finally:
            process.kill()


def test_one_that_stands_already_is_loaded_observed_and_left_as_it_was(tmp_path: Path) -> None:
    with standing("serves") as (process, url):
        there = own.make_contestants([own.resolve_server(url, "http", may_be_loaded=False)], ["there"], [])
        trial = undisturbed(there, tmp_path)
        assert process.poll() is None
        assert stand_in.try_connect(*stand_in.place(url))
        assert trial.server is not None
    assert trial.status == "valid", trial.reason
    assert trial.load is not None
    assert trial.load.plan.url == url
    assert trial.server.cpu_s > 0
    assert trial.server.rss_ready_bytes == 0  # it has served others before
    assert trial.pinning is not None
    assert trial.pinning.server == ()
    assert trial.machine is not None
    assert trial.machine.own_s > trial.server.cpu_s  # it is no child of this process, and no foreign load


def test_of_a_process_that_is_not_known_no_figure_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load itself is measured."""
    monkeypatch.setattr(socket_holders, "find_serving", lambda *_: None)
    with standing("serves") as (_, url):
        there = own.make_contestants([own.resolve_server(url, "http", may_be_loaded=False)], ["there"], [])
        trial = undisturbed(there, tmp_path)
    assert trial.status == "valid", trial.reason
    assert trial.load is not None
    assert trial.load.requests.completed > 10
    assert trial.server is None
    (observation,) = [audit.detail for audit in trial.audits if audit.name == "observation"]
    assert observation.startswith("not judged: the server's process is unknown here")


def test_an_address_where_nothing_listens_ends_the_run_at_its_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    there = own.make_contestants(
        [own.resolve_server(f"tcp://127.0.0.1:{port}", "http", may_be_loaded=False)], ["there"], []
    )
    expected = f"there cannot be loaded: no server accepts connections at tcp://127.0.0.1:{port}"
    with pytest.raises(UserError, match=f"^{re.escape(expected)}$"):
        run_of(there, tmp_path)

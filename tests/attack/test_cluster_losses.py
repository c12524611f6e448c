"""Something of a cluster is lost at any moment of a run: what is stored is readable and stays what it is, nothing goes
on running, and with all hosts back the run can be gone on with to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from netdyno.measure.cluster import authority
from netdyno.measure.machine import server_proc
from netdyno.store import read, schema
from tests.attack.conftest import SEEDS
from tests.attack.test_kills import marked
from tests.programs.test_cluster import HELD_UP, TRIES
from tests.support.hosts import NamespaceHost, daemon, is_called, on_a_bridge
from tests.support.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.needs_build
NAMES = ("server", "client", "second")
LONGEST_S = 9.0
"""After the first server has been started; about as long as the trials take."""
STOPPED_S = 1.0
WORKLOADS = ("echo", "chat")
EXPERIMENT = """
question = "Does a run outlive its hosts?"
contestants = ["epoll-reactor"]
blocks = 2
warmup = "50ms"
duration = "600ms"
timeout = "5s"

[[scenario]]
name = "echo"
workload = "{workload}"
connections = 4

[scenario.factors]
client-hosts = [1, 2]
"""


ON_A_SMALL_DISK = (
    'mount -t tmpfs -o size=4m none "$1" && cd "$1" && shift 2 && "$@"; code=$?; cp -r . ../kept; exit $code'
)


class AttackedCluster(NamedTuple):
    """Its daemons by their hosts' names; that of "control" is the scheduler."""

    folder: Path
    hosts: dict[str, NamespaceHost]
    daemons: dict[str, subprocess.Popen[str]]


@contextmanager
def standing(hosts: dict[str, NamespaceHost], folder: Path) -> Iterator[AttackedCluster]:
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        daemons = {"control": stack.enter_context(daemon(hosts["control"], "scheduler", "--cluster", str(folder)))}
        for name in NAMES:
            role, core = ("server", cores[0]) if name == "server" else ("client", cores[-1])
            words = ("--as", role, "--cores", str(core), "--cluster", str(folder))
            joining = daemon(hosts[name], "join", authority.read_scheduler(folder), *words)
            daemons[name] = stack.enter_context(joining)
        yield AttackedCluster(folder, hosts, daemons)


class LossMoment(NamedTuple):
    """The host that a loss hits, and the run at that moment, after the first server has been started."""

    chance: Random
    cluster: AttackedCluster
    run: subprocess.Popen[str]
    results: Path
    host: str


def kill_a_daemon(moment: LossMoment) -> None:
    moment.cluster.daemons[moment.host].kill()


def kill_a_child(moment: LossMoment) -> None:
    if pids := children(moment):
        with suppress(ProcessLookupError):
            os.kill(moment.chance.choice(pids), signal.SIGKILL)


def stop_a_child(moment: LossMoment) -> None:
    if pids := children(moment):
        stopped = moment.chance.choice(pids)
        with suppress(ProcessLookupError):
            os.kill(stopped, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(stopped, signal.SIGCONT)


def pull_a_cable(moment: LossMoment) -> None:
    moment.cluster.hosts[moment.host].unplug()


def fill_the_disk(moment: LossMoment) -> None:
    """Fill the disk of the run, which is a small one of its own."""
    inside = Path(f"/proc/{server_proc.find_family(moment.run.pid)[-1]}/root{moment.results}")
    with suppress(OSError), (inside / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


def children(moment: LossMoment) -> tuple[int, ...]:
    """Return the children of that host, once it has some or the run has ended: between two trials it has none."""
    pids: list[int] = []

    def are_there() -> bool:
        pids[:] = server_proc.find_family(moment.cluster.daemons[moment.host].pid)[1:]
        return bool(pids) or moment.run.poll() is not None

    eventually(are_there, f"{moment.host} never had anything to do")
    return tuple(pids)


def has_begun(server: int) -> bool:
    """Return whether that host has started a server."""
    return any(is_called(pid, "epoll-reactor") for pid in server_proc.find_family(server)[1:])


LOSSES: tuple[tuple[Callable[[LossMoment], None], tuple[str, ...]], ...] = (
    (kill_a_daemon, ("control", "control", "control", "control")),
    (kill_a_daemon, ("server", "server", "server", "server")),
    (kill_a_daemon, ("client", "client", "second", "second")),
    (kill_a_child, ("server", "server", "client", "second")),
    (stop_a_child, ("server", "client", "client", "second")),
    (pull_a_cable, ("control", "control", "control", "control")),
    (pull_a_cable, ("server", "server", "server", "server")),
    (pull_a_cable, ("client", "client", "client", "client")),
    (pull_a_cable, ("second", "second", "second", "second")),
    (fill_the_disk, ("control", "control", "control", "control")),
)
"""What is lost, and on which host in each turn. Turns alternate between the workloads."""


class HostLoss(NamedTuple):
    hit: Callable[[LossMoment], None]
    host: str
    workload: str


def loss(seed: int) -> HostLoss:
    """Return the loss of a seed: only its time, and which child of a host is hit, are left to chance."""
    turn, number = divmod(seed, len(LOSSES))
    hit, hosts = LOSSES[number]
    return HostLoss(hit, hosts[turn % len(hosts)], WORKLOADS[turn % len(WORKLOADS)])


def test_the_moments_cover_all_that_can_be_lost_evenly() -> None:
    everything = Counter(loss(seed) for seed in range(SEEDS))
    assert SEEDS % (len(LOSSES) * len(WORKLOADS)) == 0
    for number in range(len(LOSSES)):
        of_one = Counter(loss(seed).workload for seed in range(number, SEEDS, len(LOSSES)))
        assert set(of_one.values()) == {SEEDS // len(LOSSES) // len(WORKLOADS)}
    assert {candidate.host for candidate in everything if candidate.hit is kill_a_daemon} == {"control", *NAMES}
    assert {candidate.host for candidate in everything if candidate.hit is pull_a_cable} == {"control", *NAMES}


def begun(start: Callable[[], subprocess.Popen[str]], server: int) -> subprocess.Popen[str]:
    """Return a run that has begun a trial. On a busy machine a host may be taken for lost before that."""
    outputs: list[str] = []
    while len(outputs) < TRIES:
        run = start()
        eventually(lambda: has_begun(server) or run.poll() is not None, "no trial began")  # noqa: B023 (now)
        if run.poll() is None:
            return run
        outputs.append(run.communicate()[0])
        assert HELD_UP.search(outputs[-1]), outputs[-1]
    raise AssertionError(outputs)


def store(results: Path) -> Path:
    """Return the file of the only run."""
    (path,) = results.glob(f"*/{schema.FILE_NAME}")
    return path


def tried(path: Path) -> set[tuple[int, int, str, str]]:
    """Return the trials of a store, which is to be readable; each began at a time of its own."""
    return {(trial.block, trial.position, trial.started_at, trial.status) for trial in read.load(path).all_trials}


def test_a_loss_at_any_moment_leaves_no_process_and_a_run_that_goes_on(
    seed: int, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not request.config.getoption("--attack"):
        pytest.skip("with every run of the tests, tests/programs/test_cluster.py loses some")
    chance, (hit, host, workload) = Random(seed), loss(seed)
    after_s = chance.uniform(0, LONGEST_S)
    results, kept, folder = tmp_path / "results", tmp_path / "kept", tmp_path / "cluster"
    (tmp_path / "lost.toml").write_text(EXPERIMENT.replace("{workload}", workload))
    arguments = ("run", str(tmp_path / "lost.toml"), "--foreign-load", "count", "--json", "--cluster", str(folder))
    # Not below tmp_path: a socket's path may have 107 bytes (unix(7)).
    with on_a_bridge("control", *NAMES) as hosts, TemporaryDirectory(prefix="lost-") as short:
        temporary = Path(short)
        monkeypatch.setenv("TMPDIR", str(temporary))  # of all but what the hosts are made of
        authority.create(folder, f"tls://{hosts['control'].address}:8786")
        with standing(hosts, folder) as cluster:
            control = hosts["control"]
            if hit is fill_the_disk:
                results.mkdir()
                kept.mkdir()
                small = ("unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", str(results), "--")
                control = control._replace(enter=(*control.enter, *small))
            start = partial(control.start, *arguments, "--results", str(results))
            run = begun(start, cluster.daemons["server"].pid)
            with suppress(subprocess.TimeoutExpired):
                run.wait(after_s)
            hit(LossMoment(chance, cluster, run, results, host))
            before = set() if hit is fill_the_disk else tried(store(results))  # no other process sees this disk
            output, _ = run.communicate(timeout=4 * PATIENCE_S)
            print(
                f"seed {seed}: {hit.__name__} {host} after {after_s:.1f} s, exit code {run.returncode}", output[-600:]
            )
            assert run.returncode in (0, 1, 2, 4), output
            assert "Traceback" not in output, output
            for machine in hosts.values():
                machine.plug()
        eventually(lambda: not marked(temporary), lambda: f"still running: {marked(temporary)}")
        if hit is fill_the_disk:
            results = kept
        path = store(results)
        assert before <= (stored := tried(path))
        if read.load(path).finished_at is None:
            with standing(hosts, folder):
                given = ("--cluster", str(folder), "--results", str(results), "--json")
                resume = hosts["control"].start("resume", path.parent.name, *given)
                output, _ = resume.communicate(timeout=4 * PATIENCE_S)
            assert resume.returncode in (0, 1), output
        assert stored <= tried(path)
        trials = read.load(path).trials
        assert {(trial.block, trial.position) for trial in trials} == {(1, 0), (1, 1), (2, 0), (2, 1)}
        assert marked(temporary) == []

"""Something of a cluster is lost at any moment of a run: what is stored is readable, nothing goes on running, and with
all hosts back the run can be gone on with to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from netdyno.cluster import authority
from netdyno.machine import server_proc
from netdyno.store import read, schema
from tests.attack.test_kills import marked
from tests.support.hosts import Host, daemon, is_called, on_a_bridge
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


class Cluster(NamedTuple):
    """Its daemons by their hosts' names; that of "control" is the scheduler."""

    folder: Path
    hosts: dict[str, Host]
    daemons: dict[str, subprocess.Popen[str]]


@contextmanager
def standing(hosts: dict[str, Host], folder: Path) -> Iterator[Cluster]:
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        found = {"control": stack.enter_context(daemon(hosts["control"], "scheduler", "--cluster", str(folder)))}
        for name in NAMES:
            role, core = ("server", cores[0]) if name == "server" else ("client", cores[-1])
            words = ("--as", role, "--cores", str(core), "--cluster", str(folder))
            joining = daemon(hosts[name], "join", authority.scheduler_of(folder), *words)
            found[name] = stack.enter_context(joining)
        yield Cluster(folder, hosts, found)


def kill_a_daemon(chance: Random, cluster: Cluster) -> None:
    cluster.daemons[chance.choice(("control", *NAMES))].kill()


def kill_a_child(chance: Random, cluster: Cluster) -> None:
    if found := children(chance, cluster):
        with suppress(ProcessLookupError):
            os.kill(chance.choice(found), signal.SIGKILL)


def stop_a_child(chance: Random, cluster: Cluster) -> None:
    if found := children(chance, cluster):
        stopped = chance.choice(found)
        with suppress(ProcessLookupError):
            os.kill(stopped, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(stopped, signal.SIGCONT)


def pull_a_cable(chance: Random, cluster: Cluster) -> None:
    cluster.hosts[chance.choice(("control", *NAMES))].unplug()


def has_begun(server: int) -> bool:
    """Whether that host has started a server."""
    return any(is_called(pid, "epoll-reactor") for pid in server_proc.family(server)[1:])


def children(chance: Random, cluster: Cluster) -> tuple[int, ...]:
    return server_proc.family(cluster.daemons[chance.choice(NAMES)].pid)[1:]


def fill_the_disk(results: Path, run: int) -> None:
    """That of the controller, which is a small one of its own."""
    inside = Path(f"/proc/{server_proc.family(run)[-1]}/root{results}")
    with suppress(OSError), (inside / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


HITS: tuple[Callable[[Random, Cluster], None] | None, ...] = (
    kill_a_daemon,
    kill_a_child,
    stop_a_child,
    pull_a_cable,
    None,
)
"""None: the disk is filled."""


def test_a_loss_at_any_moment_leaves_nobody_and_a_run_that_goes_on(
    seed: int, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not request.config.getoption("--attack"):
        pytest.skip("with every run of the tests, tests/programs/test_cluster.py loses some")
    chance = Random(seed)
    hit, after_s = HITS[seed % len(HITS)], chance.uniform(0, LONGEST_S)
    results, kept, folder = tmp_path / "results", tmp_path / "kept", tmp_path / "cluster"
    workload = WORKLOADS[seed // len(HITS) % len(WORKLOADS)]
    (tmp_path / "lost.toml").write_text(EXPERIMENT.replace("{workload}", workload))
    given = ("--cluster", str(folder), "--results", str(results), "--json")
    # Not below tmp_path: a socket's path may have 107 bytes (unix(7)).
    with on_a_bridge("control", *NAMES) as hosts, TemporaryDirectory(prefix="lost-") as short:
        temporary = Path(short)
        monkeypatch.setenv("TMPDIR", str(temporary))  # of all but what the hosts are made of
        authority.init(folder, f"tls://{hosts['control'].address}:8786")
        with standing(hosts, folder) as cluster:
            control = hosts["control"]
            if hit is None:
                results.mkdir()
                kept.mkdir()
                small = ("unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "sh", str(results), "--")
                control = control._replace(enter=(*control.enter, *small))
            run = control.start("run", str(tmp_path / "lost.toml"), "--foreign-load", "count", *given)
            eventually(lambda: has_begun(cluster.daemons["server"].pid) or run.poll() is not None, "no trial began")
            with suppress(subprocess.TimeoutExpired):
                run.wait(after_s)
            if hit is None:
                fill_the_disk(results, run.pid)
            else:
                hit(chance, cluster)
            said, _ = run.communicate(timeout=4 * PATIENCE_S)
            name = hit.__name__ if hit else "fill_the_disk"
            print(f"seed {seed}: {name} after {after_s:.1f} s, exit code {run.returncode}", said[-600:])
            assert run.returncode in (0, 1, 2, 4), said
            assert "Traceback" not in said, said
            for host in hosts.values():
                host.plug()
        eventually(lambda: not marked(temporary), lambda: f"still running: {marked(temporary)}")
        if hit is None:
            results = kept
            given = ("--cluster", str(folder), "--results", str(results), "--json")
        for path in results.glob(f"*/{schema.FILE_NAME}"):
            if read.load(path).finished_at is None:
                with standing(hosts, folder):
                    resume = hosts["control"].start("resume", path.parent.name, *given)
                    said, _ = resume.communicate(timeout=4 * PATIENCE_S)
                assert resume.returncode in (0, 1), said
            trials = read.load(path).trials
            assert {(trial.block, trial.position) for trial in trials} == {(1, 0), (1, 1), (2, 0), (2, 1)}
        assert marked(temporary) == []

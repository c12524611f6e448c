#!/usr/bin/env python3
"""Whether hosts of a cluster measure what one machine measures, by two one-sided tests within 5%, and what they cost.

    python bench/hosts_compare.py generators [--blocks 10]     one client host against two, each with half of the rate
    python bench/hosts_compare.py machine [--blocks 10]        this machine against a cluster that is on it

Far below saturation: 2000 messages a second of echo over 20 connections (--connections), constant arrivals; with
--service-time 2ms, of requests that the server answers after so long, beside which little is left of what sharing a
core costs. A connection has one of them served at a time, so a long service time takes more connections. The client
hosts of the first are network namespaces on a bridge; the cluster of the second has both its workers on the loopback,
as the run without one has. What is compared alternates in blocks, at random within a run, by turns between runs. Run by
hand on a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from scipy.stats import t as students_t

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from tests.support.hosts import NETDYNO, Host, daemon, on_a_bridge

from netdyno.cluster import authority
from netdyno.model.trial import Trial
from netdyno.store import read, schema

MARGIN = math.log(1.05)
LEVEL = 0.05
TRIALS_OF_A_TURN = 3
EXPERIMENT = """
question = "Do hosts measure what one machine measures?"
contestants = ["epoll-reactor"]
blocks = 1
warmup = "200ms"
duration = "1s"

[[scenario]]
name = "load"
workload = "{workload}"
arrivals = "constant"
connections = {connections}
rate = 2000
{server}
"""
WAITS = """[scenario.server]
service-kind = "wait"
service-time = "{service_time}"
"""
LEVELS = "[scenario.factors]\nclient-hosts = [1, 2]\n"


class Figures(NamedTuple):
    throughput: float
    p50: float
    p99: float


class Equivalence(NamedTuple):
    """The mean of log ratios, half of its 90% interval, and the greater p of both one-sided tests."""

    mean: float
    half: float
    p: float


def equivalence(ratios: Sequence[float]) -> Equivalence:
    """Two one-sided t-tests (Schuirmann 1987) of whether log ratios have a mean within MARGIN. Pure."""
    count = len(ratios)
    mean = math.fsum(ratios) / count
    error = math.sqrt(math.fsum((one - mean) ** 2 for one in ratios) / (count - 1) / count)
    half = float(students_t.ppf(1 - LEVEL, count - 1)) * error
    if error == 0:
        return Equivalence(mean, half, 0.0 if abs(mean) < MARGIN else 1.0)
    return Equivalence(mean, half, float(students_t.sf((MARGIN - abs(mean)) / error, count - 1)))


def table(pairs: Sequence[tuple[Figures, Figures]]) -> str:
    """A line for each figure: the second over the first. Pure."""
    lines = []
    for name in Figures._fields:
        found = equivalence([math.log(getattr(after, name) / getattr(before, name)) for before, after in pairs])
        low, high = (math.exp(found.mean + sign * found.half) for sign in (-1, 1))
        said = "within 5%" if found.p < LEVEL else "not shown"
        lines.append(f"{name:<12}{math.exp(found.mean):7.3f}  [{low:.3f} to {high:.3f}]  p {found.p:.2g}: {said}")
    return "\n".join(lines)


def figures(trials: Sequence[Trial]) -> Figures:
    """Of trials of one kind, the geometric mean. Raises ValueError where one measured nothing."""
    loads = [trial.load for trial in trials if trial.load is not None]
    if len(loads) < len(trials) or not trials:
        raise ValueError("; ".join(trial.reason for trial in trials))
    each = [(one.requests.per_second, one.latency.response_ns.p50, one.latency.response_ns.p99) for one in loads]
    return Figures(*(math.exp(math.fsum(map(math.log, column)) / len(column)) for column in zip(*each, strict=True)))


def run(results: Path, blocks: int, toml: Path, *cluster: str, host: Host | None = None) -> tuple[Trial, ...]:
    words = ["run", str(toml), "--blocks", str(blocks), "--results", str(results), "--foreign-load", "count", "--json"]
    enter = host.enter if host else ()
    command = [*enter, *NETDYNO, *words, "--aa-share", "0", *cluster]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    (path,) = results.glob(f"*/{schema.FILE_NAME}")
    return read.load(path).trials


def experiment(service_time: str, connections: int) -> str:
    """As TOML; an empty service time: echo."""
    server = WAITS.format(service_time=service_time) if service_time else ""
    return EXPERIMENT.format(workload="rpc" if service_time else "echo", connections=connections, server=server)


def generators(blocks: int, asked: str, folder: Path) -> str:
    """One client host against two, within the blocks of one run."""
    toml, certificates = folder / "hosts.toml", folder / "cluster"
    toml.write_text(asked + LEVELS)
    with on_a_bridge("control", "server", "first", "second") as hosts, ExitStack() as stack:
        authority.init(certificates, f"tls://{hosts['control'].address}:8786")
        stack.enter_context(daemon(hosts["control"], "scheduler", "--cluster", str(certificates)))
        for name in ("server", "first", "second"):
            join = joining(certificates, "server" if name == "server" else "client")
            stack.enter_context(daemon(hosts[name], *join))
        trials = run(folder / "results", blocks, toml, "--cluster", str(certificates), host=hosts["control"])
    by_level = {level: [one for one in trials if one.levels["client-hosts"] == level] for level in (1, 2)}
    return table([(figures([one]), figures([two])) for one, two in zip(by_level[1], by_level[2], strict=True)])


def machine(blocks: int, asked: str, folder: Path) -> str:
    """Turns of this machine and of a cluster on it, and how long a trial of each takes."""
    toml, certificates = folder / "machine.toml", folder / "cluster"
    toml.write_text(asked)
    pairs: list[tuple[Figures, Figures]] = []
    took: tuple[list[float], list[float]] = ([], [])
    kinds: dict[str, tuple[str, ...]] = {"alone": (), "hosts": ("--cluster", str(certificates))}
    with on_loopback(certificates):
        for turn in range(blocks):
            found = {}
            for name in kinds if turn % 2 else reversed(kinds):
                found[name] = run(folder / f"{name}-{turn}", TRIALS_OF_A_TURN, toml, *kinds[name])
            alone, hosts = found["alone"], found["hosts"]
            pairs.append((figures(alone), figures(hosts)))
            for seconds, trials in zip(took, (alone, hosts), strict=True):
                seconds.append(seconds_of_a_trial(trials))
    return f"{table(pairs)}\n{cost('this machine', took[0])}\n{cost('cluster', took[1])}"


def seconds_of_a_trial(trials: Sequence[Trial]) -> float:
    """From one beginning to the next."""
    first, last = (datetime.fromisoformat(trial.started_at) for trial in (trials[0], trials[-1]))
    return (last - first).total_seconds() / (len(trials) - 1)


def cost(where: str, seconds: Sequence[float]) -> str:
    """Pure. The window is a second."""
    each = sorted(seconds)[len(seconds) // 2]
    return f"{where:<14}{60 / each:6.1f} trials a minute, {1 / each:.0%} of the time within windows"


@contextmanager
def on_loopback(certificates: Path) -> Iterator[None]:
    """A scheduler and both workers on this machine, on the cores that a run without them would use."""
    authority.init(certificates, "tls://127.0.0.1:8796")
    here = Host("here", "127.0.0.1", (), None)
    with ExitStack() as stack:
        stack.enter_context(daemon(here, "scheduler", "--cluster", str(certificates)))
        for role, port in (("server", "8797"), ("client", "8798")):
            stack.enter_context(daemon(here, *joining(certificates, role), "--port", port))
        yield


def joining(certificates: Path, role: str) -> tuple[str, ...]:
    core = sorted(os.sched_getaffinity(0))[0 if role == "server" else -1]
    at = authority.scheduler_of(certificates)
    return "join", at, "--as", role, "--cores", str(core), "--cluster", str(certificates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("generators", "machine"))
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--service-time", default="", help="such as 2ms (default: echo)")
    parser.add_argument("--connections", type=int, default=20)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hosts-") as folder:
        compare = generators if wanted.what == "generators" else machine
        asked = experiment(wanted.service_time, wanted.connections)
        print(compare(wanted.blocks, asked, Path(folder)))


if __name__ == "__main__":
    main()

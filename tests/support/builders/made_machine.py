"""Machines of other sizes than this one: their processors as the kernel shows them, and trials on these without any
program, by servers of which each thread that has a core of its own answers so many messages a second."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from netdyno.experiment.plan import Cell
from netdyno.machine.pinning import generator_cores, server_cores
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit
from netdyno.model.options import settings
from netdyno.model.server_options import added_options
from netdyno.model.trial import Trial
from netdyno.trial.command import load_command, server_command
from netdyno.trial.setup import Bench
from tests.support.builders.made_claims import made_trial

A_CORE_HZ = 20_000
"""What a thread of a server answers a second."""
A_THREAD_HZ = 30_000
"""What a thread of the generator can ask for a second, at most."""


@dataclass(frozen=True)
class Machine:
    """`siblings`: of each processor those that share its physical core. `server` and `generator`: how many processors
    each side is to have; none where they share the only one."""

    siblings: Mapping[int, str]
    server: int
    generator: int

    @property
    def parallel(self) -> bool:
        return self.server > 1

    def show(self, folder: Path) -> Path:
        """Write its processors as /sys/devices/system/cpu has them (Documentation/admin-guide/cputopology.rst)."""
        for cpu, shared in self.siblings.items():
            topology = folder / f"cpu{cpu}" / "topology"
            topology.mkdir(parents=True)
            (topology / "thread_siblings_list").write_text(f"{shared}\n", encoding="ascii")
        return folder


def cores_of(count: int) -> dict[int, str]:
    """So many processors without hardware threads."""
    return {cpu: str(cpu) for cpu in range(count)}


MACHINES: Mapping[str, Machine] = {
    "1": Machine(cores_of(1), 0, 0),
    "2": Machine(cores_of(2), 1, 1),
    "2, one core with two threads": Machine({0: "0-1", 1: "0-1"}, 1, 1),
    "4": Machine(cores_of(4), 2, 2),
    "4, two cores with two threads": Machine({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, 2, 2),
    "8": Machine(cores_of(8), 4, 4),
    "64, two sockets": Machine({cpu: f"{cpu % 32},{cpu % 32 + 32}" for cpu in range(64)}, 32, 32),
}


def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, bench: Bench) -> Trial:
    """In place of runner.run_trial: the command lines are those of a trial, and what they say decides how fast it is.
    Thread by thread all models are within 10% of each other, so whoever is twice as fast has more cores."""
    wanted = settings(scenario, cell.levels)
    bench = bench.for_cell(wanted)
    cores = server_cores(bench.pinning)
    server = server_command(contestant, wanted, cores=cores)
    load = load_command(("load",), "tcp://127.0.0.1:1", wanted, 1, cores=generator_cores(bench.pinning))
    threads = wanted.connections if contestant.manifest.threads == "per-connection" else _threads(server)
    draw = random.Random(f"{cell.block} {cell.scenario} {cell.contestant} {cell.levels} {cell.twin}")
    speed = 1 + (len(contestant.name) % 5) / 50
    able = A_CORE_HZ * speed * min(threads, cores, wanted.connections) * math.exp(draw.gauss(0, 0.005))
    most = A_THREAD_HZ * _threads(load)
    figures = {"throughput": min(able, most), "p50": 1e9 / able, "p99": 3e9 / able, "cpu": 1e4 / speed}
    trial = made_trial(scenario, cell.block, contestant.name, cell.levels, figures)
    saturated = Audit(name="generator", passed=able < 0.85 * most, detail="85% of a core in a thread")
    return replace(
        trial,
        position=cell.position,
        attempt=cell.attempt,
        twin=cell.twin,
        added=added_options(contestant, wanted, cores=cores),
        pinning=bench.pinning,
        audits=(saturated,),
        status="valid" if saturated.passed else "struck_out",
        reason="" if saturated.passed else "generator: at its limit",
    )


def _threads(command: list[str]) -> int:
    return int(command[command.index("--threads") + 1]) if "--threads" in command else 1

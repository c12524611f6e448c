"""Trials on recorded machines without any program, by servers of which each thread that has a core of its own answers
so many messages a second."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from netdyno.measure.machine.pinning import count_generator_cores, count_server_cores
from netdyno.measure.trial.command import build_load_command, build_server_command
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit
from netdyno.model.options import settings
from netdyno.model.server_options import added_options
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell
from tests.support.builders.made_claims import made_trial

A_CORE_HZ = 20_000
"""What a thread of a server answers a second."""
A_THREAD_HZ = 30_000
"""What a thread of the generator can ask for a second, at most."""


@dataclass(frozen=True)
class MadeMachine:
    """`server` and `generator`: how many processors each side is to have; none where they share the only one."""

    server: int
    generator: int

    @property
    def parallel(self) -> bool:
        return self.server > 1


MACHINES: Mapping[str, MadeMachine] = {
    "vm-1": MadeMachine(0, 0),
    "vm-2": MadeMachine(1, 1),
    "vm-2-threads": MadeMachine(1, 1),
    "vm-2-quota": MadeMachine(0, 0),
    "vm-4": MadeMachine(1, 2),
    "i7-8550u": MadeMachine(2, 4),
    "ryzen-5800x-smt-off": MadeMachine(3, 4),
    "rk3588": MadeMachine(2, 2),
    "i9-12900k": MadeMachine(8, 8),
    "two-xeon-e5-2620v4": MadeMachine(14, 16),
    "epyc-7502p": MadeMachine(30, 32),
    "two-kunpeng-920": MadeMachine(32, 32),
}
"""By the names of their records (tests/support/machines/)."""


def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
    """In place of runner.run_trial: the command lines are those of a trial, and what they say decides how fast it is.
    Thread by thread all models are within 10% of each other, so a server that is twice as fast has more cores."""
    requested = settings(scenario, cell.levels)
    context = context.adapt_to_cell(requested)
    cores = count_server_cores(context.pinning)
    server = build_server_command(contestant, requested, cores=cores)
    load = build_load_command(
        ("load",), "tcp://127.0.0.1:1", requested, 1, cores=count_generator_cores(context.pinning)
    )
    threads = requested.connections if contestant.manifest.threads == "per-connection" else _threads(server)
    draw = random.Random(f"{cell.block} {cell.scenario} {cell.contestant} {cell.levels} {cell.twin}")
    speed = 1 + (len(contestant.name) % 5) / 50
    able = A_CORE_HZ * speed * min(threads, cores, requested.connections) * math.exp(draw.gauss(0, 0.005))
    most = A_THREAD_HZ * _threads(load)
    figures = {"throughput": min(able, most), "p50": 1e9 / able, "p99": 3e9 / able, "cpu": 1e4 / speed}
    trial = made_trial(scenario, cell.block, contestant.name, cell.levels, figures)
    saturated = Audit(name="generator", passed=able < 0.85 * most, detail="85% of a core in a thread")
    return replace(
        trial,
        position=cell.position,
        attempt=cell.attempt,
        twin=cell.twin,
        added=added_options(contestant, requested, cores=cores),
        pinning=context.pinning,
        audits=(saturated,),
        status="valid" if saturated.passed else "struck_out",
        reason="" if saturated.passed else "generator: at its limit",
    )


def _threads(command: list[str]) -> int:
    return int(command[command.index("--threads") + 1]) if "--threads" in command else 1

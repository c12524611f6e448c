"""Made-up runs for advice: what is true of each contestant is given, and each block has a speed of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec.structs import replace

from netdyno.analysis.analysis import analyse, derive_advice
from netdyno.analysis.found.advice import Advice
from netdyno.model.base import type_level
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell
from tests.support.builders.made_claims import made_trial

MS = 1e6
CostPerMessage = Mapping[str, float]
"""CPU per message of each contestant, in microseconds."""
SCENARIO = Scenario(
    name="workload",
    workload="rpc",
    arrivals="poisson",
    rate=5000,
    size=64,
    metric="cpu",
    server={"threads": "cores"},
)


def figures(block: int, name: str, cost: float, spread: float, p99_ms: float = 1.0) -> dict[str, float]:
    """Noise of a contestant in a block; what the block is like meets all alike."""
    own, of_all = random.Random(f"{block} {name}"), random.Random(block)
    times = own.lognormvariate(0, spread) * of_all.lognormvariate(0, 0.3)
    tail = own.lognormvariate(0, spread) * of_all.lognormvariate(0, 0.01)
    return {"cpu": 1e3 * cost * times, "p99": p99_ms * MS * tail, "p50": 0.1 * MS}


def trial(cell: Cell, scenario: Scenario, cost: float, spread: float, p99_ms: float = 1.0) -> Trial:
    return made_trial(
        scenario, cell.block, cell.contestant, cell.levels, figures(cell.block, cell.contestant, cost, spread, p99_ms)
    )


def made(
    costs: CostPerMessage,
    blocks: int | Mapping[str, int] = 8,
    spread: float = 0.01,
    objective: str = "",
    p99_ms: Mapping[str, float] | None = None,
    scenario: Scenario = SCENARIO,
    levels: Mapping[str, type_level] | None = None,
) -> Run:
    """`blocks`: of each contestant, the first so many."""
    count = {name: blocks if isinstance(blocks, int) else blocks[name] for name in costs}
    trials = [
        made_trial(
            scenario, block, name, levels or {}, figures(block, name, cost, spread, (p99_ms or {}).get(name, 1.0))
        )
        for name, cost in costs.items()
        for block in range(1, count[name] + 1)
    ]
    scenario = replace(scenario, contestants=tuple(costs), blocks=max(count.values()))
    experiment = Experiment(name="advise", question="Which?", scenarios=(scenario,), advise=Advise(objective=objective))
    return Run(
        run_id="20250101-120000-advise",
        experiment=experiment,
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:05:00Z",
        environment={"cores_allowed": 2},
        trials=tuple(trials),
    )


def advice(run: Run) -> Advice:
    computed = derive_advice(run, analyse(run))
    assert computed is not None
    return computed

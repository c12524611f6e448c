"""Made-up runs with known capacities: servers that are queues, M/M/1, each trial at a prescribed rate."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from netdyno.model.base import type_level
from netdyno.model.experiment import CapacityPlan, Experiment, Scenario
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial
from tests.support.builders.made_run import WINDOW_S, load_result

OBJECTIVE, LIMIT_MS = "p99<5ms", 5.0
RATES: tuple[type_level, ...] = (8_000, 10_000, 12_500, 15_600, 19_500, 24_400)
SERVICE_HZ = {"fast": 21_000.0, "middle": 17_000.0, "slow": 13_000.0, "weak": 5_000.0, "strong": 90_000.0}
SIGMA = 0.6
"""The sigma of a made-up distribution, a log-normal."""
Z99 = 2.326


def truth_hz(name: str, drift: float = 1.0) -> float:
    """Where the 99th percentile of the queue is the limit."""
    return SERVICE_HZ[name] * drift - 1e3 * math.log(100) / LIMIT_MS


def p99_ns(name: str, rate_hz: float, drift: float = 1.0) -> float:
    """Return the p99 of M/M/1; an overload waits for as long as the window lets it."""
    spare = SERVICE_HZ[name] * drift - rate_hz
    return min(1e9 * math.log(100) / spare, 1e9 * WINDOW_S) if spare > 0 else 1e9 * WINDOW_S


SCENARIO = Scenario(
    name="keep-up",
    workload="rpc",
    arrivals="constant",
    metric="capacity",
    objective=OBJECTIVE,
    factors={"rate": RATES},
    size=64,
)


def load(name: str, rate_hz: float, drift: float, random: np.random.Generator) -> LoadResult:
    median_ns = p99_ns(name, rate_hz, drift) / math.exp(SIGMA * Z99)
    answered = min(rate_hz, SERVICE_HZ[name] * drift)
    return load_result(SCENARIO, {"rate": rate_hz}, answered, median_ns, SIGMA, random)


def trial(name: str, block: int, position: int, result: LoadResult, *failed: str) -> Trial:
    rate = result.plan.rate_hz or 0.0
    status: Status = "struck_out" if failed else "valid"
    return Trial(
        block=block,
        position=position,
        scenario=SCENARIO.name,
        contestant=name,
        levels={"rate": int(rate) if rate.is_integer() else rate},
        status=status,
        reason="; ".join(f"{audit}: so it was" for audit in failed),
        started_at="2025-01-01T12:00:00Z",
        seconds=WINDOW_S,
        load=result,
        audits=(
            Audit(name="bytes", passed=True, detail="as expected"),
            *(Audit(name=audit, passed=False, detail="so it was") for audit in failed),
        ),
    )


@lru_cache
def experiment_run(names: tuple[str, ...] = ("fast", "middle", "slow"), blocks: int = 9) -> Run:
    """Every server at every rate in every block. The machine drifts by a tenth between blocks."""
    random = np.random.default_rng(5)
    trials: list[Trial] = []
    for block in range(1, blocks + 1):
        drift = math.exp(random.normal(0, 0.05))
        for position, (rate, name) in enumerate(itertools.product(RATES, names)):
            trials.append(trial(name, block, position, load(name, float(rate), drift, random)))
    scenario = replace(SCENARIO, contestants=names, blocks=blocks, duration_s=WINDOW_S)
    return Run(
        run_id="2025-01-01T12-00-00-capacity",
        experiment=Experiment(name="capacity", question="Who keeps up?", scenarios=(scenario,)),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:10:00Z",
        environment={"kernel": "Linux 6.1.0-18-amd64"},
        trials=tuple(trials),
        typed=("run", "capacity"),
    )


PLAN = CapacityPlan(objective=OBJECTIVE, start_hz=1000, least_hz=50, most_hz=1_000_000)


def search_run(name: str = "fast", plan: CapacityPlan = PLAN, *failed: str) -> Run:
    """A search for the capacity of one server, carried out; with `failed`, these audits make every trial invalid."""
    from netdyno.analysis.capacity.judge_capacity import judge_capacity
    from netdyno.analysis.capacity.search import Search
    from netdyno.model.objective import parse as parse_objective

    search, random = Search(plan), np.random.default_rng(1)
    trials: list[Trial] = []
    while (rate := search.choose_rate()) is not None:
        block = 1 + sum(measured.levels["rate"] == rate for measured in trials)
        trials.append(trial(name, block, len(trials), load(name, rate, 1.0, random), *failed))
        search.tell(judge_capacity(trials[-1], parse_objective(plan.objective, ""), SCENARIO).outcome)
    rates = tuple(sorted({measured.levels["rate"] for measured in trials}, key=float))
    scenario = replace(
        SCENARIO,
        contestants=(name,),
        factors={"rate": rates},
        objective=plan.objective,
        blocks=3,
        duration_s=WINDOW_S,
    )
    return Run(
        run_id=f"2025-01-01T12-00-00-capacity-{name}",
        experiment=Experiment(name=f"capacity-{name}", question="Up to where?", scenarios=(scenario,), capacity=plan),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:01:00Z",
        environment={"kernel": "Linux 6.1.0-18-amd64"},
        trials=tuple(trials),
        typed=("capacity", name, "--objective", plan.objective),
    )

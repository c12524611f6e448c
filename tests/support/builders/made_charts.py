"""A made-up run with a figure of each kind, as an experiment file asks for them. What is true of each cell is given by
`truth`; block b has FACTORS[b - 1] times that, whose geometric mean is 1, and shares have no such noise.
What tests read off the page has three digits at most: the last bits of a mean of logarithms differ from processor to
processor, and no printed digit may hang on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from msgspec.structs import replace

from netdyno.model.experiment import Scenario
from netdyno.model.levels import combinations
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question import experiment
from tests.support.builders.made_claims import Levels, made_trial

ASIO, COROUTINES, QT, SNAPSHOT = "asio-callbacks", "asio-coroutines", "qt-thread-pool", "threads-snapshot"
REUSEPORT, FOLLY = "udp-reuseport", "folly-async"
NAMES = (ASIO, COROUTINES, QT, SNAPSHOT, REUSEPORT, FOLLY)
FACTORS = (1.1, 1 / 1.1, 1.05, 1 / 1.05, 1.2, 1 / 1.2)
ChartTruth = Callable[[str, str, Levels], Mapping[str, float]]
"""The figure of each metric, by scenario, contestant and levels."""

HEAD = f"""
question = "What did the sources draw, and how does it look here?"
contestants = {list(NAMES)}
blocks = 6
warmup = "0s"
duration = "2s"
"""
PAIRS = """
[[scenario]]
name = "pairs"
workload = "rpc"
[scenario.factors]
client = ["netdyno-load", "asio-callbacks", "qt-signals"]
both.nodelay = ["off", "on"]
"""
BARS = f"""
[[figure]]
kind = "bars"
title = "Requests answered, by server, client and TCP_NODELAY"
scenario = "pairs"
metric = "throughput"
cells = {{ contestant = ["{ASIO}", "{COROUTINES}", "{QT}", "{SNAPSHOT}"] }}
along = "client"
across = "both.nodelay"
panels = "contestant"
published = [
  {{ at = {{ contestant = "{ASIO}", client = "asio-callbacks", both.nodelay = "off" }}, value = 9128.15 }},
  {{ at = {{ contestant = "{ASIO}", client = "asio-callbacks", both.nodelay = "on" }}, value = 7455.03 }},
]
"""
ROOM = """
[[scenario]]
name = "room"
workload = "chat"
[scenario.factors]
connections = [50, 75, 100, 150, 200, 250, 300, 325, 350, 400]
backlog = [10, 42, 106, 202, 300]
"""
SURFACES = f"""
[[figure]]
kind = "surface"
title = "Throughput of the room, by clients and backlog"
scenario = "room"
metric = "throughput"
cells = {{ contestant = ["{ASIO}", "{SNAPSHOT}"] }}
along = "connections"
across = "backlog"
panels = "contestant"
[[figure.published]]
at = {{ contestant = "{SNAPSHOT}", connections = 325, backlog = 300 }}
value = 36_000
[[figure.published]]
at = {{ contestant = "{SNAPSHOT}", connections = 390, backlog = 12 }}
value = 9_000

[[figure]]
kind = "surface"
title = "Connections established"
scenario = "room"
metric = "connected"
cells = {{ contestant = ["{ASIO}", "{SNAPSHOT}"] }}
along = "connections"
across = "backlog"
panels = "contestant"
[[figure.published]]
at = {{ contestant = "{SNAPSHOT}", connections = 400, backlog = 10 }}
value = 0.15
"""
REALTIME = """
[[scenario]]
name = "100 clients"
workload = "chat"
metric = "mean"
connections = 100
[[scenario]]
name = "1000 clients"
workload = "chat"
metric = "mean"
connections = 1000
"""
LADDER = f"""
[[figure]]
kind = "ladder"
title = "Mean round trip of the own message"
scenario = ["100 clients", "1000 clients"]
metric = "mean"
panels = "scenario"
published = [
  {{ at = {{ scenario = "100 clients", contestant = "{REUSEPORT}" }}, value = "2872us" }},
  {{ at = {{ scenario = "1000 clients", contestant = "{SNAPSHOT}" }}, value = "213050us" }},
  {{ at = {{ scenario = "1000 clients", contestant = "{FOLLY}" }}, value = "44ms" }},
]
"""
GRID = """
[[scenario]]
name = "grid"
workload = "echo"
[scenario.factors]
connections = [10, 30, 100, 300, 1000, 2000, 4000, 7000]
threads = [1, 2, 3, 4, 6, 8, 12]
"""
CURVES = f"""
[[figure]]
kind = "curves"
title = "Median response time, by connections and threads"
scenario = "grid"
metric = "p50"
cells = {{ contestant = ["{ASIO}", "{FOLLY}"] }}
along = "connections"
across = "contestant"
panels = "threads"
below = ["cpu", "memory"]
scale = "log"
x-scale = "log"
published = [
  {{ at = {{ contestant = "{ASIO}", connections = 100, threads = 1 }}, value = "3.9ms" }},
  {{ at = {{ contestant = "{ASIO}", connections = 500, threads = 1 }}, value = "40.1ms" }},
  {{ at = {{ contestant = "{ASIO}", connections = 700, threads = 1 }}, value = "50.3ms" }},
]
"""


def pairs_truth(_: str, contestant: str, levels: Levels) -> dict[str, float]:
    """An Asio client that writes twice is stalled without TCP_NODELAY, where the server is Asio's too."""
    of_client = {"netdyno-load": 1.0, "asio-callbacks": 0.8, "qt-signals": 0.4}[str(levels["client"])]
    stalled = levels["client"] == ASIO and levels["both.nodelay"] == "off" and contestant == ASIO
    return {"throughput": 20_000 * of_client * (1 + NAMES.index(contestant) / 10) * (0.1 if stalled else 1)}


def room_truth(_: str, contestant: str, levels: Levels) -> dict[str, float]:
    clients, backlog = float(levels["connections"]), float(levels["backlog"])
    connected = min(1.0, 0.16 + 0.84 * (backlog * 2 + 40) / clients)
    cliff = 0.4 if contestant == SNAPSHOT and clients > 350 else 1.0
    return {"throughput": 160 * clients * connected * cliff, "connected": connected}


def realtime_truth(scenario: str, contestant: str, _: Levels) -> dict[str, float]:
    """The more clients the later; one loses an eighth of its messages of 1000 clients."""
    many = scenario == "1000 clients"
    lost = {"lost": 0.125 if many else 0.0} if contestant == REUSEPORT else {}
    return {"mean": (1 + NAMES.index(contestant)) * (2e8 if many else 3e6), **lost}


def grid_truth(_: str, contestant: str, levels: Levels) -> dict[str, float]:
    connections, threads = float(levels["connections"]), float(levels["threads"])
    folly = contestant == FOLLY
    return {
        "p50": 40_000 * connections / (1 if folly else math.sqrt(threads)) * (0.6 if folly else 1),
        "cpu": 5_000 + 2_000 * math.log10(connections) * (0.8 if folly else 1),
        "memory": (8 + connections * (0.02 if folly else 0.03)) * 2**20,
    }


def made(tables: str, truth: Mapping[str, ChartTruth], names: Mapping[str, Collection[str]], blocks: int = 6) -> Run:
    """A run of the scenarios in `tables`: `truth` and the contestants, by the name of a scenario."""
    parsed = experiment.parse(HEAD + tables, "made", "made.toml")
    trials = [
        _trial(scenario, block, name, levels, truth[scenario.name](scenario.name, name, levels))
        for block in range(1, blocks + 1)
        for scenario in parsed.scenarios
        for levels in combinations(scenario)
        for name in names.get(scenario.name, NAMES)
    ]
    return Run(
        run_id="2025-01-01T12-00-00-made",
        experiment=parsed.with_each(blocks=blocks),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:30:00Z",
        environment={"cores_allowed": 2},
        trials=tuple(trials),
    )


def _trial(scenario: Scenario, block: int, name: str, levels: Levels, truth: Mapping[str, float]) -> Trial:
    shares = ("lost", "connected", "achieved")
    figures = {key: figure if key in shares else figure * FACTORS[block - 1] for key, figure in truth.items()}
    trial = made_trial(scenario, block, name, levels, figures)
    if truth.get("connected", 1.0) < 0.5:
        return mark_invalid(trial, "connections")
    return trial


def mark_invalid(trial: Trial, audit: str) -> Trial:
    """The same, invalid by an audit."""
    failed = Audit(name=audit, passed=False, detail="fewer than asked")
    return replace(trial, status="struck_out", reason=f"{audit}: fewer than asked", audits=(failed,))


def skipped(trial: Trial, reason: str) -> Trial:
    """The same, never started."""
    return replace(trial, status="skipped", reason=reason, load=None, server=None)


TRUTH: Mapping[str, ChartTruth] = {
    "pairs": pairs_truth,
    "room": room_truth,
    "100 clients": realtime_truth,
    "1000 clients": realtime_truth,
    "grid": grid_truth,
}
TAKING_PART: Mapping[str, tuple[str, ...]] = {
    "pairs": (ASIO, COROUTINES, QT, SNAPSHOT),
    "room": (ASIO, SNAPSHOT),
    "grid": (ASIO, FOLLY),
}


@lru_cache
def charts_run(blocks: int = 6) -> Run:
    """A figure of each kind: 24 bars, two times two surfaces of 10 x 5, two ladders, seven panels of curves; Folly is
    there for the curves only."""
    tables = PAIRS + ROOM + REALTIME + GRID + BARS + SURFACES + LADDER + CURVES
    run = made(tables, TRUTH, TAKING_PART, blocks)
    trials = (
        skipped(trial, "Folly not found: see its README")
        if trial.contestant == FOLLY and "clients" in trial.scenario
        else trial
        for trial in run.trials
    )
    return replace(run, trials=tuple(trials))

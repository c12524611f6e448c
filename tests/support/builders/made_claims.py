"""Made-up runs for claims: what is true of each cell is given, and noise that cancels out over the blocks.

The text of the experiment is parsed as a file would be, so that a test is about what a user can write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from netdyno.analysis.claims.judge_claims import judge_claims
from netdyno.model import burst
from netdyno.model.base import type_level
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.load_result import PERCENTILES, Distribution, LoadResult, WriteOnly
from netdyno.model.metrics import METRICS
from netdyno.model.observation import CanaryReading, CanaryReadings, QuotaUse, ServerObservation
from netdyno.model.run import Environment, Run
from netdyno.model.trial import Trial
from netdyno.model.verdicts import JudgedClaim
from netdyno.question import experiment
from tests.support.builders.made_bursts import add_burst, add_recovery
from tests.support.builders.made_load import distribution
from tests.support.builders.made_run import ABOUT, COROUTINES, LOCK, SNAPSHOT, load_result, observation

NAMES = (COROUTINES, LOCK, SNAPSHOT)
HEAD = f"""
question = "Is it so?"
contestants = {list(NAMES)}
blocks = 8
warmup = "0s"
duration = "2s"
[[scenario]]
name = "echo"
workload = "echo"
[scenario.factors]
connections = [10, 100, 1000]
both.nodelay = ["on", "off"]
"""

CANARY = CanaryReading(
    round_trips_per_second=25_000,
    server_millions_per_second=900,
    generator_millions_per_second=900,
    seconds=0.03,
    one_core_round_trips_per_second=100_000,
)
Levels = Mapping[str, type_level]
ClaimTruth = Callable[[str, Levels], float]
LARGE: Environment = {"cores_allowed": 64, "pinning.server": ",".join(map(str, range(32))), "platforms": 1, "hosts": 1}
"""A machine with cores enough for any claim."""


WRITES = WriteOnly(messages_each=100, every_s=0.005, finished=100, failed=0, per_second=1000.0)
"""Of clients that write and never read."""


class TruthPoint(NamedTuple):
    """What is known of a cell."""

    scenario: str
    contestant: str
    levels: Levels
    figures: Mapping[str, float]


def text(tests: str, keys: str = "") -> str:
    """An experiment with one claim: `tests` are its tables, `keys` more keys of its own."""
    return f'{HEAD}\n[[claim]]\nid = "X1"\ntext = "So it is"\n{keys}\n{tests}'


def judged(run: Run) -> JudgedClaim:
    """The verdict on a run's only claim."""
    (result,) = judge_claims(run)
    return result


def made(
    tests: str,
    metric: str,
    truth: ClaimTruth,
    *,
    blocks: int = 8,
    keys: str = "",
    noise: Callable[[int, int], float] | None = None,
    change: Callable[[Trial], Trial] = lambda trial: trial,
) -> Run:
    """A run in which `metric` of each cell is what `truth` says, times a drift of each block and a noise that turns
    from block to block and from one contestant or level to the next (or what `noise` makes of block and number
    of the cell). Shares have neither drift nor more noise than some thousandths."""
    parsed = experiment.parse(text(tests, keys), "made", "made.toml")
    (scenario,) = parsed.scenarios
    trials = []
    for block in range(1, blocks + 1):
        for number, (name, levels) in enumerate(
            (name, levels) for levels in combinations(scenario) for name in scenario.contestants
        ):
            figure = truth(name, levels)
            sign, size = (-1) ** (block + _turn(scenario, name, levels)), 1 + number**2 % 7
            if METRICS[metric].scale == "share":
                figure = min(max(figure + 0.0005 * size * sign, 0.0), 1.0)
            elif metric not in ("lines", "complexity"):
                own = 0.01 * size * sign if noise is None else noise(block, number)
                figure *= math.exp(0.4 * math.sin(block) + own)
            trials.append(change(made_trial(scenario, block, name, levels, {metric: figure})))
    about = [
        replace(ABOUT[0], name=name, code=replace(ABOUT[0].code, **{metric: int(truth(name, {}))}), family=())
        for name in scenario.contestants
        if metric in ("lines", "complexity") and ABOUT[0].code
    ]
    return Run(
        run_id="made",
        experiment=parsed,
        started_at="2025-01-01T12:00:00Z",
        finished_at=None,
        environment={"cores_allowed": 2},
        trials=tuple(trials),
        about=tuple(about),
    )


RATIO = f"""
kind = "ratio"
metric = "throughput"
a.contestant = "{COROUTINES}"
b.contestant = "{LOCK}"
"""


def lossy_coroutines(trial: Trial) -> Trial:
    """A change for `made`: COROUTINES speaks UDP and lost 12% of its messages."""
    assert trial.load is not None
    if trial.contestant != COROUTINES:
        return trial
    messages = replace(trial.load.messages, expected=1000, lost=120)
    plan = replace(trial.load.plan, url="udp://127.0.0.1:7000")
    return replace(trial, load=replace(trial.load, messages=messages, plan=plan))


@lru_cache
def claims_run() -> Run:
    """One claim of each verdict: coroutines answer three times as many requests as the lock."""
    run = made(f"[claim.test]{RATIO}above = 2", "throughput", lambda name, _: 300 if name == COROUTINES else 100)
    claim_tests = {
        "K1": ("above = 2", 'why = "delayed-acks"\npublished = { "coroutines, requests in 10 s" = 91_281.5 }'),
        "K2": ("above = 4\nevery = true", ""),
        "K3": ("above = 3", 'why = "switches"'),
        "K4": ("above = 2", 'needs = ["cores >= 4"]'),
    }
    claims = "".join(
        f'[[claim]]\nid = "{name}"\ntext = "Coroutines <b>win</b> ({name})"\n{keys}\n[claim.test]{RATIO}{test}\n'
        for name, (test, keys) in claim_tests.items()
    )
    parsed = experiment.parse(HEAD + claims, "made", "made.toml")
    return replace(run, experiment=parsed)


def _turn(scenario: Scenario, name: str, levels: Levels) -> int:
    """Neighbours in one coordinate differ by one."""
    return NAMES.index(name) + sum(scenario.factors[factor].index(level) for factor, level in levels.items())


@lru_cache
def _template() -> tuple[LoadResult, ServerObservation]:
    scenario = Scenario(name="echo", workload="echo")
    random = np.random.default_rng(1)
    load = load_result(scenario, {}, 5_000.0, 1e6, 0.4, random)
    return load, observation(COROUTINES, load.requests.completed, 100, random)


def made_trial(scenario: Scenario, block: int, name: str, levels: Levels, figures: Mapping[str, float]) -> Trial:
    """A valid trial in which each of these metrics is what they say."""
    load, server = _template()
    for metric, figure in figures.items():
        load = _load(load, metric, figure)
        server = _server(server, load, metric, figure)
    return Trial(
        block=block,
        position=0,
        scenario=scenario.name,
        contestant=name,
        levels=dict(levels),
        status="valid",
        reason="",
        started_at="2025-01-01T12:00:00Z",
        seconds=2.6,
        load=load,
        server=server,
        canary=CanaryReadings(before=CANARY, after=CANARY),
        kernel={"DelayedACKs": 40, "ListenOverflows": 1, "setup.ListenOverflows": 2, "RetransSegs": 0},
    )


def of_points(
    requested: Experiment,
    points: Sequence[TruthPoint],
    change: Callable[[Trial, TruthPoint], Trial] = lambda trial, _: trial,
) -> Run:
    """A run of these cells on a large machine, each as its point says to within a thousandth, which cancels out over
    the blocks."""
    scenarios = {scenario.name: scenario for scenario in requested.scenarios}
    trials = []
    for number, point in enumerate(points):
        scenario = scenarios[point.scenario]
        for block in range(1, scenario.blocks + 1):
            figures = {name: value * (1 + 0.001 * (-1) ** (block + number)) for name, value in point.figures.items()}
            trials.append(change(made_trial(scenario, block, point.contestant, point.levels, figures), point))
    return Run(
        run_id="made",
        experiment=requested,
        started_at="2025-01-01T12:00:00Z",
        finished_at=None,
        environment=dict(LARGE),
        trials=tuple(trials),
    )


def _load(load: LoadResult, metric: str, figure: float) -> LoadResult:
    """Shares are of 100,000, so that little is lost in rounding."""
    response = load.latency.response_ns
    match metric:
        case "throughput":
            return replace(load, requests=replace(load.requests, per_second=figure))
        case "moved":  # to three recipients each
            messages = replace(load.messages, expected=3 * load.messages.sent)
            return replace(load, messages=messages, requests=replace(load.requests, per_second=figure / 4))
        case "achieved":
            plan = replace(load.plan, rate_hz=1e5)
            return replace(load, plan=plan, requests=replace(load.requests, per_second=1e5 * figure))
        case "kept":
            plan = replace(load.plan, rate_hz=1e5)
            return replace(
                load, plan=plan, requests=replace(load.requests, completed=round(1e5 * plan.duration_s * figure))
            )
        case "connected":
            counts = replace(load.connections, attempted=100_000, established=round(100_000 * figure))
            return replace(load, connections=counts)
        case "finished":
            plan = replace(load.plan, connections=100_000)
            return replace(load, plan=plan, write_only=replace(WRITES, finished=round(100_000 * figure)))
        case "written":
            return replace(load, write_only=replace(WRITES, per_second=figure))
        case "lost":
            messages = replace(load.messages, expected=100_000, lost=round(100_000 * figure))
            return replace(load, plan=replace(load.plan, url="udp://127.0.0.1:7000"), messages=messages)
        case "unanswered":
            requests = replace(load.requests, due=100_000)
            return replace(load, requests=requests, timeseries=replace(load.timeseries, errors=(round(1e5 * figure),)))
        case "burst-goodput":
            _, length_s, _ = burst.divide(load.plan.duration_s)
            return add_burst(load, (), completed=round(figure * length_s))
        case "recovery":
            return add_recovery(load, figure)
        case "jitter":
            return replace(
                load, latency=replace(load.latency, response_ns=_with(response, "p99", figure + response.p50))
            )
        case "connection-spread":
            means = distribution(100, 1_000_000)
            return replace(load, connection_mean_ns=_with(means, "p99", figure * means.p50))
        case _ if metric in {"mean", *PERCENTILES.values()}:
            return replace(load, latency=replace(load.latency, response_ns=_with(response, metric, figure)))
    return load


def _with(response: Distribution, metric: str, figure: float) -> Distribution:
    return replace(response, **{metric: figure if metric == "mean" else round(figure)})


def _server(server: ServerObservation, load: LoadResult, metric: str, figure: float) -> ServerObservation:
    completed = load.requests.completed
    match metric:
        case "cpu":
            return replace(server, cpu_user_s=0.25e-9 * figure * completed, cpu_system_s=0.75e-9 * figure * completed)
        case "cpu-used":
            return replace(server, cpu_user_s=figure * server.window_s, cpu_system_s=0.0)
        case "switches":
            return replace(server, voluntary_switches=round(figure * completed), involuntary_switches=0)
        case "switching":  # each a round trip of the canary on one core
            switches = round(figure * server.cpu_s * CANARY.one_core_round_trips_per_second)
            return replace(server, voluntary_switches=switches, involuntary_switches=0)
        case "lock-wait":
            waited_ns = round(1000 * figure * load.latency.response_ns.mean)
            return replace(server, totals={"requests": 1000, "lock_wait_ns": waited_ns})
        case "throttled":
            quota_use = QuotaUse(periods=1000, throttled_periods=round(1000 * figure), throttled_s=figure)
            return replace(server, quota_use=quota_use)
        case "memory":
            return replace(server, rss_peak_bytes=round(figure))
    return server

"""A made-up run with known effects, for tests of analysis, table and report: deterministic, real HDR strings.

What is true in it: in `echo`, epoll-coroutines leads asio-callbacks by 12% and the two Asio contestants do not differ;
in `http` the first two do not differ; in `rpc` (open loop) the threads have twice the p99; `chat` has too few pairs for
any verdict. The machine drifts by far more than the contestants differ.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from functools import lru_cache

import msgspec
import numpy as np

from netdyno.kit.statistics import hdr
from netdyno.model.base import type_level
from netdyno.model.contestant import About, CodeSize
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.load_result import (
    PERCENTILES,
    Audit,
    Bytes,
    ClientReport,
    Connections,
    Distribution,
    Generator,
    GeneratorThread,
    Latency,
    LoadPlan,
    LoadResult,
    Messages,
    Requests,
    TimeSeries,
)
from netdyno.model.observation import MachineObservation, Pinning, ServerObservation
from netdyno.model.run import Run
from netdyno.model.trial import Trial

HOUR_NS = 3_600_000_000_000
EPOLL, CALLBACKS, COROUTINES = "epoll-coroutines", "asio-callbacks", "asio-coroutines"
SNAPSHOT, LOCK, FOLLY = "threads-snapshot", "threads-global-lock", "folly-fibers"
MEASURED = (EPOLL, CALLBACKS, COROUTINES, SNAPSHOT, LOCK)
SPEED = {
    "echo": {EPOLL: 1.12, CALLBACKS: 1.0, COROUTINES: 1.0, SNAPSHOT: 0.72, LOCK: 0.70},
    "http": {EPOLL: 1.0, CALLBACKS: 1.0, COROUTINES: 0.93, SNAPSHOT: 0.75, LOCK: 0.75},
    "rpc": {EPOLL: 1.25, CALLBACKS: 1.05, COROUTINES: 1.0, SNAPSHOT: 0.5, LOCK: 0.5},
    "chat": {EPOLL: 1.0, CALLBACKS: 0.97, COROUTINES: 0.96, SNAPSHOT: 0.9, LOCK: 0.6},
}
SCENARIOS = (
    Scenario(name="echo", workload="echo", factors={"connections": (10, 100, 1000)}),
    Scenario(name="http", workload="http", factors={"connections": (10, 100, 1000)}, size=128),
    Scenario(
        name="rpc-open",
        workload="rpc",
        factors={"rate": (10_000, 20_000, 40_000)},
        arrivals="poisson",
        metric="p99",
        connections=100,
        size=64,
    ),
    Scenario(name="chat", workload="chat", metric="p50", connections=50, size=64),
)
WINDOW_S = 2.0
QT = "qt-signals"
ABOUT = (
    About(
        kind="server",
        name=EPOLL,
        model="coroutines on an own epoll loop",
        caveats=("a service time that burns CPU holds up every other connection while it lasts",),
        code=CodeSize(files=2, lines=120, functions=14, complexity=42, complexity_max=9),
        family=("servers/_shared/epoll",),
    ),
    About(
        kind="server",
        name=LOCK,
        model="a thread per connection, one global lock",
        code=CodeSize(files=1, lines=147, functions=12, complexity=37, complexity_max=8),
    ),
    About(kind="client", name=QT, model="Qt Network, signals and slots", why_no_code="main.cpp cannot be counted"),
    About(
        kind="shared",
        name="lib/net",
        code=CodeSize(files=23, lines=1097, functions=117, complexity=279, complexity_max=13),
    ),
    About(
        kind="shared",
        name="servers/_shared/epoll",
        code=CodeSize(files=5, lines=400, functions=50, complexity=110, complexity_max=13),
    ),
)


@lru_cache(maxsize=4096)
def distribution(median_ns: float, sigma: float, count: int) -> Distribution:
    """A log-normal as an HDR histogram, with its tail drawn out to the last message."""
    body, tail = np.linspace(0, 0.99, 120), 1 - np.logspace(-2, -math.log10(max(count, 200)), 60)
    edges = np.unique(np.concatenate([body, tail, [1.0]]))
    normal = importlib.import_module("statistics").NormalDist()
    histogram = importlib.import_module("hdrh.histogram").HdrHistogram(1, HOUR_NS, 3)
    for low, high in itertools.pairwise(edges):
        times = round(count * high) - round(count * low)
        if times:
            histogram.record_value(max(1, int(median_ns * math.exp(sigma * normal.inv_cdf((low + high) / 2)))), times)
    text = histogram.encode().decode()
    decoded = hdr.decode(text)  # its own percentiles walk every bucket in Python: too slow for hundreds of trials
    *values, largest = map(int, hdr.curve(decoded, (*PERCENTILES, 100)))
    return Distribution(
        count=decoded.count,
        mean=float(decoded.counts @ decoded.highest) / decoded.count,
        max=largest,
        histogram=text,
        **dict(zip(PERCENTILES.values(), values, strict=True)),
    )


def load_result(
    scenario: Scenario,
    levels: dict[str, type_level],
    per_second: float,
    median_ns: float,
    sigma: float,
    random: np.random.Generator,
) -> LoadResult:
    completed = int(per_second * WINDOW_S)
    connections = int(levels.get("connections", scenario.connections))
    rate = levels.get("rate", scenario.rate)
    intervals = int(WINDOW_S * 10)
    shape = random.normal(1, 0.03, size=intervals)
    counts = (completed / intervals * shape / shape.mean()).astype(int)
    response = distribution(median_ns, sigma, completed)
    service = response if scenario.arrivals == "closed" else distribution(median_ns * 0.97, sigma, completed)
    lag = distribution(1_500 if scenario.arrivals != "closed" else 120, 0.7, 200_000)
    busy = 0.55 + 0.1 * random.random()
    thread = GeneratorThread(cpu_user_s=busy * WINDOW_S * 0.3, cpu_system_s=busy * WINDOW_S * 0.7, spun_s=0.0)
    size = scenario.size
    return LoadResult(
        version=1,
        plan=LoadPlan(
            url="tcp://127.0.0.1:7000",
            workload=scenario.workload,
            arrivals=scenario.arrivals,
            depth=scenario.depth,
            rate_hz=None if scenario.arrivals == "closed" else float(rate or 0),
            connections=connections,
            size=size,
            threads=1,
            audience="others",
            seed=1,
            warmup_s=0.3,
            duration_s=WINDOW_S,
            timeout_s=10.0,
        ),
        requests=Requests(sent=completed, completed=completed, per_second=per_second),
        latency=Latency(response_ns=response, service_ns=service),
        send_lag_ns=lag,
        connections=Connections(
            attempted=connections, established=connections, refused=0, timed_out=0, reset=0, other=0
        ),
        connect_ns=distribution(80_000, 0.5, connections),
        messages=Messages(
            sent=completed, expected=completed, received=completed, lost=0, duplicated=0, reordered=0, corrupt=0
        ),
        bytes=Bytes(sent=completed * size, received=completed * size, expected=completed * size),
        generator=Generator(
            cpu_user_s=thread.cpu_user_s,
            cpu_system_s=thread.cpu_system_s,
            spun_s=0.0,
            cores_used=busy,
            max_rss_bytes=24 << 20,
            threads=(thread,),
        ),
        errors={"timeout": 0, "closed_by_server": 0, "reset": 0, "protocol": 0},
        timeseries=TimeSeries(
            interval_ns=100_000_000,
            completed=tuple(int(value) for value in counts),
            p50_ns=tuple(int(median_ns * value) for value in shape),
            p99_ns=tuple(int(median_ns * 3 * value) for value in shape),
            errors=(0,) * intervals,
        ),
        audits=(),
    )


def observation(contestant: str, completed: int, connections: int, random: np.random.Generator) -> ServerObservation:
    threaded = contestant in (SNAPSHOT, LOCK)
    user_us, system_us = (1.6, 6.0) if threaded else (0.9 if contestant == EPOLL else 1.2, 4.0)
    wobble = random.normal(1, 0.03)
    return ServerObservation(
        cpu_user_s=completed * user_us * wobble / 1e6,
        cpu_system_s=completed * system_us * wobble / 1e6,
        rss_peak_bytes=(4 << 20) + connections * (11_000 if threaded else 1_700),
        threads=1 + connections if threaded else 1,
        voluntary_switches=int(completed * (0.98 if threaded else 0.02)),
        involuntary_switches=int(completed * 0.003),
        run_queue_wait_s=completed * (2.1 if threaded else 0.08) / 1e6,
        window_s=WINDOW_S,
        harness_cpu_s=0.004,
        totals={"requests": completed, "connections": connections, "protocol_errors": 0},
    )


def _figures(
    scenario: Scenario, levels: dict[str, type_level], contestant: str, drift: float, random: np.random.Generator
) -> tuple[float, float, float]:
    """Rate, median response in ns and spread of one trial."""
    speed = SPEED[scenario.workload][contestant] * drift * math.exp(random.normal(0, 0.012))
    connections = int(levels.get("connections", scenario.connections))
    if scenario.arrivals != "closed":
        rate = float(levels.get("rate", scenario.rate or 1000))
        load = rate / 120_000
        return rate, 48_000 / speed / (1 - load), 0.35 + 0.3 * load
    per_second = {10: 105_000, 50: 61_000, 100: 148_000, 1000: 131_000}[connections] * speed
    if connections == 1000 and contestant in (SNAPSHOT, LOCK):
        per_second *= 0.72
    return per_second, connections / per_second * 1e9 * 0.93, 0.4


def _measured(
    scenario: Scenario,
    levels: dict[str, type_level],
    contestant: str,
    block: int,
    drift: float,
    random: np.random.Generator,
) -> Trial:
    load = load_result(scenario, levels, *_figures(scenario, levels, contestant, drift, random), random)
    return Trial(
        block=block,
        position=0,
        scenario=scenario.name,
        contestant=contestant,
        levels=levels,
        status="valid",
        reason="",
        started_at="2025-01-01T12:00:00Z",
        seconds=WINDOW_S + 0.6,
        pinning=Pinning(server=(0,), generator=(1,), note=""),
        load=load,
        server=observation(contestant, load.requests.completed, load.connections.established, random),
        machine=MachineObservation(
            cores=2, window_s=WINDOW_S, steal_s=0.0, own_s=WINDOW_S, foreign_s=0.02 * WINDOW_S, switches=20_000
        ),
        kernel={"TcpRetransSegs": 0, "ListenOverflows": 0},
        audits=tuple(
            Audit(name=name, passed=True, detail="as expected")
            for name in ("verification", "bytes", "connections", "little", "generator", "server_alive")
        ),
    )


def _without_figures(trial: Trial, status: str, reason: str, **changes: object) -> Trial:
    replace = importlib.import_module("msgspec.structs").replace
    result: Trial = replace(trial, status=status, reason=reason, **changes)
    return result


def _trials(blocks: int, seed: int) -> list[Trial]:
    random = np.random.default_rng(seed)
    trials: list[Trial] = []
    for block, scenario in itertools.product(range(1, blocks + 1), SCENARIOS):
        drift = math.exp(random.normal(0, 0.25))
        for combination in itertools.product(*scenario.factors.values()):
            levels = dict(zip(scenario.factors, combination, strict=True))
            trials += [_measured(scenario, levels, name, block, drift, random) for name in MEASURED]
            reason = "Folly not found: install it from source, see servers/folly-fibers/README.md"
            skipped = _without_figures(
                trials[-1], "skipped", reason, contestant=FOLLY, load=None, server=None, audits=(), pinning=None
            )
            trials.append(skipped)
    return trials


@lru_cache
def paired_run() -> Run:
    """Three servers with three clients at two loads: one pair without a valid trial, one with half of them, one client
    missing. Threads are slower than epoll with either client."""
    factors: dict[str, tuple[type_level, ...]] = {"client": ("netdyno-load", CALLBACKS, QT), "connections": (10, 100)}
    scenario = Scenario(name="pairs", workload="rpc", factors=factors, size=64)
    random = np.random.default_rng(3)
    trials: list[Trial] = []
    for contestant, client, connections in itertools.product((EPOLL, CALLBACKS, LOCK), *factors.values()):
        assert isinstance(contestant, str)
        levels: dict[str, type_level] = {"client": client, "connections": connections}
        trial = _measured(scenario, levels, contestant, 1, 0.5 if client == CALLBACKS else 1.0, random)
        if client == QT:
            reason = f"client {QT}: Qt 6 not found: install qt6-base-dev"
            trial = _without_figures(trial, "skipped", reason, load=None, server=None, audits=(), pinning=None)
        elif client == CALLBACKS and (contestant == LOCK or (contestant, connections) == (CALLBACKS, 100)):
            audits = (Audit(name="verification", passed=False, detail="lost 3"), *trial.audits[1:])
            trial = _without_figures(trial, "struck_out", "verification: lost 3", audits=audits)
        elif client == CALLBACKS and trial.load is not None and trial.server is not None:
            server = msgspec.structs.replace(trial.server, tick_lag_ns=distribution(80_000, 0.5, 1000))
            trial = _without_figures(trial, "valid", "", load=_of_client(trial.load), server=server)
        trials.append(trial)
    return Run(
        run_id="2025-01-01T12-00-00-pairs",
        experiment=Experiment(
            name="pairs",
            question="Does every server work with every client?",
            scenarios=(scenario,),
        ).with_each(contestants=(EPOLL, CALLBACKS, LOCK), warmup_s=0.3, duration_s=WINDOW_S),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:01:00Z",
        typed=("run", "quick"),
        environment={"kernel": "Linux 6.1.0-18-amd64"},
        trials=tuple(trials),
        about=ABOUT,
    )


def _of_client(load: LoadResult) -> LoadResult:
    counts = dict.fromkeys((field.name for field in msgspec.structs.fields(ClientReport)), 0)
    report = msgspec.convert(counts | {"tick_lag_ns": distribution(60_000, 0.5, 1000)}, ClientReport)
    return msgspec.structs.replace(load, client=report)


UDP, REUSEPORT, ZMQ = "udp-coroutines", "udp-reuseport", "zeromq-coroutines"
SENDERS = {EPOLL: "tcp", LOCK: "tcp", REUSEPORT: "udp", UDP: "udp", ZMQ: "zmq+tcp"}
MESSAGE_SPEED = {EPOLL: 1.0, LOCK: 0.3, UDP: 1.5, REUSEPORT: 2.5, ZMQ: 0.6}
LOST = {UDP: 0.0002, REUSEPORT: 0.12, ZMQ: 0.0}
"""The share that each loses at 1000 connections; at 100 none loses anything."""


@lru_cache
def messages_run(blocks: int = 5, everybody: bool = False) -> Run:
    """Transports that lose messages beside TCP, by the mean response time: udp-reuseport answers soonest what it does
    not lose, udp-coroutines loses less than the bound, zeromq-coroutines nothing. With `everybody`, only the two over
    UDP took part, and both lost a quarter."""
    scenario = Scenario(
        name="realtime",
        workload="chat",
        metric="mean",
        factors={"connections": (100, 1000)},
        size=64,
        where_possible={"threads": 2},
    )
    random = np.random.default_rng(11)
    names = (REUSEPORT, UDP) if everybody else tuple(SENDERS)
    trials: list[Trial] = []
    for block in range(1, blocks + 1):
        drift = math.exp(random.normal(0, 0.2))
        for connections, name in itertools.product((100, 1000), names):
            speed = drift * MESSAGE_SPEED[name] / 4
            trial = _measured(scenario, {"connections": connections}, EPOLL, block, speed, random)
            lost = 0.25 if everybody else LOST.get(name, 0.0) if connections == 1000 else 0.0
            trials.append(_over_messages(trial, name, lost))
    return Run(
        run_id="2025-01-01T12-00-00-realtime",
        experiment=Experiment(
            name="realtime",
            question="Which transport brings a message to all clients soonest?",
            scenarios=(scenario,),
        ).with_each(contestants=tuple(names), blocks=blocks, warmup_s=0.3, duration_s=WINDOW_S),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:04:00Z",
        typed=("run", "quick"),
        environment={"kernel": "Linux 6.1.0-18-amd64"},
        trials=tuple(trials),
    )


def _over_messages(trial: Trial, name: str, lost: float) -> Trial:
    """The trial as it came out for a contestant over its transport, with a share of its replies corrupt: two thirds of
    them at the server's sockets, a fourth at the generator's, the rest at an unknown place."""
    replace, load = msgspec.structs.replace, trial.load
    assert load is not None
    sent = load.messages.sent
    expected = sent * load.connections.established
    gone = round(expected * lost)
    messages = replace(load.messages, expected=expected, received=expected - gone, lost=gone)
    if lost:
        messages = replace(
            messages, late=sent // 1000, duplicated=messages.received // 5000, reordered=messages.received // 200
        )
    kernel = dict(trial.kernel)
    generator = load.generator
    if SENDERS[name] == "udp":
        at_server, at_generator = gone * 2 // 3 // load.connections.established, gone // 4
        generator = replace(generator, socket_drops=at_generator)
        kernel |= {"setup.UdpServerDrops": 0, "UdpServerDrops": at_server, "drain.UdpServerDrops": 0}
        kernel |= {"setup.UdpRcvbufErrors": 0, "UdpRcvbufErrors": at_server + at_generator}
    url = f"{SENDERS[name]}://127.0.0.1:7000"
    load = replace(load, plan=replace(load.plan, url=url), messages=messages, generator=generator)
    added: dict[str, type_level] = {"threads": 2} if name == REUSEPORT else {}
    return replace(trial, contestant=name, load=load, kernel=kernel, added=added)


def _with_corrupt(trial: Trial, corrupt: int) -> Trial:
    assert trial.load is not None
    messages = msgspec.structs.replace(trial.load.messages, corrupt=corrupt)
    return msgspec.structs.replace(trial, load=msgspec.structs.replace(trial.load, messages=messages))


@lru_cache
def made_run(blocks: int = 6, seed: int = 7) -> Run:
    """The whole run; a few of its trials are invalid or failed."""
    trials = _trials(blocks, seed)
    invalid = next(number for number, trial in enumerate(trials) if trial.block == 2 and trial.contestant == SNAPSHOT)
    failed = next(number for number, trial in enumerate(trials) if trial.block == 3 and trial.contestant == LOCK)
    reason = "verification: 3 of 212000 replies corrupt"
    audits = (
        Audit(name="verification", passed=False, detail="3 of 212000 replies corrupt"),
        *trials[invalid].audits[1:],
    )
    trials[invalid] = _without_figures(_with_corrupt(trials[invalid], 3), "struck_out", reason, audits=audits)
    trials[failed] = _without_figures(
        trials[failed],
        "failed",
        "the server ended before it was ready (exit 1)",
        load=None,
        server=None,
        audits=(),
        log="bind: Address already in use <script>alert(1)</script>",
    )
    return Run(
        run_id="2025-01-01T12-00-00-quick",
        experiment=Experiment(
            name="quick",
            question="Which of five concurrency models serves small messages best on this machine?",
            scenarios=SCENARIOS,
            seed=seed,
        ).with_each(contestants=(*MEASURED, FOLLY), blocks=blocks, warmup_s=0.3, duration_s=WINDOW_S),
        started_at="2025-01-01T12:00:00Z",
        finished_at="2025-01-01T12:04:41Z",
        typed=("run", "quick"),
        environment={
            "kernel": "Linux 6.1.0-18-amd64",
            "cpu": "AMD EPYC 7B13",
            "cores": 2,
            "governor": "not exposed",
            "compiler": "g++ 12.2.0 -O2 -march=native",
            "git_commit": "0c374d8",
            "mitigations": ["spectre_v2: Retpolines", "meltdown: not affected"],
            "turbo": False,
        },
        trials=tuple(trials),
        about=ABOUT,
    )


def echo_at_ten(change: Callable[[Trial], Trial]) -> Run:
    """Return a run of `echo` at 10 connections, with each trial changed."""
    run = made_run()
    echo = next(scenario for scenario in run.experiment.scenarios if scenario.name == "echo")
    echo = msgspec.structs.replace(echo, factors={"connections": (10,)})
    trials = (trial for trial in run.trials if trial.scenario == "echo" and trial.levels == {"connections": 10})
    experiment = msgspec.structs.replace(run.experiment, scenarios=(echo,), claims=(), figures=())
    return msgspec.structs.replace(run, experiment=experiment, trials=tuple(map(change, trials)))


def with_only(run: Run, *names: str) -> Run:
    """The run without its other scenarios: for a page, whose figures take longer than all that a test looks at."""
    scenarios = tuple(scenario for scenario in run.experiment.scenarios if scenario.name in names)
    assert [scenario.name for scenario in scenarios] == [*names]
    return msgspec.structs.replace(
        run,
        experiment=msgspec.structs.replace(run.experiment, scenarios=scenarios),
        trials=tuple(trial for trial in run.trials if trial.scenario in names),
        twins=tuple(trial for trial in run.twins if trial.scenario in names),
        traced=tuple(trial for trial in run.traced if trial.scenario in names),
    )


@lru_cache
def one_of_each_kind() -> Run:
    """The made run without `http`, which is drawn as `echo` is."""
    return with_only(made_run(), "echo", "rpc-open", "chat")


@lru_cache
def late_run() -> Run:
    """The made run with a contestant that answered everything of its open loop, and all of it after the window."""
    run = made_run()
    late = (("rpc-open", LOCK), ("echo", LOCK))
    trials = (_all_late(trial) if (trial.scenario, trial.contestant) in late else trial for trial in run.trials)
    return msgspec.structs.replace(run, trials=tuple(trials))


def _all_late(trial: Trial) -> Trial:
    if trial.load is None:
        return trial
    none = msgspec.structs.replace(trial.load.requests, completed=0, per_second=0.0)
    return msgspec.structs.replace(trial, load=msgspec.structs.replace(trial.load, requests=none))


WHY_UNSAFE = "frames mix <b>"


@lru_cache
def unsafe_run() -> Run:
    """The made run with a leader that is unsafe. In `echo`, verification found it out at 1000 connections."""
    run = made_run()
    trials = tuple(
        _found_out(trial)
        if (trial.scenario, trial.contestant, trial.levels.get("connections")) == ("echo", EPOLL, 1000)
        else trial
        for trial in run.trials
    )
    about = (About(kind="server", name=EPOLL, unsafe=WHY_UNSAFE), *ABOUT[1:])
    return msgspec.structs.replace(run, trials=trials, about=about)


def _found_out(trial: Trial) -> Trial:
    replace, load = msgspec.structs.replace, trial.load
    assert load is not None
    messages = replace(load.messages, expected=2000, received=1500, lost=500, corrupt=7)
    audit = Audit(name="verification", passed=False, detail="lost 500, corrupt 7")
    load = replace(load, messages=messages, audits=(audit,), errors=load.errors | {"protocol": 3})
    return replace(trial, status="struck_out", reason="verification: corrupt 7", load=load, audits=(audit,))


@lru_cache
def troubled_run() -> Run:
    """The made run with a fault of each kind. In `echo`, threads-global-lock crashes at 100 connections in two blocks
    and its replies are wrong in a third. In `http`, epoll-coroutines keeps the generator at its limit at 1000
    connections. In `rpc-open`, all but epoll-coroutines crash. In `chat`, the first try of each contestant was
    disturbed in the first three blocks, that of asio-callbacks twice in the first."""
    run = made_run()
    trials: list[Trial] = []
    for place, trial in enumerate(run.trials):
        trials += _troubled(msgspec.structs.replace(trial, position=place))
    return msgspec.structs.replace(run, trials=tuple(trials))


def _troubled(trial: Trial) -> list[Trial]:
    """The trial as it came out, after the tries before it."""
    replace = msgspec.structs.replace
    where = (trial.scenario, trial.contestant, trial.levels.get("connections"))
    if trial.load is None:
        return [trial]
    if where == ("echo", LOCK, 100) and trial.block in (2, 4):
        return [_crashed(trial)]
    if where == ("echo", LOCK, 100) and trial.block == 5:
        audits = (_failed("verification", "corrupt 7"), *trial.audits[1:])
        return [replace(_with_corrupt(trial, 7), status="struck_out", reason="verification: corrupt 7", audits=audits)]
    if where == ("http", EPOLL, 1000):
        return [_saturated(trial, trial.load)]
    if trial.scenario == "rpc-open" and trial.contestant != EPOLL:
        return [_crashed(trial)]
    if trial.scenario == "chat" and trial.block <= 3:
        tries = 3 if (trial.block, trial.contestant) == (1, CALLBACKS) else 2
        disturbed = replace(trial, audits=(*trial.audits, _failed("steal", "12% of the cores given to other machines")))
        return [replace(disturbed if attempt < tries else trial, attempt=attempt) for attempt in range(1, tries + 1)]
    return [trial]


def _failed(name: str, detail: str) -> Audit:
    return Audit(name=name, passed=False, detail=detail)


def _crashed(trial: Trial) -> Trial:
    audits = (_failed("died", "signal SIGSEGV"),)
    return _without_figures(trial, "struck_out", "died: signal SIGSEGV", load=None, server=None, audits=audits)


def _saturated(trial: Trial, load: LoadResult) -> Trial:
    replace = msgspec.structs.replace
    thread = replace(load.generator.threads[0], cpu_user_s=0.3 * WINDOW_S, cpu_system_s=0.66 * WINDOW_S)
    load = replace(load, generator=replace(load.generator, threads=(thread,), cores_used=0.96))
    audits = tuple(audit for audit in trial.audits if audit.name != "generator")
    return replace(trial, load=load, audits=(*audits, _failed("generator", "96% of a core")))

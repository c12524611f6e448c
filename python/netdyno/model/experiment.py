"""The questions: an experiment, its scenarios, and a search for a capacity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, get_args

import msgspec

from netdyno.model.base import Frozen, Number, Whole, type_level
from netdyno.model.claim import Claim
from netdyno.model.contestant import GENERATOR
from netdyno.model.figure import Figure
from netdyno.model.links import LINKS, Link
from netdyno.model.load_result import Start, WriteDue
from netdyno.model.own_requests import OwnRequests
from netdyno.model.values import (
    BIT_RATE,
    CONNECT_RATE,
    CPU_QUOTA,
    DURATION,
    LOAD_DURATION,
    LOAD_TIME,
    MEMORY_LIMIT,
    NAME,
    NAMES,
    NUMBER,
    PRECISION,
    RATE,
    SERVER_CORES,
    SHARE,
    TEXT,
    THREADS,
    TIME,
    Option,
    duration,
    share,
    whole,
    word,
    words,
)

Arrivals = Literal["closed", "constant", "poisson"]
RankedBy = Literal[
    "throughput",
    "p50",
    "p99",
    "mean",
    "cpu",
    "memory",
    "connection-spread",
    "recovery",
    "chunk-lag-p99",
    "chunk-cpu",
    "ready",
    "first-answer",
    "ready-cpu",
    "ready-memory",
    "capacity",
]
STARTS: tuple[RankedBy, ...] = ("ready", "first-answer", "ready-cpu", "ready-memory")
"""The metrics of a server's start."""
OWN_AXES = (*STARTS, "chunk-lag-p99", "chunk-cpu")
"""The metrics beside which throughput and response times say nothing, unless the scenario names them."""
ALSO_COUNTS = tuple(metric for metric in get_args(RankedBy) if metric != "capacity")
"""The metrics that may decide among contestants that are equal in the ranked metric."""
OnOff = Literal["on", "off"]
WriteMode = Literal["gathered", "split"]
FailedConnects = Literal["strike-out", "count"]
Placement = Literal["apart", "shared"]
"""Server and load on cores of their own, or both on all cores of the run."""

MOST_CONNECTIONS = 1_000_000
"""That of netdyno-load, as the other bounds of a load here (loadgen/plan/plan.cpp)."""
MOST_DELAY_S = 10
"""The longest delay of the link wan, each way (link/plan.cpp)."""


Budget = Literal["smoke", "normal", "full"]
"""The size of an experiment: some of its grid, as the file says, or as published."""


MOST_AA_SHARE = 0.5
"""The largest share of the time of all trials for the A/A control: then everything is run twice."""


class CapacityPlan(Frozen):
    """The plan of a search for the highest rate that meets an objective (capacity/search.py). Rates in messages per
    second: the search starts at `start_hz` and stays from `least_hz` to `most_hz`; `resolution` is the ratio of
    neighbouring rates less 1; at the boundary each of two rates has its outcome `needed` times."""

    objective: str = msgspec.field(name="slo")
    start_hz: Annotated[Number, Option(NUMBER, "Messages per second to begin with (default 1000).", "search")]
    least_hz: Number
    most_hz: Annotated[Number, Option(NUMBER, "Messages per second beyond which nothing is tried.", "search")] = (
        1_000_000
    )
    resolution: Annotated[Number, Option(share(0.005), "Step between tried rates, as a share.", "search")] = 0.05
    needed: Annotated[Whole, Option(whole(1), "How often a rate must hold, or fail, to decide.", "search")] = 3


class Gate(Frozen):
    """The question of a gate: whether the server `after` is worse than `before` by more than a margin, a share, on each
    of these metrics (analysis/gate/judge_gate.py)."""

    before: str
    after: str
    margins: dict[str, float]


class Flip(Frozen):
    """The search for the places along a factor, from `low` to `high`, where the better of two sides changes by a metric
    (question/flips.py). A side is a contestant or a group; `members` has the names and patterns of both. Levels are
    halved, as ratios, until those that prove the change are a factor of at most `within` apart."""

    scenario: str
    first: str
    second: str
    members: dict[str, tuple[str, ...]]
    along: str
    low: type_level
    high: type_level
    metric: str
    within: float


class Advise(Frozen):
    """The question which contestant of the one scenario to choose (analysis/advice). `objective` (stored as `slo`):
    what the chosen one must meet, such as "p99<5ms"; empty where the metric alone decides."""

    objective: str = msgspec.field(default="", name="slo")


class Conditions(OwnRequests, kw_only=True):
    """The conditions of a trial: the link, the load and its requests, the server's own options (`server`), and those
    that only some servers can have (`where_possible`). A scenario has them for all of its cells, `Settings` for one.
    docs/experiments.md explains every key."""

    workload: Annotated[str, Option(TEXT, "The workload (default: the server's first).", "own")]
    warmup_s: Annotated[Number, Option(LOAD_DURATION, "Load before each measured window.", "shared")] = 0.0
    duration_s: Annotated[Number, Option(LOAD_TIME, "Measured window of a trial, such as 500ms or 2s.", "shared")] = 1.0
    timeout_s: Annotated[Number, Option(LOAD_TIME, "How long an answer may take.", "shared")] = 10.0
    link: Annotated[Link, Option(word(*LINKS), "What lies between load program and server.", "link")] = "loopback"
    link_rate: Annotated[str | None, Option(BIT_RATE, "Bits per second each way, such as 10mbit.", "link")] = None
    link_delay_s: Annotated[
        Number, Option(duration(MOST_DELAY_S), "Delay in each direction, such as 20ms.", "link")
    ] = 0.0
    link_loss: Annotated[Number, Option(SHARE, "Share of the packets lost each way, such as 0.01.", "link")] = 0
    server_cores: Annotated[
        Whole | Literal["all"], Option(SERVER_CORES, "Cores of the server, or all of its side.", "cores")
    ] = "all"
    placement: Annotated[
        Placement, Option(word(*get_args(Placement)), "apart: cores of their own; shared: both on all.", "cores")
    ] = "apart"
    cpu_quota: Annotated[
        Number | None, Option(CPU_QUOTA, "Cores' worth of CPU time that a control group leaves the server.", "cores")
    ] = None
    memory_limit: Annotated[
        Whole | None, Option(MEMORY_LIMIT, "Memory that a control group leaves the server, such as 64MiB.", "cores")
    ] = None
    arrivals: Annotated[
        Arrivals, Option(word(*get_args(Arrivals)), "closed: a reply triggers the next message; else at a rate.", "own")
    ] = "closed"
    client: Annotated[
        str, Option(NAME, "The program that makes the load: netdyno-load or a folder in clients/.", "load")
    ] = GENERATOR
    connections: Annotated[Whole, Option(whole(1, MOST_CONNECTIONS), "How many clients.", "load", short="c")] = 100
    busy_connections: Annotated[
        Whole | None,
        Option(whole(1, MOST_CONNECTIONS), "How many of them send; the others stay idle (default: all).", "load"),
    ] = None
    depth: Annotated[Whole, Option(whole(1, 100_000), "Messages in flight on each connection.", "load")] = 1
    round_s: Annotated[
        Number, Option(LOAD_DURATION, "All connections that have a reply send at multiples of this time.", "load")
    ] = 0.0
    look_every_s: Annotated[
        Number, Option(LOAD_DURATION, "Least time between polls of the generator's sockets.", "load")
    ] = 0.0
    rate: Annotated[Number | None, Option(RATE, "Messages per second of all connections.", "load")] = None
    rate_per_connection: Annotated[
        Number | None, Option(RATE, "Messages per second of each connection, in place of rate.", "load")
    ] = None
    burst_rate: Annotated[
        Number | None,
        Option(RATE, "Messages per second in a burst, from 1/4 to 3/8 of the window.", "load"),
    ] = None
    size: Annotated[Whole, Option(whole(28, 64 << 20), "Bytes of a message.", "load")] = 31
    nodelay: Annotated[OnOff, Option(word(*get_args(OnOff)), "TCP_NODELAY of the load program.", "load")] = "on"
    write_mode: Annotated[
        WriteMode, Option(word(*get_args(WriteMode)), "How the load program writes a length and a body.", "load")
    ] = "gathered"
    write_due: Annotated[
        WriteDue, Option(word(*get_args(WriteDue)), "joined: due messages of a connection leave in one call.", "load")
    ] = "each"
    service_time_s: Annotated[Number, Option(DURATION, "rpc, web, grpc: service time of each request.", "load")] = 0.0
    slow_requests: Annotated[
        Number, Option(SHARE, "rpc, web, grpc: share of requests with the slow request time.", "load")
    ] = 0
    slow_request_time_s: Annotated[Number, Option(DURATION, "rpc, web, grpc: service time of slow ones.", "load")] = 0.0
    generator_threads: Annotated[
        Whole | Literal["cores"], Option(THREADS, "Threads of the load generator.", "load")
    ] = "cores"
    client_hosts: Annotated[Whole, Option(whole(1), "Hosts of a cluster that make the load together.", "load")] = 1
    client_processes: Annotated[
        Whole, Option(whole(1), "Processes of a client contestant, which share its connections.", "load")
    ] = 1
    requests_per_connection: Annotated[
        Whole | None, Option(whole(1, 10**9), "Close a connection after N replies, and open a new one.", "load")
    ] = None
    slow_readers: Annotated[
        Whole, Option(whole(0, MOST_CONNECTIONS), "chat: how many clients read slowly.", "load")
    ] = 0
    messages: Annotated[
        Whole | None, Option(whole(1, 1_000_000), "chat: each client writes N, reads nothing and leaves.", "load")
    ] = None
    chunks: Annotated[
        Whole | None, Option(whole(1, 10_000), "web: each reply is a stream of N chunks (events).", "load")
    ] = None
    every_s: Annotated[
        Number,
        Option(LOAD_DURATION, "Time between the writes of a client (messages), or between chunks (chunks).", "load"),
    ] = 0.005
    connect_rate: Annotated[
        Number | Literal["burst", "connections", "when-due"],
        Option(
            CONNECT_RATE,
            "Connections opened a second; connections: all within a second; burst: all at once; when-due: each for "
            "its first message.",
            "load",
        ),
    ] = "burst"
    connect_timeout_s: Annotated[Number, Option(LOAD_TIME, "How long a connect may take.", "load")] = 5.0
    start: Annotated[
        Start, Option(word(*get_args(Start)), "chat: send once all are connected, or do not wait.", "load")
    ] = "together"
    failed_connects: Annotated[
        FailedConnects, Option(word(*get_args(FailedConnects)), "Whether failed connects make a trial invalid.", "own")
    ] = "strike-out"
    server: dict[str, type_level] = msgspec.field(default_factory=dict)
    where_possible: dict[str, type_level] = msgspec.field(default_factory=dict)

    @property
    def speakers(self) -> int:
        """The number of connections that send."""
        return self.busy_connections or self.connections - self.slow_readers

    @property
    def is_write_only(self) -> bool:
        """Whether its clients write and never read (loadgen/write_only.hpp)."""
        return self.messages is not None

    @property
    def is_apart(self) -> bool:
        """Whether the link joins two network stacks."""
        return LINKS[self.link].apart

    @property
    def shares_cores(self) -> bool:
        """Whether server and load may run on the same cores."""
        return self.placement == "shared"

    @property
    def is_impaired(self) -> bool:
        """Whether the link delays or loses packets."""
        return LINKS[self.link].impaired


class Scenario(Conditions, kw_only=True):
    """One workload under one load; `factors` maps an option to the levels that it takes (options.sides_of_factor says
    which exist). `contestants` are names and patterns in the file, and names when it is run. Settings that the file has
    once for all of its scenarios stand in each; `objective` (stored as `slo`) is that of the metric `capacity`."""

    name: Annotated[str, Option(TEXT, "Its name, unique in the file.", "own")]
    contestants: Annotated[
        tuple[str, ...],
        Option(NAMES, "Servers by name or pattern, such as 'asio-*'; may be repeated.", "shared"),
    ] = ()
    blocks: Annotated[Whole, Option(whole(1), "Repetitions of the grid.", "shared")] = 1
    precision: Annotated[
        Number | None,
        Option(PRECISION, "Add blocks until each ratio is known this precisely, such as 5%.", "shared"),
    ] = None
    most_blocks: Annotated[
        Whole | None, Option(whole(1), "Most blocks in all, if a precision or time adds any.", "shared")
    ] = None
    warmup_per_connection_s: Annotated[
        Number, Option(DURATION, "Additional warm-up for each connection.", "shared")
    ] = 0.0
    rate_share: Annotated[
        Number | None,
        Option(share(0.01), "Lower the rate to this share of what your slowest server answers.", "own"),
    ] = None
    rate_for: str = ""
    """The server for which the rate was lowered."""
    turns: Annotated[
        OnOff, Option(word(*get_args(OnOff)), "Whether contestants are measured in turns, if they can be.", "shared")
    ] = "on"
    loss_bound: Annotated[
        Number, Option(SHARE, "Share of lost messages above which a contestant is ranked apart.", "shared")
    ] = 0.001
    factors: dict[str, tuple[type_level, ...]] = msgspec.field(default_factory=dict)
    metric: Annotated[RankedBy, Option(word(*get_args(RankedBy)), "What is ranked.", "own")] = "throughput"
    then_by: Annotated[
        tuple[RankedBy, ...],
        Option(words(*ALSO_COUNTS), "Metrics that choose among equals, in this order.", "own"),
    ] = ()
    margin: Annotated[Number, Option(PRECISION, "The smallest difference that matters, such as 5%.", "own")] = 0.05
    objective: Annotated[str, Option(TEXT, "Such as 'p99<5ms' or 'p99.9<20ms,lost<0.1%'.", "own")] = msgspec.field(
        default="", name="slo"
    )

    @property
    def has_burst(self) -> bool:
        """Whether the rate changes within the window of its cells."""
        return self.burst_rate is not None or "burst-rate" in self.factors

    @property
    def measures_start(self) -> bool:
        """Whether the start of each server is measured, and what the first client has of it."""
        return not {self.metric, *self.then_by}.isdisjoint(STARTS)

    @property
    def is_unread(self) -> bool:
        """Whether the clients of its cells write and never read, so that nothing ranks a server."""
        return self.is_write_only or "messages" in self.factors

    @property
    def scheduled(self) -> bool:
        """Whether messages have due times of their own, those of an open loop or of a round, which the generator can
        miss. Without them, the next message is due with the answer to the last one."""
        return self.arrivals != "closed" or self.round_s > 0 or "round" in self.factors


class Experiment(Frozen):
    """A question as data (experiments/<name>.toml), with one of its budgets."""

    name: str
    question: str
    scenarios: Annotated[tuple[Scenario, ...], msgspec.Meta(min_length=1)]
    seed: Annotated[int, Option(whole(0, 2**63 - 1), "Seed of the random order and arrivals.", "experiment")] = 1
    budget: Budget = "normal"
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    parts: tuple[str, ...] = ()
    """The names of the experiments that it combines; empty for a single experiment."""
    aa_share: Annotated[
        Number,
        Option(share(0, MOST_AA_SHARE), "Share of the time of all trials for the A/A control.", "experiment"),
    ] = 0.0
    """docs/adr/aa-control.md says why."""
    time_budget_s: Annotated[Number | None, Option(TIME, "Add blocks up to this run time: 20m.", "experiment")] = None
    """The time within which blocks beyond the planned ones must end; one that would end later does not begin
    (measure/run/next_cells.py)."""
    time_limit_s: Annotated[
        Number | None,
        Option(TIME, "Begin no block that would end later, even if planned ones are missing.", "experiment"),
    ] = None
    """The time up to which the planned blocks go on where the machine is disturbed."""
    capacity: CapacityPlan | None = None
    """The plan of a run that is a search: its rates follow from its results."""
    gate: Gate | None = None
    """The gate of a run that goes on until it has decided."""
    flips: tuple[Flip, ...] = ()
    """The flips of a run that searches for them: its levels follow from its results."""
    advise: Advise | None = None
    """The question of a run that goes on with the contestants that may still be chosen."""
    looked_again: tuple[str, ...] = ()
    """The scenarios of a run that got a further look after its budget of time (measure/run/next_cells.py)."""

    @property
    def blocks(self) -> int:
        """The most blocks of any scenario."""
        return max(scenario.blocks for scenario in self.scenarios)

    def change_each(self, change: Callable[[Scenario], Scenario]) -> Experiment:
        """Return a copy in which each scenario is changed."""
        return msgspec.structs.replace(self, scenarios=tuple(map(change, self.scenarios)))

    def with_each(self, **fields: object) -> Experiment:
        """Return a copy with these fields in each scenario."""
        return self.change_each(lambda scenario: msgspec.structs.replace(scenario, **fields))

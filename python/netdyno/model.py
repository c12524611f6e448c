"""The words of the project as frozen data: what is planned, what was measured, what is stored.

Everything here is parsed once and never changed (unknown keys are errors). Units are in the names.
No function of this module touches a file, a clock or a process.
"""

from __future__ import annotations

from typing import Literal, dataclass_transform

import msgspec

from netdyno.units import parse_duration

type_level = int | float | str

GENERATOR = "netdyno-load"
"""The name of the load generator where a client contestant could stand."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of everything that is parsed from outside: immutable, unknown keys are errors."""


# --- contestants -------------------------------------------------------------------------------------------------


class Manifest(Frozen):
    """server.json or client.json of one contestant, as CMake reads it too. The folder's name is the identity and not
    repeated here.

    `clients` says whether a client beyond the thread count waits until another leaves (docs/adr/limited-by-threads.md),
    `descriptors_per_client` how many file descriptors a client takes in the server, those of its thread included.
    `unsafe` says of a server that gives wrong answers on purpose what is wrong with it (docs/adr/unsafe.md), `unranked`
    of one that is no contestant at all what it is instead (docs/adr/unranked.md). `copies` says where the program
    itself copies the bytes of a message, as far as its source shows it.
    """

    kind: Literal["cmake", "command"]
    model: str
    summary: str
    workloads: tuple[str, ...]
    transports: tuple[str, ...] = ("tcp",)
    needs: tuple[str, ...] = ()
    threads: Literal["any", "one", "per-connection"] = "one"
    clients: Literal["any", "limited-by-threads"] = "any"
    descriptors_per_client: int = 1
    asynchronous: bool = True
    # What becomes of a new connection while a server has no descriptor for it.
    out_of_descriptors: Literal["waits", "closes"] = "waits"
    caveats: tuple[str, ...] = ()
    unsafe: str = ""
    unranked: str = ""
    copies: str = ""
    build: tuple[str, ...] = ()
    run: tuple[str, ...] = ()

    @property
    def apart(self) -> bool:
        """Whether it is in no pattern, ranking, figure or claim."""
        return bool(self.unsafe or self.unranked)


class Contestant(Frozen):
    """One discovered folder: its manifest, and either the command that starts it or the reason why it cannot start."""

    name: str
    manifest: Manifest
    command: tuple[str, ...]
    available: bool
    why_not: str = ""


class CodeSize(Frozen):
    """Source files: lines without blanks and comments, and McCabe's cyclomatic complexity (codesize.py)."""

    files: int
    lines: int
    functions: int
    complexity: int
    complexity_max: int


class About(Frozen):
    """A contestant, or code that contestants share, as a stored run remembers it. `code` is None where it could not be
    counted, and `why_no_code` says why. `family` names the shared code that counts with a contestant's own; a run
    stored before it was recorded has none. `unsafe`, `unranked`, `copies` and `threads` are the manifest's; of shared
    code, of clients, and in a run stored before it was recorded, `threads` is None."""

    kind: Literal["server", "client", "shared"]
    name: str
    model: str = ""
    summary: str = ""
    caveats: tuple[str, ...] = ()
    unsafe: str = ""
    unranked: str = ""
    copies: str = ""
    threads: Literal["any", "one", "per-connection"] | None = None
    code: CodeSize | None = None
    why_no_code: str = ""
    family: tuple[str, ...] = ()


# --- what netdyno-load prints (protocol/load-result.md) ----------------------------------------------------------


class Distribution(Frozen):
    """One HDR histogram with the figures read most often. Empty histograms have count 0 and zeros."""

    count: int
    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    max: int
    histogram: str


class Latency(Frozen):
    response_ns: Distribution
    service_ns: Distribution


class Requests(Frozen):
    sent: int
    completed: int
    per_second: float


class Connections(Frozen):
    attempted: int
    established: int
    refused: int
    timed_out: int
    reset: int
    other: int


class Messages(Frozen):
    """Over the whole life of the generator, warm-up and drain included. `late`: timed answers that came after the
    timeout, which are not lost (runs stored before there was the key read as 0)."""

    sent: int
    expected: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    late: int = 0


class Bytes(Frozen):
    sent: int
    received: int
    expected: int


class GeneratorThread(Frozen):
    cpu_user_s: float
    cpu_system_s: float
    spun_s: float


class Generator(Frozen, kw_only=True):
    """`spun_s`: of the two CPU times, what went into looking out for messages (docs/adr/wake-early.md).
    `socket_drops`: datagrams that the generator's own sockets had no room for. `cores`: those it may use. `busiest`:
    the share of a core that its busiest thread used, without the lookout (both 0 in runs stored before the keys)."""

    cpu_user_s: float
    cpu_system_s: float
    spun_s: float
    cores_used: float
    cores: int = 0
    busiest: float = 0.0
    max_rss_bytes: int
    threads: tuple[GeneratorThread, ...]
    socket_drops: int = 0


class TimeSeries(Frozen):
    """One value per interval of the measured window; a percentile is 0 where the interval completed nothing."""

    interval_ns: int
    completed: tuple[int, ...]
    p50_ns: tuple[int, ...]
    p99_ns: tuple[int, ...]
    errors: tuple[int, ...]


class Audit(Frozen):
    """One check of one trial. `passed` false strikes the trial out; `detail` says with which figures."""

    name: str
    passed: bool
    detail: str


class Plan(Frozen):
    """What the generator was asked for."""

    url: str
    workload: str
    arrivals: Literal["closed", "constant", "poisson"]
    depth: int
    rate_hz: float | None
    connections: int
    size: int
    threads: int
    audience: Literal["others", "all"]
    seed: int
    warmup_s: float
    duration_s: float
    timeout_s: float
    round_s: float = 0.0
    look_every_s: float = 0.0
    send_buffer: int = 0


class ClientReport(Frozen):
    """What a client contestant says beside the figures of a load (protocol/client.md): its failures by stage, over the
    whole life; `recovered` counts connections that stood again after one. `tick_lag_ns` is how late a 10 ms timer of
    the application's loop came."""

    resolve_failed: int
    connect_refused: int
    connect_timed_out: int
    connect_other: int
    response_timeout: int
    closed: int
    reset: int
    protocol: int
    recovered: int
    tick_lag_ns: Distribution


class LoadResult(Frozen, kw_only=True):
    """`client` is there where a client contestant was the load, and None where the generator was. `receive_lag_ns`: of
    a sample of the messages; None in runs stored before the key, empty where the kernel did not say."""

    version: int
    plan: Plan
    requests: Requests
    latency: Latency
    send_lag_ns: Distribution
    receive_lag_ns: Distribution | None = None
    connections: Connections
    connect_ns: Distribution
    messages: Messages
    bytes: Bytes
    generator: Generator
    errors: dict[str, int]
    timeseries: TimeSeries
    audits: tuple[Audit, ...]
    client: ClientReport | None = None


# --- what the harness observes -----------------------------------------------------------------------------------


class ServerObservation(Frozen):
    """The server process over the measured window: differences between two readings of /proc (proc(5)).

    `threads_unread`: threads that served and had ended before their counters were read at the end of the window, so
    that the switches and the wait are too small by an unknown part. `threads_sampled`: how many threads were read,
    where there were too many to read all: switches and wait are then estimates from these; else 0."""

    cpu_user_s: float
    cpu_system_s: float
    rss_peak_bytes: int
    threads: int
    voluntary_switches: int
    involuntary_switches: int
    run_queue_wait_s: float
    window_s: float
    harness_cpu_s: float
    totals: dict[str, int]
    threads_unread: int = 0
    threads_sampled: int = 0
    rss_ready_bytes: int = 0
    """Peak memory when it was ready and nobody had connected; 0 in a run stored before that was read."""


class MachineObservation(Frozen):
    """The cores that the harness may use, over the measured window, in CPU seconds of all of them together. `steal_s`:
    what the hypervisor gave to other machines. `own_s`: what the harness and the programs that it started used.
    `foreign_s`: everything else, the kernel's own work included (machine.py). `switches`: context switches, on all
    cores of the machine. `softirq_s`: of each core, by its number, the time in which ticks found it in a softirq,
    whoever ran there (a run stored before it was recorded has none)."""

    cores: int
    window_s: float
    steal_s: float
    own_s: float
    foreign_s: float
    switches: int
    softirq_s: dict[int, float] = {}


ForeignLoad = Literal["strike-out", "count"]
"""What becomes of a trial that had not the machine for itself."""


Trace = Literal["auto", "always", "never"]
"""Whether system calls are traced after the trials: within a share of the run's time, at any length, or not at all."""


class Pinning(Frozen):
    """Which cores each side was bound to; empty means not pinned, and `note` says why. `realtime` says whether the
    generator runs before everything else on its cores (docs/adr/realtime-generator.md)."""

    server: tuple[int, ...]
    generator: tuple[int, ...]
    note: str
    realtime: bool = False


class Relayed(Frozen):
    """Frames and bytes of one direction of a relay, over its whole life (link/README.md)."""

    frames_in: int
    bytes_in: int
    frames_out: int
    bytes_out: int
    lost: int
    queue_full: int
    overflowed: int
    refused: int
    under_way: int
    unread: int


class Lateness(Frozen):
    """By how much frames left after they were due, in nanoseconds."""

    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    max: int


class RelayTotals(Frozen):
    """What the relay of the link wan says of itself at its end. The end `a` is the server's, `b` the load's."""

    a_to_b: Relayed
    b_to_a: Relayed
    late_ns: Lateness
    seconds: float
    cpu_user_s: float
    cpu_system_s: float
    run_queue_wait_s: float


class CanaryReading(Frozen):
    """How fast the machine was at one moment, by a workload that is always the same (canary/README.md): round trips of
    64 bytes between two processes that stand where server and generator stand, then millions of steps a second that
    each of them counted, both at the same time. `seconds` is what it took; `taken` how often it was asked, for a
    reading that is slower than the last one is taken again (canary.py)."""

    round_trips_per_second: float
    server_millions_per_second: float
    generator_millions_per_second: float
    seconds: float
    taken: int = 1


class CanaryReadings(Frozen):
    """Beside one trial. `unread` says why one of them is missing."""

    before: CanaryReading | None
    after: CanaryReading | None
    unread: str = ""


Status = Literal["valid", "struck_out", "skipped", "failed", "faulty", "made_again", "censored"]
"""The first four are stored. The others say what follows from the audits of the whole run (outcomes.judged)."""

Link = Literal["loopback", "lan", "wan"]
"""What lies between load and server (network.py)."""

Budget = Literal["smoke", "normal", "full"]
"""How much of an experiment is run: some of its grid, what the file says, or as published."""


class Trial(Frozen):
    """One stored trial. Only `valid` trials enter a figure; the others are shown with their reason. `added` are the
    server options that the harness set beside those of the cell; `canary` is there where programs ran, `relay` where
    one made the link. `twin`: its cell was run a second time in this block, for the A/A control
    (docs/adr/aa-control.md)."""

    block: int
    position: int
    scenario: str
    contestant: str
    levels: dict[str, type_level]
    status: Status
    reason: str
    started_at: str
    seconds: float
    added: dict[str, type_level] = {}
    pinning: Pinning | None = None
    load: LoadResult | None = None
    server: ServerObservation | None = None
    machine: MachineObservation | None = None
    canary: CanaryReadings | None = None
    kernel: dict[str, int] = {}
    relay: RelayTotals | None = None
    audits: tuple[Audit, ...] = ()
    log: str = ""
    twin: bool = False
    attempt: int = 1
    """The number of the try: a trial that the machine disturbed is made again in its block."""


# --- what was traced ---------------------------------------------------------------------------------------------


class SystemCall(Frozen):
    """One system call of a traced server by its name: how often it returned within the window, `again` of that with
    EAGAIN and `failed` with another error, and the time within the window between its beginnings and its returns."""

    name: str
    calls: int
    again: int
    failed: int
    time_s: float


class Traced(Frozen):
    """A short trial of its own under strace(1), for its counts alone (docs/adr/equal-work.md). It is no `Trial`: no
    time of it is the server's own, and none can enter a figure. `reason` says why nothing was traced, and is empty
    where it was. `messages`: completed within the same window. `threads`: of the server that made any call in it."""

    scenario: str
    contestant: str
    levels: dict[str, type_level]
    reason: str = ""
    window_s: float = 0.0
    messages: int = 0
    threads: int = 0
    calls: tuple[SystemCall, ...] = ()
    log: str = ""


# --- claims ------------------------------------------------------------------------------------------------------

CONTESTANT = "contestant"
"""The coordinate of a cell that is no factor."""

Side = Literal["above", "below"]


class Cells(Frozen):
    """The cells of a scenario whose coordinates (`contestant` and the scenario's factors) have one of the named values.
    A coordinate that is not named may have any."""

    scenario: str
    at: dict[str, tuple[type_level, ...]] = {}


class Ratio(Frozen, tag_field="kind", tag="ratio"):
    """The metric of `a` divided by that of `b` lies above or below the threshold. Cells are paired within blocks, by
    the coordinates in which `a` and `b` do not differ. With `every`, it does so in each of them."""

    metric: str
    a: Cells
    b: Cells
    side: Side
    threshold: float
    every: bool = False


class Order(Frozen, tag_field="kind", tag="order"):
    """Along a coordinate, the metric of each group is below (rising) or above (falling) that of the next group. Within
    a group nothing is said."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rising", "falling"]
    groups: tuple[tuple[type_level, ...], ...]


class Trend(Frozen, tag_field="kind", tag="trend"):
    """Along a factor, in the order of its levels, the metric rises or falls from the first to the last, and no step
    goes the other way."""

    metric: str
    cells: Cells
    along: str
    direction: Literal["rises", "falls"]


class Flat(Frozen, tag_field="kind", tag="flat"):
    """Along a coordinate, the metric stays within a factor (a share: within a difference) of what it is at the first
    level."""

    metric: str
    cells: Cells
    along: str
    within: float


class Bound(Frozen, tag_field="kind", tag="bound"):
    """The metric itself lies above or below the threshold, in the metric's own unit; with `every`, in each cell."""

    metric: str
    cells: Cells
    side: Side
    threshold: float
    every: bool = False


Test = Ratio | Order | Trend | Flat | Bound


class Claim(Frozen):
    """One `[[claim]]` of an experiment. `published` are the figures of the source, by a label that has their unit;
    `needs` what a machine must have; `why` the name of the explanation that is drawn from counters (why.py)."""

    id: str
    text: str
    tests: tuple[Test, ...]
    published: dict[str, float] = {}
    needs: tuple[str, ...] = ()
    why: str = ""


# --- figures -----------------------------------------------------------------------------------------------------

SCENARIO = "scenario"
"""The coordinate of a figure that is about several scenarios."""


class Published(Frozen):
    """A figure of the source, from its own machine: where it stands among what is drawn; in the metric's own unit."""

    at: dict[str, type_level]
    value: float


FigureKind = Literal["bars", "surface", "ladder", "curves"]


class Figure(Frozen):
    """One `[[figure]]` of an experiment: the metric of each of these cells. `along` is the axis, `across` tells apart
    what stands at one place of it (of a surface: the other axis), and each combination of `panels` has a panel; these
    are coordinates of cells. `below` are metrics that are drawn under the main one over the same axis."""

    kind: FigureKind
    title: str
    metric: str
    cells: tuple[Cells, ...]
    """One selection for each scenario."""
    along: str
    across: str = ""
    panels: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    log: bool = False
    x_log: bool = False
    published: tuple[Published, ...] = ()

    @property
    def drawn(self) -> tuple[str, ...]:
        """All coordinates in which its cells may differ: panels first, then as a reader goes through one."""
        within = (self.along, self.across) if self.kind == "bars" else (self.across, self.along)
        return tuple(name for name in (*self.panels, *within) if name)


# --- the A/A control ---------------------------------------------------------------------------------------------

MOST_AA_SHARE = 0.5
"""Of the time of all trials: then everything is run twice."""

# --- capacity ----------------------------------------------------------------------------------------------------


class CapacityPlan(Frozen):
    """What a search for the highest rate that meets an objective was asked for (capacity/search.py). Rates in messages
    per second: it starts at `start_hz` and goes nowhere below `least_hz` or above `most_hz`; `resolution` is the ratio
    of neighbouring rates less 1; at the boundary each of two rates has its outcome `needed` times."""

    slo: str
    start_hz: float
    least_hz: float
    most_hz: float
    resolution: float = 0.05
    needed: int = 3


# --- experiments -------------------------------------------------------------------------------------------------


class Scenario(Frozen):
    """One workload under one load; `factors` maps an option to the levels it takes (options.whose says which options
    there are), `server` holds the server's own options, `where_possible` those that only some servers can have.
    `contestants` are names and patterns in the file, and names when it is run. What the file says once for all of its
    scenarios stands in each; `slo` is the objective that the metric `capacity` is about. docs/experiments.md explains
    every key."""

    name: str
    workload: str
    contestants: tuple[str, ...] = ()
    blocks: int = 1
    precision: float | None = None
    most_blocks: int | None = None
    warmup_s: float = 0.0
    warmup_per_connection_s: float = 0.0
    duration_s: float = 1.0
    timeout_s: float = 10.0
    loss_bound: float = 0.001
    link: Link = "loopback"
    link_rate: str | None = None
    link_delay: str = "0s"
    link_loss: float = 0.0
    factors: dict[str, tuple[type_level, ...]] = {}
    arrivals: Literal["closed", "constant", "poisson"] = "closed"
    metric: Literal["throughput", "p50", "p99", "mean", "capacity"] = "throughput"
    slo: str = ""
    client: str = GENERATOR
    connections: int = 100
    depth: int = 1
    round: str = "0s"
    look_every: str = "0s"
    rate: float | None = None
    rate_per_connection: float | None = None
    size: int = 31
    nodelay: Literal["on", "off"] = "on"
    write_mode: Literal["gathered", "split"] = "gathered"
    service_time: str = "0s"
    generator_threads: int = 1
    connect_rate: float | Literal["burst"] = "burst"
    connect_timeout: str = "5s"
    failed_connects: Literal["strike-out", "count"] = "strike-out"
    server: dict[str, type_level] = {}
    where_possible: dict[str, type_level] = {}

    @property
    def scheduled(self) -> bool:
        """Whether messages have a time of their own to be sent at, an open loop's or that of a round, which the
        generator can miss. Without one an answer is at once the time of the next message."""
        return self.arrivals != "closed" or parse_duration(self.round) > 0 or "round" in self.factors


class Experiment(Frozen):
    """A question as data (experiments/<name>.toml), at one of its sizes."""

    name: str
    question: str
    scenarios: tuple[Scenario, ...]
    seed: int = 1
    budget: Budget = "normal"
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    parts: tuple[str, ...] = ()
    """The experiments that it is made of, by name; none where it is one by itself."""
    aa_share: float = 0.0
    """Of the time of all trials, what the A/A control may take (docs/adr/aa-control.md); a run that was stored before
    there was one gave it none."""
    time_budget_s: float | None = None
    """No block beyond the planned ones begins that would end later (schedule.py)."""
    time_limit_s: float | None = None
    """Where the machine disturbs, the planned blocks go on up to here, and end."""
    capacity: CapacityPlan | None = None
    """Of a run that is a search, whose rates follow from what it finds."""

    @property
    def blocks(self) -> int:
        """The most that any scenario has."""
        return max(scenario.blocks for scenario in self.scenarios)

    def with_each(self, **fields: object) -> Experiment:
        """The same with these fields in each scenario."""
        scenarios = tuple(msgspec.structs.replace(scenario, **fields) for scenario in self.scenarios)
        return msgspec.structs.replace(self, scenarios=scenarios)


class Run(Frozen):
    """One execution of an experiment: what was asked, where, and everything that came of it. The twins of the A/A
    control stand apart from the trials, so that nothing that reads these can take a twin for one of them."""

    run_id: str
    experiment: Experiment
    started_at: str
    finished_at: str | None
    environment: dict[str, str | int | float | bool | list[str]]
    trials: tuple[Trial, ...]
    about: tuple[About, ...] = ()
    """Who took part, in the order of codesize.describe; empty in a run stored before it was recorded."""
    twins: tuple[Trial, ...] = ()
    traced: tuple[Traced, ...] = ()
    """Empty where nothing was to be traced, and in a run stored before it could be."""

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        """What was run, the twins included, in its order."""
        return tuple(
            sorted((*self.trials, *self.twins), key=lambda trial: (trial.block, trial.position, trial.attempt))
        )

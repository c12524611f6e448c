"""One trial, and one server that was traced."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from netdyno.model.base import Frozen, Number, Whole, type_level
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import (
    CanaryReadings,
    HostCanary,
    MachineObservation,
    Neighbour,
    Pinning,
    RelayTotals,
    ServerObservation,
    Starting,
)

Trace = Literal["auto", "always", "never"]
"""Whether system calls are traced after the trials: within a share of the run's time, at any length, or not at all."""


Status = Literal["valid", "struck_out", "skipped", "failed", "faulty", "made_again", "censored"]
"""The first four are stored. The others follow from the audits of the whole run (outcomes.judge_run)."""


AFTER_CLOSED_S = 2.0
"""The load of a trial before its window, in seconds, where a closed loop came first: requests that come one by one cost
a JIT's code more for so long (docs/adr/warm-up.md)."""


class Warmup(Frozen):
    """The warm-up of a server with a JIT, measured before the first block: the seconds of load after which the cost of
    a message stays the same, its compiler's work included. Not `steady`: that was not seen within the available time.
    `seconds` is the warm-up of its trials, unless their scenario has more. `closed`: it is a closed loop of its own,
    before the load of a trial, which is an open loop."""

    seconds: float
    measured_s: float
    steady: bool
    closed: bool = False

    @property
    def of_load_s(self) -> float:
        """The least seconds of a trial's own load before its window."""
        return AFTER_CLOSED_S if self.closed else self.seconds


class Slice(Frozen):
    """One slice of a trial that was run in turns: its `turn`, its `place` in the turn, the messages `sent` in it, the
    CPU seconds that the server used in its measured part and those that the other contestants used meanwhile, and those
    that the server used `later`, until its next slice. The turn was `kept`, or dropped for all contestants alike.
    `foreign_s` is the longest time that a program outside the run (`foreign_program`) ran on the server's cores
    meanwhile, or that the machine let nothing run on a core ("pauses of a core"). Where that was too long the slice was
    repeated, and the later slice of the turn counts."""

    turn: Whole
    place: Whole
    kept: bool
    sent: Whole
    cpu_s: Number
    others_cpu_s: Number
    foreign_s: Number = 0.0
    foreign_program: str = ""
    later_cpu_s: Number = 0.0


class Trial(Frozen):
    """One stored trial. Only `valid` trials enter a figure; the others are shown with their reason. `added` are the
    server options that the harness set beside those of the cell; `canary` is set where programs ran, `relay` where a
    relay made the link. `twin`: its cell was run a second time in this block, for the A/A control
    (docs/adr/aa-control.md)."""

    block: Annotated[int, msgspec.Meta(ge=0, le=10**6)]
    position: Annotated[int, msgspec.Meta(ge=0, le=10**9)]
    scenario: str
    contestant: str
    levels: dict[str, type_level]
    status: Status
    reason: str
    started_at: str
    seconds: Number
    added: dict[str, type_level] = msgspec.field(default_factory=dict)
    pinning: Pinning | None = None
    load: LoadResult | None = None
    server: ServerObservation | None = None
    starting: Starting | None = None
    """None where the scenario does not ask for it."""
    machine: MachineObservation | None = None
    canary: CanaryReadings | None = None
    canaries: tuple[HostCanary, ...] = ()
    """The canaries of a cluster: one for each host of the load, while `canary` is that of the server's host."""
    kernel: dict[str, int] = msgspec.field(default_factory=dict)
    relay: RelayTotals | None = None
    audits: tuple[Audit, ...] = ()
    log: str = ""
    warmup: Warmup | None = None
    """The warm-up of the server; None: that of the scenario."""
    twin: bool = False
    slices: tuple[Slice, ...] = ()
    """The slices of the trial; empty where it was run alone."""
    alone: str = ""
    """The reason why it was run alone."""
    attempt: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    """The number of the try: a trial that the machine disturbed is repeated in its block."""
    ended_by: str = ""
    """How the server ended by itself where that is no fault: by SIGPIPE, where it was started so that this ends it."""
    neighbour: Neighbour | None = msgspec.field(default=None, name="beside")
    """The neighbour on the cores when it began; None where the machine was to be the trial's own."""


class SystemCall(Frozen):
    """One system call of a traced server by its name: the number of its returns within the window, `again` of them with
    EAGAIN and `failed` with another error, and the time within the window between its beginnings and its returns."""

    name: str
    calls: Whole
    again: Whole
    failed: Whole
    time_s: Number


class Traced(Frozen):
    """A short trial of its own under strace(1), for its counts alone (docs/adr/equal-work.md). It is no `Trial`: none
    of its times is the server's own, and none can enter a figure. `reason`: why nothing was traced; empty otherwise.
    `messages`: those completed within the same window. `threads`: those of the server that made any call in it."""

    scenario: str
    contestant: str
    levels: dict[str, type_level]
    reason: str = ""
    window_s: Number = 0.0
    messages: Whole = 0
    threads: Whole = 0
    calls: tuple[SystemCall, ...] = ()
    log: str = ""

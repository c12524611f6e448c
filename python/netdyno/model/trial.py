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
)

Trace = Literal["auto", "always", "never"]
"""Whether system calls are traced after the trials: within a share of the run's time, at any length, or not at all."""


Status = Literal["valid", "struck_out", "skipped", "failed", "faulty", "made_again", "censored"]
"""The first four are stored. The others say what follows from the audits of the whole run (outcomes.judged)."""


class Warmup(Frozen):
    """Of a server with a JIT, before the first block: after how many seconds of a load a message cost it what it costs
    from then on, its compiler's work included; not `steady`: that was not seen within the time that there was.
    `seconds` is what its trials have, where their scenario has not more."""

    seconds: float
    measured_s: float
    steady: bool


class Slice(Frozen):
    """One slice of a trial that was made in turns: in which `turn`, at which `place` of it, the messages that were
    `sent` in it, the CPU seconds that the server used and those that the other contestants used meanwhile. The turn
    was `kept`, or dropped for all contestants alike. `foreign_s` is how long `foreign_program`, of all that are not the
    run's, ran on the server's cores meanwhile, or for how long the machine let nothing run on a core ("pauses of a
    core"): the longest. Where that was too long the slice was made again, and the later one of the turn counts."""

    turn: Whole
    place: Whole
    kept: bool
    sent: Whole
    cpu_s: Number
    others_cpu_s: Number
    foreign_s: Number = 0.0
    foreign_program: str = ""


class Trial(Frozen):
    """One stored trial. Only `valid` trials enter a figure; the others are shown with their reason. `added` are the
    server options that the harness set beside those of the cell; `canary` is there where programs ran, `relay` where
    one made the link. `twin`: its cell was run a second time in this block, for the A/A control
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
    machine: MachineObservation | None = None
    canary: CanaryReadings | None = None
    canaries: tuple[HostCanary, ...] = ()
    """On a cluster: of each host of the load, as `canary` is that of the server's."""
    kernel: dict[str, int] = msgspec.field(default_factory=dict)
    relay: RelayTotals | None = None
    audits: tuple[Audit, ...] = ()
    log: str = ""
    warmup: Warmup | None = None
    """None: that of the scenario."""
    twin: bool = False
    slices: tuple[Slice, ...] = ()
    """None where the trial was made alone."""
    alone: str = ""
    """Why it was; empty in a run stored before contestants took turns."""
    attempt: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    """The number of the try: a trial that the machine disturbed is made again in its block."""
    beside: Neighbour | None = None
    """Who stayed on the cores when it began; None where the machine was to be the trial's own."""


class SystemCall(Frozen):
    """One system call of a traced server by its name: how often it returned within the window, `again` of that with
    EAGAIN and `failed` with another error, and the time within the window between its beginnings and its returns."""

    name: str
    calls: Whole
    again: Whole
    failed: Whole
    time_s: Number


class Traced(Frozen):
    """A short trial of its own under strace(1), for its counts alone (docs/adr/equal-work.md). It is no `Trial`: no
    time of it is the server's own, and none can enter a figure. `reason` says why nothing was traced, and is empty
    where it was. `messages`: completed within the same window. `threads`: of the server that made any call in it."""

    scenario: str
    contestant: str
    levels: dict[str, type_level]
    reason: str = ""
    window_s: Number = 0.0
    messages: Whole = 0
    threads: Whole = 0
    calls: tuple[SystemCall, ...] = ()
    log: str = ""

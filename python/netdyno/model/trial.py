"""One trial, and one server that was traced."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, type_level
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import CanaryReadings, MachineObservation, Pinning, RelayTotals, ServerObservation

Trace = Literal["auto", "always", "never"]
"""Whether system calls are traced after the trials: within a share of the run's time, at any length, or not at all."""


Status = Literal["valid", "struck_out", "skipped", "failed", "faulty", "made_again", "censored"]
"""The first four are stored. The others say what follows from the audits of the whole run (outcomes.judged)."""


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
    added: dict[str, type_level] = msgspec.field(default_factory=dict)
    pinning: Pinning | None = None
    load: LoadResult | None = None
    server: ServerObservation | None = None
    machine: MachineObservation | None = None
    canary: CanaryReadings | None = None
    kernel: dict[str, int] = msgspec.field(default_factory=dict)
    relay: RelayTotals | None = None
    audits: tuple[Audit, ...] = ()
    log: str = ""
    twin: bool = False
    attempt: int = 1
    """The number of the try: a trial that the machine disturbed is made again in its block."""


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

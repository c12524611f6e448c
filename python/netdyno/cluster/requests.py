"""What a controller and its hosts write to each other: JSON of these types."""

from __future__ import annotations

from typing import Annotated

import msgspec

from netdyno.cluster.clocks import Offset
from netdyno.experiment.plan import Cell
from netdyno.model.base import Frozen, Number, type_level
from netdyno.model.experiment import Scenario
from netdyno.model.observation import CanaryReadings, ForeignLoad, HostCanary, Pinning
from netdyno.model.run import Environment
from netdyno.model.trial import Trial, Warmup


class Prepare(Frozen, tag=True):
    """Build and describe what a host is to start: these servers, or on a host of the load these client contestants."""

    servers: tuple[str, ...]
    clients: tuple[str, ...] = ()


class Prepared(Frozen, tag=True):
    """`programs`: their digests, a line each. `why_not`: of contestants that cannot be started here, by name."""

    environment: Environment
    programs: tuple[str, ...]
    why_not: dict[str, str]


class LoadHost(Frozen):
    """One that makes a load, or a part of it."""

    address: str
    cores: tuple[int, ...]
    realtime: bool


class Ground(Frozen):
    """What all trials of a run have in common: `loads` are the hosts that make a load, of which one of `client-hosts`
    takes the first so many."""

    seed: int
    pinning: Pinning
    foreign_load: ForeignLoad
    address: str
    loads: tuple[LoadHost, ...]


class TrialWanted(Frozen, tag=True):
    """One trial on a host of servers."""

    ground: Ground
    cell: Cell
    scenario: Scenario
    warmup: Warmup | None


class TrialDone(Frozen, tag=True):
    """`log` is what stands in the trial's log."""

    trial: Trial
    log: str


class WarmupsWanted(Frozen, tag=True):
    """How long some servers warm up: each a scenario, a contestant and its levels."""

    ground: Ground
    scenarios: tuple[Scenario, ...]
    kinds: tuple[tuple[str, str, dict[str, type_level]], ...]


class WarmupsDone(Frozen, tag=True):
    """By their place among those that were asked for; what has no JIT has none."""

    found: tuple[tuple[int, Warmup], ...]


class NotDone(Frozen, tag=True):
    """Nothing of what was wanted."""

    why: str


Request = Prepare | TrialWanted | WarmupsWanted
Reply = Prepared | TrialDone | WarmupsDone | NotDone
MOST_REPLY = 64 << 20
"""Bytes."""


class Said(Frozen):
    """One message of a host to its controller: that it lives (`beat`), how far the window is, or a piece of the Reply,
    after the last of which nothing comes."""

    beat: bool = False
    completed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seconds: Number = 0.0
    piece: bytes | None = None
    last: bool = False


class LoadAsked(Frozen):
    """What a trial asks its own host's worker for: the words of a load program (LoadWanted), to be made by the first
    of these hosts, or parted among so many as `--share` says."""

    hosts: tuple[LoadHost, ...]
    foreign_load: ForeignLoad
    program: str
    words: tuple[str, ...]
    events: bool
    processes: Annotated[int, msgspec.Meta(ge=1)] = 1


class LoadWanted(Frozen):
    """The name of a load program, the generator's or that of a client contestant of the host's own copy, and the words
    after it, but those that say where its result and its events go. `processes`: of a client contestant. The worker
    that has it made adds its own process id, and a folder for it."""

    program: str
    words: tuple[str, ...]
    events: bool
    cores: tuple[int, ...]
    realtime: bool
    foreign_load: ForeignLoad
    processes: Annotated[int, msgspec.Meta(ge=1)] = 1
    parent: int = 0
    folder: str = ""


class LoadEnded(Frozen):
    """How a load program ended, what it had said, and its result, where it wrote one. `canary`: beside a load that is
    measured."""

    code: int
    said: str
    result: str | None
    canary: CanaryReadings | None = None


class PartMade(Frozen):
    """A part of a load: its result, and how far its host's clock was apart before its window and after it."""

    host: str
    before: Offset
    after: Offset
    result: msgspec.Raw


class PartsMade(Frozen):
    """The result of a load that several hosts made."""

    parts: tuple[PartMade, ...]


class LoadMade(Frozen):
    """A result beside which canaries ran: of the load program, or PartsMade."""

    canaries: tuple[HostCanary, ...]
    result: msgspec.Raw

"""The messages between a controller and its hosts: JSON of these types."""

from __future__ import annotations

from typing import Annotated

import msgspec

from netdyno.measure.cluster.clocks import Offset
from netdyno.model.base import Frozen, Number
from netdyno.model.experiment import Scenario
from netdyno.model.observation import CanaryReadings, ForeignLoad, HostCanary, Pinning
from netdyno.model.run import Environment
from netdyno.model.trial import Trial, Warmup
from netdyno.question.plan import Cell, CellKind


class Prepare(Frozen, tag=True):
    """A request to build and describe the programs of a host: these servers, or on a host of the load these client
    contestants."""

    servers: tuple[str, ...]
    clients: tuple[str, ...] = ()


class Prepared(Frozen, tag=True):
    """The reply to Prepare. `programs`: their digests, a line each. `why_not`: the reasons of contestants that cannot
    be started here, by name."""

    environment: Environment
    programs: tuple[str, ...]
    why_not: dict[str, str]


class LoadHost(Frozen):
    """A host that makes a load, or a part of it."""

    address: str
    cores: tuple[int, ...]
    realtime: bool


class HostSettings(Frozen):
    """The host settings of all trials of a run: `loads` are the hosts that make a load; a cell with a number of
    `client-hosts` takes the first so many."""

    seed: int
    pinning: Pinning
    foreign_load: ForeignLoad
    address: str
    loads: tuple[LoadHost, ...]


class TrialRequest(Frozen, tag=True):
    """A request for a trial on a host of servers."""

    host_settings: HostSettings
    cell: Cell
    scenario: Scenario
    warmup: Warmup | None


class TrialDone(Frozen, tag=True):
    """The reply to TrialRequest. `log` is the text of the trial's log."""

    trial: Trial
    log: str


class WarmupsRequest(Frozen, tag=True):
    """A request to measure how long servers warm up."""

    host_settings: HostSettings
    scenarios: tuple[Scenario, ...]
    kinds: tuple[CellKind, ...]


class WarmupsDone(Frozen, tag=True):
    """The warm-ups, by the position of the kind in the request; a contestant without a JIT has none."""

    found: tuple[tuple[int, Warmup], ...]


class NotDone(Frozen, tag=True):
    """The reply to a request that failed."""

    why: str


Request = Prepare | TrialRequest | WarmupsRequest
Reply = Prepared | TrialDone | WarmupsDone | NotDone
MOST_REPLY = 64 << 20
"""The most bytes of a Reply."""


class HostMessage(Frozen):
    """A message of a host to its controller: a sign of life (`beat`), the progress of the window, or a piece of the
    Reply, after the last of which nothing comes."""

    beat: bool = False
    completed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seconds: Number = 0.0
    piece: bytes | None = None
    last: bool = False


class LoadRequest(Frozen):
    """A trial's request to its own host's worker: the words of a load program (PartRequest), for the first of these
    hosts, or shared by as many of them as `--share` says."""

    hosts: tuple[LoadHost, ...]
    foreign_load: ForeignLoad
    program: str
    words: tuple[str, ...]
    events: bool
    processes: Annotated[int, msgspec.Meta(ge=1)] = 1


class PartRequest(Frozen):
    """A request for a load: the name of a load program, the generator or a client contestant of the host's own copy,
    and the words after it, except those for the destinations of its result and events. `processes`: of a client
    contestant. The worker that has the load made adds its own process id, and a folder for it."""

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
    """The end of a load program: its exit code, its output, and its result, where it wrote one. `canary`: its readings
    beside a load that is measured."""

    code: int
    output: str
    result: str | None
    canary: CanaryReadings | None = None


class PartMade(Frozen):
    """A part of a load: its result, and the offset of its host's clock before its window and after it."""

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

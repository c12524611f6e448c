"""What a reader must know beside a ranking: how contestants ran, what correlates with the result, the neighbours.

Frozen data without words; units are in the names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from netdyno.analysis.found.cells import BoundDirection, Estimate
from netdyno.kit.statistics.stats import Comparison, Interval
from netdyno.model.base import Name, Quoted, type_level
from netdyno.model.observation import Neighbour
from netdyno.model.trial import Traced, Warmup


class Company(msgspec.Struct, frozen=True):
    """The number of trials beside a neighbour that stays, out of the `total` (in an export `of`) behind the figures,
    and each neighbour."""

    trials: int
    total: int = msgspec.field(name="of")
    neighbours: tuple[Neighbour, ...]


class CodeGain(msgspec.Struct, frozen=True):
    """A server of a scenario, with the size of its code and its family's, against the server there with the fewest
    lines: `gain` is how many times as good it is by the metric of the scenario. `different`: that is proven."""

    question: Name
    metric: Name
    contestant: Name
    lines: int
    complexity: int
    gain: float
    interval: Interval | None
    different: bool


class AddedOption(msgspec.Struct, frozen=True):
    """An option that the harness set for the servers that have it."""

    option: Name
    value: type_level
    contestants: tuple[Name, ...]


class ThreadEach(msgspec.Struct, frozen=True):
    """A contestant that got a thread for each connection from the harness, and the numbers of threads that it ran."""

    contestant: Name
    seen: tuple[int, ...]


class SampledThreads(msgspec.Struct, frozen=True):
    """A contestant with estimated context switches and waits: `read` threads out of up to `threads`, at random."""

    contestant: Name
    threads: int
    read: int


class Unsteady(msgspec.Struct, frozen=True):
    """A contestant with a level that moved within its window in `moved` of its `trials`, more than chance explains."""

    contestant: Name
    moved: int
    trials: int


class Unread(msgspec.Struct, frozen=True):
    """A contestant at a level whose clients write and never read: the share of clients that `finished`, mean over its
    trials; the messages that those wrote, median over its trials; and in how many trials a client that left `ended` the
    server."""

    contestant: Name
    level: Name
    trials: int
    finished: float
    written_per_second: float
    ended: int


class Noted(msgspec.Struct, frozen=True):
    """An audit of the kind `note` that failed for a contestant in `trials` of its trials; the detail of most."""

    contestant: Name
    audit: Name
    trials: int
    total: int = msgspec.field(name="of")
    detail: Quoted


class UnevenThreads(msgspec.Struct, frozen=True):
    """A contestant with a thread that had much more than its share of connections, in `trials` trials out of `total`
    (in an export `of`). Its worst: `most` of the `connections` on one of the `threads`, at the level of that label."""

    contestant: Name
    trials: int
    total: int = msgspec.field(name="of")
    level: Name
    most: int
    connections: int
    threads: int


class Reconnected(msgspec.Struct, frozen=True):
    """A contestant that closed connections after a reply in `trials` trials out of `total` (in an export `of`): in all
    of them `closed`, for so many `replies`."""

    contestant: Name
    trials: int
    total: int = msgspec.field(name="of")
    closed: int
    replies: int


class Constant(msgspec.Struct, frozen=True):
    """A contestant that answers in the same time at several loads, all else being equal: least p50 and largest p99."""

    contestant: Name
    levels: tuple[Name, ...]
    """The keys of these loads."""
    p50_ns: float
    p99_ns: float


class Unranked(msgspec.Struct, frozen=True):
    """A program that was run beside the contestants without being one, with what it is instead."""

    contestant: Name
    what: Quoted


class Retried(NamedTuple):
    """How often trials of a contestant were retried, in all of its cells."""

    tries: int
    cells: int


class RetriedSlices(NamedTuple):
    """How many slices of a contestant's trials were retried, of how many."""

    again: int
    slices: int


class Retries(msgspec.Struct, frozen=True):
    """Trials that the machine disturbed, retried in their block; `causes` by audit. `p`: how often chance alone spreads
    retries so unevenly over the contestants of a block, None without retries. `given_up`: cells that no try filled.
    `slices_again`: retried slices of trials in turns by the program that took a core (`foreign_program` of
    model/trial.py), the most frequent first; `slices_p` is their `p`. `turns_dropped`: turns that were dropped for all
    contestants of their group."""

    tries: int
    cells: int
    given_up: int
    causes: Mapping[Name, int]
    by_contestant: Mapping[Name, Retried]
    p: float | None
    slices_again: Mapping[Name, int]
    slices_by_contestant: Mapping[Name, RetriedSlices]
    slices_p: float | None
    turns_dropped: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing was retried."""
        return not (self.causes or self.slices_again)


class Unsafe(msgspec.Struct, frozen=True):
    """Verification's findings on an unsafe contestant at one level, over all its trials with figures, of any status:
    none of them enters anything else (docs/adr/unranked.md)."""

    contestant: Name
    why: Quoted
    level: Name
    """The level's label."""
    trials: int
    wrong: int
    """Trials in which verification failed."""
    expected: int
    lost: int
    duplicated: int
    reordered: int
    corrupt: int
    streams: int
    """Connections that ended because nothing on them could be read any more."""


class Work(msgspec.Struct, frozen=True):
    """The work behind one message of a contestant at the one level of a scenario at which its system calls are
    traced. `traced` is that trial, and None where the run has none; the rest is from the measured trials at this level,
    per message: bytes, packets (segments and datagrams, both directions), nanoseconds of its cores in softirqs; None
    where it was not counted."""

    contestant: Name
    level: Name
    """The level's key."""
    label: Name
    traced: Traced | None
    bytes_in: Estimate | None
    bytes_out: Estimate | None
    packets: Estimate | None
    softirq_ns: Estimate | None

    @property
    def calls(self) -> Mapping[str, float]:
        """System calls per message by name, the most frequent first; empty where nothing was traced."""
        traced = self.traced
        if traced is None or not traced.messages:
            return {}
        return {call.name: call.calls / traced.messages for call in traced.calls}


class Difference(msgspec.Struct, frozen=True):
    """A counter that differs between two contestants: its figures per message (means over the cells of both), and the
    comparison; its ratio is a ratio where `relative`, else the difference, for some value was 0."""

    counter: Name
    worse: float
    better: float
    relative: bool
    comparison: Comparison


class TracedCalls(msgspec.Struct, frozen=True):
    """System calls per message of two traced contestants; `most` is the call by which they differ most."""

    label: Name
    """The level's."""
    worse: Mapping[Name, float]
    better: Mapping[Name, float]
    most: Name


class Why(msgspec.Struct, frozen=True):
    """The counters that correlate with a proven difference of one contestant from a higher one: those that differ
    between the two, of those `considered`. `result` is the comparison of the metric, the lower divided by the higher.
    `decidable`: some counter had blocks enough, and `blocks` is the most that any had. `kernel_worse` and
    `kernel_better` are the kernel's shares of the CPU time, None where none was seen. `traced` is None where not both
    were."""

    worse: Name
    better: Name
    result: Comparison
    differences: tuple[Difference, ...]
    considered: tuple[Name, ...]
    decidable: bool
    blocks: int
    kernel_worse: float | None
    kernel_better: float | None
    traced: TracedCalls | None


class WarmedUp(msgspec.Struct, frozen=True):
    """The warm-up of a contestant with a JIT before the first block, at each level at which it was ranked."""

    contestant: Name
    warmups: tuple[Warmup, ...]


class MeasuredAlone(msgspec.Struct, frozen=True):
    """Contestants that took no turns with others, and why."""

    contestants: tuple[Name, ...]
    why: Quoted


class Speedup(msgspec.Struct, frozen=True):
    """Throughput on several cores over that on one, geometric mean over blocks; a bound where the generator was at its
    limit."""

    cores: int
    ratio: Estimate
    bound: BoundDirection


class Scaling(msgspec.Struct, frozen=True):
    """How the throughput of a contestant grew with its cores, or with a knob of a user's own server (`knob`, such as
    "workers"), whose levels then stand in the place of cores. `other_levels` (in an export `at`): the other levels,
    empty where there are none. The losses are those of notices/scaling.py; None where there are too few speedups that
    are no bounds: one for `serial` (Amdahl), two for `contention` and `coherency` (Gunther)."""

    contestant: Name
    other_levels: Name = msgspec.field(name="at")
    speedups: tuple[Speedup, ...]
    serial: Estimate | None
    contention: Estimate | None
    coherency: Estimate | None
    knob: Name = ""


class Knob(msgspec.Struct, frozen=True):
    """The levels of a knob of a user's own server, its other knobs being equal (`other_levels`, in an export `at`):
    contestants that differ in it alone, in the order in which they were given. `enough`: the first that no other is
    proven better than. Empty where too few blocks compare them. `gain` compares it with the first level, None where it
    is the first. `equal`: the later ones that are not proven different from it. `worse`: those proven worse, with their
    comparison."""

    knob: Name
    other_levels: Name = msgspec.field(name="at")
    levels: Mapping[Name, Name]
    """Each contestant's level."""
    enough: Name
    gain: Comparison | None
    equal: tuple[Name, ...]
    worse: tuple[Comparison, ...]

"""The observations of the harness beside a trial: server, machine, relay, canary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from netdyno.model.base import Frozen, Number, Span, Whole
from netdyno.model.load_result import Distribution

SERVER_DROPS = "UdpServerDrops"
"""Datagrams that the server's own sockets had to drop, beside the counters of the whole namespace."""


class QuotaUse(Frozen):
    """The use of a server's own CPU quota: its periods, those in which it was stopped, and for how long, in CPU seconds
    of all cores on which it was to run. Periods in which it did nothing are not counted."""

    periods: Whole
    throttled_periods: Whole
    throttled_s: Number


class ServerObservation(Frozen):
    """The server over the measured window, all its processes as one: differences between two readings of /proc
    (proc(5)). Switches and wait are shares of those between two readings of the threads, shortly before and after it.
    `rss_peak_bytes` is VmHWM; of several processes it is their PSS when the window ends, plus what each had
    more at its peak (server_processes.compute_peak_memory). Files in memory that they have open count, too.

    `threads_unread`: threads that served and had ended before their counters were read after the window, so
    that the switches and the wait are too small by an unknown part. `threads_sampled`: the number of threads read where
    there were too many to read all (switches and wait are then estimates from these); else 0."""

    cpu_user_s: Number
    cpu_system_s: Number
    rss_peak_bytes: Whole
    threads: Whole
    voluntary_switches: Whole
    involuntary_switches: Whole
    run_queue_wait_s: Number
    window_s: Span
    harness_cpu_s: Number
    totals: dict[str, int]
    threads_unread: Whole = 0
    threads_sampled: Whole = 0
    rss_ready_bytes: Whole = 0
    """Peak memory when the server was ready and no client had connected; 0 where that was not read."""
    connections_per_thread: tuple[Whole, ...] = ()
    """The connections of each thread over the server's whole life, the closing check's included; empty where no
    connection belongs to a thread."""
    tick_lag_ns: Distribution | None = None
    """The lateness of a 10 ms timer of the main thread's loop, from its start to SIGTERM; None without the option
    `application-tick`."""
    quota_use: QuotaUse | None = None
    """None without the option `cpu-quota`."""

    @property
    def cpu_s(self) -> float:
        return self.cpu_user_s + self.cpu_system_s


class Starting(Frozen):
    """The start of a server: seconds from the start of its program until it was ready, and until the first client,
    which came then, had its answer; and the CPU seconds that it had used when it was ready."""

    ready_s: Number
    first_answer_s: Number
    cpu_s: Number


class MachineObservation(Frozen):
    """The cores that the harness may use, over the measured window, in CPU seconds of all of them together. `steal_s`:
    time that the hypervisor gave to other machines. `own_s`: time of the harness and the programs that it started.
    `foreign_s`: everything else, the kernel's own work included (measure/machine/cpu_share.py). `switches`: context
    switches, on all cores of the machine. `softirq_s`: by core number, the time in which ticks found the core in a
    softirq, whatever program ran there. `throttled_s`: the time for which the CPU quota of a control group stopped
    runnable programs, in `throttled_periods` of its periods, on all cores together; None where no group counts it
    (measure/machine/cpu_quota.py)."""

    cores: Whole
    window_s: Span
    steal_s: Number
    own_s: Number
    foreign_s: Number
    switches: Whole
    softirq_s: dict[Whole, Number] = msgspec.field(default_factory=dict)
    throttled_s: Number | None = None
    throttled_periods: Whole = 0


ForeignLoad = Literal["strike-out", "count"]
"""The consequence for a trial that did not have the machine for itself."""


class ProgramShare(Frozen):
    """The CPU time that programs of one name used, in cores' worth."""

    name: str
    cores: Number


class Neighbour(Frozen):
    """Other work that stays on the cores beside a run. All figures are cores' worth of CPU time: 1.8 is all of one core
    and most of another. `foreign_cores`: used by programs that netdyno had not started, while no trial ran.
    `steal_cores`: given to others by the hypervisor during the lost trials (without own work it gives nothing away), in
    the median. The `programs` used `foreign_cores` or a part of it, the largest share first; empty where none
    can be seen from here. `most_cores`: the most that both took together, during a trial or before. `quota_cores`: what
    a CPU quota withheld from programs of the lost trials, in the median."""

    cores: Whole
    foreign_cores: Number
    steal_cores: Number
    most_cores: Number
    programs: tuple[ProgramShare, ...] = ()
    quota_cores: Number = 0.0


class Pinning(Frozen):
    """The cores to which each side was bound; empty means not pinned, and `note` has the reason. `realtime`: whether
    the generator runs before everything else on its cores (docs/adr/realtime-generator.md). `harness`: the cores on
    which the harness waits while the load runs; empty where it has no core of its own."""

    server: tuple[int, ...]
    generator: tuple[int, ...]
    note: str
    realtime: bool = False
    harness: tuple[int, ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether server and generator may run on the same core."""
        return not (self.server or self.generator) or not {*self.server}.isdisjoint(self.generator)


class Relayed(Frozen):
    """Frames and bytes of one direction of a relay, over its whole life (link/README.md)."""

    frames_in: Whole
    bytes_in: Whole
    frames_out: Whole
    bytes_out: Whole
    lost: Whole
    queue_full: Whole
    overflowed: Whole
    refused: Whole
    under_way: Whole
    unread: Whole


class Lateness(Frozen):
    """The lateness of frames after their due time, in nanoseconds."""

    mean: Number
    p50: Whole
    p90: Whole
    p99: Whole
    p999: Whole
    max: Whole


class RelayTotals(Frozen):
    """The totals that the relay of the link wan reports at its end. The end `a` is the server's, `b` the load's."""

    a_to_b: Relayed
    b_to_a: Relayed
    late_ns: Lateness
    seconds: Number
    cpu_user_s: Number
    cpu_system_s: Number
    run_queue_wait_s: Number


class CanaryReading(Frozen):
    """The speed of the machine at one moment, by a workload that is always the same (canary/README.md): round trips of
    64 bytes between two processes on the cores of server and generator, then millions of steps a second that each of
    them counted, both at the same time, then round trips with both on the server's first core. `seconds` is its
    duration; `taken` the number of attempts, because a reading slower than the last one is repeated (canary.py)."""

    round_trips_per_second: Number
    server_millions_per_second: Number
    generator_millions_per_second: Number
    seconds: Number
    taken: Whole = 1
    one_core_round_trips_per_second: Number = 0.0


CANARY_FIGURES: dict[str, Callable[[CanaryReading], float]] = {
    "round trips": lambda reading: reading.round_trips_per_second,
    "server's core": lambda reading: 1e6 * reading.server_millions_per_second,
    "generator's core": lambda reading: 1e6 * reading.generator_millions_per_second,
}
"""The figures of a reading by name: round trips a second, and steps a second that were counted on a core."""


class CanaryReadings(Frozen):
    """The readings beside one trial. `unread`: the reason why one of them is missing."""

    before: CanaryReading | None
    after: CanaryReading | None
    unread: str = ""

    def list_sides(self) -> tuple[tuple[str, CanaryReading], ...]:
        """Return the readings that exist, each with its side of the trial."""
        sides = (("before", self.before), ("after", self.after))
        return tuple((side, reading) for side, reading in sides if reading is not None)


class HostCanary(Frozen):
    """The readings on one host of the load, right before its programs started and right after they had ended."""

    host: str
    readings: CanaryReadings

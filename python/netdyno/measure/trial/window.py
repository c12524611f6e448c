"""Read the server as the generator announces its window, so that both cover the same time.

At the two ends of the window only the clocks of its processes and the counters of cores and kernel are read: where no
core is to spare, each reading stops the server or the load. Threads are read before and after, and the window is
charged with its share of their counts, by the CPU that the server used."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from netdyno.measure.machine import control_group, cpu_users, server_proc, server_processes
from netdyno.measure.machine import cpu_share as cores
from netdyno.measure.machine.control_group import ControlGroup
from netdyno.measure.machine.process import GoneServerError, TrialError
from netdyno.measure.machine.server_processes import Edges, Family, FamilySnapshot, Origin
from netdyno.measure.machine.socket_holders import find_client_holders, find_elsewhere
from netdyno.measure.trial.load import LoadListener
from netdyno.model.observation import MachineObservation, QuotaUse, ServerObservation
from netdyno.model.options import Settings

AHEAD_S = 0.025
"""The time before the window at which the threads are read, in which a load settles again
(docs/measurements/slices.md). Of fifty threads that takes more than 1 ms: at both ends of a window of 0.6 s it raised
their p99 by a quarter."""
SETTLED_S = 0.01
"""The time after the window at which they are read again, when the last replies have come. The load then still has its
connections (trial.LINGER), and a server with a thread for each its threads."""


REHEARSAL_S = 0.1
"""The time before the window at which the server is read as a rehearsal, so that the reading that counts finds its code
and the kernel's in the caches, and takes microseconds where the first would take milliseconds."""


SCAN_AFTER_S = 0.02
"""The time after the connects at which all sockets are scanned for those of the server, which has accepted by then. A
scan stops the server for 20 ms: the rest of the warm-up makes up for that, and ends the streams that it delays."""
MOST_OF_A_WARMUP = 0.5
"""The share of a warm-up that a scan may take, or there is none. It takes 0.3 s where connections for each request have
left 110,000 sockets in TIME_WAIT: then the window would begin unseen."""


CHECK_EVERY_S = 0.5
"""The interval at which the cores are read within the window, to end a trial early that must be retried anyway. Each
reading stops the server for 0.4 ms: every 0.1 s that was 12% of the p99 of a hundred connections."""
CHECK_SHARE = 0.005
"""The share of a core for that: to read the CPU time of a process with thousands of threads takes milliseconds."""

IsLost = Callable[[MachineObservation], bool]


class WindowLostError(Exception):
    """Others took so much of the cores that the trial must be retried, whatever the rest of its window shows."""

    def __init__(self, machine: MachineObservation) -> None:
        super().__init__()
        self.machine = machine


class End(msgspec.Struct, frozen=True):
    """A moment at which a window begins or ends: the CPU seconds so far of each process of the server that was known
    before, and of the harness, and /proc/stat."""

    at_s: float
    own_s: dict[int, float]
    harness_s: float
    stat: str


class Watch(LoadListener):
    """Takes the readings as the generator announces its window."""

    def __init__(
        self,
        origin: Origin,
        settings: Settings,
        network: Path,
        *,
        endpoint: str = "",
        datagrams: bool = False,
        is_new: bool = True,
        is_lost: IsLost = lambda _: False,
        group: ControlGroup | None = None,
    ) -> None:
        """Watch the processes of a server. `network` is the net folder of its network namespace (proc(5)), where those
        count that have the sockets of its `endpoint` open; with `datagrams` the drops of its sockets are read, too. A
        server that is not `is_new` has served others before, so its memory without connections is not known. `is_lost`
        decides by a part of the window whether the trial is lost. `group`: the control group that limits it."""
        self._origin = origin
        self._endpoint = endpoint
        self._settings = settings
        self._network = network
        self._datagrams = datagrams
        self._family: Family | None = None
        self._kernel = [self.take_kernel()]
        self._scan_s = 0.0
        """The time that the last scan for the server's sockets took."""
        self.scan()
        self.descriptors_ready = self.count_descriptors()
        """The number of its files and sockets before the load came."""
        self._rss_ready_bytes = self._read_peak_memory() if is_new else 0
        self._rss_peak_bytes = 0
        self._file_bytes = self._read_memory_files()
        self._before: FamilySnapshot | None = None
        self._begin: End | None = None
        self._end: End | None = None
        self._after: FamilySnapshot | None = None
        self._scan_at = float("inf")
        self._rehearse_at = float("inf")
        self._read_ahead_at = float("inf")
        self._read_after_at = float("inf")
        self._own: tuple[int, ...] | None = None
        self._machine: list[cores.MachineSnapshot] = []
        self._cores = os.sched_getaffinity(0)  # within the window this process may have fewer (pinning.keep_punctual)
        self._is_lost = is_lost
        self._check_at = float("inf")
        self._group = group
        self._quota_uses: list[QuotaUse | None] = []

    def warmed_up(self) -> None:
        """Count what the kernel counts from here on, not in a closed loop before the load."""
        self._kernel = [self.take_kernel()]

    def connected(self) -> None:
        """Schedule a scan, the rehearsal and the reading ahead: the load begins within milliseconds, with its warm-up.
        Several programs that make the load wait for each other first."""
        now = time.monotonic()
        self._rehearse_at = now + self._settings.warmup_s - REHEARSAL_S
        if self._settings.client_hosts == self._settings.client_processes == 1 and self._settings.warmup_s >= AHEAD_S:
            self._read_ahead_at = now + self._settings.warmup_s - AHEAD_S
        if self._endpoint and self._scan_s <= MOST_OF_A_WARMUP * self._settings.warmup_s:
            self._scan_at = now + SCAN_AFTER_S

    def window_start(self) -> None:
        self._scan_at = self._rehearse_at = self._read_ahead_at = float("inf")
        self._choose_family()
        self._begin = self._read_end()
        if self._before is None:
            self._read_ahead()
        self._plan_check(self._begin.at_s + CHECK_EVERY_S)

    def maybe_take(self) -> None:
        """Take the readings that are due now. Raises WindowLostError."""
        now = time.monotonic()
        if now >= self._check_at:
            began_s = time.process_time()
            observed = cores.compute_observation(self._machine[0], self._take_machine(), self._cores)
            self._plan_check(now + max(CHECK_EVERY_S, (time.process_time() - began_s) / CHECK_SHARE))
            if observed is not None and self._is_lost(observed):
                raise WindowLostError(observed)
        if now >= self._scan_at:
            self._scan_at = float("inf")
            self.scan()
        if now >= self._rehearse_at:
            self._rehearse_at = float("inf")
            self._take()
            self.take_kernel()
            self._take_machine()
        if now >= self._read_ahead_at:
            self._read_ahead_at = float("inf")
            self._read_ahead()
        if now >= self._read_after_at:
            self._read_after()

    def window_end(self) -> None:
        self._end = self._read_end()
        self._check_at = float("inf")
        under_way_s = self._settings.service_time_in_all_s + 2 * self._settings.link_delay_s
        self._read_after_at = self._end.at_s + SETTLED_S + under_way_s

    def generator_ended(self) -> None:
        """End the window at the latest now. The last replies of a closed loop come within microseconds of its end, and
        the generator may exit before it announces that."""
        if self._begin is not None and self._end is None:
            self.window_end()
        if self._end is not None:
            if self._after is None:
                self._read_after()
            self._kernel.append(self.take_kernel())
            self.read_what_takes_long()

    def read_what_takes_long(self) -> None:
        """Read what would hold up the server for tens of milliseconds, once no reply is under way any more: a scan of
        all sockets on its core before that was the p99 of a closed loop of a hundred connections."""
        self._add_late_holders()
        self._file_bytes = max(self._file_bytes, self._read_memory_files())

    def next_wait(self, deadline: float) -> float:
        return super().next_wait(min(deadline, *self._moments()))

    def observation(self, totals: dict[str, int]) -> ServerObservation:
        """Return the server's figures over the window. Raises TrialError when the load announced no window."""
        begin, end = self._begin, self._end
        if self._before is None or self._after is None or self._family is None or begin is None or end is None:
            raise TrialError("the load program did not announce its window on --events-fd")
        before, after = server_processes.sum_readings(self._before), server_processes.sum_readings(self._after)
        cpu_before, cpu_after = server_processes.list_cpu(self._before), server_processes.list_cpu(self._after)
        used_s = server_processes.sum_used_s(cpu_before, cpu_after)
        whole = server_proc.compute_observation(
            before,
            msgspec.structs.replace(after, cpu_s=before.cpu_s + used_s),
            totals,
            self._origin.first if self._family.is_sample else 0,
        )
        window_s = end.at_s - begin.at_s
        cpu_s = server_processes.compute_measured_s(
            cpu_before,
            Edges(begin.own_s, end.own_s),
            cpu_after,
            window_s / (end.at_s - min(before.at_s, begin.at_s)) if window_s > 0 else 1.0,
        )
        observed = server_proc.scale_to_part(
            whole,
            switches_share=cpu_s / used_s if used_s > 0 else 1.0,
            wait_share=min(1.0, window_s / whole.window_s) if whole.window_s > 0 else 1.0,
            cpu_s=cpu_s,
            window_s=window_s,
            harness_cpu_s=end.harness_s - begin.harness_s,
        )
        # A server can have the kernel forget its peak (/proc/PID/clear_refs, proc(5)): the most that was read counts.
        read_bytes = self._rss_peak_bytes or max(before.rss_peak_bytes, observed.rss_peak_bytes)
        return msgspec.structs.replace(
            observed,
            rss_ready_bytes=self._rss_ready_bytes,
            rss_peak_bytes=max(self._rss_ready_bytes, read_bytes) + self._file_bytes,
            quota_use=control_group.subtract(*self._quota_uses),
        )

    @property
    def family(self) -> Family:
        """The processes of the server, from the beginning of the window on."""
        assert self._family is not None
        return self._family

    @property
    def saw_window(self) -> bool:
        """Whether the load announced its window."""
        return self._after is not None

    def machine(self) -> MachineObservation | None:
        """Return the use of the cores over the window; None where the kernel does not report it, or there was no
        window."""
        if not self.saw_window:
            return None
        assert self._begin is not None
        assert self._end is not None
        before, after = self._machine
        observed = cores.compute_observation(before, after, self._cores)
        return observed and cores.replace_softirqs(observed, [(self._begin.stat, self._end.stat)])

    def kernel(self) -> dict[str, int]:
        """Return the counters over the window; as `setup.<name>` before it, over connects and warm-up, where a full
        accept queue shows; as `drain.<name>` after it, until the load had ended. Empty where there was no window."""
        if not self.saw_window:
            return {}
        at_start, before, after, ended = (reading.counters() for reading in self._kernel)
        return (
            server_proc.increase(before, after)
            | {f"setup.{name}": value for name, value in server_proc.increase(at_start, before).items()}
            | {f"drain.{name}": value for name, value in server_proc.increase(after, ended).items()}
        )

    def find_clients(self) -> tuple[str, ...]:
        """Return the names of the programs that are connected to the server; once the load has left, none of them is
        netdyno's."""
        holders = find_client_holders(self._network, self._endpoint) if self._endpoint else ()
        return tuple(sorted(map(cpu_users.read_name, holders)))

    def count_descriptors(self) -> int:
        """Count the files and sockets that the server has open; 0 when it is gone."""
        return server_proc.count_descriptors(server_processes.find_members(self._origin))

    @property
    def origin(self) -> Origin:
        """The processes whose descendants serve, as far as is known now."""
        return self._origin

    def _moments(self) -> tuple[float, ...]:
        """Return the moments at which readings are due."""
        return self._scan_at, self._rehearse_at, self._read_ahead_at, self._check_at, self._read_after_at

    def _plan_check(self, moment: float) -> None:
        """Plan to read the cores: shortly before the window's end no more, but again if that does not come."""
        assert self._begin is not None
        overdue_at = self._begin.at_s + self._settings.duration_s + CHECK_EVERY_S
        leaves_time = moment + 2 * CHECK_EVERY_S <= overdue_at
        self._check_at = moment if leaves_time else max(moment, overdue_at)

    def _read_ahead(self) -> None:
        self._before = self._take()
        self._machine.append(self._take_machine())

    def _read_end(self) -> End:
        """Read what must be of the same time as the load's own figures: in 0.2 ms, whatever the server's threads."""
        own_s = server_processes.read_own_cpu_s(self.family.pids)
        end = End(time.monotonic(), own_s, time.process_time(), cores.read_stat())
        self._read_quota_use()
        self._kernel.append(self.take_kernel())
        return end

    def _read_after(self) -> None:
        self._read_after_at = float("inf")
        self._after = self._take(partial(server_processes.take_last, origin=self._origin))
        self._machine.append(self._take_machine())
        if len(self._after.read) > 1:
            self._rss_peak_bytes = self._read_peak_memory()

    def _read_quota_use(self) -> None:
        self._quota_uses.append(self._group.read_quota_use() if self._group else None)

    def scan(self) -> None:
        """Find processes that have a socket of the server open and are not its keeper's, nor the load's."""
        if self._endpoint:
            began_s = time.monotonic()
            elsewhere = find_elsewhere(self._origin, self._network, self._endpoint)
            self._origin = self._origin._replace(elsewhere=elsewhere)
            self._scan_s = time.monotonic() - began_s

    def _add_late_holders(self) -> None:
        """Charge processes that got a socket of the server within the window: with all that they have ever used, as
        they were not read before."""
        known = set(self._origin.elsewhere)
        self.scan()
        if self._after is not None and (late := set(self._origin.elsewhere) - known):
            late_s = server_processes.read_own_cpu_s(late)
            self._after = self._after._replace(unread_cpu_s=self._after.unread_cpu_s | late_s)

    def _take_machine(self) -> cores.MachineSnapshot:
        if self._own is None:
            # A server that was already running is no child of the harness.
            self._own = tuple({*cores.find_own_processes(), *(self._family.pids if self._family else ())})
        return cores.take(self._own)

    def take_kernel(self) -> server_proc.Kernel:
        """Read the counters now."""
        drops = None
        if self._datagrams:
            try:
                drops = server_proc.read_socket_drops(self._origin.first)
            except OSError as error:
                raise GoneServerError from error
        return server_proc.Kernel(server_proc.take_kernel(self._network), drops)

    def _take(self, take: Callable[[Family], FamilySnapshot] = server_processes.take) -> FamilySnapshot:
        """Read the server now. Those of its processes and threads that are read are chosen once, before the window."""
        family = self._choose_family()
        try:
            return take(family)
        except OSError as error:
            raise GoneServerError from error

    def _choose_family(self) -> Family:
        if self._family is None:
            try:
                self._family = server_processes.choose(self._origin)
            except OSError as error:
                raise GoneServerError from error
        return self._family

    def _read_memory_files(self) -> int:
        return server_processes.read_memory_files(server_processes.find_members(self._origin))

    def _read_peak_memory(self) -> int:
        """Read the memory of the processes that the server has now."""
        try:
            return server_processes.read_peak_memory(server_processes.choose(self._origin))
        except OSError as error:
            raise GoneServerError from error

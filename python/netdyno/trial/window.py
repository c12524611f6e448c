"""When the server is read: as the generator announces its window, so that both speak of the same second."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.machine import cpu_share as cores
from netdyno.machine import server_proc
from netdyno.machine.process import ServerError, TrialError
from netdyno.model.observation import MachineObservation, ServerObservation
from netdyno.model.options import Settings

LATE_READING_S = 0.02
"""How long before the end of the window the threads are read once more (see observe.observation)."""


REHEARSAL_S = 0.1
"""How long before the window the server is read for nothing, so that the reading that counts finds its code and the
kernel's in reach, and takes microseconds where the first would take milliseconds."""


LOOK_EVERY_S = 0.1
"""How often the cores are read within the window, to end a trial early that is to be made again anyway."""
LOOK_SHARE = 0.005
"""Of a core, what that may take: the CPU time of a process with thousands of threads is read in milliseconds."""

Taken = dict[int, server_proc.Snapshot]
"""By process of the server."""

IsLost = Callable[[MachineObservation], bool]


class WindowLostError(Exception):
    """Others took so much of the cores that the trial is to be made again, whatever the rest of its window brings."""

    def __init__(self, machine: MachineObservation) -> None:
        super().__init__()
        self.machine = machine


class Watch:
    """Takes the readings as the generator announces its window."""

    def __init__(
        self,
        pid: int,
        wanted: Settings,
        counters: Path,
        *,
        datagrams: bool = False,
        with_children: bool = False,
        is_new: bool = True,
        is_lost: IsLost = lambda _: False,
    ) -> None:
        """Of the server `pid`, and of what it has started where it is `with_children`; `counters` is the net folder of
        its network namespace (proc(5)), and with `datagrams` its sockets are asked as well what they dropped. One that
        is not `is_new` has served others before, so what it takes when nobody has connected is not known. `is_lost`
        says of a part of the window whether the trial is lost."""
        self._pid = pid
        self._wanted = wanted
        self._counters = counters
        self._datagrams = datagrams
        self._with_children = with_children
        self._pids: tuple[int, ...] = ()
        self._kernel = [self.take_kernel()]
        try:
            started = server_proc.family(pid) if with_children else (pid,)
            self._rss_ready_bytes = sum(map(server_proc.peak_memory, started)) if is_new else 0
        except OSError as error:
            raise ServerError("the server was gone when it was to be observed") from error
        self._before: Taken | None = None
        self._late: Taken | None = None
        self._after: Taken | None = None
        self._rehearse_at = float("inf")
        self._late_at = float("inf")
        self._chosen: tuple[str, ...] | None = None
        self._own: tuple[int, ...] | None = None
        self._machine: list[cores.Snapshot] = []
        self._cores = os.sched_getaffinity(0)  # within the window this process may have fewer (pinning.punctual)
        self._is_lost = is_lost
        self._look_at = float("inf")

    def connected(self) -> None:
        """The load begins within milliseconds, with its warm-up."""
        self._rehearse_at = time.monotonic() + self._wanted.warmup_s - REHEARSAL_S

    def window_start(self) -> None:
        self._rehearse_at = float("inf")
        self._before = self._take()
        self._kernel.append(self.take_kernel())
        self._machine.append(self._take_machine())
        began_s = self._before[self._pid].at_s
        if sum(len(one.tasks) for one in self._before.values()) > 1:
            self._late_at = began_s + self._wanted.duration_s - LATE_READING_S
        self._look_at = began_s + LOOK_EVERY_S

    def maybe_take(self) -> None:
        """What is due now. Raises WindowLostError."""
        now = time.monotonic()
        if now >= self._look_at:
            began_s = time.process_time()
            seen = cores.observation(self._machine[0], self._take_machine(), self._cores)
            self._look_at = now + max(LOOK_EVERY_S, (time.process_time() - began_s) / LOOK_SHARE)
            if seen is not None and self._is_lost(seen):
                raise WindowLostError(seen)
        if now >= self._rehearse_at:
            self._rehearse_at = float("inf")
            self._take()
            self.take_kernel()
            self._take_machine()
        if now >= self._late_at and self._after is None:
            self._late = self._take()
            self._late_at = float("inf")

    def window_end(self) -> None:
        self._after = self._take()
        self._kernel.append(self.take_kernel())
        self._machine.append(self._take_machine())
        self._late_at = self._look_at = float("inf")

    def generator_ended(self) -> None:
        """The window is over at the latest now. A closed loop is answered within microseconds of its end, and the
        generator may then be gone before it has announced it."""
        if self._before is not None and self._after is None:
            self.window_end()
        if self._after is not None:
            self._kernel.append(self.take_kernel())

    def next_wait(self, deadline: float) -> float:
        """Seconds until something is due."""
        return max(0.0, min(deadline, self._rehearse_at, self._late_at, self._look_at) - time.monotonic())

    def observation(self, totals: dict[str, int]) -> ServerObservation:
        """Raises TrialError when the load announced no window."""
        if self._before is None or self._after is None:
            raise TrialError("the load did not announce its window on --events-fd")
        stayed = [pid for pid in self._before if pid in self._after]  # what ended on the way took its figures along
        before, after = _understood(self._before, stayed), _understood(self._after, stayed)
        late = _understood(self._late, [pid for pid in stayed if pid in self._late]) if self._late else None
        seen = server_proc.observation(before, late, after, totals, self._pid if self._chosen else 0)
        return msgspec.structs.replace(seen, rss_ready_bytes=self._rss_ready_bytes)

    @property
    def saw_window(self) -> bool:
        """Whether the load announced its window."""
        return self._after is not None

    def machine(self) -> MachineObservation | None:
        """Whose the cores were over the window; None where the kernel does not tell, or there was no window."""
        if not self.saw_window:
            return None
        before, after = self._machine
        return cores.observation(before, after, self._cores)

    def kernel(self) -> dict[str, int]:
        """The counters over the window; as `setup.<name>` over what came before it, the connects and the warm-up, where
        a full accept queue shows; as `drain.<name>` over what came after it, until the load had ended. None where there
        was no window."""
        if not self.saw_window:
            return {}
        at_start, before, after, ended = (taken.counters() for taken in self._kernel)
        return (
            server_proc.increase(before, after)
            | {f"setup.{name}": value for name, value in server_proc.increase(at_start, before).items()}
            | {f"drain.{name}": value for name, value in server_proc.increase(after, ended).items()}
        )

    def _take_machine(self) -> cores.Snapshot:
        if self._own is None:
            self._own = tuple({*cores.own_processes(), *self._pids})  # a server that was there is nobody's child here
        return cores.take(self._own)

    def take_kernel(self) -> server_proc.Kernel:
        """Read the counters now."""
        drops = None
        if self._datagrams:
            try:
                drops = server_proc.read_socket_drops(self._pid)
            except OSError as error:
                raise ServerError("the server was gone when it was to be observed") from error
        return server_proc.Kernel(server_proc.take_kernel(self._counters), drops)

    def _take(self) -> Taken:
        """The server now. Which processes and threads it has is asked once, before the window."""
        try:
            if self._chosen is None:
                self._pids = server_proc.family(self._pid) if self._with_children else (self._pid,)
                self._chosen = server_proc.choose_threads(self._pid) if len(self._pids) == 1 else ()
            found = {self._pid: server_proc.take(self._pid, self._chosen)}
        except OSError as error:
            raise ServerError("the server was gone when it was to be observed") from error
        for pid in self._pids[1:]:
            with suppress(OSError):  # a child that has ended
                found[pid] = server_proc.take(pid)
        return found


def _understood(taken: Taken, pids: Sequence[int]) -> server_proc.Reading:
    return server_proc.together([server_proc.understand(taken[pid]) for pid in pids])

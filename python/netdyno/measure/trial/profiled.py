"""Profile a server: two short separate trials under perf, one for its computing and one for its waiting. Never a
measured trial, because perf costs a server time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from netdyno.measure.machine import orphans, perf, server_proc
from netdyno.measure.machine.links.network import Network, NoNetworkError, make_network
from netdyno.measure.machine.pinning import count_server_cores
from netdyno.measure.machine.process import Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.backend import NoBackendError, start_backend
from netdyno.measure.trial.context import TrialContext, ignore_progress
from netdyno.measure.trial.prepared import load_program, log_path
from netdyno.measure.trial.serving import build_networked_command, wait_ready
from netdyno.measure.trial.traced import TracedWindow
from netdyno.model.contestant import Contestant, stands_already
from netdyno.model.options import Settings
from netdyno.model.profile import Profile, Runtime
from netdyno.model.transports import find_transport
from netdyno.question.plan import Cell

SAMPLES = 1000
"""The samples of a window: shares are then within 3 points of the truth, and names are found within seconds."""
MOST_HZ = 997
"""A prime number, so that nothing at a round rate is always hit, or never."""
_PRIMES = (1, 3, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093)


class ProfileTask(NamedTuple):
    """A server to profile, and its load."""

    cell: Cell
    settings: Settings
    contestant: Contestant


def profile(task: ProfileTask, context: TrialContext) -> tuple[Profile, Profile]:
    """Profile a server's computing and its waiting. Raises only KeyboardInterrupt and faults of the harness itself:
    where something is missing, a profile says what."""
    context = context.adapt_to_cell(task.settings)
    on, off = (Profile(server=task.contestant.name, sort=sort) for sort in ("on-cpu", "off-cpu"))
    reason = _find_obstacle(task, context)
    tool = which(perf.NAME)
    if reason or tool is None:
        reason = reason or "perf is not installed: apt-get install linux-perf (Ubuntu: linux-tools-generic)"
        return replace(on, missing=reason), replace(off, missing=reason)
    allowed = perf.find_rights(tool, context.folder)
    if not allowed.user:
        reason = f"perf may not record here ({allowed.why}): as root, sysctl -w kernel.perf_event_paranoid=1"
        return replace(on, missing=reason), replace(off, missing=reason)
    try:
        rate_hz = SAMPLES / (task.settings.duration_s * count_server_cores(context.pinning))
        events = perf.build_on_cpu_options(allowed.kernel, min(MOST_HZ, max(1, round(rate_hz))))
        computing, switches = _observe(replace(on, with_kernel=allowed.kernel), events, task, tool, context)
    except _FAILURES as failure:
        return replace(on, missing=str(failure)), replace(off, missing=str(failure))
    if not allowed.kernel:
        return computing, replace(off, missing=NO_KERNEL)
    every = choose_interval(switches)
    try:
        waiting, _ = _observe(replace(off, every=every), perf.build_off_cpu_options(every), task, tool, context)
    except _FAILURES as failure:
        return computing, replace(off, missing=str(failure))
    return computing, waiting


_FAILURES = (NoNetworkError, NoBackendError, TrialError)
NO_KERNEL = "waits are seen only in the kernel, which this user may not trace: sysctl -w kernel.perf_event_paranoid=1"


def _find_obstacle(task: ProfileTask, context: TrialContext) -> str:
    if stands_already(task.contestant):
        return "an already running server is not profiled, because that would slow it down for others"
    if not task.contestant.available:
        return task.contestant.why_not
    return context.bad_links.get(task.settings.link_words, "")


def choose_interval(switches: int) -> int:
    """Return the number of switches per sample. A prime number, because switches come in turns."""
    return next((prime for prime in _PRIMES if prime >= switches / SAMPLES), _PRIMES[-1])


def _observe(
    empty: Profile, events: Sequence[str], task: ProfileTask, tool: str, context: TrialContext
) -> tuple[Profile, int]:
    """Return the profile with what perf recorded of these events, and how often the server's threads left a CPU."""
    log = TrialLog((context.folder / log_path(task.cell)).with_suffix(f".{empty.sort}.log"))
    data = log.path.with_suffix(".data")
    server = None
    try:
        with make_network(
            find_transport(task.contestant), task.settings, context.pinning, log, seed=context.seed
        ) as network:
            server = _record(task, events, tool, context, log, data, network)
        records = perf.parse_events(perf.read_script(tool, data, log))
        if empty.sort == "on-cpu":
            stacks = perf.sum_samples(records, server.name)
        else:
            stacks = perf.sum_waits(records, server.name, empty.every, server.window_s)
    finally:
        data.unlink(missing_ok=True)
        for pid in server.pids if server is not None else ():
            perf.forget(pid)
    if not stacks.stacks:
        raise TrialError("perf saw nothing of the server in the window")
    stack_fields = msgspec.structs.asdict(stacks)
    return replace(empty, **stack_fields, window_s=server.window_s, runtime=server.runtime), server.switches


class _Served(msgspec.Struct, frozen=True):
    """A recorded server that has ended: its processes, and the name of the first."""

    pids: tuple[int, ...]
    name: str
    runtime: Runtime
    window_s: float
    switches: int


def _record(
    task: ProfileTask,
    events: Sequence[str],
    tool: str,
    context: TrialContext,
    log: TrialLog,
    data: Path,
    network: Network,
) -> _Served:
    load_settings, cores = task.settings, context.pinning.server
    quiet = msgspec.structs.replace(context, progress=ignore_progress)
    with (
        start_backend(load_settings, network, context, log) as backend,
        log.section(
            "server",
            command := build_networked_command(
                task.contestant, load_settings, network, context, backend, in_front=perf.ENVIRONMENT
            ),
        ) as output,
        orphans.end(),
        Process(command, cores, output, talks=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, context, task.contestant, network)
        pids = server_proc.find_family(ready.pid)
        runtime, name = perf.find_runtime(ready.pid), _read_process_name(ready.pid)
        with perf.attach_recorder(tool, events, runtime, pids, cores, data, log) as recorder:
            switches = [0, 0]

            def begins() -> None:
                switches[0] = _count_switches(pids)
                recorder.tell("enable")

            def ends() -> None:
                recorder.tell("disable")
                switches[1] = _count_switches(pids)

            window = TracedWindow(ends, begins)
            program, words = load_program(task.cell, load_settings, task.contestant, ready, context)
            load = generate.measure(program, [*network.load, *words], load_settings, server, window, quiet, log)
            recorder.end()
        server.terminate()  # a runtime writes the names of its code as it ends
        server.wait(time.monotonic() + context.shutdown_timeout_s)
    start_s, end_s = window.read_bounds()
    if load.messages.received == 0:
        raise TrialError("no reply was correct, so there is no cost to show")
    return _Served(pids, name, runtime, end_s - start_s, max(0, switches[1] - switches[0]))


def _read_process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError as error:
        raise TrialError("the server had ended before perf could attach") from error


def _count_switches(pids: Iterable[int]) -> int:
    """Count how often the living threads of these processes have left a CPU."""
    count = 0
    for pid in pids:
        with suppress(OSError):
            tasks = server_proc.understand(server_proc.take(pid, server_proc.choose_threads(pid))).tasks
            count += sum(task.voluntary + task.involuntary for task in tasks.values())
    return count

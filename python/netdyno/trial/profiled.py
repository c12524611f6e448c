"""Where a server spends its time: two short trials of its own under perf, one for what it computes and one for what it
waits for. Never a measured trial: to be looked at costs a server time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from netdyno.experiment.plan import Cell
from netdyno.machine import orphans, perf, server_proc
from netdyno.machine.links.network import Network, NoNetworkError, Place, network_for
from netdyno.machine.perf import Lost, Rights, Seen, Stacks, Switched
from netdyno.machine.pinning import server_cores
from netdyno.machine.process import Process, TrialError
from netdyno.machine.trial_log import TrialLog
from netdyno.model.contestant import Contestant, stands_already
from netdyno.model.options import Settings
from netdyno.model.profile import Profile, Runtime, Sort
from netdyno.model.transports import of as transport_of
from netdyno.trial import load as generate
from netdyno.trial.command import server_command
from netdyno.trial.setup import Bench
from netdyno.trial.traced import Window
from netdyno.trial.trial import load_program, log_path, wait_ready

SAMPLES = 1000
"""As many are looked at in a window: shares are then within 3 points of the truth, and names found within seconds."""
MOST_HZ = 997
"""A prime number: nothing that comes at a round rate is always hit, or never."""
_PRIMES = (1, 3, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093)


class Task(NamedTuple):
    """A server to be looked at, and its load."""

    cell: Cell
    wanted: Settings
    contestant: Contestant


class _Way(NamedTuple):
    """What perf is asked for, and how its answer is understood, with the name of the server's process."""

    events: tuple[str, ...]
    understand: Callable[[Iterable[Seen | Switched | Lost], str, float], Stacks]


class _Looked(NamedTuple):
    stacks: Stacks
    window_s: float
    switches: int
    runtime: Runtime


def profile(task: Task, bench: Bench) -> tuple[Profile, Profile]:
    """What it computes and what it waits for. Never raises but for KeyboardInterrupt and faults of the harness itself:
    where something is missing, a profile says what."""
    bench = bench.for_cell(task.wanted)
    on, off = (_nothing(task, sort) for sort in ("on-cpu", "off-cpu"))
    why = _why_not(task, bench)
    tool = perf.program()
    if why or tool is None:
        why = why or "perf is not installed: apt-get install linux-perf (Ubuntu: linux-tools-generic)"
        return replace(on, missing=why), replace(off, missing=why)
    may = perf.rights(tool, bench.folder)
    if not may.user:
        why = f"perf may not record here ({may.why}): as root, sysctl -w kernel.perf_event_paranoid=1"
        return replace(on, missing=why), replace(off, missing=why)
    looked: _Looked | None = None
    try:
        looked = _look(task, _computes(may, task.wanted, bench), tool, bench, "on-cpu")
        on = _filled(on, looked, may)
        if not may.kernel:
            return on, replace(off, missing=NO_KERNEL)
        number = every(looked.switches)
        found = _look(task, _waits(number), tool, bench, "off-cpu")
        return on, replace(_filled(off, found, may), every=number)
    except (NoNetworkError, TrialError) as failure:
        return (replace(on, missing=str(failure)) if looked is None else on), replace(off, missing=str(failure))


NO_KERNEL = "what it waits for is seen in the kernel, which this user may not: sysctl -w kernel.perf_event_paranoid=1"


def _nothing(task: Task, sort: Sort) -> Profile:
    return Profile(server=task.contestant.name, sort=sort)


def _why_not(task: Task, bench: Bench) -> str:
    if stands_already(task.contestant):
        return "an already running server is not profiled, because that would slow it down for others"
    if not task.contestant.available:
        return task.contestant.why_not
    return bench.bad_links.get(task.wanted.link_words, "")


def _computes(may: Rights, wanted: Settings, bench: Bench) -> _Way:
    rate_hz = SAMPLES / (wanted.duration_s * server_cores(bench.pinning))
    return _Way(
        perf.on_cpu(may.kernel, min(MOST_HZ, max(1, round(rate_hz)))),
        lambda found, process, _window_s: perf.computing(found, process),
    )


def _waits(every: int) -> _Way:
    return _Way(perf.off_cpu(every), lambda found, process, window_s: perf.waiting(found, process, every, window_s))


def every(switches: int) -> int:
    """Of how many switches one is looked at. A prime number: switches come in turns."""
    return next((prime for prime in _PRIMES if prime >= switches / SAMPLES), _PRIMES[-1])


def _filled(empty: Profile, looked: _Looked, may: Rights) -> Profile:
    of_stacks = looked.stacks._asdict()
    return replace(empty, **of_stacks, window_s=looked.window_s, runtime=looked.runtime, with_kernel=may.kernel)


def _look(task: Task, way: _Way, tool: str, bench: Bench, sort: Sort) -> _Looked:
    log = TrialLog((bench.folder / log_path(task.cell)).with_suffix(f".{sort}.log"))
    data = log.path.with_suffix(".data")
    server = None
    try:
        with network_for(transport_of(task.contestant), task.wanted, Place(bench.pinning, log, bench.seed)) as network:
            server = _record(task, way, tool, bench, log, data, network)
        stacks = way.understand(perf.events(perf.script(tool, data, log)), server.name, server.window_s)
    finally:
        data.unlink(missing_ok=True)
        for pid in server.pids if server else ():
            perf.forget(pid)
    if not stacks.stacks:
        raise TrialError("perf saw nothing of the server in the window")
    return _Looked(stacks, server.window_s, server.switches, server.runtime)


class _Served(NamedTuple):
    """A server that was recorded, and has ended: its processes, and what the first is called."""

    pids: tuple[int, ...]
    name: str
    runtime: Runtime
    window_s: float
    switches: int


def _record(task: Task, way: _Way, tool: str, bench: Bench, log: TrialLog, data: Path, network: Network) -> _Served:
    wanted, cores = task.wanted, bench.pinning.server
    quiet = bench._replace(progress=lambda _completed, _seconds: None)
    own = server_command(task.contestant, wanted, network.address, cores=server_cores(bench.pinning))
    command = [*network.server, *perf.ENVIRONMENT, *own]
    with (
        log.section("server", command) as output,
        orphans.end(),
        Process(command, cores, output, talks=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, bench, task.contestant, network)
        pids = server_proc.family(ready.pid)
        runtime, name = perf.runtime_of(ready.pid), _called(ready.pid)
        with perf.attached(tool, way.events, runtime, pids, cores, data, log) as recorder:
            switches = [0, 0]

            def begins() -> None:
                switches[0] = _switches(pids)
                recorder.start()

            def ends() -> None:
                recorder.stop()
                switches[1] = _switches(pids)

            window = Window(ends, begins)
            program, words = load_program(task.cell, wanted, ready, bench)
            load = generate.measure(program, [*network.load, *words], wanted, server, window, quiet, log)
            recorder.end()
        server.terminate()  # a runtime writes the names of its code as it ends
        server.wait(time.monotonic() + bench.shutdown_timeout_s)
    start_s, end_s = window.bounds()
    if load.messages.received == 0:
        raise TrialError("no reply was correct, so there is no cost to show")
    return _Served(pids, name, runtime, end_s - start_s, max(0, switches[1] - switches[0]))


def _called(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError as error:
        raise TrialError("the server had ended before perf could attach") from error


def _switches(pids: Iterable[int]) -> int:
    """How often their threads have left a CPU so far, as far as these are still there."""
    found = 0
    for pid in pids:
        with suppress(OSError):
            tasks = server_proc.understand(server_proc.take(pid, server_proc.choose_threads(pid))).tasks
            found += sum(task.voluntary + task.involuntary for task in tasks.values())
    return found

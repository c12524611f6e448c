"""perf(1) on a server that runs: attach to it, record a window, and read the stacks that were seen there.

What it computes is sampled by the clock of its CPU (cpu-clock), which every virtual machine has too. What it waits for
is seen as it leaves the CPU (context-switches, which is sched:sched_switch without the rights for tracepoints) until it
comes back (--switch-events)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from netdyno.machine.process import LineReader, Process, TrialError
from netdyno.machine.trial_log import TrialLog
from netdyno.model.profile import Runtime, Stack

NAME = "perf"
ATTACH_S = 20.0
"""How long it may take to reach all threads, or to end: it reads the kernel's symbols meanwhile."""
READ_S = 120.0
"""How long it may take to find the names of the frames."""
STACK_BYTES = 8192
"""Of a thread's stack, copied with each sample: the project's builds, and Debian's libraries, have no frame pointers,
so that only their unwind tables (dwarf) lead from frame to frame."""
LONGEST_NAME = 240
KERNEL = "_[k]"
"""The end of a kernel frame's name, as in all folded stacks."""
PREEMPTED = "[preempted]"
"""The last frame of a thread that did not wait for anything but the CPU."""
_BEGINNINGS = re.compile(
    r"(_?main|_start|__libc_start.*|start_thread|clone3?|__clone3?|runtime\.(goexit|mstart|rt0_go|mcall|systemstack).*"
    r"|ret_from_fork.*)(_\[k\])?"
)
"""Where a stack begins; of Go also where a stack of the runtime's own does."""

_HEAD = re.compile(r"(?P<comm>.*?) +(?P<pid>-?\d+)/(?P<thread>-?\d+) +(?P<s>\d+)\.(?P<ns>\d{9}): +(?P<what>.*)")
_FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+) (?P<symbol>.*?) \((?P<file>[/\[].*)\)")
_SAMPLE = re.compile(r"(?P<period>\d+) +\S+:\s*")
_NO_NAME = re.compile(r":-?\d+")
"""What perf calls a thread that began unseen."""
_NOWHERE = frozenset({"ffffffffffffffff", "0"})
"""What an unwinder says for the caller of the first function."""


class Rights(NamedTuple):
    """What may be recorded. `why` says why nothing may, in perf's words."""

    user: bool
    kernel: bool
    why: str = ""


class Seen(NamedTuple):
    """A thread in a stack, at a moment; `period` is how much it stands for."""

    thread: int
    at_ns: int
    period: int
    name: str
    stack: Stack


class Switched(NamedTuple):
    """A thread that came to a CPU, or left it."""

    thread: int
    at_ns: int
    came: bool
    preempted: bool


class Lost(NamedTuple):
    """Events that were not written down in time."""

    number: int


class Stacks(NamedTuple):
    """Stacks with microseconds, and what is to be said of them (model/profile.py)."""

    stacks: dict[Stack, float]
    samples: int
    lost: int
    unnamed_us: float
    unnamed: tuple[str, ...]
    cut_us: float


def program() -> str | None:
    """Where it is; None where it is not installed."""
    return shutil.which(NAME)


@cache
def rights(tool: str, folder: Path) -> Rights:
    """What perf may record here: found by trying, for a container may give root without the capability. Tried once for
    all servers of a run, as it takes a second."""
    if not _refused(tool, "cpu-clock:k", folder):
        return Rights(user=True, kernel=True)
    why = _refused(tool, "cpu-clock:u", folder)
    return Rights(user=not why, kernel=False, why=why)


def _refused(tool: str, event: str, folder: Path) -> str:
    """Why an event may not be recorded; empty where it may."""
    data = folder / "rights.data"
    command = [tool, "record", "-q", "-e", event, "-o", str(data), "--", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=ATTACH_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        data.unlink(missing_ok=True)
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else " ".join(said[:3])[:300] or f"exit code {done.returncode}"


def on_cpu(kernel: bool, rate_hz: int) -> tuple[str, ...]:
    """What is asked of perf for what a server computes."""
    return ("-e", "cpu-clock" if kernel else "cpu-clock:u", "-F", str(rate_hz))


def off_cpu(every: int) -> tuple[str, ...]:
    """What is asked of perf for what a server waits for."""
    return ("-e", "context-switches", "-c", str(every), "--switch-events")


class Recorder:
    """A perf that is attached and waits for its window."""

    def __init__(self, process: Process, control: int) -> None:
        self._process = process
        self._control = control

    def start(self) -> None:
        """Record from now on."""
        self.tell("enable")

    def stop(self) -> None:
        """Record no more."""
        self.tell("disable")

    def end(self) -> None:
        """Wait until it has written all that it saw. Raises TrialError where it does not, or had ended before."""
        self.tell("stop")
        self._process.expect_end(time.monotonic(), ATTACH_S)

    def tell(self, word: str) -> None:
        with suppress(BrokenPipeError):  # it ends, and will be asked for its exit code or its answer
            os.write(self._control, f"{word}\n".encode())


@contextmanager
def attached(
    tool: str,
    events: Sequence[str],
    runtime: Runtime,
    pids: Sequence[int],
    cores: Sequence[int],
    data: Path,
    log: TrialLog,
) -> Iterator[Recorder]:
    """A recorder of all threads of these processes, and of those that they start; it has not begun. Raises TrialError
    where it may not."""
    unwinding = ("--call-graph", "fp" if runtime in WITH_FRAME_POINTERS else f"dwarf,{STACK_BYTES}")
    told, tells = os.pipe()
    reading, answers = os.pipe()
    control = ("-D", "-1", "--control", f"fd:{told},{answers}")
    some = ",".join(map(str, pids))
    command = [tool, "record", "-q", "-N", "-B", *events, *unwinding, *control, "-o", str(data), "-p", some]
    with (
        os.fdopen(reading, "rb", closefd=True),
        os.fdopen(tells, "wb", buffering=0),
        log.section(NAME, command) as output,
    ):
        try:
            process = Process(command, cores, output, name=NAME, pass_fds=[told, answers])
        finally:
            os.close(told)
            os.close(answers)
        with process:
            recorder = Recorder(process, tells)
            recorder.tell("ping")
            line = LineReader(reading, NAME).wait_line(time.monotonic() + ATTACH_S)
            if line is None or line.strip("\0") != "ack":
                raise TrialError(f"{NAME} did not begin{process.last_words()}")
            yield recorder


WITH_FRAME_POINTERS = frozenset({"go", "java", "node"})
"""Runtimes whose code has them; a JIT's has no unwind tables."""


def script(tool: str, data: Path, log: TrialLog) -> Iterator[str]:
    """What was recorded, line by line. Raises TrialError where perf cannot read it."""
    fields = "comm,pid,tid,time,period,event,ip,sym,dso"
    command = [tool, "script", "-i", str(data), "--ns", "--no-inline", "--show-switch-events", "--show-lost-events"]
    command += ["-F", fields]
    text = data.with_suffix(".script")
    try:
        with log.section("perf-script", command) as errors, text.open("wb") as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, check=False, timeout=READ_S
            )
        if done.returncode != 0:
            raise TrialError(f"{NAME} cannot read what it recorded (exit code {done.returncode})")
        with text.open(encoding="utf-8", errors="replace") as lines:
            yield from lines
    except subprocess.TimeoutExpired:
        raise TrialError(f"{NAME} did not find the names of all frames within {READ_S:g} s") from None
    finally:
        text.unlink(missing_ok=True)


# --- what it wrote --------------------------------------------------------------------------------------------------


def events(lines: Iterable[str]) -> Iterator[Seen | Switched | Lost]:
    """What is in perf's script. A line that is none of these is passed over: a thread may be called anything. Pure."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in lines:
        if head is not None and (frame := _FRAME.fullmatch(line.rstrip("\n").replace(" (deleted))", ")"))):
            frames.append("" if frame["address"] in _NOWHERE else _frame(frame["symbol"], frame["file"]))
            continue
        if head is not None and not line.strip():
            yield _seen(head, frames)
            head, frames = None, []
            continue
        found = _HEAD.fullmatch(line.strip())
        if found is None:
            continue
        if head is not None:
            yield _seen(head, frames)
            head, frames = None, []
        if found["what"].startswith("PERF_RECORD_SWITCH"):
            way = found["what"].split()
            came = way[1:2] == ["IN"]
            yield Switched(int(found["thread"]), _at_ns(found), came, "preempt" in way)
        elif found["what"].startswith("PERF_RECORD_LOST"):
            yield Lost(int(found["what"].split()[-1]))
        elif _SAMPLE.fullmatch(found["what"]):
            head = found
    if head is not None:
        yield _seen(head, frames)


def _seen(head: re.Match[str], frames: list[str]) -> Seen:
    sample = _SAMPLE.fullmatch(head["what"])
    assert sample is not None
    stack = tuple(name for name in reversed(frames) if name)
    return Seen(int(head["thread"]), _at_ns(head), int(sample["period"]), head["comm"].strip(), stack)


def _at_ns(head: re.Match[str]) -> int:
    return int(head["s"]) * 10**9 + int(head["ns"])


def _frame(symbol: str, file: str) -> str:
    """The frame as folded stacks have it: no semicolon, no line end, and no path of this machine."""
    name = file.rsplit("/", 1)[-1]
    if symbol == "[unknown]":
        return f"[{name.strip('[]') or 'unknown'}]"
    in_kernel = file.startswith("[kernel") or (file.startswith("[") and file != "[vdso]" and file != "[unknown]")
    return symbol.replace(";", ":")[:LONGEST_NAME] + (KERNEL if in_kernel else "")


def computing(found: Iterable[Seen | Switched | Lost], process: str) -> Stacks:
    """Samples of a CPU's clock, each of which stands for its period. Pure."""
    return _sum(
        (_threaded(one, process), one.period) if isinstance(one, Seen) else one
        for one in found
        if not isinstance(one, Switched)
    )


def waiting(found: Iterable[Seen | Switched | Lost], process: str, every: int, window_s: float) -> Stacks:
    """For each thread that was seen as it left the CPU, how long it was away: until it came back, or to the window's
    end. Pure."""
    return _sum(_away(found, process, every, window_s))


def _away(
    found: Iterable[Seen | Switched | Lost], process: str, every: int, window_s: float
) -> Iterator[tuple[Stack, int] | Lost]:
    leaving: dict[int, tuple[int, Stack]] = {}
    first_ns: int | None = None
    for one in found:
        if isinstance(one, Lost):
            leaving.clear()  # who has come back meanwhile is not known
            yield one
            continue
        first_ns = one.at_ns if first_ns is None else first_ns
        if isinstance(one, Seen):
            leaving[one.thread] = (one.at_ns, _threaded(one, process))
        elif not one.came:
            if one.preempted and one.thread in leaving:
                at_ns, stack = leaving[one.thread]
                leaving[one.thread] = (at_ns, (*stack, PREEMPTED))
        elif one.thread in leaving:
            at_ns, stack = leaving.pop(one.thread)
            yield stack, every * (one.at_ns - at_ns)
    end_ns = (first_ns or 0) + int(window_s * 1e9)
    yield from ((stack, every * max(0, end_ns - at_ns)) for at_ns, stack in leaving.values())


def _threaded(one: Seen, process: str) -> Stack:
    """Under the name of its thread, where that has one of its own."""
    if one.name == process or _NO_NAME.fullmatch(one.name):
        return one.stack
    return (one.name.replace(";", ":"), *one.stack)


def _sum(found: Iterable[tuple[Stack, int] | Lost]) -> Stacks:
    stacks: Counter[Stack] = Counter()
    nameless: Counter[str] = Counter()
    samples = lost = unnamed = cut = 0
    for one in found:
        if isinstance(one, Lost):
            lost += one.number
            continue
        stack, nanoseconds = one
        stacks[stack] += nanoseconds
        samples += 1
        files = {frame for frame in stack if frame.startswith("[") and frame != PREEMPTED}
        nameless.update(dict.fromkeys(files, nanoseconds))
        unnamed += nanoseconds if files else 0
        cut += 0 if any(_BEGINNINGS.fullmatch(frame) for frame in stack[:3]) else nanoseconds
    return Stacks(
        stacks={stack: value / 1e3 for stack, value in stacks.items() if value > 0},
        samples=samples,
        lost=lost,
        unnamed_us=unnamed / 1e3,
        unnamed=tuple(name.strip("[]") for name, _ in nameless.most_common(3)),
        cut_us=cut / 1e3,
    )


# --- what runs ------------------------------------------------------------------------------------------------------

ENVIRONMENT = (
    "env",
    "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
    "NODE_OPTIONS=--perf-basic-prof-only-functions",
    "PYTHONPERFSUPPORT=1",
)
"""In front of a server: runtimes write down then what their JIT called which code (/tmp/perf-PID.map). For others these
variables are nothing."""
_GO_MARK = b"\xff Go buildinf:"
_MOST_READ = 64 << 20


def runtime_of(pid: int) -> Runtime:
    """By the program that runs; "native" where nobody may see it."""
    program = Path(f"/proc/{pid}/exe")
    try:
        name = program.readlink().name
        if name.startswith("java"):
            return "java"
        if name in ("node", "nodejs"):
            return "node"
        if name.startswith("python"):
            return "python"
        with program.open("rb") as file:
            return "go" if _GO_MARK in file.read(_MOST_READ) else "native"
    except OSError:
        return "native"


def forget(pid: int) -> None:
    """Take away what a runtime wrote for perf."""
    Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)

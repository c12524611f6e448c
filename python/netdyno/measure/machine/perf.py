"""perf(1) on a running server: attach to it, record a window, and read the stacks seen there.

The clock of its CPU (cpu-clock, which every virtual machine has too) samples what the server computes. What it waits
for is recorded as a thread leaves the CPU (context-switches, which is sched:sched_switch without the rights for
tracepoints) until it comes back (--switch-events)."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.measure.machine.process import LineReader, Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.profile import Runtime, Stack

NAME = "perf"
ATTACH_S = 20.0
"""Seconds that perf may take to reach all threads, or to end: it reads the kernel's symbols meanwhile."""
READ_S = 120.0
"""Seconds that perf may take to find the names of the frames."""
STACK_BYTES = 8192
"""The part of a thread's stack that is copied with each sample: the project's builds, and Debian's libraries, have no
frame pointers, so that only their unwind tables (dwarf) lead from frame to frame."""
LONGEST_NAME = 240
KERNEL = "_[k]"
"""The end of a kernel frame's name, as in all folded stacks."""
PREEMPTED = "[preempted]"
"""The last frame of a thread that waited for nothing but the CPU."""
_BEGINNINGS = re.compile(
    r"(_?main|_start|__libc_start.*|start_thread|clone3?|__clone3?|runtime\.(goexit|mstart|rt0_go|mcall|systemstack).*"
    r"|ret_from_fork.*)(_\[k\])?"
)
"""The first functions of a stack; for Go also those of the runtime's own stacks."""

_HEAD = re.compile(r"(?P<comm>.*?) +(?P<pid>-?\d+)/(?P<thread>-?\d+) +(?P<s>\d+)\.(?P<ns>\d{9}): +(?P<what>.*)")
_FRAME = re.compile(r"\s+(?P<address>[0-9a-f]+) (?P<symbol>.*?) \((?P<file>[/\[].*)\)")
_SAMPLE = re.compile(r"(?P<period>\d+) +\S+:\s*")
_NO_NAME = re.compile(r":-?\d+")
"""The name that perf gives a thread whose start it did not see."""
_NOWHERE = frozenset({"ffffffffffffffff", "0"})
"""The addresses that an unwinder gives for the caller of the first function."""


class Rights(NamedTuple):
    """The rights to record. `why` is perf's reason where nothing may be recorded."""

    user: bool
    kernel: bool
    why: str = ""


class StackSample(msgspec.Struct, frozen=True):
    """A sample: a thread in a stack at a moment; `period` is the amount that it stands for."""

    thread: int
    at_ns: int
    period: int
    name: str
    stack: Stack


class Switched(msgspec.Struct, frozen=True):
    """A thread that came to a CPU, or left it."""

    thread: int
    at_ns: int
    came: bool
    preempted: bool


class Lost(NamedTuple):
    """Events that perf did not write down in time."""

    number: int


class Stacks(msgspec.Struct, frozen=True):
    """Stacks with microseconds, and figures on their quality (model/profile.py)."""

    stacks: dict[Stack, float]
    samples: int
    lost: int
    unnamed_us: float
    unnamed: tuple[str, ...]
    cut_us: float


@cache
def find_rights(tool: str, folder: Path) -> Rights:
    """Return what perf may record here, by trying: a container may give root without the capability. Tried once for
    all servers of a run, as it takes a second."""
    if not _explain_refusal(tool, "cpu-clock:k", folder):
        return Rights(user=True, kernel=True)
    why = _explain_refusal(tool, "cpu-clock:u", folder)
    return Rights(user=not why, kernel=False, why=why)


def _explain_refusal(tool: str, event: str, folder: Path) -> str:
    """Return the reason why an event may not be recorded; empty where it may."""
    data = folder / "rights.data"
    command = [tool, "record", "-q", "-e", event, "-o", str(data), "--", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=ATTACH_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        data.unlink(missing_ok=True)
    errors = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else " ".join(errors[:3])[:300] or f"exit code {done.returncode}"


def build_on_cpu_options(kernel: bool, rate_hz: int) -> tuple[str, ...]:
    """Return the options that record what a server computes."""
    return ("-e", "cpu-clock" if kernel else "cpu-clock:u", "-F", str(rate_hz))


def build_off_cpu_options(period: int) -> tuple[str, ...]:
    """Return the options that record what a server waits for."""
    return ("-e", "context-switches", "-c", str(period), "--switch-events")


class PerfRecorder:
    """A perf that is attached and waits for its window."""

    def __init__(self, process: Process, control: int) -> None:
        self._process = process
        self._control = control

    def end(self) -> None:
        """Wait until perf has written all that it saw. Raises TrialError where it does not, or had ended before."""
        self.tell("stop")
        self._process.expect_end(time.monotonic(), ATTACH_S)

    def tell(self, word: str) -> None:
        """Send a command of --control: "enable" begins to record, "disable" ends it."""
        with suppress(BrokenPipeError):  # it is ending; its exit code or missing answer will show that
            os.write(self._control, f"{word}\n".encode())


@contextmanager
def attach_recorder(
    tool: str,
    events: Sequence[str],
    runtime: Runtime,
    pids: Sequence[int],
    cores: Sequence[int],
    data: Path,
    log: TrialLog,
) -> Iterator[PerfRecorder]:
    """Attach a recorder to all threads of these processes, and to those that they start; it has not begun. Raises
    TrialError where perf may not."""
    unwinding = ("--call-graph", "fp" if runtime in WITH_FRAME_POINTERS else f"dwarf,{STACK_BYTES}")
    command_reader, command_writer = os.pipe()
    answer_reader, answer_writer = os.pipe()
    control = ("-D", "-1", "--control", f"fd:{command_reader},{answer_writer}")
    processes = ",".join(map(str, pids))
    command = [tool, "record", "-q", "-N", "-B", *events, *unwinding, *control, "-o", str(data), "-p", processes]
    with (
        os.fdopen(answer_reader, "rb", closefd=True),
        os.fdopen(command_writer, "wb", buffering=0),
        log.section(NAME, command) as output,
    ):
        try:
            process = Process(command, cores, output, name=NAME, pass_fds=[command_reader, answer_writer])
        finally:
            os.close(command_reader)
            os.close(answer_writer)
        with process:
            recorder = PerfRecorder(process, command_writer)
            recorder.tell("ping")
            line = LineReader(answer_reader, NAME).wait_line(time.monotonic() + ATTACH_S)
            if line is None or line.strip("\0") != "ack":
                raise TrialError(f"{NAME} did not begin{process.read_reason()}")
            yield recorder


WITH_FRAME_POINTERS = frozenset({"go", "java", "node"})
"""Runtimes whose code has frame pointers; a JIT's code has no unwind tables."""


def read_script(tool: str, data: Path, log: TrialLog) -> Iterator[str]:
    """Read what was recorded, line by line. Raises TrialError where perf cannot read it."""
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


# --- its output -----------------------------------------------------------------------------------------------------


def parse_events(lines: Iterable[str]) -> Iterator[StackSample | Switched | Lost]:
    """Parse perf's script. A line that holds no event is skipped: a thread may have any name. Pure."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in lines:
        if head is not None and (frame := _FRAME.fullmatch(line.rstrip("\n").replace(" (deleted))", ")"))):
            frames.append("" if frame["address"] in _NOWHERE else _format_frame(frame["symbol"], frame["file"]))
            continue
        fields = _HEAD.fullmatch(line.strip())
        if head is not None and (fields is not None or not line.strip()):
            yield _parse_sample(head, frames)
            head, frames = None, []
        if fields is None:
            continue
        if fields["what"].startswith("PERF_RECORD_SWITCH"):
            switch = fields["what"].split()
            came = switch[1:2] == ["IN"]
            yield Switched(int(fields["thread"]), _parse_moment_ns(fields), came, "preempt" in switch)
        elif fields["what"].startswith("PERF_RECORD_LOST"):
            yield Lost(int(fields["what"].split()[-1]))
        elif _SAMPLE.fullmatch(fields["what"]):
            head = fields
    if head is not None:
        yield _parse_sample(head, frames)


def _parse_sample(head: re.Match[str], frames: list[str]) -> StackSample:
    sample = _SAMPLE.fullmatch(head["what"])
    assert sample is not None
    stack = tuple(name for name in reversed(frames) if name)
    return StackSample(int(head["thread"]), _parse_moment_ns(head), int(sample["period"]), head["comm"].strip(), stack)


def _parse_moment_ns(head: re.Match[str]) -> int:
    return int(head["s"]) * 10**9 + int(head["ns"])


def _format_frame(symbol: str, file: str) -> str:
    """Format the frame as folded stacks have it: no semicolon, no line end, and no path of this machine."""
    name = file.rsplit("/", 1)[-1]
    if symbol == "[unknown]":
        return f"[{name.strip('[]') or 'unknown'}]"
    in_kernel = file.startswith("[kernel") or (file.startswith("[") and file != "[vdso]" and file != "[unknown]")
    return symbol.replace(";", ":")[:LONGEST_NAME] + (KERNEL if in_kernel else "")


def sum_samples(records: Iterable[StackSample | Switched | Lost], process: str) -> Stacks:
    """Sum the samples of a CPU's clock, each of which stands for its period. Pure."""
    return _sum(
        (_put_under_thread(record, process), record.period) if isinstance(record, StackSample) else record
        for record in records
        if not isinstance(record, Switched)
    )


def sum_waits(records: Iterable[StackSample | Switched | Lost], process: str, period: int, window_s: float) -> Stacks:
    """Sum the time for which each thread that was seen leaving the CPU was away: until it came back, or to the
    window's end. Pure."""
    return _sum(_measure_waits(records, process, period, window_s))


def _measure_waits(
    records: Iterable[StackSample | Switched | Lost], process: str, period: int, window_s: float
) -> Iterator[tuple[Stack, int] | Lost]:
    leaving: dict[int, tuple[int, Stack]] = {}
    first_ns: int | None = None
    for record in records:
        if isinstance(record, Lost):
            leaving.clear()  # it is not known which threads came back meanwhile
            yield record
            continue
        first_ns = record.at_ns if first_ns is None else first_ns
        if isinstance(record, StackSample):
            leaving[record.thread] = (record.at_ns, _put_under_thread(record, process))
        elif not record.came:
            if record.preempted and record.thread in leaving:
                at_ns, stack = leaving[record.thread]
                leaving[record.thread] = (at_ns, (*stack, PREEMPTED))
        elif record.thread in leaving:
            at_ns, stack = leaving.pop(record.thread)
            yield stack, period * (record.at_ns - at_ns)
    end_ns = (first_ns or 0) + int(window_s * 1e9)
    yield from ((stack, period * max(0, end_ns - at_ns)) for at_ns, stack in leaving.values())


def _put_under_thread(sample: StackSample, process: str) -> Stack:
    """Put the stack under the name of its thread, where that has one of its own."""
    if sample.name == process or _NO_NAME.fullmatch(sample.name):
        return sample.stack
    return (sample.name.replace(";", ":"), *sample.stack)


def _sum(entries: Iterable[tuple[Stack, int] | Lost]) -> Stacks:
    stacks: Counter[Stack] = Counter()
    nameless: Counter[str] = Counter()
    samples = lost = unnamed = cut = 0
    for entry in entries:
        if isinstance(entry, Lost):
            lost += entry.number
            continue
        stack, nanoseconds = entry
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


# --- the runtime ----------------------------------------------------------------------------------------------------

ENVIRONMENT = (
    "env",
    "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
    "NODE_OPTIONS=--perf-basic-prof-only-functions",
    "PYTHONPERFSUPPORT=1",
)
"""The command in front of a server: it makes runtimes write down the names of the code of their JIT
(/tmp/perf-PID.map). Other servers ignore these variables."""
_GO_MARK = b"\xff Go buildinf:"
_MOST_READ = 64 << 20


def find_runtime(pid: int) -> Runtime:
    """Return the runtime by the program of the process; "native" where that may not be read."""
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
    """Remove what a runtime wrote for perf."""
    Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)

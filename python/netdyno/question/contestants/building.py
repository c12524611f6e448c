"""Makes the programs that a command is about to start, and no others, in the build that ./netdyno has configured.

A command knows its programs only once it has read the experiment, so they are built here and not by the entry script.
The script's lock is taken here as well: a tree has one set-up or build at a time."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.kit.units import format_clock
from netdyno.model.contestant import Contestant

GENERATOR, CANARY, RELAY = "netdyno-load", "netdyno-canary", "netdyno-link"
LAUNCHER = "netdyno-launch"
"""The program that reads the options of servers that are not written in C++."""
BACKEND = "calibration"
"""The server that is the backend of others."""
POSTGRESQL = "netdyno-postgresql"
"""What a server loads where its backend is PostgreSQL."""
TLS = "netdyno-tls"
"""What a server loads where it speaks TLS, and its certificate."""
PROGRAMS = "netdyno_programs"
"""All programs that measure or can be measured."""
EVERYTHING = "all"
PRESETS = {"debug": "dev", "O3": "o3"}
"""CMake's preset for each level of `build` besides the release."""

_STEP = re.compile(r"\[(\d+)/(\d+)\] (?!Re-)")
"""Ninja's steps, without those in which CMake looks for new files and is run again."""
_NAMED = 8
"""More programs than this are only counted."""
_TAIL = 15
_FROM_FAILURE = 40


def is_made_on_demand(build: Path) -> bool:
    """Whether a program that is missing in this build, or older than its sources, is made before it is started. The
    programs of $NETDYNO_BUILD are taken as they are."""
    return not os.environ.get("NETDYNO_BUILD") and (build / "build.ninja").is_file()


def list_targets(contestant: Contestant, kind: str) -> tuple[str, ...]:
    """Return CMake's targets for a contestant (cmake/Contestants.cmake): its program, where that is built, and the
    launcher that starts it."""
    manifest = contestant.manifest
    launcher = (LAUNCHER,) if kind == "server" and contestant.own is None and manifest.is_launched else ()
    program = contestant.name if kind == "server" else f"{kind}-{contestant.name}"
    return (*((program,) if manifest.is_built else ()), *launcher)


def list_tls_targets(contestants: Iterable[Contestant]) -> tuple[str, ...]:
    """Return the target of TLS where one of the contestants can speak it."""
    return (TLS,) if any("tls" in contestant.manifest.options for contestant in contestants) else ()


def find_build(build: Path, level: str) -> Path:
    """Return the build beside this one for a level of `build`."""
    return build.with_name(PRESETS[level])


def find_program(program: Path, level: str) -> Path:
    """Return the same program in the build for a level of `build`."""
    return find_build(program.parents[1], level) / program.parent.name / program.name


def make(targets: Iterable[str], build: Path, root: Path = ROOT) -> None:
    """Bring these up to date; with nothing to do, that is one call of Ninja, and nothing is printed. Raises UserError
    where the build fails."""
    names = sorted(set(targets))
    if names and is_made_on_demand(build):
        _run_step("build", ["cmake", "--build", str(build), "--target", *names], names, build, root)


def make_level(targets: Iterable[str], level: str, build: Path, root: Path = ROOT) -> None:
    """Bring these up to date in the build beside this one for a level of `build`. It is configured after each
    configuration of this one, which found what is installed. Raises UserError where that fails."""
    names = sorted(set(targets))
    if not names or not is_made_on_demand(build):
        return
    other = find_build(build, level)
    if _read_time(other / "build.ninja") <= _read_time(build / "CMakeCache.txt"):
        _print_message(f"configuring the build of CMake's preset {other.name}")
        _run_step("configure", ["cmake", "--preset", other.name, "--fresh"], names, other, root)
    make(names, other, root)


def _read_time(path: Path) -> float:
    """Return when a file was written last; 0 where there is none."""
    return path.stat().st_mtime if path.is_file() else 0.0


def _run_step(step: str, command: Sequence[str], names: Sequence[str], build: Path, root: Path) -> None:
    """Run a step of a build under the lock, with a log of its own. Raises UserError where it fails."""
    log = root / ".netdyno" / "logs" / f"{step}-{build.name}.log"
    with _hold_lock(root / ".netdyno") as lock, log.open("wb") as output:
        screen = BuildProgress(sys.stderr, names, log)
        try:
            status = _run_logged(command, root, lock, output, screen)
        except OSError as error:
            raise UserError(f"{command[0]} cannot be started: {error.strerror}") from error
        if status:
            screen.failed()
            again = f"again, with all output: cd {shlex.quote(str(root))} && {shlex.join(command)}"
            raise UserError(f"the {build.name} build failed ({again}; the whole log: {log})")
        screen.done()


@contextmanager
def _hold_lock(state: Path) -> Iterator[int]:
    """Hold the lock of ./netdyno; yields its descriptor. Compilers inherit it, so after an interrupted call it is held
    until the last of them has ended."""
    try:
        (state / "logs").mkdir(parents=True, exist_ok=True)
        lock = os.open(state / "lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UserError(f"cannot write to {state}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock_path = shlex.quote(str(state / "lock"))
            _print_message(
                f"another netdyno is setting up or building here; waiting for it (which: fuser -v {lock_path})"
            )
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _run_logged(command: Sequence[str], root: Path, lock: int, log: IO[bytes], screen: BuildProgress) -> int:
    """Run a command and return its exit code. Its output goes to the log and, line by line, to the screen, which ticks
    after each second of silence."""
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(lock,)
    ) as process:
        assert process.stdout is not None
        output, rest = process.stdout.fileno(), b""
        while True:
            if not select.select([output], [], [], 1.0)[0]:
                screen.tick()
                continue
            piece = os.read(output, 1 << 16)
            if not piece:
                return process.wait()
            log.write(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                screen.line(line.decode(errors="replace"))


# --- what is shown ----------------------------------------------------------------------------------------------------


class Pace:
    """The moments at which a slow step prints its progress where nothing can be drawn in place: not before ten seconds,
    then with every tenth, and at least twice a minute. Pure; set-up.sh keeps the same pace."""

    FIRST_S = 10.0
    EVERY_S = 30.0
    STEP = 0.1

    def __init__(self) -> None:
        self._printed_s: float | None = None
        self._printed_share = 0.0

    def is_due(self, passed_s: float, share: float) -> bool:
        """Whether to print the progress now; True counts as printed."""
        if passed_s < self.FIRST_S:
            return False
        if (
            self._printed_s is not None
            and passed_s - self._printed_s < self.EVERY_S
            and share - self._printed_share < self.STEP - 1e-9
        ):
            return False
        self._printed_s, self._printed_share = passed_s, share
        return True


class _Step(NamedTuple):
    number: int
    total: int

    @property
    def share(self) -> float:
        return self.number / self.total


class BuildProgress:
    """The progress of a build for a person: on a terminal its last line, drawn in place, else a line now and then."""

    def __init__(
        self, stream: IO[str], targets: Sequence[str], log: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._targets = targets
        self._log = log
        self._clock, self._began = clock, clock()
        self._pace = Pace()
        self._step: _Step | None = None
        self._lines: list[str] = []

    def line(self, text: str) -> None:
        """Show Ninja's next line."""
        self._lines.append(text)
        step = _STEP.match(text)
        if step is None:
            return
        is_first = self._step is None
        self._step = _Step(int(step[1]), int(step[2]))
        if is_first:
            self._say(
                f"building {describe_targets(self._targets)} with CMake and Ninja, "
                f"{quantities.plural(self._step.total, 'step')}"
            )
        self._show(text)

    def tick(self) -> None:
        """Show the progress: Ninja has printed nothing for a second."""
        if self._step is not None:
            self._show(self._lines[-1])

    def _show(self, text: str) -> None:
        if self._stream.isatty():
            line = f"  {text}"[: _read_width(self._stream) - 1]  # a longer one would begin a new line
            print(f"\r\033[K{line}", end="", file=self._stream, flush=True)
        elif self._step is not None and self._pace.is_due(self._passed_s, self._step.share):
            number, total = self._step
            self._say(f"building [{number}/{total}], {self._step.share:.0%} in {format_clock(self._passed_s)}")

    def done(self) -> None:
        if self._step is not None:
            self._clear()
            self._say(f"built in {format_clock(self._passed_s)} (log: {self._log})")

    def failed(self) -> None:
        """Print the compiler's first failure: the others follow from it."""
        self._clear()
        failed_at = next((number for number, text in enumerate(self._lines) if text.startswith("FAILED:")), None)
        shown = self._lines[-_TAIL:] if failed_at is None else self._lines[failed_at : failed_at + _FROM_FAILURE]
        print(f"--- from {self._log}", *shown, "---", sep="\n", file=self._stream, flush=True)

    @property
    def _passed_s(self) -> float:
        return self._clock() - self._began

    def _clear(self) -> None:
        if self._stream.isatty():
            print("\r\033[K", end="", file=self._stream, flush=True)

    def _say(self, text: str) -> None:
        self._clear()
        _print_message(text, self._stream)


def _read_width(terminal: IO[str]) -> int:
    """Return the columns of a terminal; 80 where it does not say."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or 80
    except OSError:
        return 80


def describe_targets(targets: Sequence[str]) -> str:
    """Describe in words what is built. Pure."""
    if EVERYTHING in targets:
        return "everything"
    if PROGRAMS in targets:
        return "all programs"
    return quantities.listed(targets) if len(targets) <= _NAMED else f"{len(targets)} programs"


def _print_message(text: str, stream: IO[str] | None = None) -> None:
    """Print on stderr as the entry script does, for stdout belongs to the command."""
    print(f"netdyno: {text}", file=stream or sys.stderr, flush=True)

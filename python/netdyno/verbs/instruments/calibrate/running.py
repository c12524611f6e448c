"""Carry out the cases: a fresh server and a fresh generator for each attempt."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from netdyno.kit.temporary import temporary_folder
from netdyno.measure.machine.process import REALTIME_PRIORITY, LineReader, Process, TrialError
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.measure.trial.serving import ReadyLine
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import Pinning
from netdyno.verbs.instruments.calibrate.cases import CalibrationCase
from netdyno.verbs.instruments.calibrate.done import Pause, ServerTotals
from netdyno.verbs.instruments.calibrate.scores import CalibrationScore

ATTEMPTS = 3
"""The most attempts of a case: that a machine did something else meanwhile is no fault of the generator. Each attempt
is shown."""
ABOVE_OTHER_RUNS = 10
"""Real-time priority of both programs where the user may have it: another run of netdyno at the same time, which has
REALTIME_PRIORITY, would else take their cores for many milliseconds, and no witness above it would see that."""
PATIENCE_S = 30.0
_Line = TypeVar("_Line")


class Attempt(msgspec.Struct, frozen=True):
    """One trial of a case: its scores, or the reason why there are none; and the pauses of the machine meanwhile."""

    scores: tuple[CalibrationScore, ...]
    failure: str = ""
    pauses: tuple[Pause, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failure and all(score.passed for score in self.scores)


class CaseResult(msgspec.Struct, frozen=True):
    """A case with all its attempts; the last one counts."""

    case: str
    about: str
    attempts: tuple[Attempt, ...]

    @property
    def passed(self) -> bool:
        return self.attempts[-1].passed


class CalibrationPrograms(msgspec.Struct, frozen=True):
    """The programs that are started, their cores and their priority; the servers by name."""

    servers: Mapping[str, tuple[str, ...]]
    generator: tuple[str, ...]
    pinning: Pinning
    priority: int = REALTIME_PRIORITY


def run_all(
    cases: Sequence[CalibrationCase], attempt: Callable[[CalibrationCase], Attempt], progress: Callable[[str], None]
) -> tuple[CaseResult, ...]:
    """Run every case once, and again where it did not pass, at most ATTEMPTS times."""
    results = []
    for number, case in enumerate(cases, 1):
        progress(f"{number} of {len(cases)}: {case.name}")
        attempts = [attempt(case)]
        while not attempts[-1].passed and len(attempts) < ATTEMPTS:
            progress(f"{number} of {len(cases)}: {case.name}, try {len(attempts) + 1}")
            attempts.append(attempt(case))
        results.append(CaseResult(case=case.name, about=case.about, attempts=tuple(attempts)))
    return tuple(results)


def attempt(case: CalibrationCase, programs: CalibrationPrograms) -> Attempt:
    """Run a case once and judge it."""
    try:
        load, done = measure(case, programs)
    except TrialError as failure:
        return Attempt(scores=(), failure=str(failure))
    return Attempt(scores=case.judge(load, done), pauses=done.pauses)


def measure(case: CalibrationCase, programs: CalibrationPrograms) -> tuple[LoadResult, ServerTotals]:
    """Run a case; returns the generator's result and the server's report. Raises TrialError where one is missing."""
    with temporary_folder("calibrate") as folder, (folder / "server.log").open("wb") as log:
        command = (
            *programs.servers[case.program],
            *("--workload", case.workload, *case.server),
            *_format_witnesses(programs.pinning),
        )
        # Unlike a contestant, the server is half of the instrument: it keeps its programme as exactly as it may.
        realtime = programs.pinning.realtime
        with Process(
            command,
            programs.pinning.server,
            log,
            name="calibration server",
            talks=True,
            realtime=realtime,
            priority=programs.priority,
        ) as server:
            lines = server.lines()
            endpoint = _read_line(server, lines, ReadyLine).endpoint
            load = _load(case, endpoint, programs, folder)
            server.terminate()
            done = _read_line(server, lines, _Totals).calibration
            server.expect_end(time.monotonic(), PATIENCE_S)
    return load, done


def _format_witnesses(pinning: Pinning) -> tuple[str, ...]:
    """The options by which the server records when the machine let nothing run on a core of either side. Only at
    real-time priority: a witness that has to wait for the generator would excuse the generator's own faults."""
    if not pinning.realtime:
        return ()
    sides = {"generator": pinning.generator, "server": pinning.server}
    return tuple(word for side, cores in sides.items() for core in cores for word in ("--witness", f"{side}={core}"))


class _Totals(msgspec.Struct, frozen=True):
    """The calibration server's own part of the line of totals."""

    calibration: ServerTotals


def _read_line(server: Process, lines: LineReader, kind: type[_Line]) -> _Line:
    line = lines.wait_line(time.monotonic() + PATIENCE_S)
    if line is None:
        raise TrialError(f"the {server.name} printed nothing{server.read_reason()}")
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise TrialError(f"the {server.name}'s line cannot be read: {error}") from error


def _load(case: CalibrationCase, endpoint: str, programs: CalibrationPrograms, folder: Path) -> LoadResult:
    result = folder / "result.json"
    options = ("--workload", case.workload, "--warmup", case.warmup, *case.load, "--json", str(result))
    pinning = programs.pinning
    with (
        (folder / "generator.log").open("wb") as output,
        Process(
            (*programs.generator, endpoint, *options),
            pinning.generator,
            output,
            name="generator",
            realtime=pinning.realtime,
            priority=programs.priority,
        ) as generator,
    ):
        generator.expect_end(time.monotonic(), PATIENCE_S, also={INVALID_LOAD})
    return msgspec.json.decode(result.read_bytes(), type=LoadResult)

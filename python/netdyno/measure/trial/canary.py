"""The canary beside every trial: a short workload that is always the same, right before its programs start and right
after they have ended (canary/README.md; docs/adr/canary.md says why not within). measure/audits/canary_audit.py
judges it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from netdyno.measure.machine.process import REALTIME_PRIORITY, Process, TrialError
from netdyno.model.observation import CANARY_FIGURES, CanaryReading, CanaryReadings, Pinning
from netdyno.model.trial import Trial

FRESH_S = 0.5
"""The time that a reading stays valid while no program of a trial runs: the one after a trial is the one before the
next."""
SLOWER = 1.25
"""A reading is retried when some figure is slower than in the last one by this factor. A short disturbance is then
gone; a slower machine is still slower."""
MOST_TAKES = 10
"""Half a second in all: a program that takes the core for longer has the next trial retried."""
TIMEOUT_S = 10.0

CanaryOutcome = tuple[CanaryReading | None, str]
"""A reading, or the reason why there is none."""


class Canary:
    """The canary program, on the cores of a trial's programs."""

    def __init__(self, program: Path, pinning: Pinning, folder: Path) -> None:
        """`folder` is the run's; the program's errors go to its logs."""
        self._command = build_command(program, pinning)
        self._complaints = folder / "logs" / "canary.log"
        self._last: CanaryReading | None = None
        self._last_at = -math.inf

    def measure_around(self, run: Callable[[], Trial]) -> Trial:
        """Run a trial between two readings, and add them to it. A skipped trial ran nothing and has none."""
        begun = self.begin()
        trial = run()
        return trial if trial.status == "skipped" else msgspec.structs.replace(trial, canary=self.end(begun))

    def begin(self) -> CanaryOutcome:
        """Take the reading before the programs of a trial, or the last one while it is fresh."""
        if self._last is not None and time.monotonic() - self._last_at <= FRESH_S:
            return self._last, ""
        return self._take()

    def end(self, begun: CanaryOutcome) -> CanaryReadings:
        """Take the reading after they have ended, and return both."""
        (before, why_before), (after, why_after) = begun, self._take()
        return CanaryReadings(before=before, after=after, unread=why_before or why_after)

    def _take(self) -> CanaryOutcome:
        try:
            self._last = self._settled(self._last)
        except TrialError as failure:
            self._last = None
            return None, str(failure)
        self._last_at = time.monotonic()
        return self._last, ""

    def _settled(self, last: CanaryReading | None) -> CanaryReading:
        """Take a reading, and more while it is slower than the last. The run's first, which loads the program from the
        disk, is taken twice."""
        reading = self._ask()
        if last is None:
            return select_faster(reading, self._ask())
        while compute_slowdown(reading, last) > SLOWER and reading.taken < MOST_TAKES:
            reading = select_faster(reading, self._ask())
        return reading

    def _ask(self) -> CanaryReading:
        """Run the program once. Raises TrialError when it fails."""
        began = time.monotonic()
        self._complaints.parent.mkdir(parents=True, exist_ok=True)  # it may have been removed
        with (
            self._complaints.open("wb", buffering=0) as output,
            Process(self._command, (), output, name="canary", talks=True) as process,
        ):
            line = process.lines().wait_line(began + TIMEOUT_S)
            process.expect_end(began, TIMEOUT_S)
        try:
            return msgspec.json.decode(line or "", type=CanaryReading)
        except msgspec.DecodeError as error:
            raise TrialError(f"the canary printed {(line or '')[:200]!r} instead of a reading: {error}") from error


def build_command(program: Path, pinning: Pinning) -> list[str]:
    """Return its command line: on the cores of server and generator, and with their priorities (where it is allowed,
    that of the load's threads). Pure."""
    command_line = [str(program)]
    for option, cores in (("--server-cores", pinning.server), ("--generator-cores", pinning.generator)):
        if cores:
            command_line += [option, ",".join(map(str, cores))]
    if pinning.realtime:
        command_line += ["--realtime", str(REALTIME_PRIORITY - 1)]
    return command_line


def compute_slowdown(reading: CanaryReading, reference: CanaryReading) -> float:
    """Return the factor by which a reading is slower than a reference, in its worst figure. Pure."""
    return max(speed(reference) / speed(reading) for speed in CANARY_FIGURES.values())


def select_faster(first: CanaryReading, second: CanaryReading) -> CanaryReading:
    """Return the faster of each figure, for a disturbance only makes a reading slower. Pure."""
    return CanaryReading(
        round_trips_per_second=max(first.round_trips_per_second, second.round_trips_per_second),
        server_millions_per_second=max(first.server_millions_per_second, second.server_millions_per_second),
        generator_millions_per_second=max(first.generator_millions_per_second, second.generator_millions_per_second),
        seconds=first.seconds + second.seconds,
        taken=first.taken + second.taken,
        one_core_round_trips_per_second=max(
            first.one_core_round_trips_per_second, second.one_core_round_trips_per_second
        ),
    )

"""The canary beside every trial: a short workload that is always the same, right before its programs start and right
after they have ended (canary/README.md; docs/adr/canary.md says why not within). What judges it is audits/canary.py."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from netdyno.audits.canary import FIGURES
from netdyno.machine.process import REALTIME_PRIORITY, Process, TrialError
from netdyno.model.observation import CanaryReading, CanaryReadings, Pinning
from netdyno.model.trial import Trial

FRESH_S = 0.5
"""How long a reading stands for the machine while no program of a trial runs: the one after a trial is the one before
the next."""
SLOWER = 1.25
"""A reading in which some figure is slower than in the last one by this factor is taken again. What disturbs it for
some time makes it slower and is gone then; a machine that is slower still is."""
MOST_TAKES = 10
"""Half a second: whoever takes the core for longer has the next trial made again."""
TIMEOUT_S = 10.0

Reading = tuple[CanaryReading | None, str]
"""One, or why there is none."""


class Canary:
    """The program, where a trial's programs would stand."""

    def __init__(self, program: Path, pinning: Pinning, folder: Path) -> None:
        """`folder` is the run's; what the program complains of stands in its logs."""
        self._command = command(program, pinning)
        self._complaints = folder / "logs" / "canary.log"
        self._last: CanaryReading | None = None
        self._last_at = -math.inf

    def beside(self, run: Callable[[], Trial]) -> Trial:
        """Run a trial between two readings, which it then has. One that was skipped ran nothing and has none."""
        begun = self.begin()
        trial = run()
        return trial if trial.status == "skipped" else msgspec.structs.replace(trial, canary=self.end(begun))

    def begin(self) -> Reading:
        """What stands before the programs of a trial."""
        return self._fresh()

    def end(self, begun: Reading) -> CanaryReadings:
        """And after they have ended, both."""
        (before, why_before), (after, why_after) = begun, self._take()
        return CanaryReadings(before=before, after=after, unread=why_before or why_after)

    def _fresh(self) -> Reading:
        """The last reading while it is fresh, else a new one."""
        if self._last is not None and time.monotonic() - self._last_at <= FRESH_S:
            return self._last, ""
        return self._take()

    def _take(self) -> Reading:
        try:
            self._last = self._settled(self._last)
        except TrialError as failure:
            self._last = None
            return None, str(failure)
        self._last_at = time.monotonic()
        return self._last, ""

    def _settled(self, last: CanaryReading | None) -> CanaryReading:
        """A reading, and others while it is slower than the last; after the run's first, which finds the program still
        on the disk, one more."""
        found = self._ask()
        if last is None:
            return faster(found, self._ask())
        while slower(found, last) > SLOWER and found.taken < MOST_TAKES:
            found = faster(found, self._ask())
        return found

    def _ask(self) -> CanaryReading:
        """Run the program once. Raises TrialError when it fails."""
        began = time.monotonic()
        self._complaints.parent.mkdir(parents=True, exist_ok=True)  # should somebody have taken it away
        with (
            self._complaints.open("wb", buffering=0) as output,
            Process(self._command, (), output, name="canary", talks=True) as process,
        ):
            line = process.lines().wait_line(began + TIMEOUT_S)
            process.expect_end(began, TIMEOUT_S)
        try:
            return msgspec.json.decode(line or "", type=CanaryReading)
        except msgspec.DecodeError as error:
            raise TrialError(f"the canary said {(line or '')[:200]!r}, which is no reading: {error}") from error


def command(program: Path, pinning: Pinning) -> list[str]:
    """Its command line: on the same cores as server and generator, and with the same priorities (where it is allowed,
    that of the threads that load). Pure."""
    words = [str(program)]
    for option, cores in (("--server-cores", pinning.server), ("--generator-cores", pinning.generator)):
        if cores:
            words += [option, ",".join(map(str, cores))]
    if pinning.realtime:
        words += ["--realtime", str(REALTIME_PRIORITY - 1)]
    return words


def slower(one: CanaryReading, other: CanaryReading) -> float:
    """By which factor the first is slower than the other, in the figure in which it is most. Pure."""
    return max(speed(other) / speed(one) for speed in FIGURES.values())


def faster(one: CanaryReading, other: CanaryReading) -> CanaryReading:
    """Of each figure the faster, for what disturbs a reading makes it slower only. Pure."""
    return CanaryReading(
        round_trips_per_second=max(one.round_trips_per_second, other.round_trips_per_second),
        server_millions_per_second=max(one.server_millions_per_second, other.server_millions_per_second),
        generator_millions_per_second=max(one.generator_millions_per_second, other.generator_millions_per_second),
        seconds=one.seconds + other.seconds,
        taken=one.taken + other.taken,
        one_core_round_trips_per_second=max(one.one_core_round_trips_per_second, other.one_core_round_trips_per_second),
    )

"""Whether the machine of a trial was the machine of its block, by the canary beside it (docs/adr/canary.md).

A block's median is known at its end, so a trial is stored without this audit first, and with it when its block has
ended: `Judge` does that. The rest is pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from netdyno.base import quantities
from netdyno.model import outcomes
from netdyno.model.load_result import Audit
from netdyno.model.observation import CanaryReading, CanaryReadings, ForeignLoad
from netdyno.model.trial import Trial

NAME = "canary"
OWN = ""
"""The host of the server, which on one machine is all."""
FIGURES: dict[str, Callable[[CanaryReading], float]] = {
    "round trips": lambda one: one.round_trips_per_second,
    "server's core": lambda one: 1e6 * one.server_millions_per_second,
    "generator's core": lambda one: 1e6 * one.generator_millions_per_second,
}
"""What a reading says, each by its name: round trips a second, and steps a second that were counted on a core."""

FACTOR = 1.5
"""How far a figure of the canary may be from the median of its block, either way. docs/adr/canary.md has the
measurements behind it."""
FEWEST_TRIALS = 5
"""A block of fewer trials than this has no median that says which of them stands apart, and is judged among its
neighbours."""

Revise = Callable[[Sequence[Trial]], None]
Of = tuple[int, CanaryReadings]
"""The readings of a trial, and its block."""


class Median(NamedTuple):
    """What each figure of the canary is in the median, and of what."""

    speeds: dict[str, float]
    whose: str


class Judge:
    """Judges the trials of a run as their blocks end, and has them stored anew."""

    def __init__(self, wanted: ForeignLoad, revise: Revise) -> None:
        """`wanted` says whether a trial is struck out or its distance only told. `revise` takes the trials of a block,
        judged, and is not called for blocks without any."""
        self._wanted = wanted
        self._revise = revise
        self._read: dict[str, list[Of]] = {}
        self._waiting: dict[int, list[Trial]] = {}

    def add(self, trial: Trial) -> None:
        """A trial that has been stored, in the order in which they run."""
        if trial.canary is not None:
            self.know(trial)
            self._waiting.setdefault(trial.block, []).append(trial)

    def know(self, trial: Trial) -> None:
        """A trial of an earlier part of the run, whose block has been judged: it is a neighbour of others."""
        for host, readings in _by_host(trial).items():
            self._read.setdefault(host, []).append((trial.block, readings))

    def block_ended(self) -> None:
        """Judge what can be judged by now: a small block may have to wait for its neighbours."""
        self._judge(run_ended=False)

    def run_ended(self) -> None:
        """Judge the rest, a block that was cut short included."""
        self._judge(run_ended=True)

    def _judge(self, *, run_ended: bool) -> None:
        for block in tuple(self._waiting):
            hosts = {host for trial in self._waiting[block] for host in _by_host(trial)}
            medians = {host: median_of(self._read[host], block) for host in hosts}
            if None in medians.values() and not run_ended:
                continue
            self._revise([judged(trial, medians, self._wanted) for trial in self._waiting[block]])
            # Only now: whoever interrupts this finds the block still waiting, and it is judged to the same end.
            del self._waiting[block]


def median_of(read: Sequence[Of], block: int) -> Median | None:
    """Of the block; where it is small and does not agree with itself, of it and of the trials that ran nearest to it.
    None where there are too few of those too. `read` are the readings of a run in their order."""
    own = [number for number, (of, _) in enumerate(read) if of == block]
    alone = _speeds(read[own[0] : own[-1] + 1])
    if len(own) >= FEWEST_TRIALS or all(max(speeds) <= FACTOR * min(speeds) for speeds in alone.values() if speeds):
        return _median(alone, "of its block")
    around = _around(own[0], own[-1] + 1, len(read))
    if around is None:
        return None
    return _median(_speeds(read[slice(*around)]), "of its block and its neighbours")


def _around(first: int, end: int, count: int) -> tuple[int, int] | None:
    """A range and what lies nearest to it on both sides, until that is enough; where one side ends, the other goes on.
    None where there is too little."""
    if count < FEWEST_TRIALS:
        return None
    while end - first < FEWEST_TRIALS:
        if first > 0:
            first -= 1
        if end < count:
            end += 1
    return first, end


def _speeds(read: Sequence[Of]) -> dict[str, list[float]]:
    """Each figure of all readings of these trials; one that stands between two of them counts once."""
    found: list[CanaryReading] = []
    for _, readings in read:
        found += [one for side, one in sides(readings) if side == "after" or not found or one != found[-1]]
    return {name: [speed(reading) for reading in found] for name, speed in FIGURES.items()}


def sides(readings: CanaryReadings) -> Iterator[tuple[str, CanaryReading]]:
    """The readings that there are, each with where it stands."""
    for side, reading in (("before", readings.before), ("after", readings.after)):
        if reading is not None:
            yield side, reading


def _median(speeds: dict[str, list[float]], whose: str) -> Median:
    return Median({name: statistics.median(each) for name, each in speeds.items() if each}, whose)


def judged_at_once(trial: Trial, before: Sequence[Trial], wanted: ForeignLoad) -> Trial:
    """A trial of a search, which cannot wait for the end of a block to know whether it is a witness: judged by all
    trials so far. `before` are those that ran before it."""
    read = [(one.block, one.canary) for one in (*before, trial) if one.canary is not None]
    median = _median(_speeds(read), "of the search so far") if len(read) >= FEWEST_TRIALS else None
    return judged(trial, {OWN: median}, wanted)


def judged(trial: Trial, medians: Mapping[str, Median | None], wanted: ForeignLoad) -> Trial:
    """The trial with this audit among the others, one for each host. One that failed is not judged: it has no figure
    to doubt."""
    if trial.status == "failed" or trial.canary is None:
        return trial
    found = [_of_host(host, _audit(readings, medians[host]), wanted) for host, readings in _by_host(trial).items()]
    every = (*(audit for audit in trial.audits if audit.name != NAME), *found)  # of a block gone on with, once more
    status, reason = outcomes.verdict(every)
    return msgspec.structs.replace(trial, status=status, reason=reason, audits=every)


def _by_host(trial: Trial) -> dict[str, CanaryReadings]:
    """What was read beside it, by the host; that of the server is OWN."""
    own = {} if trial.canary is None else {OWN: trial.canary}
    return own | {one.host: one.readings for one in trial.canaries}


def _of_host(host: str, found: Audit, wanted: ForeignLoad) -> Audit:
    told = found.detail if host == OWN else f"{host}: {found.detail}"
    if wanted == "count":
        return Audit(name="canary", passed=True, detail=f"not judged, because it is only counted: {told}")
    return msgspec.structs.replace(found, detail=told)


def is_judged(trial: Trial) -> bool:
    """Whether its block has been judged. One that failed or was skipped has nothing to be judged for."""
    return trial.status in ("failed", "skipped") or any(audit.name == NAME for audit in trial.audits)


def _audit(readings: CanaryReadings, median: Median | None) -> Audit:
    if readings.unread:
        return Audit(name="canary", passed=False, detail=f"the speed of the machine is unknown: {readings.unread}")
    if median is None:
        return Audit(name="canary", passed=True, detail="not judged, because there are too few trials to compare with")
    side, name, here, there = max(
        (
            (side, name, speed(reading), median.speeds[name])
            for side, reading in sides(readings)
            for name, speed in FIGURES.items()
        ),
        key=lambda one: _factor(one[2], one[3]),
    )
    factor = _factor(here, there)
    detail = (
        f"{side} the trial, the canary read {quantities.rate(here)} ({name}), a factor of "
        f"{quantities.three_digits(factor)} "
        f"off the "
        f"median {median.whose}, {quantities.rate(there)} (bound {FACTOR:g})"
    )
    return Audit(name="canary", passed=factor <= FACTOR, detail=detail)


def _factor(one: float, other: float) -> float:
    return max(one / other, other / one)

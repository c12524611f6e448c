"""The audit of whether the machine of a trial was as fast as in the rest of its block, by the canary beside it
(docs/adr/canary.md).

A block's median is known at its end, so a trial is first stored without this audit, and with it when its block has
ended: `CanaryJudge` does that. The rest is pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from netdyno.kit import quantities
from netdyno.model import outcomes
from netdyno.model.load_result import Audit
from netdyno.model.observation import CANARY_FIGURES, CanaryReading, CanaryReadings, ForeignLoad
from netdyno.model.trial import Trial

OWN = ""
"""The host of the server; on one machine, the only host."""

FACTOR = 1.5
"""The factor by which a figure of the canary may differ from the median of its block, either way. docs/adr/canary.md
has the measurements behind it."""
FEWEST_TRIALS = 5
"""In a block of fewer trials, the median does not show which of them is the outlier; they are judged among their
neighbours."""

Revise = Callable[[Sequence[Trial]], None]
BlockReadings = tuple[int, CanaryReadings]
"""The block of a trial, and its readings."""


class Median(NamedTuple):
    """The median of each figure of the canary, and the trials that it was taken over, in words (`basis`)."""

    speeds: dict[str, float]
    basis: str


class CanaryJudge:
    """Judges the trials of a run as their blocks end, and has them stored again."""

    def __init__(self, policy: ForeignLoad, revise: Revise) -> None:
        """`policy` says whether a trial is made invalid or its distance only reported. `revise` takes the judged trials
        of a block, and is not called for blocks without any."""
        self._policy = policy
        self._revise = revise
        self._read: dict[str, list[BlockReadings]] = {}
        self._waiting: dict[int, list[Trial]] = {}

    def add(self, trial: Trial) -> None:
        """Accept a trial that has been stored, in the order in which they run."""
        if trial.canary is not None:
            self.know(trial)
            self._waiting.setdefault(trial.block, []).append(trial)

    def know(self, trial: Trial) -> None:
        """Accept a trial of an earlier part of the run, of a judged block: it only serves as a neighbour."""
        for host, readings in _map_hosts(trial).items():
            self._read.setdefault(host, []).append((trial.block, readings))

    def judge(self, *, run_ended: bool = False) -> None:
        """Judge what can be judged at the end of a block, as a small one may have to wait for its neighbours; at that
        of the run the rest, a block that was cut short included."""
        for block in tuple(self._waiting):
            hosts = {host for trial in self._waiting[block] for host in _map_hosts(trial)}
            medians = {host: median_of(self._read[host], block) for host in hosts}
            if None in medians.values() and not run_ended:
                continue
            self._revise([add_canary_audit(trial, medians, self._policy) for trial in self._waiting[block]])
            # Last: if this is interrupted, the block still waits, and is judged again with the same result.
            del self._waiting[block]


def median_of(readings: Sequence[BlockReadings], block: int) -> Median | None:
    """Return the median of the block; where it is small and its trials disagree, of it and the trials that ran nearest
    to it. None where these are too few as well. `readings` are those of a run in their order."""
    positions = [number for number, (block_of_trial, _) in enumerate(readings) if block_of_trial == block]
    alone = _collect_speeds(readings[positions[0] : positions[-1] + 1])
    if len(positions) >= FEWEST_TRIALS or all(
        max(speeds) <= FACTOR * min(speeds) for speeds in alone.values() if speeds
    ):
        return _compute_median(alone, "of its block")
    around = _find_around(positions[0], positions[-1] + 1, len(readings))
    if around is None:
        return None
    return _compute_median(_collect_speeds(readings[slice(*around)]), "of its block and its neighbours")


def _find_around(first: int, end: int, count: int) -> tuple[int, int] | None:
    """Widen a range on both sides until it is long enough; where one side ends, the other goes on. None where `count`
    is too small."""
    if count < FEWEST_TRIALS:
        return None
    while end - first < FEWEST_TRIALS:
        if first > 0:
            first -= 1
        if end < count:
            end += 1
    return first, end


def _collect_speeds(trials: Sequence[BlockReadings]) -> dict[str, list[float]]:
    """Return each figure of all readings of these trials; a reading between two trials counts once."""
    collected: list[CanaryReading] = []
    for _, readings in trials:
        collected += [
            reading
            for side, reading in readings.list_sides()
            if side == "after" or not collected or reading != collected[-1]
        ]
    return {name: [speed(reading) for reading in collected] for name, speed in CANARY_FIGURES.items()}


def _compute_median(speeds: dict[str, list[float]], basis: str) -> Median:
    return Median({name: statistics.median(values) for name, values in speeds.items() if values}, basis)


def add_canary_audit_at_once(trial: Trial, before: Sequence[Trial], policy: ForeignLoad) -> Trial:
    """Return a trial of a search, judged by all trials so far: a search cannot wait for the end of a block to know
    whether the trial counts. `before` are the trials that ran before it."""
    readings = [(earlier.block, earlier.canary) for earlier in (*before, trial) if earlier.canary is not None]
    median = (
        _compute_median(_collect_speeds(readings), "of the search so far") if len(readings) >= FEWEST_TRIALS else None
    )
    return add_canary_audit(trial, {OWN: median}, policy)


def add_canary_audit(trial: Trial, medians: Mapping[str, Median | None], policy: ForeignLoad) -> Trial:
    """Return the trial with this audit among the others, one for each host. A failed trial is not judged: it has no
    figure to doubt."""
    if trial.status == "failed" or trial.canary is None:
        return trial
    canary_audits = [
        _name_host(host, _audit_readings(readings, medians[host]), policy)
        for host, readings in _map_hosts(trial).items()
    ]
    # Its canary audits are there already where a continued block is judged again.
    audits = (*(audit for audit in trial.audits if audit.name != outcomes.CANARY), *canary_audits)
    status, reason = outcomes.verdict(audits)
    return msgspec.structs.replace(trial, status=status, reason=reason, audits=audits)


def _map_hosts(trial: Trial) -> dict[str, CanaryReadings]:
    """Return the readings beside a trial by host; the host of the server is OWN."""
    of_server = {} if trial.canary is None else {OWN: trial.canary}
    return of_server | {canary.host: canary.readings for canary in trial.canaries}


def _name_host(host: str, audit: Audit, policy: ForeignLoad) -> Audit:
    detail = audit.detail if host == OWN else f"{host}: {audit.detail}"
    if policy == "count":
        return Audit(name="canary", passed=True, detail=f"not judged, because it is only counted: {detail}")
    return msgspec.structs.replace(audit, detail=detail)


def _audit_readings(readings: CanaryReadings, median: Median | None) -> Audit:
    if readings.unread:
        return Audit(name="canary", passed=False, detail=f"the speed of the machine is unknown: {readings.unread}")
    if median is None:
        return Audit(name="canary", passed=True, detail="not judged, because there are too few trials to compare with")
    side, name, here, there = max(
        (
            (side, name, speed(reading), median.speeds[name])
            for side, reading in readings.list_sides()
            for name, speed in CANARY_FIGURES.items()
        ),
        key=lambda compared: _compute_factor(compared[2], compared[3]),
    )
    factor = _compute_factor(here, there)
    detail = (
        f"{side} the trial, the canary read {quantities.rate(here)} ({name}), a factor of "
        f"{quantities.three_digits(factor)} "
        f"off the "
        f"median {median.basis}, {quantities.rate(there)} (bound {FACTOR:g})"
    )
    return Audit(name="canary", passed=factor <= FACTOR, detail=detail)


def _compute_factor(left: float, right: float) -> float:
    return max(left / right, right / left)

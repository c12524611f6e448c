"""The needs of a claim that a run does not meet; None where nothing is missing. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from netdyno.analysis.claims.evidence import Evidence
from netdyno.analysis.claims.steps import list_levels
from netdyno.model.base import Name
from netdyno.model.claim import CONTESTANT, Cells, Flat, Test, Trend
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, Metric
from netdyno.model.trial import Trial
from netdyno.model.verdicts import (
    ClaimComparison,
    NotCounted,
    NotOffered,
    NotPlanned,
    OnlyOne,
    SettledVerdict,
    SeveralHosts,
    SingleLevel,
    Skipped,
    TooFewCores,
)
from netdyno.question.claims import CORES, ONE_HOST, SECONDS
from netdyno.question.contestants import codesize

_Cell = tuple[Name, str]
"""A scenario and the key of its level."""


def find_missing_need(
    needs: Sequence[str], evidence: Evidence, scenarios: Collection[Name], to: SettledVerdict | None = None
) -> TooFewCores | OnlyOne | SeveralHosts | None:
    """Return the first need that the run does not meet, of a claim about these scenarios. `to`: the only verdict that
    needs them. A missing library is not found here: the trials of its contestants were skipped."""
    for need in needs:
        match = CORES.fullmatch(need)
        if match is not None:
            of_server, least = bool(match[1]), int(match[2])
            cores = _count_server_cores(evidence, scenarios) if of_server else _read_cores_allowed(evidence)
            if cores is None or cores < least:
                return TooFewCores(least, cores, of_server, to)
        if need == ONE_HOST and _has_several(evidence, "hosts"):
            return SeveralHosts(to)
        if need in SECONDS and not _has_several(evidence, SECONDS[need]):
            return OnlyOne(need, to)
    return None


def _has_several(evidence: Evidence, field: str) -> bool:
    count = evidence.environment.get(field, 1)
    return isinstance(count, int) and count > 1


def _read_cores_allowed(evidence: Evidence) -> int | None:
    cores = evidence.environment.get("cores_allowed")
    return cores if isinstance(cores, int) else None


def _count_server_cores(evidence: Evidence, scenarios: Collection[Name]) -> int | None:
    """Return the cores of the servers: the fewest of any of these scenarios, each counted at its level with the most;
    all cores where servers were not pinned. Read from the trials where some were made, else from the environment; None
    where it was not recorded."""
    counts = [_count_cores(evidence, name) for name in scenarios]
    return None if None in counts else min((cores for cores in counts if cores is not None), default=None)


def _count_cores(evidence: Evidence, name: Name) -> int | None:
    pinnings = [trial.pinning for trial in evidence.parts[name].trials if trial.pinning is not None]
    if pinnings:
        everywhere = any(not pinning.server for pinning in pinnings)
        return _read_cores_allowed(evidence) if everywhere else max(len(pinning.server) for pinning in pinnings)
    pinned = evidence.environment.get("pinning.server")
    if not isinstance(pinned, str):
        return None
    return _read_cores_allowed(evidence) if pinned == "none" else len(pinned.split(","))


def find_missing_levels(test: Test, evidence: Evidence) -> SingleLevel | None:
    """Return the factor of a test with a single level: a smaller size of the experiment may have no more."""
    if not isinstance(test, Trend | Flat) or len(list_levels(test.cells, test.along, evidence)) > 1:
        return None
    return SingleLevel(test.along)


def select_offered(
    planned: Sequence[ClaimComparison], evidence: Evidence
) -> tuple[Sequence[ClaimComparison], NotOffered | None]:
    """Return the comparisons of cells with a rate that the generator could offer, and the cells of the rest. Where it
    is at its limit with one contestant and not with another, the rate can be offered: the first one's times are then no
    latencies, but the rate that it achieved is its own."""
    over_limit = _find_over_limit(evidence)
    limited_for_all = {cell for cell, (limited, measured) in over_limit.items() if limited == measured}

    def lacks(cells: Cells, metric: Metric) -> bool:
        measured = {_read_cell(trial) for trial in evidence.trials(cells) if trial.load is not None}
        return bool(measured) and measured <= (limited_for_all if metric.invalid_too else over_limit.keys())

    lacking = [[cells for cells in step.all_cells if lacks(cells, METRICS[step.metric])] for step in planned]
    left_out = [cells for step_cells in lacking for cells in step_cells]
    once = tuple(cells for number, cells in enumerate(left_out) if cells not in left_out[:number])
    kept = [step for step, cells in zip(planned, lacking, strict=True) if not cells]
    return kept, NotOffered(once) if once else None


def _find_over_limit(evidence: Evidence) -> Mapping[_Cell, tuple[frozenset[Name], frozenset[Name]]]:
    """Return, for each cell of an open loop with the generator at its limit, the contestants with which it was, and all
    that were measured there."""
    over_limit: dict[_Cell, tuple[frozenset[Name], frozenset[Name]]] = {}
    for name, part in evidence.parts.items():
        if part.scenario.arrivals == "closed":
            continue
        for level in {limit.level for limit in part.saturated}:
            cell = (name, level)
            limited = {limit.contestant for limit in part.saturated if limit.level == level}
            measured = {
                trial.contestant for trial in part.trials if trial.load is not None and _read_cell(trial) == cell
            }
            over_limit[cell] = (frozenset(limited), frozenset(measured))
    return over_limit


def _read_cell(trial: Trial) -> _Cell:
    return trial.scenario, level_key(trial.levels)


def find_missing_trials(cells: Cells, evidence: Evidence, metric: Metric) -> NotPlanned | Skipped | NotCounted | None:
    """Return why a contestant of these cells, or all of them, could not be measured at all. Invalid or failed trials
    are no such reason, and neither are a few skipped cells of many."""
    if metric.of_code is not None:
        return _find_missing_code(cells, evidence)
    trials = evidence.trials(cells)
    if CONTESTANT not in cells.at:
        return _find_missing(trials, None, cells)
    by_name = ((name, [trial for trial in trials if trial.contestant == name]) for name in cells.at[CONTESTANT])
    gaps = (_find_missing(named, str(name), cells) for name, named in by_name)
    return next((gap for gap in gaps if gap), None)


def _find_missing(trials: Sequence[Trial], name: str | None, cells: Cells) -> NotPlanned | Skipped | None:
    """Return why none of the trials was started."""
    if not trials:
        return NotPlanned(name, cells)
    if all(trial.status == "skipped" for trial in trials):
        return Skipped(trials[0].contestant, trials[0].reason)
    return None


def find_code_coordinate(cells: Cells) -> tuple[str, str]:
    """Return the kind of contestant in cells of a metric of code, and the coordinate that names it."""
    return ("client", "client") if "client" in cells.at else ("server", CONTESTANT)


def _find_missing_code(cells: Cells, evidence: Evidence) -> NotCounted | None:
    kind, coordinate = find_code_coordinate(cells)
    counted = {about.name: about for about in evidence.about if about.kind == kind}
    for name in cells.at.get(coordinate, ()):
        about = counted.get(str(name))
        if about is None:
            return NotCounted(str(name), None)
        for part in codesize.find_parts(about, evidence.about):
            if part.code is None:
                return NotCounted(part.name, part.why_no_code)
    return None

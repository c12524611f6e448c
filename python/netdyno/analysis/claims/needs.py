"""What a claim needs and this run did not have; None where nothing is missing. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from netdyno.analysis.claims.evidence import Evidence
from netdyno.analysis.claims.steps import levels_along
from netdyno.contestants import codesize
from netdyno.experiment.claims import CORES, SECONDS
from netdyno.model.base import Name
from netdyno.model.claim import CONTESTANT, Cells, Flat, Test, Trend
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, Metric
from netdyno.model.trial import Trial
from netdyno.model.verdicts import (
    NotCounted,
    NotOffered,
    NotPlanned,
    OnlyOne,
    SingleLevel,
    Skipped,
    Step,
    TooFewCores,
    Verdict,
)

_Cell = tuple[Name, str]
"""A scenario and the key of its level."""


def missing_need(
    needs: Sequence[str], evidence: Evidence, scenarios: Collection[Name], to: Verdict | None = None
) -> TooFewCores | OnlyOne | None:
    """Return the first need that the run does not meet, of a claim about these scenarios. `to`: the only verdict that
    they are needed for. A library is not asked for here: where it is missing, the trials of its contestants say so."""
    for need in needs:
        asked = CORES.fullmatch(need)
        if asked is not None:
            of_server, least = bool(asked[1]), int(asked[2])
            cores = _server_cores(evidence, scenarios) if of_server else _cores(evidence)
            if cores is None or cores < least:
                return TooFewCores(least, cores, of_server, to)
        if need in SECONDS:
            count = evidence.environment.get(SECONDS[need], 1)
            if not isinstance(count, int) or count < 2:
                return OnlyOne(need, to)
    return None


def _cores(evidence: Evidence) -> int | None:
    cores = evidence.environment.get("cores_allowed")
    return cores if isinstance(cores, int) else None


def _server_cores(evidence: Evidence, scenarios: Collection[Name]) -> int | None:
    """Return how many cores servers had in the scenario of these that gave them the fewest, at the level that gave them
    the most; all where they were not pinned. The trials say it where some were made, else the environment does; None
    where it was not recorded."""
    found = [_cores_of_scenario(evidence, name) for name in scenarios]
    return None if None in found else min((cores for cores in found if cores is not None), default=None)


def _cores_of_scenario(evidence: Evidence, name: Name) -> int | None:
    pinnings = [trial.pinning for trial in evidence.parts[name].trials if trial.pinning is not None]
    if pinnings:
        everywhere = any(not pinning.server for pinning in pinnings)
        return _cores(evidence) if everywhere else max(len(pinning.server) for pinning in pinnings)
    pinned = evidence.environment.get("pinning.server")
    if not isinstance(pinned, str):
        return None
    return _cores(evidence) if pinned == "none" else len(pinned.split(","))


def missing_levels(test: Test, evidence: Evidence) -> SingleLevel | None:
    """Why a test cannot go along its factor: a smaller size of the experiment may have a single level of it."""
    if not isinstance(test, Trend | Flat) or len(levels_along(test.cells, test.along, evidence)) > 1:
        return None
    return SingleLevel(test.along)


def offered(planned: Sequence[Step], evidence: Evidence) -> tuple[Sequence[Step], NotOffered | None]:
    """The comparisons of cells whose rate the generator could offer, and the cells of the others. Where it is at its
    limit beside one contestant and not beside another, the rate can be offered: then the one's figures are no
    latencies, but what it achieved is its own."""
    beyond = _beyond(evidence)
    everybody = {cell for cell, (limited, measured) in beyond.items() if limited == measured}

    def lacks(cells: Cells, metric: Metric) -> bool:
        found = {_cell_of(trial) for trial in evidence.trials(cells) if trial.load is not None}
        return bool(found) and found <= (everybody if metric.struck_out_too else beyond.keys())

    lacking = [[cells for cells in step.all_cells if lacks(cells, METRICS[step.metric])] for step in planned]
    left_out = [cells for of_step in lacking for cells in of_step]
    once = tuple(cells for number, cells in enumerate(left_out) if cells not in left_out[:number])
    kept = [step for step, cells in zip(planned, lacking, strict=True) if not cells]
    return kept, NotOffered(once) if once else None


def _beyond(evidence: Evidence) -> Mapping[_Cell, tuple[frozenset[Name], frozenset[Name]]]:
    """Of each cell of an open loop whose rate the generator could not offer: the contestants beside which it was at its
    limit, and all that were measured there."""
    found: dict[_Cell, tuple[frozenset[Name], frozenset[Name]]] = {}
    for name, part in evidence.parts.items():
        if part.scenario.arrivals == "closed":
            continue
        for level in {one.level for one in part.saturated}:
            cell = (name, level)
            limited = {one.contestant for one in part.saturated if one.level == level}
            measured = {one.contestant for one in part.trials if one.load is not None and _cell_of(one) == cell}
            found[cell] = (frozenset(limited), frozenset(measured))
    return found


def _cell_of(trial: Trial) -> _Cell:
    return trial.scenario, level_key(trial.levels)


def missing_trials(cells: Cells, evidence: Evidence, metric: Metric) -> NotPlanned | Skipped | NotCounted | None:
    """Why a contestant of these cells, or all of them, could not be measured at all. Trials that were struck out or
    failed are no such reason, and neither are some cells of many that were skipped."""
    if metric.of_code is not None:
        return _missing_code(cells, evidence)
    trials = evidence.trials(cells)
    if CONTESTANT not in cells.at:
        return _missing(trials, None)
    of_each = ((name, [one for one in trials if one.contestant == name]) for name in cells.at[CONTESTANT])
    gaps = (_missing(own, str(name)) for name, own in of_each)
    return next((gap for gap in gaps if gap), None)


def _missing(trials: Sequence[Trial], name: str | None) -> NotPlanned | Skipped | None:
    """Why none of them was started."""
    if not trials:
        return NotPlanned(name)
    if all(trial.status == "skipped" for trial in trials):
        return Skipped(trials[0].contestant, trials[0].reason)
    return None


def whose_code(cells: Cells) -> tuple[str, str]:
    """Of which kind of contestant cells of a metric of code are, and the coordinate that names them."""
    return ("client", "client") if "client" in cells.at else ("server", CONTESTANT)


def _missing_code(cells: Cells, evidence: Evidence) -> NotCounted | None:
    kind, coordinate = whose_code(cells)
    counted = {about.name: about for about in evidence.about if about.kind == kind}
    for name in cells.at.get(coordinate, ()):
        about = counted.get(str(name))
        if about is None:
            return NotCounted(str(name), None)
        for part in codesize.parts(about, evidence.about):
            if part.code is None:
                return NotCounted(part.name, part.why_no_code)
    return None

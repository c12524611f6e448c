"""What a claim needs and this run did not have; None where nothing is missing. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.claims.steps import is_in, levels_along
from netdyno.contestants import codesize
from netdyno.experiment.claims import CORES, SECONDS
from netdyno.model import outcomes
from netdyno.model.claim import CONTESTANT, Cells, Flat, Test, Trend
from netdyno.model.metrics import METRICS, Metric
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.model.verdicts import (
    GeneratorAtLimit,
    NotCounted,
    NotOffered,
    NotPlanned,
    OnlyOne,
    SingleLevel,
    Skipped,
    Step,
    TooFewCores,
)


def missing_need(needs: Sequence[str], run: Run) -> TooFewCores | OnlyOne | None:
    """The first need that the recorded environment does not meet. A library is not asked for here: where it is missing,
    the trials of its contestants say so."""
    for need in needs:
        asked = CORES.fullmatch(need)
        if asked is not None:
            of_server, least = bool(asked[1]), int(asked[2])
            cores = _server_cores(run) if of_server else _cores(run)
            if cores is None or cores < least:
                return TooFewCores(least, cores, of_server)
        if need in SECONDS:
            count = run.environment.get(SECONDS[need], 1)
            if not isinstance(count, int) or count < 2:
                return OnlyOne(need)
    return None


def _cores(run: Run) -> int | None:
    cores = run.environment.get("cores_allowed")
    return cores if isinstance(cores, int) else None


def _server_cores(run: Run) -> int | None:
    """Those that servers were pinned to, or all where they were not; None where it was not recorded."""
    pinned = run.environment.get("pinning.server")
    if not isinstance(pinned, str):
        return None
    return _cores(run) if pinned == "none" else len(pinned.split(","))


def missing_levels(test: Test, run: Run) -> SingleLevel | None:
    """Why a test cannot go along its factor: a smaller size of the experiment may have a single level of it."""
    if not isinstance(test, Trend | Flat) or len(levels_along(test.cells, test.along, run)) > 1:
        return None
    return SingleLevel(test.along)


def offered(planned: Sequence[Step], run: Run) -> tuple[Sequence[Step], NotOffered | None]:
    """The comparisons of cells whose rate the generator could offer, and the cells of the others. Where it is at its
    limit beside one contestant and not beside another, the rate can be offered: then the one's figures are no
    latencies, but what it achieved is its own."""
    beyond = outcomes.not_offered(run)
    everybody = {cell for cell, (limited, measured) in beyond.items() if limited == measured}

    def lacks(cells: Cells, metric: Metric) -> bool:
        found = {outcomes.cell_of(trial) for trial in run.trials if trial.load is not None and is_in(cells, trial)}
        return bool(found) and found <= (everybody if metric.struck_out_too else beyond.keys())

    lacking = [[cells for cells in step.all_cells if lacks(cells, METRICS[step.metric])] for step in planned]
    left_out = [cells for of_step in lacking for cells in of_step]
    once = tuple(cells for number, cells in enumerate(left_out) if cells not in left_out[:number])
    kept = [step for step, cells in zip(planned, lacking, strict=True) if not cells]
    return kept, NotOffered(once) if once else None


def missing_trials(
    cells: Cells, run: Run, metric: Metric
) -> NotPlanned | Skipped | GeneratorAtLimit | NotCounted | None:
    """Why a contestant of these cells, or all of them, could not be measured at all. Trials that were struck out or
    failed are no such reason, and neither are some cells of many that were skipped or at the generator's limit."""
    if metric.of_code is not None:
        return _missing_code(cells, run)
    trials = [trial for trial in run.trials if is_in(cells, trial)]
    if CONTESTANT not in cells.at:
        return _missing(trials, metric, None)
    of_each = ((name, [one for one in trials if one.contestant == name]) for name in cells.at[CONTESTANT])
    gaps = (_missing(own, metric, str(name)) for name, own in of_each)
    return next((gap for gap in gaps if gap), None)


def _missing(
    trials: Sequence[Trial], metric: Metric, name: str | None
) -> NotPlanned | Skipped | GeneratorAtLimit | None:
    """Why nobody of them was started, or none of their figures is more than a bound."""
    if not trials:
        return NotPlanned(name)
    if all(trial.status == "skipped" for trial in trials):
        return Skipped(trials[0].contestant, trials[0].reason)
    statuses = {trial.status for trial in trials}
    if "censored" in statuses and statuses.isdisjoint(metric.statuses):
        return GeneratorAtLimit(name)
    return None


def whose_code(cells: Cells) -> tuple[str, str]:
    """Of which kind of contestant cells of a metric of code are, and the coordinate that names them."""
    return ("client", "client") if "client" in cells.at else ("server", CONTESTANT)


def _missing_code(cells: Cells, run: Run) -> NotCounted | None:
    kind, coordinate = whose_code(cells)
    counted = {about.name: about for about in run.about if about.kind == kind}
    for name in cells.at.get(coordinate, ()):
        about = counted.get(str(name))
        if about is None:
            return NotCounted(str(name), None)
        for part in codesize.parts(about, run.about):
            if part.code is None:
                return NotCounted(part.name, part.why_no_code)
    return None

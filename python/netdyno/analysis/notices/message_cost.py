"""The work behind a message: system calls from the traced trial, bytes and packets from the measured windows. Figures
of the two are never mixed. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.notices import Work
from netdyno.analysis.ranking import cells
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import levels
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Traced, Trial


def build_rows(part: ScenarioTrials, names: Sequence[str]) -> tuple[Work, ...]:
    """Return a row for each of these contestants, at the level at which the scenario was traced, or would be."""
    traced = {trial.contestant: trial for trial in part.traced}
    traced_levels = next((trial.levels for trial in traced.values()), levels.middle(part.scenario))
    key, label = levels.level_key(traced_levels), levels.level_label(part.scenario, traced_levels)
    trials: dict[str, list[tuple[Trial, LoadResult]]] = {}
    for trial, load in part.ranked:
        if levels.level_key(trial.levels) == key:
            trials.setdefault(trial.contestant, []).append((trial, load))
    return tuple(
        _make_row(name, key, label, traced.get(name), trials.get(name, ()), part.seed)
        for name in names
        if name in trials or name in traced
    )


def _make_row(
    name: str, key: str, label: str, traced: Traced | None, trials: Sequence[tuple[Trial, LoadResult]], seed: int
) -> Work:
    def mean_over_trials(metric: str) -> Estimate | None:
        figures = [figure for trial, load in trials if (figure := METRICS[metric].value(trial, load)) is not None]
        return cells.divide_sums(figures, [1.0] * len(figures), seed) if figures else None

    return Work(
        contestant=name,
        level=key,
        label=label,
        traced=traced,
        bytes_in=mean_over_trials("bytes-in"),
        bytes_out=mean_over_trials("bytes-out"),
        packets=mean_over_trials("packets"),
        softirq_ns=mean_over_trials("softirq"),
    )

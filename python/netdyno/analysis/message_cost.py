"""What stands behind a message: system calls as they were traced, bytes and packets as they were counted in the
measured windows. A figure of the one never enters the other. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis import cells
from netdyno.analysis.findings import Estimate, Work
from netdyno.analysis.split import Part
from netdyno.model import levels
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Traced, Trial


def rows(part: Part, names: Sequence[str]) -> tuple[Work, ...]:
    """A row for each of these contestants, at the level at which the scenario was traced, or would be."""
    traced = {one.contestant: one for one in part.traced}
    at = next((one.levels for one in traced.values()), levels.middle(part.scenario))
    key, label = levels.level_key(at), levels.level_label(part.scenario, at)
    trials: dict[str, list[tuple[Trial, LoadResult]]] = {}
    for trial, load in part.ranked:
        if levels.level_key(trial.levels) == key:
            trials.setdefault(trial.contestant, []).append((trial, load))
    return tuple(
        _row(name, key, label, traced.get(name), trials.get(name, ()), part.seed)
        for name in names
        if name in trials or name in traced
    )


def _row(
    name: str, key: str, label: str, traced: Traced | None, trials: Sequence[tuple[Trial, LoadResult]], seed: int
) -> Work:
    def over_trials(metric: str) -> Estimate | None:
        found = [figure for trial, load in trials if (figure := METRICS[metric].of(trial, load)) is not None]
        return cells.mean(found, seed) if found else None

    return Work(
        contestant=name,
        level=key,
        label=label,
        traced=traced,
        bytes_in=over_trials("bytes-in"),
        bytes_out=over_trials("bytes-out"),
        packets=over_trials("packets"),
        softirq_ns=over_trials("softirq"),
    )

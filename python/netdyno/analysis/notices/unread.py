"""The figures of clients that write and never read, which rank no server. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from netdyno.analysis.found.cells import LevelInfo
from netdyno.analysis.found.notices import Unread
from netdyno.analysis.trials import measured
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import outcomes
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS, TrialWithLoad


def find_unread(part: ScenarioTrials, levels: Sequence[LevelInfo]) -> tuple[Unread, ...]:
    """Return the figures of each contestant at each level, in the order of names and levels; none where clients
    read."""
    if not part.scenario.is_unread:
        return ()
    cells: dict[tuple[str, str], list[TrialWithLoad]] = {}
    for trial, load in measured.select_distinct(part.trials, outcomes.RANKED):
        cells.setdefault((trial.contestant, level_key(trial.levels)), []).append((trial, load))
    return tuple(
        _summarise(name, level.label, cells[name, level.key])
        for name in part.contestants
        for level in levels
        if (name, level.key) in cells
    )


def _summarise(contestant: str, level: str, trials: Sequence[TrialWithLoad]) -> Unread:
    finished, written, ended = (
        [figure for trial in trials if (figure := METRICS[name].of(*trial)) is not None]
        for name in ("finished", "written", "server-ended")
    )
    return Unread(
        contestant=contestant,
        level=level,
        trials=len(trials),
        finished=statistics.fmean(finished),
        written_per_second=statistics.median(written),
        ended=round(sum(ended)),
    )

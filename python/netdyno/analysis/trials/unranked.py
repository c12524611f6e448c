"""Servers that are in no ranking (docs/adr/unranked.md). Those that give wrong answers on purpose are listed
with the findings of verification; a server that is no contestant is only named. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from netdyno.analysis.found.cells import LevelInfo
from netdyno.analysis.found.notices import Unsafe
from netdyno.model.base import Name, Quoted
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Trial

Refusal = Literal["unsafe", "not ranked"]


def list_unsafe(run: Run) -> Mapping[str, str]:
    """Return the unsafe contestants of a run, each with what is wrong with it."""
    return {about.name: about.unsafe for about in run.about if about.kind == "server" and about.unsafe}


def list_unranked(run: Run) -> Mapping[str, str]:
    """Return the servers of a run that are no contestants, each with what it is instead."""
    return {about.name: about.unranked for about in run.about if about.kind == "server" and about.unranked}


def list_refused(run: Run) -> Mapping[Name, Refusal]:
    """Return all of them, each with the word for it."""
    refusals: dict[Name, Refusal] = dict.fromkeys(list_unsafe(run), "unsafe")
    return refusals | dict.fromkeys(list_unranked(run), "not ranked")


def remove_from_run(run: Run) -> Run:
    """Return the run as if none of them had taken part."""
    absent = list_refused(run)
    return msgspec.structs.replace(
        run,
        trials=tuple(trial for trial in run.trials if trial.contestant not in absent),
        about=tuple(about for about in run.about if not (about.unsafe or about.unranked)),
    )


def describe_unsafe(
    trials: Mapping[Name, Sequence[Trial]], why: Mapping[Name, Quoted], levels: Sequence[LevelInfo]
) -> tuple[Unsafe, ...]:
    """Return verification's findings on each unsafe contestant at each level of a scenario, in the order of names and
    of levels."""
    cells: dict[tuple[str, str], list[LoadResult]] = {}
    for name, own_trials in trials.items():
        for trial in own_trials:
            if trial.load is not None:
                cells.setdefault((name, level_key(trial.levels)), []).append(trial.load)
    return tuple(
        _describe_cell(name, why[name], level.label, cells[name, level.key])
        for name in trials
        for level in levels
        if (name, level.key) in cells
    )


def _describe_cell(name: str, why: str, level: str, loads: Sequence[LoadResult]) -> Unsafe:
    messages = [load.messages for load in loads]
    return Unsafe(
        contestant=name,
        why=why,
        level=level,
        trials=len(loads),
        wrong=sum(_is_wrong(load) for load in loads),
        expected=sum(counts.expected for counts in messages),
        lost=sum(counts.lost for counts in messages),
        duplicated=sum(counts.duplicated for counts in messages),
        reordered=sum(counts.reordered for counts in messages),
        corrupt=sum(counts.corrupt for counts in messages),
        streams=sum(load.errors.get("protocol", 0) for load in loads),
    )


def _is_wrong(load: LoadResult) -> bool:
    return any(audit.name == "verification" and not audit.passed for audit in load.audits)

"""What is to be known of single contestants beside their ranking. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from netdyno.analysis.found.cells import LevelInfo
from netdyno.analysis.found.notices import (
    AddedOption,
    Company,
    MeasuredAlone,
    Noted,
    Reconnected,
    SampledThreads,
    ThreadEach,
    Unread,
    WarmedUp,
)
from netdyno.analysis.trials import measured
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import outcomes
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import WriteOnly
from netdyno.model.metrics import METRICS, TrialWithLoad
from netdyno.model.trial import Trial, Warmup


def find_neighbours(ranked: Iterable[Trial]) -> Company | None:
    """Return the neighbours of a scenario's trials; None where the machine was every trial's own."""
    by_trial = [trial.neighbour for trial in ranked]
    neighbours = tuple(dict.fromkeys(neighbour for neighbour in by_trial if neighbour is not None))
    accompanied = sum(neighbour is not None for neighbour in by_trial)
    return Company(accompanied, len(by_trial), neighbours) if neighbours else None


def find_added_options(scenario: Scenario, trials: Sequence[Trial]) -> tuple[AddedOption, ...]:
    """Return the options that the scenario asks for where possible, by name and value, with the servers that had
    them."""
    wished = scenario.where_possible
    had: dict[tuple[str, type_level], set[str]] = {}
    for trial in trials:
        for name, value in trial.added.items():
            if wished.get(name) in (value, "cores"):
                had.setdefault((name, value), set()).add(trial.contestant)
    by_text = sorted(had.items(), key=lambda item: " ".join(map(str, item[0])))
    return tuple(AddedOption(name, value, tuple(sorted(names))) for (name, value), names in by_text)


def find_thread_per_connection(scenario: Scenario, trials: Sequence[Trial]) -> tuple[ThreadEach, ...]:
    """Return the contestants that got a thread for each connection. A trial in which a client had waited would have met
    its time limit and not be valid."""
    wished = scenario.where_possible.get("threads")
    seen: dict[str, set[int]] = {}
    for trial in trials:
        threads = trial.added.get("threads")
        if threads is None or wished in (threads, "cores") or trial.load is None or trial.server is None:
            continue
        cores = len(trial.pinning.server) if trial.pinning is not None else 0
        # A thread for each of its cores is another matter; a server with one core is unpinned.
        if int(threads) >= trial.load.plan.connections and int(threads) != (cores or 1):
            seen.setdefault(trial.contestant, set()).add(trial.server.threads)
    return tuple(ThreadEach(name, tuple(sorted(counts))) for name, counts in sorted(seen.items()))


def find_sampled_threads(trials: Sequence[Trial]) -> tuple[SampledThreads, ...]:
    """Return the contestants of which only some threads were read."""
    seen: dict[str, set[tuple[int, int]]] = {}
    for trial in trials:
        if trial.server is not None and trial.server.threads_sampled:
            seen.setdefault(trial.contestant, set()).add((trial.server.threads, trial.server.threads_sampled))
    return tuple(SampledThreads(name, *max(counts)) for name, counts in sorted(seen.items()))


SHOWN_NOTES = ("left_behind", "strangers")
"""The audits of the kind `note` that stand below the ranking; that of a moving figure has its own rule."""


def find_noted(trials: Iterable[Trial]) -> tuple[Noted, ...]:
    """Return the failed notes of each contestant, the most frequent detail of each."""
    details: dict[tuple[str, str], list[str]] = {}
    run = [trial for trial in trials if trial.status in outcomes.MEASURED]
    for trial in run:
        for audit in outcomes.failed(trial, "note"):
            if audit.name in SHOWN_NOTES:
                details.setdefault((trial.contestant, audit.name), []).append(audit.detail)
    return tuple(
        Noted(
            contestant=name,
            audit=audit,
            trials=len(found),
            total=sum(trial.contestant == name for trial in run),
            detail=max(sorted(set(found)), key=found.count),
        )
        for (name, audit), found in sorted(details.items())
    )


def find_reconnected(ranked: Sequence[TrialWithLoad]) -> tuple[Reconnected, ...]:
    """Return every contestant whose clients had to reconnect in some trial."""
    closed: dict[str, list[int]] = {}
    replies: dict[str, int] = {}
    for trial, load in ranked:
        closed.setdefault(trial.contestant, []).append(load.connections.closed_after_reply)
        replies[trial.contestant] = replies.get(trial.contestant, 0) + load.messages.received
    return tuple(
        Reconnected(name, sum(count > 0 for count in counts), len(counts), sum(counts), replies[name])
        for name, counts in sorted(closed.items())
        if any(counts)
    )


def find_measured_alone(ranked: Sequence[TrialWithLoad]) -> tuple[MeasuredAlone, ...]:
    """Return the contestants that have a trial of their own, by the reason for it."""
    contestants: dict[str, set[str]] = {}
    for trial, _ in ranked:
        if trial.alone:
            contestants.setdefault(trial.alone, set()).add(trial.contestant)
    return tuple(MeasuredAlone(tuple(sorted(names)), why) for why, names in sorted(contestants.items()))


def find_unread(part: ScenarioTrials, levels: Sequence[LevelInfo]) -> tuple[Unread, ...]:
    """Return the figures of each contestant at each level, in the order of names and levels; none where clients
    read."""
    if not part.scenario.is_unread:
        return ()
    cells: dict[tuple[str, str], list[TrialWithLoad]] = {}
    for trial, load in measured.select_distinct(part.trials, outcomes.RANKED):
        if isinstance(load.write_only, WriteOnly):
            cells.setdefault((trial.contestant, level_key(trial.levels)), []).append((trial, load))
    return tuple(
        _summarise(name, level.label, cells[name, level.key])
        for name in part.contestants
        for level in levels
        if (name, level.key) in cells
    )


def _summarise(contestant: str, level: str, trials: Sequence[TrialWithLoad]) -> Unread:
    finished, written, ended = (
        [figure for trial in trials if (figure := METRICS[name].value(*trial)) is not None]
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


def collect_warmups(ranked: Sequence[TrialWithLoad]) -> tuple[WarmedUp, ...]:
    """Return the warm-ups of each contestant's trials, each once."""
    by_name: dict[str, list[Warmup]] = {}
    for trial, _ in ranked:
        warmups = by_name.setdefault(trial.contestant, [])
        if trial.warmup is not None and trial.warmup not in warmups:
            warmups.append(trial.warmup)
    return tuple(WarmedUp(name, tuple(warmups)) for name, warmups in sorted(by_name.items()) if warmups)

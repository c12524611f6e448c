"""The options that the harness added to those of a cell, and threads that it could not all read. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import AddedOption, SampledThreads, ThreadEach
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.trial import Trial


def find_options(scenario: Scenario, trials: Sequence[Trial]) -> tuple[AddedOption, ...]:
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

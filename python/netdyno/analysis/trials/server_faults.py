"""The faults of the servers of a scenario, by the audits that found them. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netdyno.analysis.found.exclusions import Fault, Faulty
from netdyno.model import outcomes
from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial


def find_faulty(all_trials: Sequence[Trial]) -> dict[str, Faulty]:
    """Return every contestant with a fault, by name, also one that crashed in every trial and cannot be ranked."""
    return _collect(all_trials, lambda trial: outcomes.faults(trial) if trial.status == "faulty" else ())


def find_unproven(all_trials: Sequence[Trial]) -> dict[str, Faulty]:
    """Return the contestants with faults that may be the machine's, by name."""
    return _collect(all_trials, lambda trial: () if trial.status == "faulty" else outcomes.unproven_faults(trial))


def _collect(all_trials: Sequence[Trial], select: Callable[[Trial], Sequence[Audit]]) -> dict[str, Faulty]:
    """Collect the first of the selected faults of each trial: later ones follow from it."""
    trials: dict[str, list[Trial]] = {}
    for trial in all_trials:
        if trial.status not in ("skipped", "made_again"):
            trials.setdefault(trial.contestant, []).append(trial)
    by_name: dict[str, Faulty] = {}
    for name, own_trials in sorted(trials.items()):
        kinds: dict[str, list[Audit]] = {}
        for trial in own_trials:
            for audit in select(trial)[:1]:
                kinds.setdefault(audit.name, []).append(audit)
        faults = [Fault(kind, len(audits), len(own_trials), audits[0].detail) for kind, audits in kinds.items()]
        if faults:
            by_name[name] = Faulty(name, tuple(sorted(faults, key=lambda fault: -fault.trials)))
    return by_name

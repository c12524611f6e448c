"""The faults of the servers of a scenario, by the audits that found them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.exclusions import Fault, Faulty
from netdyno.model import outcomes
from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial


def find_faulty(all_trials: Sequence[Trial]) -> dict[str, Faulty]:
    """Return every contestant with a fault, by name, also one that crashed in every trial and cannot be ranked."""
    trials: dict[str, list[Trial]] = {}
    for trial in all_trials:
        if trial.status not in ("skipped", "made_again"):
            trials.setdefault(trial.contestant, []).append(trial)
    by_name: dict[str, Faulty] = {}
    for name, own_trials in sorted(trials.items()):
        blamed = [trial for trial in own_trials if trial.status == "faulty"]
        kinds: dict[str, list[Audit]] = {}
        for trial in blamed:
            for audit in outcomes.faults(trial)[:1]:  # later faults follow from the first
                kinds.setdefault(audit.name, []).append(audit)
        faults = [Fault(kind, len(audits), len(own_trials), audits[0].detail) for kind, audits in kinds.items()]
        if faults:
            by_name[name] = Faulty(name, tuple(sorted(faults, key=lambda fault: -fault.trials)))
    return by_name

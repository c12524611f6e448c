"""The faults of the servers of a scenario, by the audits that found them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netdyno.model import outcomes
from netdyno.model.base import Name, Quoted
from netdyno.model.load_result import Audit
from netdyno.model.trial import Trial


@dataclass(frozen=True)
class Fault:
    """What a server did wrong: the audit that found it, in how many of its trials of a scenario (`of`), and the detail
    of the first."""

    kind: Name
    trials: int
    of: int
    detail: Quoted


@dataclass(frozen=True)
class Faulty:
    """A contestant with the faults of its trials, the most frequent first."""

    contestant: Name
    faults: tuple[Fault, ...]


def find_faulty(all_trials: Sequence[Trial]) -> dict[str, Faulty]:
    """Everybody with a fault, by name. A crash of every trial leaves nothing to rank, and is told all the same."""
    trials: dict[str, list[Trial]] = {}
    for trial in all_trials:
        if trial.status not in ("skipped", "made_again"):
            trials.setdefault(trial.contestant, []).append(trial)
    found: dict[str, Faulty] = {}
    for name, each in sorted(trials.items()):
        blamed = [trial for trial in each if trial.status == "faulty"]
        kinds: dict[str, list[Audit]] = {}
        for trial in blamed:
            for audit in outcomes.faults(trial)[:1]:  # what came of a crash is the crash
                kinds.setdefault(audit.name, []).append(audit)
        faults = [Fault(kind, len(audits), len(each), audits[0].detail) for kind, audits in kinds.items()]
        if faults:
            found[name] = Faulty(name, tuple(sorted(faults, key=lambda fault: -fault.trials)))
    return found

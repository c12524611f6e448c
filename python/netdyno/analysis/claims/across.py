"""Claims over several stored runs: the verdict of each, and what they say together of platforms. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from netdyno.analysis.claims.judge import judge
from netdyno.experiment.claims import SECONDS
from netdyno.model.base import Name
from netdyno.model.claim import Claim
from netdyno.model.run import Run
from netdyno.model.verdicts import ClaimVerdict, Judged

_PLATFORM = ("architecture", "cpu_model", "system")


@dataclass(frozen=True)
class Across:
    """A claim of the first run, judged in each run that makes it, by the run's id. `together` is the verdict on a claim
    that something depends on the platform: it does where one platform confirms its test and another refutes it; None of
    any other claim. `platforms`: how many different ones made these runs."""

    claim: Claim
    each: tuple[tuple[Name, Judged], ...]
    together: ClaimVerdict | None
    platforms: int


def across(runs: Sequence[Run]) -> tuple[Across, ...]:
    """Of every claim of the first run, in its order."""
    judged = [{one.claim.id: one for one in judge(_as_one_of_several(run))} for run in runs]
    platforms = len({platform(run) for run in runs})
    found = []
    for claim in runs[0].experiment.claims:
        each = tuple((run.run_id, of[claim.id]) for run, of in zip(runs, judged, strict=True) if claim.id in of)
        depends = "platforms" in {SECONDS.get(need) for need in claim.needs}
        together = _together({one.verdict for _, one in each}, platforms) if depends else None
        found.append(Across(claim, each, together, platforms))
    return tuple(found)


def platform(run: Run) -> tuple[object, ...]:
    """What a source means by it: processor and operating system."""
    return tuple(run.environment.get(key) for key in _PLATFORM)


def _as_one_of_several(run: Run) -> Run:
    """What one run cannot have is had by them together, so that each gives its own figure."""
    return msgspec.structs.replace(run, environment=run.environment | {"platforms": 2})


def _together(verdicts: set[ClaimVerdict], platforms: int) -> ClaimVerdict:
    if platforms < 2 or "not_testable" in verdicts:
        return "not_testable"
    if verdicts == {"confirmed", "refuted"}:
        return "confirmed"
    return "undecided" if "undecided" in verdicts else "refuted"

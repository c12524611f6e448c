"""Claims over several stored runs: the verdict of each, and what they say together of platforms. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from netdyno.analysis.claims.judge import judge
from netdyno.experiment.claims import SECONDS
from netdyno.model import outcomes
from netdyno.model.base import Name
from netdyno.model.claim import Claim
from netdyno.model.run import Run
from netdyno.model.verdicts import ClaimVerdict, Judged

_PLATFORM = ("architecture", "cpu_model", "system")


@dataclass(frozen=True)
class Across:
    """A claim of the first run, judged in each run that makes it by the same test, by the run's id. `together` is the
    verdict on a claim that something depends on the platform: it does where one platform confirms its test and another
    refutes it; None of any other claim. `platforms`: how many different ones made these runs."""

    claim: Claim
    each: tuple[tuple[Name, Judged], ...]
    together: ClaimVerdict | None
    platforms: int


def across(runs: Sequence[Run]) -> tuple[Across, ...]:
    """Of every claim of the first run, in its order."""
    judged = [(run, {one.claim.id: one for one in judge(outcomes.judged(_as_one_of_several(run)))}) for run in runs]
    found = []
    for claim in runs[0].experiment.claims:
        each = [(run, of[claim.id]) for run, of in judged if claim.id in of and of[claim.id].claim.tests == claim.tests]
        by_platform: dict[object, set[ClaimVerdict]] = {}
        for run, one in each:
            by_platform.setdefault(platform(run), set()).add(one.verdict)
        depends = "platforms" in {SECONDS.get(need) for need in claim.needs}
        together = _together(list(by_platform.values())) if depends else None
        found.append(Across(claim, tuple((run.run_id, one) for run, one in each), together, len(by_platform)))
    return tuple(found)


def platform(run: Run) -> tuple[object, ...]:
    """What a source means by it: processor and operating system."""
    return tuple(run.environment.get(key) for key in _PLATFORM)


def _as_one_of_several(run: Run) -> Run:
    """What one run cannot have is had by them together, so that each gives its own figure."""
    return msgspec.structs.replace(run, environment=run.environment | {"platforms": 2})


def _together(by_platform: Sequence[set[ClaimVerdict]]) -> ClaimVerdict:
    """Of the verdicts of each platform's runs; runs of one platform that contradict each other decide nothing."""
    verdicts = set[ClaimVerdict]().union(*by_platform)
    if len(by_platform) < 2 or "not_testable" in verdicts:
        return "not_testable"
    if "undecided" in verdicts or any(len(of_one) > 1 for of_one in by_platform):
        return "undecided"
    return "confirmed" if len(verdicts) > 1 else "refuted"

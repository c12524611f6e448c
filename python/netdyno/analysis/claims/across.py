"""Claims over several stored runs: the verdict of each, and their joint verdict on platforms. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from netdyno.analysis.claims.judge_claims import judge_claims
from netdyno.model import outcomes
from netdyno.model.base import Name
from netdyno.model.claim import Claim
from netdyno.model.run import Run
from netdyno.model.verdicts import ClaimVerdict, JudgedClaim
from netdyno.question.claims import SECONDS

_PLATFORM = ("architecture", "cpu_model", "system")


class Across(msgspec.Struct, frozen=True):
    """A claim of the first run, judged in each run that makes it by the same test, by the run's id. `together` is the
    verdict on a claim that something depends on the platform: confirmed where one platform confirms its test and
    another refutes it; None for any other claim. `platforms`: the number of different platforms of these runs."""

    claim: Claim
    by_run: tuple[tuple[Name, JudgedClaim], ...]
    together: ClaimVerdict | None
    platforms: int


def judge_across_runs(runs: Sequence[Run]) -> tuple[Across, ...]:
    """Judge every claim of the first run over all runs, in its order."""
    judged = [
        (run, {item.claim.id: item for item in judge_claims(outcomes.judge_run(_add_platforms(run)))}) for run in runs
    ]
    claims = []
    for claim in runs[0].experiment.claims:
        run_verdicts = [
            (run, by_id[claim.id])
            for run, by_id in judged
            if claim.id in by_id and by_id[claim.id].claim.tests == claim.tests
        ]
        by_platform: dict[object, set[ClaimVerdict]] = {}
        for run, judged_claim in run_verdicts:
            by_platform.setdefault(read_platform(run), set()).add(judged_claim.verdict)
        depends = "platforms" in {SECONDS.get(need) for need in claim.needs}
        together = _combine(list(by_platform.values())) if depends else None
        claims.append(
            Across(
                claim,
                tuple((run.run_id, judged_claim) for run, judged_claim in run_verdicts),
                together,
                len(by_platform),
            )
        )
    return tuple(claims)


def read_platform(run: Run) -> tuple[object, ...]:
    """Return the platform of a run as a source means it: processor and operating system."""
    return tuple(run.environment.get(key) for key in _PLATFORM)


def _add_platforms(run: Run) -> Run:
    """Return the run as if it had two platforms, which all runs have together, so that each gives its own figure."""
    return msgspec.structs.replace(run, environment=run.environment | {"platforms": 2})


def _combine(by_platform: Sequence[set[ClaimVerdict]]) -> ClaimVerdict:
    """Combine the verdicts of each platform's runs; runs of one platform that contradict each other decide nothing."""
    verdicts = set[ClaimVerdict]().union(*by_platform)
    if len(by_platform) < 2 or "not_testable" in verdicts:
        return "not_testable"
    if "undecided" in verdicts or any(len(platform_verdicts) > 1 for platform_verdicts in by_platform):
        return "undecided"
    return "confirmed" if len(verdicts) > 1 else "refuted"

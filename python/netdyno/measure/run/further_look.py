"""The further look of a run: after the budget of time, an open question that few more blocks would decide gets exactly
these, once. docs/adr/statistics.md has what that does to the rate of false differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run

SHARE_OF_BUDGET = 0.1
"""The most of the budget of time that the blocks of all scenarios may take together."""


def may_have_one(experiment: Experiment) -> bool:
    """Return whether a run may look again, once: gates, advice and flips have looks of their own."""
    has_own_looks = experiment.gate is not None or experiment.advise is not None or experiment.flips
    return experiment.time_budget_s is not None and not has_own_looks and not experiment.looked_again


def choose_blocks(run: Run, scenarios: Sequence[Scenario], block_s: Mapping[str, float]) -> dict[str, int]:
    """Return how many blocks each scenario gets, those first that take the least time. `block_s`: the seconds of a
    block of each."""
    room_s = SHARE_OF_BUDGET * (run.experiment.time_budget_s or 0.0)
    wishes = sorted(
        (count * block_s[scenario.name], scenario.name, count)
        for scenario in scenarios
        for count in _count_needed(run, scenario)
    )
    chosen: dict[str, int] = {}
    for seconds, name, count in wishes:
        if name not in chosen and seconds <= room_s:
            chosen[name] = count
            room_s -= seconds
    return chosen


def _count_needed(run: Run, scenario: Scenario) -> set[int]:
    """Return how many more blocks would decide each open question of a scenario."""
    from netdyno.analysis.scenario import derive_findings
    from netdyno.analysis.trials.split import select_part
    from netdyno.kit.statistics import stats

    findings = derive_findings(select_part(run, scenario), None, stats.LEVEL)
    needed = {decision.blocks_to_settle for decision in (findings.decision, *findings.elsewhere)}
    return {count for count in needed if count is not None}

"""The warm-up times of contestants with a JIT, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.run import ScenarioFindings
from netdyno.measure.trial.warm_up import describe_warmups


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each such contestant."""
    return tuple(
        f"W{describe_warmups(warmup.contestant, findings.scenario.name, warmup.warmups).removeprefix('w')}."
        for warmup in findings.warmups
    )

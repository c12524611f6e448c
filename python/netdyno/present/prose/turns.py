"""The contestants that took turns, and those that took none, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities


def describe_turns(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each reason against turns, and one on what they leave out of a room."""
    exceptions = tuple(
        f"{quantities.listed(group.contestants)} took no turns with others, because {group.why}."
        for group in findings.alone
    )
    return (*exceptions, *_explain_burst(findings))


def _explain_burst(findings: ScenarioFindings) -> tuple[str, ...]:
    """A room costs more at the beginning of its load, beside neighbours (docs/measurements/answers.md)."""
    alone = {name for group in findings.alone for name in group.contestants}
    in_turns = [standing for standing in findings.standings if standing.contestant not in alone]
    if findings.scenario.workload != "chat" or len(in_turns) < 2:
        return ()
    text = (
        "In turns, these are figures of the first 0.2 s of a load: a room that is served for longer takes some 6% less "
        "CPU per message (docs/measurements/answers.md)."
    )
    return (text,)

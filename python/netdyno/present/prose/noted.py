"""The text about what is to be known about a contestant's trials and excludes none. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Noted
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities

WORDS = {
    "left_behind": "left programs running",
    "strangers": "served others than netdyno",
}
"""The note in words, by the audit that found it."""


def describe_contestants(findings: ScenarioFindings) -> list[str]:
    """Return a sentence for each note."""
    return [_describe(note) for note in findings.noted]


def _describe(note: Noted) -> str:
    return (
        f"{note.contestant} {WORDS[note.audit]} in {note.trials} of {quantities.plural(note.of, 'trial')}: "
        f"{note.detail}."
    )

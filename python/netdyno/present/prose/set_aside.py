"""Why a trial enters no figure, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.findings import TrialNote
from netdyno.analysis.measured import SetAside

NO_REASON = "no reason was stored"
DISTURBED = "the machine disturbed every try"


def cause(found: SetAside) -> str:
    """What trials set aside for the same cause have in common."""
    return DISTURBED if found.disturbed else ", ".join(found.audits) or found.reason or NO_REASON


def reason(note: TrialNote) -> str:
    """What was stored with the trial."""
    return note.reason or NO_REASON

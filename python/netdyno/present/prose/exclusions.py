"""The status of a trial, and the reason why one enters no figure, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.exclusions import ExclusionCause, TrialNote

STATUS_WORDS = {
    "valid": "valid",
    "struck_out": "invalid",
    "skipped": "skipped",
    "failed": "failed",
    "faulty": "faulty",
    "made_again": "retried",
    "censored": "valid, as a bound",
}
"""The displayed names; the keys of the store and of JSON stay."""
NO_REASON = "no reason was stored"
DISTURBED = "the machine disturbed every try"


def describe_cause(excluded: ExclusionCause) -> str:
    """Return the cause that trials excluded for the same reason have in common."""
    return DISTURBED if excluded.disturbed else ", ".join(excluded.audits) or excluded.reason or NO_REASON


def describe_reason(note: TrialNote) -> str:
    """Return the reason that was stored with the trial."""
    return note.reason or NO_REASON

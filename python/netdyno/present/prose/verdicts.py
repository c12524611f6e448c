"""A verdict as the terminal and the report say it. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from netdyno.base import quantities
from netdyno.model.claim import Claim
from netdyno.model.verdicts import ClaimVerdict, Judged, Outcome
from netdyno.present.prose import claims

VERDICT_WORDS: Mapping[ClaimVerdict, str] = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "undecided": "undecided",
    "not_testable": "not testable here",
}
PUBLISHED_ELSEWHERE = " on Linux"
"""Follows a verdict on a sentence about other systems."""
OUTCOME_WORDS: Mapping[Outcome, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "open": ("is open", "are open"),
}
"""Of one comparison, and of several."""


def summary(judged: Sequence[Judged]) -> str:
    """How many of each verdict."""
    counts = Counter(one.verdict for one in judged)
    each = [f"{counts[verdict]} {said}" for verdict, said in VERDICT_WORDS.items() if counts[verdict]]
    return f"{quantities.plural(len(judged), 'claim')}: {', '.join(each)}"


def word(one: Judged) -> str:
    """The verdict, with the system that it is about where the claim is about others."""
    is_about_others = one.claim.published_on and one.verdict in ("confirmed", "refuted")
    return f"{VERDICT_WORDS[one.verdict]}{PUBLISHED_ELSEWHERE if is_about_others else ''}"


def here(one: Judged) -> str:
    """The comparison that the verdict hangs on, and how many went which way; or what is missing."""
    if one.verdict == "not_testable":
        return f"{claims.reason(one)}{_what_was_found(one)}"
    check = one.decisive
    if check is None:
        return ""
    figures = f" ({' against '.join(claims.figures(check))})" if len(check.figures) > 1 else ""
    found = claims.reason(one) or f"{claims.what(check, one.scenarios)}: {claims.shown(check)}"
    text = f"{found}{figures}; claimed {claims.claimed(check.step)}"
    return text if len(one.checks) == 1 else f"{text}{_counted(one)}"


def _counted(one: Judged) -> str:
    counts = Counter(check.outcome for check in one.checks)
    each = [
        f"{counts[outcome]} {said[counts[outcome] > 1]}" for outcome, said in OUTCOME_WORDS.items() if counts[outcome]
    ]
    return f". Of {len(one.checks)} comparisons {', '.join(each)}"


def _what_was_found(one: Judged) -> str:
    """Where a claim is not testable, the comparison that was made and comes nearest to its verdict; empty without."""
    check = one.decisive
    if check is None or not check.figures:
        return ""
    found = f"{claims.what(check, one.scenarios)}: {claims.shown(check)}; claimed {claims.claimed(check.step)}"
    return f". Found: {found}{_counted(one) if len(one.checks) > 1 else ''}"


def published(claim: Claim, most: int | None = None) -> str:
    """The source's figures, the first of them where there are more than `most`."""
    told = [f"{label}: {value:,.10g}" for label, value in claim.published.items()][:most]
    more = len(claim.published) - len(told)
    return "; ".join([*told, f"and {more} more"] if more else told)

"""A verdict as the terminal and the report show it. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from netdyno.kit import quantities
from netdyno.model.claim import Claim
from netdyno.model.verdicts import ClaimVerdict, ComparisonOutcome, JudgedClaim
from netdyno.present.prose import claims

VERDICT_WORDS: Mapping[ClaimVerdict, str] = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "undecided": "undecided",
    "not_testable": "not testable here",
}
PUBLISHED_ELSEWHERE = " on Linux"
"""The end of a verdict on a sentence about other systems."""
OUTCOME_WORDS: Mapping[ComparisonOutcome, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "open": ("is open", "are open"),
}
"""The verbs for one comparison, and for several."""


def summarise_claims(judged: Sequence[JudgedClaim]) -> str:
    """Count the claims of each verdict."""
    counts = Counter(result.verdict for result in judged)
    counted = [f"{counts[verdict]} {words}" for verdict, words in VERDICT_WORDS.items() if counts[verdict]]
    return f"{quantities.plural(len(judged), 'claim')}: {', '.join(counted)}"


def name_verdict(result: JudgedClaim) -> str:
    """The verdict, with the system that it is about where the claim is about others."""
    is_about_others = result.claim.published_on and result.verdict in ("confirmed", "refuted")
    return f"{VERDICT_WORDS[result.verdict]}{PUBLISHED_ELSEWHERE if is_about_others else ''}"


def describe_outcome(result: JudgedClaim) -> str:
    """Describe the decisive comparison, and count the outcomes of all; or say what is missing."""
    if result.verdict == "not_testable":
        return f"{claims.explain_no_verdict(result)}{_describe_nearest(result)}"
    check = result.decisive
    if check is None:
        return ""
    figures = f" ({claims.MEANS}: {' against '.join(claims.list_figures(check))})" if len(check.figures) > 1 else ""
    comparison = (
        claims.explain_no_verdict(result)
        or f"{claims.describe_comparison(check, result.scenarios)}: {claims.format_effect(check)}"
    )
    text = f"{comparison}{figures}; claimed {claims.format_claimed_effect(check.step)}"
    return text if len(result.checks) == 1 else f"{text}{_list_outcomes(result)}"


def describe_by_script(result: JudgedClaim) -> str:
    """Describe the verdict as the source ran its own program, and why it says what it says; empty without one."""
    if result.by_script is None or result.claim.script is None:
        return ""
    found = describe_outcome(result.by_script)
    return f"by its {result.claim.script.by}: {name_verdict(result.by_script)}; {found}. {result.claim.script.because}"


def _list_outcomes(result: JudgedClaim) -> str:
    counts = Counter(check.outcome for check in result.checks)
    counted = [
        f"{counts[outcome]} {words[counts[outcome] > 1]}" for outcome, words in OUTCOME_WORDS.items() if counts[outcome]
    ]
    return f". Of {len(result.checks)} comparisons {', '.join(counted)}"


def _describe_nearest(result: JudgedClaim) -> str:
    """Describe the comparison that comes nearest to a verdict on a claim that is not testable; empty without one."""
    check = result.decisive
    if check is None or not check.figures:
        return ""
    comparison = (
        f"{claims.describe_comparison(check, result.scenarios)}: {claims.format_effect(check)}; "
        f"claimed {claims.format_claimed_effect(check.step)}"
    )
    return f". Found: {comparison}{_list_outcomes(result) if len(result.checks) > 1 else ''}"


def quote_published(claim: Claim, most: int | None = None) -> str:
    """The source's figures, the first of them where there are more than `most`."""
    figures = [f"{label}: {value:,.10g}" for label, value in claim.published.items()][:most]
    more = len(claim.published) - len(figures)
    return "; ".join([*figures, f"and {more} more"] if more else figures)

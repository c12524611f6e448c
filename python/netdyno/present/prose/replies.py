"""What the user's own servers were sent, and what of their replies was verified. Pure."""

from __future__ import annotations

from netdyno.kit import quantities
from netdyno.model.experiment import Conditions, Scenario

PATHS_NAMED = 3
LONGEST_SHOWN = 40


def describe_requests(scenario: Conditions) -> str:
    """Return what each message was, such as "GET /items" or "64-byte messages"."""
    if scenario.send is not None:
        return f"messages {_shorten(scenario.send)}"
    if not scenario.path:
        return f"{scenario.size}-byte messages"
    named = [_shorten(path) for path in scenario.path[:PATHS_NAMED]]
    if more := len(scenario.path) - len(named):
        named.append(f"{more} more")
    body = f" with a body of {quantities.plural(len(scenario.data.encode()), 'byte')}" if scenario.data else ""
    return f"{scenario.method or ('GET' if scenario.data is None else 'POST')} {quantities.listed(named)}{body}"


def describe_verification(scenario: Conditions) -> str:
    """Return what was verified of each reply, as a sentence; empty where netdyno's own rule held."""
    if scenario.send is not None:
        begin = f"a reply begins with {_shorten(scenario.expect)}" if scenario.expect else "a reply comes"
        return f"Verified: {begin}, and ends as it should."
    if not scenario.path:
        return ""
    also = {
        "length": ", and that equal URLs have replies of equal length",
        "hash": ", and that equal URLs have equal replies",
    }
    status = f"status {scenario.expect_status or '2xx'}"
    return f"Verified: {status}, that each reply is whole{also.get(scenario.verify or '', '')}."


def describe_rate(scenario: Scenario) -> str:
    """Say why the rate is lower than the experiment's, as a sentence; empty where it is not."""
    if not scenario.rate_for or scenario.rate is None or scenario.rate_share is None:
        return ""
    return (
        f"The rate is {scenario.rate:g}/s: {quantities.share(scenario.rate_share)} of what {scenario.rate_for}, the "
        "slowest, answered before the first trial (--rate sets another)."
    )


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."

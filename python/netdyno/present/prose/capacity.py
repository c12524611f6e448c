"""What came of a search, in one sentence. Pure functions."""

from __future__ import annotations

from netdyno.analysis.capacity.search import Answer, At, Outcome
from netdyno.base import quantities
from netdyno.model.objective import Objective

OUTCOME_WORDS: dict[Outcome, str] = {
    "held": "held",
    "failed": "failed",
    "generator": "generator at its limit",
    "disturbed": "machine not free",
    "broken": "not completed",
}


def rate(rate_hz: float) -> str:
    """As one reads and types it: "41,000"."""
    return f"{rate_hz:,.10g}"


def sentence(server: str, objective: Objective, answer: Answer, why: str = "") -> str:
    """The answer, with the trials that it stands on; `why` is the reason of the last trial, which matters where trials
    kept saying nothing."""
    meets = f"{server} meets {objective.text}"
    holds, fails = answer.holds, answer.fails
    stopped = f" at {rate(answer.stopped_at)} messages/s" if answer.stopped_at is not None else ""
    match answer.ending:
        case "capacity":
            assert holds is not None
            assert fails is not None
            return f"{meets} up to {_up_to(holds)}; at {rate(fails.rate_hz)} it failed in {_of(fails.failed, fails)}"
        case "at_most":
            assert holds is not None
            return f"{meets} at {_up_to(holds)}: the most that was to be tried, so its capacity is that or more"
        case "none":
            assert fails is not None
            return (
                f"{server} does not meet {objective.text} at {rate(fails.rate_hz)} messages/s, the least that was to "
                f"be tried: it failed in {_of(fails.failed, fails)}"
            )
        case "generator":
            said = f"limited by the generator, which was at its limit{stopped}: "
            return f"{said}{_at_least(server, objective, holds)}"
        case "disturbed":
            said = f"no answer, for the machine did something else in every trial{stopped} ({why}): "
            return f"{said}{_at_least(server, objective, holds)}"
        case _:
            return f"no answer, for no trial was completed{stopped} ({why}): {_at_least(server, objective, holds)}"


def _at_least(server: str, objective: Objective, holds: At | None) -> str:
    if holds is None:
        return f"nothing is known of {server} and {objective.text}"
    return f"{server} meets {objective.text} at least up to {_up_to(holds)}"


def _up_to(holds: At) -> str:
    return f"{rate(holds.rate_hz)} messages/s (held in {_of(holds.held, holds)})"


def _of(count: int, at: At) -> str:
    return f"{count} of {quantities.plural(at.held + at.failed, 'trial')}"

"""What came of a search, and what a capacity is, in words. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from netdyno.analysis.capacity.judge import FailedAudits, Incomplete, Missed, NoAnswer, Overload, Reason
from netdyno.analysis.capacity.search import Answer, At, Outcome
from netdyno.analysis.findings import CapacityFindings
from netdyno.base import quantities
from netdyno.model.objective import Objective

OUTCOME_WORDS: dict[Outcome, str] = {
    "held": "held",
    "failed": "failed",
    "generator": "generator at its limit",
    "disturbed": "machine disturbed",
    "broken": "not completed",
}


def rate(rate_hz: float) -> str:
    """As one reads and types it: "41,000"."""
    return f"{rate_hz:,.10g}"


def reason(why: Reason | None) -> str:
    """Why an objective did not hold in a trial, or why the trial is no witness, in one line; nothing where it held."""
    match why:
        case None:
            return ""
        case FailedAudits(audits):
            return "; ".join(f"{audit.name}: {audit.detail}" for audit in audits)
        case Incomplete(said):
            return said
        case Overload(answered_hz, offered_hz):
            return f"overload: {quantities.rate(answered_hz)} answered of {quantities.rate(offered_hz)} offered"
        case NoAnswer():
            return "nothing was answered"
        case Missed(terms, lost, bound):
            each = [f"{term.name} {term.speak(value)}, not below {term.limit_text}" for term, value in terms]
            beyond = f"lost {quantities.share(lost)}, more than {quantities.share(bound)}" if lost is not None else ""
            return "; ".join([*each, *([beyond] if beyond else [])])


def most_frequent(reasons: Sequence[Reason]) -> str:
    """Of several, the line that most of them read; nothing where there is none."""
    lines = Counter(map(reason, reasons))
    return lines.most_common(1)[0][0] if lines else ""


def searched(found: CapacityFindings) -> str:
    """What a search answered; nothing where the run is none."""
    if found.search is None:
        return ""
    contestant, answer = found.search.contestant, found.search.answer
    if answer is None:
        return f"The search for the capacity of {contestant} did not finish."
    return f"{sentence(contestant, found.objective, answer, found.search.why)}."


def caveats(found: CapacityFindings | None) -> tuple[str, ...]:
    """What a capacity is, and of whom it is only a bound."""
    if found is None:
        return ()
    meaning = (
        f"Capacity: the highest offered rate, in messages per second, up to which {found.objective.text}. A trial that "
        "is invalid because of the server counts as a miss; a trial that is invalid because of the generator or the "
        "machine does not count."
    )
    told = [meaning]
    for curve in found.curves:
        where = f"{curve.contestant}{f' at {curve.level}' if curve.level else ''}"
        blocks = quantities.plural(curve.blocks, "block")
        if curve.at_least and found.search is None:
            told.append(
                f"{where} met it at every rate in {curve.at_least} of {blocks}: its capacity is the highest rate "
                f"or more."
            )
        if curve.below and found.search is None:
            told.append(
                f"{where} met it at no rate in {curve.below} of {blocks}: its capacity is below the lowest rate."
            )
    return tuple(told)


def sentence(server: str, objective: Objective, answer: Answer, why: Reason | None = None) -> str:
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
            return f"{meets} at {_up_to(holds)}: the highest rate to be tried, so its capacity is that or more"
        case "none":
            assert fails is not None
            return (
                f"{server} does not meet {objective.text} at {rate(fails.rate_hz)} messages/s, the lowest rate to be "
                f"tried: it failed in {_of(fails.failed, fails)}"
            )
        case "generator":
            said = f"limited by the generator, which was at its limit{stopped}: "
            return f"{said}{_at_least(server, objective, holds)}"
        case "disturbed":
            said = f"no answer, because the machine was disturbed in every trial{stopped} ({reason(why)}): "
            return f"{said}{_at_least(server, objective, holds)}"
        case _:
            return (
                f"no answer, because no trial was completed{stopped} ({reason(why)}): "
                f"{_at_least(server, objective, holds)}"
            )


def _at_least(server: str, objective: Objective, holds: At | None) -> str:
    if holds is None:
        return f"it is unknown whether {server} meets {objective.text} at any rate"
    return f"{server} meets {objective.text} at least up to {_up_to(holds)}"


def _up_to(holds: At) -> str:
    return f"{rate(holds.rate_hz)} messages/s (held in {_of(holds.held, holds)})"


def _of(count: int, at: At) -> str:
    return f"{count} of {quantities.plural(at.held + at.failed, 'trial')}"

"""The result of a search, and the meaning of a capacity, in words. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from netdyno.analysis.capacity.judge_capacity import Verdict
from netdyno.analysis.capacity.search import SearchOutcome
from netdyno.analysis.found.capacity import (
    Answer,
    At,
    CapacityFindings,
    FailedAudits,
    Incomplete,
    Missed,
    NoAnswer,
    Overload,
    Reason,
)
from netdyno.kit import quantities
from netdyno.kit.units import clock_after
from netdyno.model.experiment import CapacityPlan, Experiment, Scenario
from netdyno.model.objective import Objective
from netdyno.model.outcomes import OF_OTHERS
from netdyno.model.trial import Trial
from netdyno.present.prose.loads import describe_steps
from netdyno.question import plan
from netdyno.question.capacity import RATE

OUTCOME_WORDS: dict[SearchOutcome, str] = {
    "held": "held",
    "failed": "failed",
    "generator": "generator at its limit",
    "disturbed": "machine disturbed",
    "broken": "not completed",
}
USUAL_STEPS = (16, 46)
"""The steps without noise and with the most that was tried (docs/adr/capacity.md)."""


def introduce(experiment: Experiment, count: int, start: datetime) -> tuple[str, ...]:
    """Return the question, the load of all steps, and how long so many searches take."""
    (scenario,) = experiment.scenarios
    return experiment.question, describe_steps(scenario), _estimate_time(scenario, count, start)


def _estimate_time(scenario: Scenario, count: int, start: datetime) -> str:
    step_s = scenario.warmup_s + scenario.duration_s + plan.TRIAL_OVERHEAD_S + plan.CANARY_S
    first, last = (clock_after(start, count * steps * step_s) for steps in USUAL_STEPS)
    few, many = USUAL_STEPS
    ends = f"between {first} and {last}" if first != last else f"at about {first}"
    what = "a search usually takes" if count == 1 else f"{count} searches in turn usually take"
    per_search = "" if count == 1 else " each"
    end = "ends" if count == 1 else "end"
    steps = f"{what} {few} to {many} steps{per_search} of {step_s:.1f} s"
    return f"{steps}, and so {end} {ends}; longer where the machine disturbs trials"


def format_step(number: int, trial: Trial, verdict: Verdict) -> str:
    """Format one step for the terminal."""
    columns = [f"{number:>3}  {format_rate(float(trial.levels[RATE])):>9}/s  {OUTCOME_WORDS[verdict.outcome]:<10}"]
    if trial.load is not None and trial.load.latency.response_ns.count:
        response = trial.load.latency.response_ns
        figures = {"p50": response.p50, "p99": response.p99, "p99.9": response.p999}
        columns.append("  ".join(f"{name} {quantities.duration(value):>8}" for name, value in figures.items()))
    columns.append(explain_failure(verdict.why))
    return "  ".join(columns).rstrip()


def advise_longer(answer: Answer, searched: CapacityPlan | None) -> tuple[str, ...]:
    """Say how lower rates can be tried where the objective held at none."""
    if answer.ending != "none" or searched is None or answer.fails is None or answer.fails.rate_hz > searched.least_hz:
        return ()
    return ("A longer --duration tries lower rates: a window needs enough messages for the objective.",)


def format_rate(rate_hz: float) -> str:
    """Write a rate as one reads and types it: "41,000"."""
    return f"{rate_hz:,.10g}"


def explain_failure(why: Reason | None) -> str:
    """Say why an objective did not hold in a trial, or why the trial does not count, in one line; empty where it
    held."""
    match why:
        case None:
            return ""
        case FailedAudits(audits):
            return "; ".join(f"{audit.name}: {audit.detail}" for audit in audits)
        case Incomplete(shortfall):
            return shortfall
        case Overload(answered_hz, offered_hz):
            return f"overload: {quantities.rate(answered_hz)} answered of {quantities.rate(offered_hz)} offered"
        case NoAnswer():
            return "nothing was answered"
        case Missed(terms, lost, bound):
            terms_missed = [f"{term.name} {term.speak(value)}, not below {term.limit_text}" for term, value in terms]
            beyond = f"lost {quantities.share(lost)}, more than {quantities.share(bound)}" if lost is not None else ""
            return "; ".join([*terms_missed, *([beyond] if beyond else [])])


def find_main_reason(reasons: Sequence[Reason]) -> str:
    """Return the most frequent line of several reasons; empty where there is none."""
    lines = Counter(map(explain_failure, reasons))
    return lines.most_common(1)[0][0] if lines else ""


def describe_search(findings: CapacityFindings) -> str:
    """Return the answer of a search; empty where the run is none."""
    if findings.search is None:
        return ""
    contestant, answer = findings.search.contestant, findings.search.answer
    if answer is None:
        return f"The search for the capacity of {contestant} did not finish."
    return f"{describe_answer(contestant, findings.objective, answer, findings.search.why)}."


def list_caveats(findings: CapacityFindings | None) -> tuple[str, ...]:
    """Say what a capacity is, and for which contestants it is only a bound."""
    if findings is None:
        return ()
    meaning = (
        f"Capacity: the highest offered rate, in messages per second, up to which {findings.objective.text}. A trial "
        "that is invalid because of the server counts as a miss; a trial that is invalid because of the generator or "
        "the machine does not count."
    )
    texts = [meaning]
    for curve in findings.curves:
        where = f"{curve.contestant}{f' at {curve.level}' if curve.level else ''}"
        blocks = quantities.plural(curve.blocks, "block")
        if curve.at_least and findings.search is None:
            texts.append(
                f"In {curve.at_least} of {blocks} {where} held at every rate: its capacity is the highest rate or more."
            )
        if curve.below and findings.search is None:
            texts.append(
                f"In {curve.below} of {blocks} {where} held at no rate: its capacity is below the lowest rate."
            )
    return tuple(texts)


def describe_answer(server: str, objective: Objective, answer: Answer, why: Reason | None = None) -> str:
    """The answer, with the trials behind it; `why` is the reason of the last trial, which matters where no trial
    counted."""
    meets = f"{server} meets {objective.text}"
    holds, fails = answer.holds, answer.fails
    stopped = f" at {format_rate(answer.stopped_at)} messages/s" if answer.stopped_at is not None else ""
    match answer.ending:
        case "capacity":
            assert holds is not None
            assert fails is not None
            return (
                f"{meets} up to {_describe_held(holds)}; at {format_rate(fails.rate_hz)} it failed in "
                f"{_format_trial_count(fails.failed, fails)}"
            )
        case "at_most":
            assert holds is not None
            return f"{meets} at {_describe_held(holds)}: the highest rate to be tried, so its capacity is that or more"
        case "none":
            assert fails is not None
            return (
                f"{server} does not meet {objective.text} at {format_rate(fails.rate_hz)} messages/s, "
                "the lowest rate to be "
                f"tried: it failed in {_format_trial_count(fails.failed, fails)}"
            )
        case "generator":
            text = f"the generator was at its limit{stopped}: "
            return f"{text}{_describe_lower_bound(server, objective, holds)}"
        case "disturbed":
            text = f"no answer, because the machine was disturbed in every trial{stopped} ({explain_failure(why)}): "
            return f"{text}{_describe_lower_bound(server, objective, holds)}{_advise_on_company(why)}"
        case _:
            return (
                f"no answer, because no trial was completed{stopped} ({explain_failure(why)}): "
                f"{_describe_lower_bound(server, objective, holds)}"
            )


def _advise_on_company(why: Reason | None) -> str:
    """Say what helps where other programs took the cores."""
    audits = why.audits if isinstance(why, FailedAudits) else ()
    if not any(audit.name in OF_OTHERS for audit in audits):
        return ""
    return "; end the other programs, or measure beside them (--foreign-load count)"


def _describe_lower_bound(server: str, objective: Objective, holds: At | None) -> str:
    if holds is None:
        return f"it is unknown whether {server} meets {objective.text} at any rate"
    return f"{server} meets {objective.text} at least up to {_describe_held(holds)}"


def _describe_held(holds: At) -> str:
    return f"{format_rate(holds.rate_hz)} messages/s (held in {_format_trial_count(holds.held, holds)})"


def _format_trial_count(count: int, rate_point: At) -> str:
    return f"{count} of {quantities.plural(rate_point.held + rate_point.failed, 'trial')}"

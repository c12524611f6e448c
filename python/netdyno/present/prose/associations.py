"""What goes along with a difference in rank, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.findings import Difference, TracedCalls, Why
from netdyno.base import quantities
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS, Metric
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Comparison

SHOWN_IN_SHORT = 2
"""Differences that the line in the terminal has room for; the report has all."""
CALLS_WORTH_TELLING = 0.05
"""Of one system call, per message: two traces of the same server differ by less."""
SMALL_RATIO = 0.5
SAYS: Mapping[str, str] = {
    "cpu": "uses {} of server CPU per message against {}",
    "softirq": "has {} of kernel softirqs per message on its cores against {}",
    "voluntary": "gives up its core {} times per message against {}",
    "involuntary": "is taken off its core {} times per 1,000 messages against {}",
    "run-queue": "waits {} per message for a core against {}",
    "packets": "takes {} segments or datagrams per message against {}",
    "delayed-acks": "has {} delayed ACKs per 1,000 messages against {}",
    "retransmits": "has {} retransmitted segments per 1,000 messages against {}",
    "timeouts": "has {} TCP timeouts per 1,000 messages against {}",
    "no-room": "has {} datagrams dropped at full sockets per 1,000 messages against {}",
}
"""The end of a sentence about a contestant, by counter, with the figures of it and of another for {} and {}."""


def paragraph(why: Why, scenario: Scenario) -> str:
    """Who is compared, and what stands beside a table of the counters."""
    return f"{_head(why, scenario)}. {_beside(why)}{_traced(why.traced)}".rstrip()


def short(why: Why, scenario: Scenario) -> str:
    """Who is compared and the first of the counters, for a single line."""
    clauses = [_clause(one, why) for one in why.differences[:SHOWN_IN_SHORT]]
    told = f": it {'; it '.join(clauses)}." if clauses else f". {_nothing(why)}"
    return f"{_head(why, scenario)}{told}"


def _head(why: Why, scenario: Scenario) -> str:
    change = quantities.percent_change(why.result.ratio)
    return f"{why.worse} against {why.better} ({METRICS[scenario.metric].title} {change})"


def _beside(why: Why) -> str:
    """What a table of the counters does not show: why it is empty, or whose the CPU time is."""
    if not why.differences:
        return _nothing(why)
    return f"Of its CPU time {_in_kernel(why)}." if any(one.counter == "cpu" for one in why.differences) else ""


def _nothing(why: Why) -> str:
    """Why no counter is named."""
    if not why.considered:
        return "No counter was recorded for both."
    if why.decidable:
        return "No counter is proven different between the two."
    return (
        f"{quantities.plural(why.blocks, 'block')} {'is' if why.blocks == 1 else 'are'} too few to prove that a "
        f"counter differs: {FEWEST_BLOCKS} are needed."
    )


def _clause(one: Difference, why: Why) -> str:
    """What the one does more or less than the other, with the effect and its interval."""
    speak = METRICS[one.counter].speak
    says = SAYS[one.counter].format(speak(one.worse), speak(one.better))
    kernel = f"; of it {_in_kernel(why)}" if one.counter == "cpu" else ""
    return f"{says} ({_effect(one)}{kernel})"


def _effect(one: Difference) -> str:
    interval = effect_interval(one.counter, one.comparison, relative=one.relative)
    change = effect(one.counter, one.comparison.ratio, relative=one.relative)
    return f"{change} [{interval}]" if interval else change


def effect(counter: str, value: float, *, relative: bool) -> str:
    """How far one is from the other in a counter: "+12%", "×2.4", or a difference with its unit. Below a half it is
    what is left, for "−100%" would be nothing at all."""
    if not relative:
        return _signed(value, METRICS[counter])
    return (
        quantities.percent_change(value)
        if value >= SMALL_RATIO
        else f"{quantities.TIMES}{quantities.three_digits(value)}"
    )


def effect_interval(counter: str, comparison: Comparison, *, relative: bool) -> str:
    """ "+8% to +15%"; nothing where there is none."""
    if comparison.interval is None:
        return ""
    low, high = (effect(counter, end, relative=relative) for end in (comparison.interval.low, comparison.interval.high))
    return f"{low} to {high}"


def _signed(value: float, counter: Metric) -> str:
    sign = "+" if value > 0 else quantities.MINUS if value < 0 else ""
    return f"{sign}{counter.speak(abs(value))}"


def _in_kernel(why: Why) -> str:
    """How much of the CPU time was the kernel's."""
    worse, better = (
        quantities.DASH if share is None else quantities.share(share) for share in (why.kernel_worse, why.kernel_better)
    )
    return f"{worse} was in the kernel against {better}"


def _traced(traced: TracedCalls | None) -> str:
    """What the traces of both say."""
    if traced is None:
        return ""
    worse, better = traced.worse, traced.better
    text = (
        f" Traced at {traced.label}, once each, so not tested: "
        f"{_against(sum(worse.values()), sum(better.values()), ' system calls per message')}"
    )
    mine, theirs = worse.get(traced.most, 0.0), better.get(traced.most, 0.0)
    if abs(mine - theirs) < CALLS_WORTH_TELLING:
        return f"{text}."
    return f"{text}; most of the difference is {traced.most}, {_against(mine, theirs)}."


def _against(mine: float, theirs: float, unit: str = "") -> str:
    return f"{quantities.three_digits(mine)}{unit} against {quantities.three_digits(theirs)}"

"""The counters that correlate with a difference in rank, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.found.notices import Difference, TracedCalls, Why
from netdyno.kit import quantities
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Comparison
from netdyno.model.experiment import Scenario
from netdyno.model.metrics import METRICS, Metric

SHOWN_IN_SHORT = 2
"""The differences that the line in the terminal has room for; the report has all."""
CALLS_WORTH_TELLING = 0.05
"""Calls per message of one system call: two traces of the same server differ by less."""
SMALL_RATIO = 0.5
SAYS: Mapping[str, str] = {
    "cpu": "uses {} of server CPU per message against {}",
    "softirq": "has {} of kernel softirqs per message on its cores against {}",
    "voluntary": "has {} voluntary switches per message against {}",
    "involuntary": "has {} involuntary switches per 1,000 messages against {}",
    "run-queue": "waits {} per message for a core against {}",
    "packets": "takes {} segments or datagrams per message against {}",
    "delayed-acks": "has {} delayed ACKs per 1,000 messages against {}",
    "retransmits": "has {} retransmitted segments per 1,000 messages against {}",
    "timeouts": "has {} TCP timeouts per 1,000 messages against {}",
    "no-room": "has {} datagrams dropped at full sockets per 1,000 messages against {}",
}
"""The end of a sentence about a contestant, by counter, with its figure and that of the other for {} and {}."""


def explain_pair(why: Why, scenario: Scenario) -> str:
    """Name the two compared, and add what a table of the counters does not show."""
    return f"{_describe_pair(why, scenario)}. {_describe_cpu_split(why)}{_describe_traces(why.traced)}".rstrip()


def summarise_pair(why: Why, scenario: Scenario) -> str:
    """Name the two compared and the first of the counters, for a single line."""
    clauses = [_describe_difference(difference, why) for difference in why.differences[:SHOWN_IN_SHORT]]
    text = f": {why.worse} {', and '.join(clauses)}." if clauses else f". {_explain_no_counter(why)}"
    return f"{_describe_pair(why, scenario)}{text}"


def _describe_pair(why: Why, scenario: Scenario) -> str:
    change = quantities.percent_change(why.result.ratio)
    return f"{why.worse} against {why.better} ({METRICS[scenario.metric].title} {change})"


def _describe_cpu_split(why: Why) -> str:
    """Say what a table of the counters does not show: why it is empty, or the kernel's share of the CPU time."""
    if not why.differences:
        return _explain_no_counter(why)
    return (
        f"CPU time {_describe_kernel_shares(why)}."
        if any(difference.counter == "cpu" for difference in why.differences)
        else ""
    )


def _explain_no_counter(why: Why) -> str:
    """Say why no counter is named."""
    if not why.considered:
        return "No counter was recorded for both."
    if why.decidable:
        return "No counter is proven different between the two."
    return (
        f"{quantities.plural(why.blocks, 'block')} {'is' if why.blocks == 1 else 'are'} too few to prove that a "
        f"counter differs: {FEWEST_BLOCKS} are needed."
    )


def _describe_difference(difference: Difference, why: Why) -> str:
    """Say what the worse does more or less than the better, with the effect and its interval."""
    speak = METRICS[difference.counter].speak
    says = SAYS[difference.counter].format(speak(difference.worse), speak(difference.better))
    kernel = f"; {_describe_kernel_shares(why)}" if difference.counter == "cpu" else ""
    return f"{says} ({_format_difference(difference)}{kernel})"


def _format_difference(difference: Difference) -> str:
    interval = format_effect_interval(difference.counter, difference.comparison, relative=difference.relative)
    change = format_effect(difference.counter, difference.comparison.ratio, relative=difference.relative)
    return f"{change} [{interval}]" if interval else change


def format_effect(counter: str, value: float, *, relative: bool) -> str:
    """Return an effect on a counter: "+12%", "×2.4", or a difference with its unit. Below a half it is the remaining
    factor, as "−100%" would read as none at all."""
    if not relative:
        return _format_signed(value, METRICS[counter])
    return (
        quantities.percent_change(value)
        if value >= SMALL_RATIO
        else f"{quantities.TIMES}{quantities.three_digits(value)}"
    )


def format_effect_interval(counter: str, comparison: Comparison, *, relative: bool) -> str:
    """The interval as "+8% to +15%"; empty where there is none."""
    if comparison.interval is None:
        return ""
    low, high = (
        format_effect(counter, end, relative=relative) for end in (comparison.interval.low, comparison.interval.high)
    )
    return f"{low} to {high}"


def _format_signed(value: float, counter: Metric) -> str:
    sign = "+" if value > 0 else quantities.MINUS if value < 0 else ""
    return f"{sign}{counter.speak(abs(value))}"


def _describe_kernel_shares(why: Why) -> str:
    """The kernel's shares of the CPU time."""
    worse, better = (
        quantities.DASH if share is None else quantities.share(share) for share in (why.kernel_worse, why.kernel_better)
    )
    return f"in the kernel: {worse} against {better}"


def _describe_traces(traced: TracedCalls | None) -> str:
    """Compare the traces of both."""
    if traced is None:
        return ""
    worse, better = traced.worse, traced.better
    text = (
        f" Traced at {traced.label}, once each, so not tested: "
        f"{_compare_amounts(sum(worse.values()), sum(better.values()), ' system calls per message')}"
    )
    worse_calls, better_calls = worse.get(traced.most, 0.0), better.get(traced.most, 0.0)
    if abs(worse_calls - better_calls) < CALLS_WORTH_TELLING:
        return f"{text}."
    return f"{text}; most of the difference is {traced.most}, {_compare_amounts(worse_calls, better_calls)}."


def _compare_amounts(worse: float, better: float, unit: str = "") -> str:
    return f"{quantities.three_digits(worse)}{unit} against {quantities.three_digits(better)}"

"""The A/A control in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.aa.found import AA, Control
from netdyno.base import quantities
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.false_difference_rate import Rate


def sentence(one: Control) -> str:
    """What came of it, in one sentence; nothing is told that was not measured."""
    if one.none is not None:
        return f"No A/A control: {_why_none(one)}."
    told = len(one.comparisons)
    head = f"Each server against itself: of {quantities.plural(told, 'A/A comparison')}"
    if not one.single.of:
        return f"{head} none had enough blocks to be judged."
    ranked = f"{one.different.count} came out different as a ranking decides it ({_of(one.different)})"
    single = f"{one.single.count} by a single test at {one.level:.0%}, uncorrected ({_of(one.single)})"
    return f"{head}, {ranked} and {single}.{_largest(one)}{_alarm(one)}"


def _why_none(one: Control) -> str:
    return {
        "share": "this run gave it none of its time",
        "blocks": f"a comparison needs {FEWEST_BLOCKS} blocks, and this run had {one.blocks} at most",
        "unfinished": "the run was interrupted before the first comparison",
        "time": f"{quantities.share(one.share)} of this run's time is less than a comparison takes",
        None: "",
    }[one.none]


def where(one: AA) -> str:
    """Scenario and load; `netdyno aa` has the load in the scenario's name already."""
    return one.scenario if one.level in one.scenario else f"{one.scenario} at {one.level}"


def short(one: Control) -> str:
    """The same in a few words, for where a reader begins."""
    if not one.single.of:
        return "No A/A control" if one.none else "No A/A comparison could be judged"
    return f"A/A control: {one.different.count} of {one.different.of} different"


def _of(rate: Rate) -> str:
    """The rate with its exact interval, and of how many."""
    found = rate.interval()
    return (
        f"{quantities.share(rate.share)} of {rate.of}, 95% interval {quantities.share(found.low)} to "
        f"{quantities.share(found.high)}"
    )


def _largest(one: Control) -> str:
    furthest = one.largest
    if furthest is None:
        return ""
    change = quantities.percent_change(furthest.comparison.ratio)
    return f" Largest difference: {furthest.contestant} in {where(furthest)}, {change}."


def _alarm(one: Control) -> str:
    if not one.fails:
        return ""
    return (
        f" THAT IS TOO OFTEN: chance alone gives so many in {quantities.share(one.by_chance)} of such runs. "
        "The comparisons of this run are INVALID."
    )

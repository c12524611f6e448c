"""The A/A control in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.control import AA, Control
from netdyno.kit import quantities
from netdyno.kit.paths import ENTRY
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.false_difference_rate import FalseDifferenceRate


def describe_control(control: Control) -> str:
    """Describe the result of the control in one sentence, with measured figures only."""
    if control.none is not None:
        return f"No A/A control: {_explain_absence(control)}."
    head = "A/A control, each server against itself: of "
    if not control.single.total:
        return f"{head}{quantities.plural(len(control.comparisons), 'comparison')} none had enough blocks to be judged."
    unjudged = len(control.comparisons) - control.single.total
    head += quantities.plural(control.single.total, "comparison")
    head += f" ({unjudged} more had too few blocks)" if unjudged else ""
    ranked = f"{control.different.count} falsely differ by the ranking's method ({_describe_rate(control.different)})"
    single = (
        f"{control.single.count} by a single uncorrected test at {control.significance:.0%} "
        f"({_describe_rate(control.single)})"
    )
    return f"{head}, {ranked}, {single}.{_describe_largest(control)}{_describe_alarm(control)}"


def _explain_absence(control: Control) -> str:
    return {
        "share": "this run gave it none of its time",
        "blocks": f"a comparison needs {FEWEST_BLOCKS} blocks, and this run had {control.blocks} at most",
        "unfinished": "the run was interrupted before the first comparison",
        "time": f"{quantities.share(control.share)} of this run's time is less than a comparison takes",
        None: "",
    }[control.none]


def name_place(comparison: AA) -> str:
    """Name scenario and load; `netdyno aa` has the load in the scenario's name already."""
    return (
        comparison.scenario
        if comparison.level in comparison.scenario
        else f"{comparison.scenario} at {comparison.level}"
    )


def summarise_control(control: Control) -> str:
    """Describe the result in a few words, for the top of a page."""
    if not control.single.total:
        return "No A/A control" if control.none else "No A/A comparison could be judged"
    return f"A/A control: {control.different.count} of {control.different.total} different"


def _describe_rate(rate: FalseDifferenceRate) -> str:
    """Describe a rate with its exact interval and its denominator."""
    interval = rate.interval()
    return (
        f"{quantities.share(rate.share)} of {rate.total}, 95% interval {quantities.share(interval.low)} to "
        f"{quantities.share(interval.high)}"
    )


def _describe_largest(control: Control) -> str:
    furthest = control.largest
    if furthest is None:
        return ""
    change = quantities.percent_change(furthest.comparison.ratio)
    return f" Largest difference: {furthest.contestant} in {name_place(furthest)}, {change}."


def _describe_alarm(control: Control) -> str:
    if not control.fails:
        return ""
    return (
        f" THAT IS TOO OFTEN: chance gives so many in {quantities.share(control.by_chance)} of such runs. "
        f"Comparisons of this run are INVALID: {ENTRY} doctor may show why."
    )

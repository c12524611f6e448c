"""The levels at which the better of two sides changes, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netdyno.analysis.found.flips import FlipFound
from netdyno.kit import quantities
from netdyno.kit.statistics.flips import Crossing, LevelContrast
from netdyno.model.levels import LEVEL_UNITS
from netdyno.model.metrics import METRICS

MOST_NAMED = 4
"""The most levels that are named one by one; the table has all of them."""


def summarise_flip(comparison: FlipFound) -> str:
    """The answer in a few words."""
    if len(comparison.flips.points) == 1:
        return "Only one level: no flip"
    return {"flip": "The winner changes", "none": "No flip", "open": "Undecided"}[comparison.flips.verdict]


def describe_flip(comparison: FlipFound) -> str:
    """The answer, after the metric and the levels that it holds for."""
    title = f"{METRICS[comparison.metric].title}{''.join(f', {fixed}' for fixed in comparison.fixed)}"
    text = (
        f"{title}: {_describe_answer(comparison)}{_explain_uneven(comparison)}{_list_without_trials(comparison)}"
        f"{_explain_bounded(comparison)}"
    )
    return text[0].upper() + text[1:]


def _describe_answer(comparison: FlipFound) -> str:
    if comparison.flips.verdict == "flip":
        return "; then ".join(
            _describe_crossing(comparison, crossing) for crossing in comparison.flips.crossings
        ) + _explain_wide_interval(comparison)
    points = comparison.flips.points
    if len(points) == 1:
        where = _name_level(comparison, points[0].place)
        return f"both were measured at one level only ({where}), where no flip can be seen: {_list_better(comparison)}"
    ends = name_span(comparison, points[0].place, points[-1].place)
    if comparison.flips.verdict == "none":
        better = comparison.first if points[0].side > 0 else comparison.second
        levels = quantities.plural(len(points), "level")
        return (
            f"no flip between {ends}: {better} is better than {find_opponent(comparison, better)} at each of {levels}"
        )
    return f"undecided between {ends}: {_list_better(comparison)}{_describe_blocks_needed(comparison)}"


def _describe_crossing(comparison: FlipFound, crossing: Crossing) -> str:
    below, above = (comparison.second, comparison.first) if crossing.rising else (comparison.first, comparison.second)
    between = name_span(comparison, crossing.interval.low, crossing.interval.high)
    return f"the winner changes from {below} to {above} between {between} (95% interval), at about " + format_place(
        comparison, crossing.place
    )


def _explain_wide_interval(comparison: FlipFound) -> str:
    """Say why a bracket is wider than requested."""
    if comparison.pursuit is None or comparison.pursuit.narrow:
        return ""
    wider = f"the interval is wider than the requested ratio of {comparison.pursuit.within:g}, because"
    if comparison.pursuit.next_levels:
        return f"; {wider} the run ended before"
    undecided = [point.place for point in comparison.flips.points if not point.side]
    if not undecided:
        return f"; {wider} the search ended after {quantities.plural(len(comparison.flips.points), 'level')}"
    return f"; {wider} neither is proven better at {_list_places(comparison, undecided)}"


def _list_better(comparison: FlipFound) -> str:
    """Say which is better at which levels, as far as it is known."""
    parts = []
    for side, name in ((1, comparison.first), (-1, comparison.second)):
        if places := [point.place for point in comparison.flips.points if point.side == side]:
            parts.append(f"{name} is better at {_list_places(comparison, places)}")
    open_points = [point for point in comparison.flips.points if not point.side]
    open_levels = [point.place for point in open_points]
    text = "; ".join(parts)
    if not open_levels and len(comparison.flips.points) == 1:
        return text
    if not open_levels:
        return (
            f"{text}; the winner may change in between"
            if comparison.pursuit is None
            else f"{text}, and the run ended there"
        )
    if not text:
        text = (
            f"neither {comparison.first} nor {comparison.second} is proven better at "
            f"{_list_places(comparison, open_levels)}"
        )
        return text + _describe_bound(comparison, open_points)
    return f"{text}; undecided at {_list_places(comparison, open_levels)}{_describe_bound(comparison, open_points)}"


def _describe_bound(comparison: FlipFound, points: Sequence[LevelContrast]) -> str:
    """Return how large a difference can be where none is proven: nearly even is an answer, too. Where the generator was
    at its limit, this is unknown."""
    ends = [max(abs(point.interval.low), abs(point.interval.high)) for point in points if point.interval]
    if len(ends) < len(points) or any(point.place in comparison.bounded for point in points):
        return ""
    return f": the difference is at most {quantities.share(math.expm1(max(ends)))}"


def _describe_blocks_needed(comparison: FlipFound) -> str:
    """Say how many blocks would show which is better."""
    if comparison.pursuit is None:
        return ""
    known = [count for count in comparison.pursuit.needed.values() if count is not None]
    return f"; about {max(known)} blocks per level would show which is better" if known else ""


def find_opponent(comparison: FlipFound, name: str) -> str:
    return comparison.second if name == comparison.first else comparison.first


def _list_without_trials(comparison: FlipFound) -> str:
    """List the planned levels without a valid trial of both."""
    silent = [
        point.place for point in comparison.flips.points if not point.blocks and point.place not in comparison.uneven
    ]
    return f"; at {_list_places(comparison, silent)} no block has a valid trial of both" if silent else ""


def _explain_uneven(comparison: FlipFound) -> str:
    """Say where the two are not compared, and what to do."""
    if not comparison.uneven:
        return ""
    place = f"at {_list_places(comparison, comparison.uneven)}"
    way_out = "server-cores = 1 gives each a single core"
    return f"; {place} they could use different numbers of cores, so they are not compared ({way_out})"


def _explain_bounded(comparison: FlipFound) -> str:
    if not comparison.bounded:
        return ""
    at_limit = f"at {_list_places(comparison, comparison.bounded)} the generator was at its limit"
    return f"; {at_limit}, which shrinks or hides a difference"


# --- places -----------------------------------------------------------------------------------------------------------


def _list_places(comparison: FlipFound, places: list[float] | tuple[float, ...]) -> str:
    if len(places) > MOST_NAMED:
        return (
            f"{len(places)} levels between {format_place(comparison, places[0])} and "
            f"{format_place(comparison, places[-1])}"
        )
    return quantities.listed([format_place(comparison, place) for place in places])


def _name_level(comparison: FlipFound, place: float) -> str:
    """Name one place: "40 connections", "a service-time of 20 µs"."""
    if comparison.factor in LEVEL_UNITS:
        return f"{format_place(comparison, place)} {LEVEL_UNITS[comparison.factor]}"
    return f"a {name_factor(comparison)} of {format_place(comparison, place)}"


def name_span(comparison: FlipFound, low: float, high: float) -> str:
    """Name two places: "40 and 56 connections", "a service-time of 20 µs and 31 µs"."""
    both = f"{format_place(comparison, low)} and {format_place(comparison, high)}"
    if comparison.factor in LEVEL_UNITS:
        return f"{both} {LEVEL_UNITS[comparison.factor]}"
    return f"a {name_factor(comparison)} of {both}"


def name_factor(comparison: FlipFound) -> str:
    """The factor in words: "connections", "server service time"."""
    return comparison.factor.removeprefix("both.").replace(".", " ").replace("-", " ")


def format_place(comparison: FlipFound, place: float) -> str:
    """A place without its unit, where that is not part of it."""
    if comparison.durations:
        figure, _, unit = quantities.duration(1e9 * place).partition(" ")
        return f"{_drop_zeros(figure)} {unit}"
    if comparison.factor == "link-loss":
        return f"{_drop_zeros(quantities.three_digits(100 * place))}%"
    return f"{place:,.0f}" if place >= 100 or not place % 1 else _drop_zeros(quantities.three_digits(place))


def _drop_zeros(figure: str) -> str:
    """Drop zeros at the end: levels are as requested, and not rounded."""
    return figure.rstrip("0").rstrip(".") if "." in figure else figure


def list_headings(comparison: FlipFound) -> tuple[str, ...]:
    """The headings of the rows."""
    return (name_factor(comparison), f"{comparison.first} is better by", "95% interval, corrected", "better", "blocks")


def list_rows(comparison: FlipFound) -> list[tuple[str, ...]]:
    """List each level: how much better the first is, its interval, which is proven better, blocks."""
    table: list[tuple[str, ...]] = []
    for point in comparison.flips.points:
        side = {1: comparison.first, -1: comparison.second, 0: "not proven"}[point.side]
        interval = point.interval
        interval_text = "" if interval is None else f"{format_change(interval.low)} to {format_change(interval.high)}"
        mean = "" if math.isnan(point.mean) else format_change(point.mean)
        table.append((format_place(comparison, point.place), mean, interval_text, side, str(point.blocks)))
    return table


def format_change(contrast: float) -> str:
    """Say how much better the first is: by the ratio of a rate, by the inverse ratio of a time."""
    return quantities.percent_change(math.exp(contrast))

"""Where the better of two sides changes, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netdyno.analysis.flips.found import FlipFound
from netdyno.base import quantities
from netdyno.model.levels import LEVEL_UNITS
from netdyno.model.metrics import METRICS
from netdyno.statistics.flips import Crossing, Point

MOST_NAMED = 4
"""Levels that are named one by one; the table has all of them."""


def headline(one: FlipFound) -> str:
    """The answer in a few words."""
    if len(one.flips.points) == 1:
        return "Only one level: no flip"
    return {"flip": "The winner changes", "none": "No flip", "open": "Undecided"}[one.flips.verdict]


def sentence(one: FlipFound) -> str:
    """The answer, and what it was asked of."""
    title = f"{METRICS[one.metric].title}{''.join(f', {fixed}' for fixed in one.fixed)}"
    text = f"{title}: {_answer(one)}{_uneven(one)}{_silent(one)}{_bounded(one)}"
    return text[0].upper() + text[1:]


def _answer(one: FlipFound) -> str:
    if one.flips.verdict == "flip":
        return "; then ".join(_crossing(one, crossing) for crossing in one.flips.crossings) + _not_narrow(one)
    points = one.flips.points
    if len(points) == 1:
        where = _level(one, points[0].at)
        return f"both were measured at one level only ({where}), where no flip can be seen: {_told(one)}"
    ends = span(one, points[0].at, points[-1].at)
    if one.flips.verdict == "none":
        better = one.first if points[0].side > 0 else one.second
        levels = quantities.plural(len(points), "level")
        return f"no flip between {ends}: {better} is better than {_other(one, better)} at each of {levels}"
    return f"undecided between {ends}: {_told(one)}{_more(one)}"


def _crossing(one: FlipFound, crossing: Crossing) -> str:
    below, above = (one.second, one.first) if crossing.rising else (one.first, one.second)
    between = span(one, crossing.interval.low, crossing.interval.high)
    return f"the winner changes from {below} to {above} between {between} (95% interval), at about " + number(
        one, crossing.at
    )


def _not_narrow(one: FlipFound) -> str:
    """Why a bracket is wider than asked."""
    if one.pursuit is None or one.pursuit.narrow:
        return ""
    wide = f"the interval is wider than the requested ratio of {one.pursuit.within:g}, because"
    if one.pursuit.wanted:
        return f"; {wide} the run ended before"
    untold = [point.at for point in one.flips.points if not point.side]
    if not untold:
        return f"; {wide} the search ended after {quantities.plural(len(one.flips.points), 'level')}"
    return f"; {wide} neither is proven better at {_numbers(one, untold)}"


def _told(one: FlipFound) -> str:
    """Who is better where, as far as it is known."""
    words = []
    for side, name in ((1, one.first), (-1, one.second)):
        if places := [point.at for point in one.flips.points if point.side == side]:
            words.append(f"{name} is better at {_numbers(one, places)}")
    open_ = [point for point in one.flips.points if not point.side]
    untold = [point.at for point in open_]
    told = "; ".join(words)
    if not untold and len(one.flips.points) == 1:
        return told
    if not untold:
        return (
            f"{told}; the winner may change in between" if one.pursuit is None else f"{told}, and the run ended there"
        )
    if not told:
        told = f"neither {one.first} nor {one.second} is proven better at {_numbers(one, untold)}"
        return told + _at_most(one, open_)
    return f"{told}; undecided at {_numbers(one, untold)}{_at_most(one, open_)}"


def _at_most(one: FlipFound, points: Sequence[Point]) -> str:
    """Return how large a difference can be where none is proven: nearly even is an answer, too. Where the generator was
    at its limit, this is unknown."""
    ends = [max(abs(point.interval.low), abs(point.interval.high)) for point in points if point.interval]
    if len(ends) < len(points) or any(point.at in one.bounded for point in points):
        return ""
    return f": the difference is at most {quantities.share(math.expm1(max(ends)))}"


def _more(one: FlipFound) -> str:
    """How many blocks would tell."""
    if one.pursuit is None:
        return ""
    known = [count for count in one.pursuit.needed.values() if count is not None]
    return f"; about {max(known)} blocks at a level would decide it" if known else ""


def _other(one: FlipFound, better: str) -> str:
    return one.second if better == one.first else one.first


def _silent(one: FlipFound) -> str:
    """Where it was asked, and nothing was measured."""
    silent = [point.at for point in one.flips.points if not point.blocks and point.at not in one.uneven]
    return f"; at {_numbers(one, silent)} no block has a valid trial of both" if silent else ""


def _uneven(one: FlipFound) -> str:
    """Where the two are not compared, and what to do."""
    if not one.uneven:
        return ""
    at = f"at {_numbers(one, one.uneven)}"
    way_out = "server-cores = 1 gives each a single core"
    return f"; {at} they could use different numbers of cores, so they are not compared ({way_out})"


def _bounded(one: FlipFound) -> str:
    if not one.bounded:
        return ""
    at_limit = f"at {_numbers(one, one.bounded)} the generator was at its limit"
    return f"; {at_limit}, which shrinks or hides a difference"


# --- places -----------------------------------------------------------------------------------------------------------


def _numbers(one: FlipFound, places: list[float] | tuple[float, ...]) -> str:
    if len(places) > MOST_NAMED:
        return f"{len(places)} levels between {number(one, places[0])} and {number(one, places[-1])}"
    return quantities.listed([number(one, place) for place in places])


def _level(one: FlipFound, at: float) -> str:
    """One place: "40 connections", "a service-time of 20 µs"."""
    if one.factor in LEVEL_UNITS:
        return f"{number(one, at)} {LEVEL_UNITS[one.factor]}"
    return f"a {factor_words(one)} of {number(one, at)}"


def span(one: FlipFound, low: float, high: float) -> str:
    """Two places: "40 and 56 connections", "a service-time of 20 µs and 31 µs"."""
    both = f"{number(one, low)} and {number(one, high)}"
    if one.factor in LEVEL_UNITS:
        return f"{both} {LEVEL_UNITS[one.factor]}"
    return f"a {factor_words(one)} of {both}"


def factor_words(one: FlipFound) -> str:
    """The factor as people say it: "connections", "server service time"."""
    return one.factor.removeprefix("both.").replace(".", " ").replace("-", " ")


def number(one: FlipFound, place: float) -> str:
    """A place without its unit, where that is not part of it."""
    if one.durations:
        figure, _, unit = quantities.duration(1e9 * place).partition(" ")
        return f"{_short(figure)} {unit}"
    if one.factor == "link-loss":
        return f"{_short(quantities.three_digits(100 * place))}%"
    return f"{place:,.0f}" if place >= 100 or not place % 1 else _short(quantities.three_digits(place))


def _short(figure: str) -> str:
    """Without digits that say nothing: levels are as they were asked for, and not rounded."""
    return figure.rstrip("0").rstrip(".") if "." in figure else figure


def headings(one: FlipFound) -> tuple[str, ...]:
    """Of the rows."""
    return (factor_words(one), f"{one.first} is better by", "95% interval, corrected", "better", "blocks")


def rows(one: FlipFound) -> list[tuple[str, ...]]:
    """Each level: how much better the first is, its interval, who is told to be better, blocks."""
    table: list[tuple[str, ...]] = []
    for point in one.flips.points:
        side = {1: one.first, -1: one.second, 0: "not proven"}[point.side]
        interval = point.interval
        told = "" if interval is None else f"{change(interval.low)} to {change(interval.high)}"
        mean = "" if math.isnan(point.mean) else change(point.mean)
        table.append((number(one, point.at), mean, told, side, str(point.blocks)))
    return table


def change(contrast: float) -> str:
    """How much better the first is: of a rate the ratio, of a time its inverse."""
    return quantities.percent_change(math.exp(contrast))

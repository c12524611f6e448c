"""What several servers carry, each found by a search of its own, in words. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from netdyno.analysis.capacity.compare_capacities import (
    Carried,
    KnobCapacities,
    carries_more,
    compute_ratio,
    judge_levels,
)
from netdyno.analysis.notices.knobs import group_siblings
from netdyno.kit import quantities
from netdyno.kit.paths import ENTRY
from netdyno.model.contestant import Contestant
from netdyno.present.prose.capacity import format_rate

SEARCHED_IN_TURN = f"The searches ran one after the other; {ENTRY} run compares servers side by side, with intervals."


def describe_comparison(servers: Sequence[Contestant], carried: Mapping[str, Carried]) -> tuple[str, ...]:
    """Return a sentence for each knob, for each level of the others; without knobs, for each server after the first.
    `carried` has the servers with an answer."""
    known = [server for server in servers if server.name in carried]
    own_servers = {server.name: server.own for server in known if server.own is not None}
    knobs = {key: levels for key, levels in group_siblings(own_servers).items() if len(levels) > 1}
    if knobs:
        texts = [_describe_knob(knob, at, levels, carried) for (_, knob, at), levels in knobs.items()]
    else:
        texts = [_compare_with_first(server.name, known[0].name, carried) for server in known[1:]]
    return (*texts, SEARCHED_IN_TURN) if texts else ()


def _describe_knob(knob: str, at: str, levels: Mapping[str, str], carried: Mapping[str, Carried]) -> str:
    judged = judge_levels(list(levels), carried)
    first = next(iter(levels))
    head = f"{knob} = {levels[judged.enough]}{f' (at {at})' if at else ''}"
    if judged.enough == first:
        gain = f"{head}: no other level is shown to carry more"
    else:
        gain = f"{head} carries {_format_ratio(judged.enough, first, carried)} {knob} = {levels[first]} carries"
    return "; ".join([gain, *_describe_later(judged, levels, carried)]) + "."


def _describe_later(judged: KnobCapacities, levels: Mapping[str, str], carried: Mapping[str, Carried]) -> list[str]:
    texts = [f"{levels[name]} carries less ({_format_part(name, judged.enough, carried)})" for name in judged.less]
    if judged.equal:
        verb = "is" if len(judged.equal) == 1 else "are"
        texts.insert(0, f"{quantities.listed([levels[name] for name in judged.equal])} {verb} not shown to carry more")
    return texts


def _compare_with_first(name: str, first: str, carried: Mapping[str, Carried]) -> str:
    pair = carried[name], carried[first]
    if not carries_more(*pair) and not carries_more(*reversed(pair)):
        return f"{name} is not shown to carry more or less than {first}."
    return f"{name} carries {_format_ratio(name, first, carried)} {first} carries."


def _format_ratio(name: str, first: str, carried: Mapping[str, Carried]) -> str:
    ratio = compute_ratio(carried[name], carried[first])
    if ratio is None:
        return "more than" if carries_more(carried[name], carried[first]) else "less than"
    value, low, high = (quantities.three_digits(part) for part in ratio)
    return f"{value} times ({low} to {high}) what"


def _format_part(name: str, first: str, carried: Mapping[str, Carried]) -> str:
    ratio = compute_ratio(carried[name], carried[first])
    return "by an unknown factor" if ratio is None else f"{quantities.three_digits(ratio[0])} times"


def format_carried(carried: Carried | None) -> str:
    """Return what a server carries, for a table."""
    if carried is None:
        return "unknown"
    if not carried.low:
        return f"below {format_rate(carried.high)}/s" if carried.high < math.inf else "unknown"
    return f"{format_rate(carried.low)}/s{' or more' if carried.high == math.inf else ''}"

"""How a load was offered, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.kit import quantities
from netdyno.kit.units import duration_words, format_duration
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.options import Settings
from netdyno.present.prose import replies


def describe_load(scenario: Scenario) -> str:
    """Describe how the load was offered; closed loop is always named as such. A chat's mode of delivery is added where
    the scenario sets it for all of its cells: it weighs more than most differences between models."""
    return (
        _describe_pace(scenario)
        + _describe_start(scenario)
        + _describe_connections(scenario)
        + _describe_deliveries(scenario)
        + _describe_streams(scenario)
    )


def describe_steps(scenario: Scenario) -> str:
    """Describe the load that all steps of a search share."""
    options = "".join(f", server {name} {value}" for name, value in scenario.server.items())
    return (
        f"{scenario.workload} over {quantities.plural(scenario.connections, 'connection')}, "
        f"{replies.describe_requests(scenario)}, {scenario.arrivals} arrivals{options}; each step: a fresh server, "
        f"{format_duration(scenario.warmup_s)} of warm-up and {format_duration(scenario.duration_s)} measured"
    )


def describe_profiled(scenario: Scenario) -> str:
    """Describe the load under which servers are profiled."""
    pace = "as fast as they are answered" if scenario.rate is None else f"{scenario.rate:g} messages/s"
    return (
        f"{scenario.workload} over {quantities.plural(scenario.connections, 'connection')}, {pace}, "
        f"{scenario.duration_s:g} s"
    )


def describe_combination(load_settings: Settings, levels: Mapping[str, type_level]) -> str:
    """Describe the load under which a run's servers are profiled: that of a combination of levels."""
    level_words = "".join(f", {name} {level}" for name, level in levels.items())
    return f"{load_settings.workload}{level_words}, {load_settings.duration_s:g} s"


def _describe_streams(scenario: Scenario) -> str:
    if scenario.chunks is None:
        return ""
    return f", streams of {quantities.plural(scenario.chunks, 'chunk')} {duration_words(scenario.every_s)} apart"


def _describe_deliveries(scenario: Scenario) -> str:
    mode = scenario.server.get("deliveries", scenario.where_possible.get("deliveries"))
    is_chosen = scenario.workload == "chat" and mode is not None and "deliveries" not in scenario.factors
    return f", deliveries {mode}" if is_chosen else ""


def _describe_start(scenario: Scenario) -> str:
    return ", each client sending as soon as it is connected" if scenario.start == "at-once" else ""


def _describe_connections(scenario: Scenario) -> str:
    if scenario.busy_connections is not None and "busy-connections" not in scenario.factors:
        return f", on {quantities.plural(scenario.busy_connections, 'connection')}, the others idle"
    requests = scenario.requests_per_connection
    if requests is None:
        return ""
    return f", a new connection for each {'request' if requests == 1 else f'{requests} requests'}"


def _describe_pace(scenario: Scenario) -> str:
    if scenario.arrivals == "closed":
        rounds = f" in rounds of {duration_words(scenario.round_s)}" if scenario.round_s else ""
        in_flight = "" if scenario.depth == 1 else f", {scenario.depth} in flight per connection"
        return f"closed loop{rounds}{in_flight}"
    polling = (
        f", sent and read every {duration_words(scenario.look_every_s)} "
        f"(times up to {duration_words(2 * scenario.look_every_s)} too long)"
        if scenario.look_every_s
        else ""
    )
    joined = ", all messages due on a connection in one write" if scenario.write_due == "joined" else ""
    burst = f", in a burst {quantities.rate(scenario.burst_rate)}" if scenario.burst_rate is not None else ""
    return f"open loop {_describe_offered_rate(scenario)}{burst}, {scenario.arrivals} arrivals{polling}{joined}"


def _describe_offered_rate(scenario: Scenario) -> str:
    if "rate" in scenario.factors or "rate-per-connection" in scenario.factors:
        return "at the offered rates"
    if scenario.rate_per_connection is not None:
        return f"at {quantities.rate(scenario.rate_per_connection)} offered on each connection"
    return f"at {quantities.rate(scenario.rate or 0)} offered"

"""One combination of factor levels: its key, and its words for people. Pure functions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from netdyno.kit.errors import UserError
from netdyno.kit.units import parse_duration
from netdyno.model.base import MOST_COMBINATIONS, type_level
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.options import LOAD, SERVER, settings
from netdyno.model.values import CORES

LEVEL_UNITS = {
    "connections": "connections",
    "rate": "msg/s offered",
    "rate-per-connection": "msg/s offered on each connection",
    "size": "B messages",
    "depth": "in flight",
    "link-delay": "each way",
    "link-loss": "of the frames lost",
}


def place(level: type_level) -> float | None:
    """Return the place of a level on an axis: a number as it is, a duration in seconds; None for words."""
    if isinstance(level, int | float):
        return float(level)
    try:
        return parse_duration(level)
    except ValueError:
        return None


def level_key(values: Mapping[str, type_level]) -> str:
    """Return one text per combination of levels, the same whatever the order of its factors."""
    return ", ".join([f"{name}={values[name]}" for name in sorted(values)])


def level_label(scenario: Scenario, values: Mapping[str, type_level]) -> str:
    """Return a combination of levels in words; a scenario without factors is named by its connections."""
    shown: Mapping[str, type_level] = values or {"connections": scenario.connections}
    return ", ".join(level_words(name, value) for name, value in shown.items())


def level_words(factor: str, value: type_level) -> str:
    """Return one level in words: with its unit where it has one, and its side where both sides have such an option."""
    if (factor, value) == ("connections", 1):
        return "1 connection"
    if factor in LEVEL_UNITS:
        return f"{value} {LEVEL_UNITS[factor]}"
    if (factor, value) == ("threads", CORES):
        return "a thread for each core"
    side, _, name = factor.rpartition(".")
    if side == "both":
        return f"{name} {value} on both sides"
    if side == "" and name in LOAD and name in SERVER:
        side = "client"
    return f"{side} {name} {value}".lstrip()


def middle(scenario: Scenario) -> dict[str, type_level]:
    """Return the middle combination of a scenario's levels: of each factor the level in the middle, of two the
    second."""
    return {name: levels[len(levels) // 2] for name, levels in scenario.factors.items()}


def count_combinations(scenario: Scenario) -> int:
    """Count the combinations of the levels of a scenario's factors."""
    return math.prod(map(len, scenario.factors.values()))


def check_combinations(where: str, count: int) -> None:
    """Raise UserError where the scenarios of an experiment have too many combinations of levels."""
    if count > MOST_COMBINATIONS:
        raise UserError(f"{where}: {count} combinations of levels so far; at most {MOST_COMBINATIONS} are possible")


def combinations(scenario: Scenario) -> Iterator[dict[str, type_level]]:
    """Yield every combination of the levels of a scenario's factors. Raises UserError where they are too many."""
    check_combinations(f"scenario {scenario.name!r}", count_combinations(scenario))
    for levels in itertools.product(*scenario.factors.values()):
        yield dict(zip(scenario.factors, levels, strict=True))


def links(experiment: Experiment) -> tuple[str, ...]:
    """Return the links between load and server in the cells of an experiment, each once."""
    words = (
        settings(scenario, levels).link_words for scenario in experiment.scenarios for levels in combinations(scenario)
    )
    return tuple(dict.fromkeys(words))

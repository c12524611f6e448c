"""`[[flip]]` in an experiment file: what it means, what is refused, and which levels lie between its ends."""

from __future__ import annotations

import pytest

from netdyno.kit.errors import UserError
from netdyno.model.experiment import Experiment
from netdyno.question import experiment, flips

TOML = """
question = "From where on?"
contestants = ["threads-global-lock", "threads-snapshot", "epoll-reactor"]
blocks = 6
warmup = "0s"
duration = "1s"
[[scenario]]
name = "one"
workload = "rpc"
"""
FLIP = """
[[flip]]
between = ["threads", "epoll-reactor"]
groups = { threads = ["threads-*"] }
along = "connections"
from = 1
to = 1000
"""


def parse(flip: str = FLIP, toml: str = TOML) -> Experiment:
    return experiment.parse(f"{toml}\n{flip}", "made", "made.toml")


def test_its_ends_are_the_levels_of_its_scenario() -> None:
    parsed = parse()
    (flip,) = parsed.flips
    assert parsed.scenarios[0].factors == {"connections": (1, 1000)}
    assert (flip.scenario, flip.metric, flip.within) == ("one", "throughput", flips.WITHIN)
    assert flips.select_side(flip, "threads", parsed.scenarios[0].contestants) == (
        "threads-global-lock",
        "threads-snapshot",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("from = 1", "from = 0", "flip 1: from: key 'connections': 0 is not a whole number of at least 1"),
        ("to = 1000", "to = 1", "'from': 1 must be above 0 and below 'to', 1"),
        ("to = 1000", "", "the key 'to' is missing"),
        ('along = "connections"', 'along = "conections"', "'conections' is not valid .did you mean 'connections'"),
        ('along = "connections"', 'along = "nodelay"', "'nodelay': 1 is not valid"),
        ("from = 1", "from = 1\nwithin = 1", "key 'within': 1 must be above 1"),
        ("from = 1", "from = 1\nwithn = 1", "unknown key 'withn'"),
        ("from = 1", 'from = 1\nmetric = "lost"', "key 'metric': 'lost' is not valid"),
        ("from = 1", 'from = 1\nscenario = "two"', "key 'scenario': 'two' is no scenario .there are: one"),
        ('["threads", "epoll-reactor"]', '["threads", "threads"]', "must be two different contestants or groups"),
        ("groups = { threads", "groups = { others", "unknown key 'others'"),
        ('["threads-*"]', "[]", "must be a list of contestants"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(old: str, new: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(FLIP.replace(old, new))


def test_a_scenario_of_a_flip_has_no_factors_of_its_own() -> None:
    with pytest.raises(UserError, match="its scenario has factors already"):
        parse(toml=f"{TOML}\n[scenario.factors]\nsize = [64, 128]")


def test_none_is_on_both_sides() -> None:
    parsed = parse(FLIP.replace('"threads-*"', '"*"'))
    with pytest.raises(UserError, match="'epoll-reactor' is on both sides"):
        flips.check(parsed)


@pytest.mark.parametrize(
    ("along", "low", "high", "ends", "level"),
    [
        ("connections", "10", "1000", (10.0, 1000.0), 100),
        ("connections", "1", "1000", (1.0, 2.0), None),
        ("server.service-time", '"10us"', '"1ms"', (1e-5, 1e-3), "100us"),
        ("server.service-time", '"10us"', '"1ms"', (1e-5, 1e-4), "31.6us"),
    ],
)
def test_the_level_between_two_is_one_that_a_person_would_write(
    along: str, low: str, high: str, ends: tuple[float, float], level: object
) -> None:
    text = FLIP.replace('"connections"', f'"{along}"').replace("from = 1\n", f"from = {low}\n")
    (flip,) = parse(text.replace("to = 1000", f"to = {high}")).flips
    middle = flips.find_middle(flip, *ends)
    assert (None if middle is None else flips.choose_level(flip, middle)) == level


def test_a_share_may_be_gone_along() -> None:
    text = FLIP.replace('"connections"', '"link-loss"').replace("from = 1\nto = 1000", "from = 0.001\nto = 0.1")
    wan = TOML.replace('duration = "1s"', 'duration = "1s"\nlink = "wan"')
    (flip,) = parse(text, wan).flips
    middle = flips.find_middle(flip, 0.001, 0.1)
    assert middle is not None
    assert flips.choose_level(flip, middle) == 0.01

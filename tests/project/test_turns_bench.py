"""What bench/turns.py computes from slices and stored runs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from netdyno.model.trial import Slice
from tests.support import bench_script

turns = bench_script.load("turns")
NAMES = ("a", "b", "c")
MESSAGES = 100_000


def test_a_ratio_lies_within_a_margin_where_both_one_sided_tests_reject_more() -> None:
    ratio = turns.estimate_ratio([math.log(1.01), math.log(1.02), math.log(1.00), math.log(1.01)])
    assert ratio.middle == pytest.approx(1.01, abs=1e-4)
    assert ratio.is_within(0.03)
    assert not ratio.is_within(0.015), "its middle is within, its interval is not"
    below = turns.estimate_ratio([math.log(0.99), math.log(0.98), math.log(1.00), math.log(0.99)])
    assert below.is_within(0.03)
    assert not below.is_within(0.015)


def test_the_interval_of_a_ratio_misses_the_truth_in_one_run_of_ten() -> None:
    drawn = np.random.default_rng(1).normal(0.02, 0.05, size=(4000, 6))
    ratios = [turns.estimate_ratio(list(map(float, blocks))) for blocks in drawn]
    missed = sum(not ratio.low <= math.exp(0.02) <= ratio.high for ratio in ratios)
    assert missed / len(ratios) == pytest.approx(0.1, abs=0.02)


def test_a_single_block_says_nothing_of_a_margin() -> None:
    assert not turns.estimate_ratio([0.0]).is_within(0.5)


def group_of(slices: int, effect: Mapping[tuple[str, str], float], first: float = 0.0) -> Mapping[str, Sequence[Slice]]:
    """The slices of contestants in a random order and its reverse, with the effects of the predecessor and of the first
    place, on a machine whose speed changes from turn to turn."""
    chance = random.Random(1)
    orders = []
    for _ in range(slices // 2):
        order = chance.sample(NAMES, len(NAMES))
        orders += [order, order[::-1]]
    group: dict[str, list[Slice]] = {name: [] for name in NAMES}
    before = ""
    for turn, (place, name) in itertools.product(range(slices), enumerate(NAMES)):
        name = orders[turn][place]
        speed = 1 + 0.5 * math.sin(turn)
        factor = speed * (1 + NAMES.index(name)) * math.exp(effect.get((name, before), 0.0) + (0 if place else first))
        group[name].append(
            Slice(turn=turn, place=place, kept=True, sent=round(MESSAGES * factor), cpu_s=0.1, others_cpu_s=0.0)
        )
        before = name
    return group


def test_a_planted_effect_of_the_order_is_found_and_no_other() -> None:
    effects = turns.find_effects(group_of(400, {}), lambda part: part.sent)
    assert all(abs(effect) < 1e-4 for effect in effects.values())
    assert ("a", "a") in effects, "the last of a turn is the first of the next one"
    first = turns.find_effects(group_of(400, {}, first=-0.05), lambda part: part.sent)
    assert first["first place", ""] == pytest.approx(-0.05, abs=0.002)
    after = turns.find_effects(group_of(400, {("a", "b"): -0.05}), lambda part: part.sent)
    assert min(after, key=lambda key: after[key]) == ("a", "b")
    assert after["a", "b"] < -0.025


def test_slices_that_were_dropped_have_no_effect_but_stand_before_others() -> None:
    group = group_of(100, {})
    spoilt = {
        name: [
            Slice(**{key: getattr(part, key) for key in part.__struct_fields__} | {"kept": False, "sent": 1})
            if part.turn % 5 == 0
            else part
            for part in slices
        ]
        for name, slices in group.items()
    }
    effects = turns.find_effects(spoilt, lambda part: part.sent)
    assert effects
    assert all(abs(effect) < 1e-4 for effect in effects.values())


def test_every_scenario_of_quick_is_measured_a_second_time_without_turns() -> None:
    quick = turns.experiments.load(turns.experiments.find("quick", turns.experiments.find_experiments_folder()))
    both = {scenario.name: scenario for scenario in turns.with_alone(quick).scenarios}
    assert len(both) == 2 * len(quick.scenarios)
    for scenario in quick.scenarios:
        assert (both[scenario.name].turns, both[f"{scenario.name}{turns.ALONE}"].turns) == ("on", "off")


def test_blocks_of_different_runs_are_different_blocks() -> None:
    cells = {(0, (1, "x")): 0.1, (0, (1, "y")): 0.3, (1, (1, "x")): 0.5}
    assert turns.mean_by_block([cells, {(1, (1, "x")): 0.7}]) == pytest.approx([0.2, 0.6])

"""Intervals that hold at every look, and a count that may be asked for at any time."""

from __future__ import annotations

import numpy as np
import pytest

from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.block_counts import GATE_LOOKS
from netdyno.kit.statistics.stats import Floats, Interval, Pairs


def pairs(log_ratios: Floats) -> Pairs:
    numbers = np.arange(len(log_ratios))
    return Pairs(numbers, np.zeros_like(numbers), log_ratios)


def drawn(blocks: int, seed: int = 1, mean: float = 0.0) -> Floats:
    return np.random.default_rng(seed).normal(mean, 0.05, size=blocks)


def test_there_is_a_look_at_each_number_of_blocks_that_was_fixed_and_at_no_other() -> None:
    for blocks in (5, 6, 8, 9, 30, 300):
        intervals = list(looks.GATE.take(pairs(drawn(blocks)), 0.05))
        assert len(intervals) == sum(count <= blocks for count in GATE_LOOKS)
    between = [looks.GATE.hold(pairs(drawn(20)[:blocks]), 0.05) for blocks in (13, 14, 19, 20)]
    assert between[0] == between[1] == between[2] != between[3]


def test_a_look_is_the_interval_of_its_blocks_with_its_share_of_the_level() -> None:
    *_, last = looks.GATE.take(pairs(drawn(13)), 0.05)
    share = 0.05 / len(GATE_LOOKS)
    assert last == stats.mean_interval(pairs(drawn(13)), share)


def test_what_is_left_is_within_every_look_unless_they_contradict_each_other() -> None:
    several = list(looks.GATE.take(pairs(drawn(30)), 0.05))
    left = looks.GATE.hold(pairs(drawn(30)), 0.05)
    assert left == Interval(max(look.low for look in several), min(look.high for look in several))
    moved = np.concatenate([drawn(6) / 100, drawn(7, mean=3.0)])
    assert looks.GATE.hold(pairs(moved), 0.05) == list(looks.GATE.take(pairs(moved), 0.05))[-1]


def test_a_server_that_ends_at_the_look_that_suits_gets_an_interval_without_the_truth_in_few_of_the_runs() -> None:
    random = np.random.default_rng(1)
    level, runs, missed, of_one = 0.2, 400, 0, 0
    for _ in range(runs):
        ratios = pairs(random.normal(0, 0.1, size=68))
        missed += any(not look.low <= 0 <= look.high for look in looks.GATE.take(ratios, level))
        of_one += any(
            not interval.low <= 0 <= interval.high
            for count in GATE_LOOKS[:7]
            if (interval := stats.mean_interval(pairs(ratios.log_ratios[:count]), level)) is not None
        )
    assert missed / runs <= level
    assert of_one / runs > 1.5 * level, "an interval that is made for one look"


def test_the_looks_of_a_question_share_its_level_and_no_more() -> None:
    for question, number in ((looks.GATE, 10), (looks.FLIP, 5), (looks.ADVICE, 7 + 1), (looks.FURTHER, 2)):
        assert question.divide_significance(0.05) == 0.05 / number
    shares = [looks.FAULTS.divide_significance(0.05, number) for number in range(1000)]
    assert shares[0] == shares[1] / 0.5 == 0.025
    assert sum(shares) == pytest.approx(0.05, rel=0.01)
    assert sum(shares) < 0.05


@pytest.mark.parametrize(
    ("question", "decisions", "ends"),
    [
        (looks.GATE, [True], True),
        (looks.GATE, [False, True], False),
        (looks.FAULTS, [False, True, False], True),
        (looks.PRECISION, [True] * 8, True),
        (looks.PRECISION, [True] * 7 + [False] + [True] * 8, False),
        (looks.PRECISION, [True] * 7, False),
        (looks.count_trials(3), [True, False, True, False, True], True),
        (looks.count_trials(3), [True, False, True, False], False),
    ],
)
def test_a_question_ends_when_enough_of_its_looks_decide_it(
    question: looks.Looks, decisions: list[bool], *, ends: bool
) -> None:
    """The last look comes first."""
    assert question.has_ended(decisions) is ends


def list_events(events: int, blocks: int, first: int = 0) -> list[bool]:
    return [first <= block < first + events for block in range(blocks)]


@pytest.mark.parametrize(
    ("events", "others", "blocks"), [(4, 0, 4), (4, 0, 5), (5, 1, 5), (0, 20, 20), (10, 10, 20), (2, 0, 30)]
)
def test_what_chance_may_bring_about_is_not_more_often(events: int, others: int, blocks: int) -> None:
    assert not looks.is_more_often(list_events(events, blocks), list_events(others, blocks), 0.01)


@pytest.mark.parametrize(("events", "others", "blocks", "first"), [(5, 0, 5, 0), (8, 0, 9, 1), (14, 0, 30, 0)])
def test_what_chance_does_not_is(events: int, others: int, blocks: int, first: int) -> None:
    assert looks.is_more_often(list_events(events, blocks, first), list_events(others, blocks), 0.01)


def test_what_was_shown_at_a_look_stays_shown() -> None:
    assert looks.is_more_often(list_events(5, 40), list_events(0, 40), 0.01)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_consulted_after_every_block_it_errs_no_more_often_than_it_may(share: float) -> None:
    random, level = np.random.default_rng(2), 0.2
    runs = [(random.random((2, 40)) < share).tolist() for _ in range(400)]
    assert sum(looks.is_more_often(first, second, level) for first, second in runs) / len(runs) <= level

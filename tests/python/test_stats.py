"""The statistics against what is known: exact small cases, properties, and simulation where the truth is chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno import stats

NAMES = ("a", "b", "c", "d", "e")


def samples(logs: np.ndarray, names: tuple[str, ...] = NAMES) -> dict[str, dict[stats.Cell, float]]:
    """Contestants x blocks x levels of log metrics as the samples of each contestant."""
    return {
        name: {
            (block, f"level {level}"): math.exp(logs[i, block, level])
            for block in range(logs.shape[1])
            for level in range(logs.shape[2])
        }
        for i, name in enumerate(names)
    }


def a_a_logs(seed: int, contestants: int, blocks: int, levels: int) -> np.ndarray:
    """No contestant differs: a drift per block (shared), a size per level (shared), heavy-tailed noise per restart."""
    random = np.random.default_rng(seed)
    drift = random.normal(0, 0.5, size=(1, blocks, 1))
    size = random.normal(0, 1, size=(1, 1, levels))
    return np.asarray(10 + drift + size + 0.05 * random.standard_t(3, size=(contestants, blocks, levels)))


def family(data: Mapping[str, stats.Samples]) -> tuple[stats.Comparison, ...]:
    return stats.corrected([stats.compare(a, b, data) for a, b in itertools.combinations(data, 2)])


def pairs_of(differences: list[float]) -> stats.Pairs:
    count = len(differences)
    return stats.Pairs(np.arange(count), np.zeros(count, dtype=np.int64), np.array(differences))


# --- the test ----------------------------------------------------------------------------------------------------


def test_p_value_counts_the_patterns_at_least_as_far_out() -> None:
    # 1+2+4 = 7 is reached by no other pattern than all plus and all minus: 2 of 8.
    assert stats.sign_flip_p(pairs_of([1.0, 2.0, 4.0])) == 2 / 8
    # -1+2+4 = 5: |sum| >= 5 for +++, ---, -++ and +--.
    assert stats.sign_flip_p(pairs_of([-1.0, 2.0, 4.0])) == 4 / 8


def test_no_pair_and_no_difference_prove_nothing() -> None:
    assert stats.sign_flip_p(pairs_of([])) == 1.0
    assert stats.sign_flip_p(pairs_of([0.0] * 12)) == 1.0


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_p_value_is_attainable_and_blind_to_who_is_called_a(differences: list[float]) -> None:
    p = stats.sign_flip_p(pairs_of(differences))
    assert stats.smallest_p(len(differences)) <= p <= 1
    assert p == stats.sign_flip_p(pairs_of([-d for d in differences]))


def test_what_the_pairs_of_a_block_share_is_flipped_once() -> None:
    """Four pairs that agree prove something if each is a coin of its own, and little if they come from two blocks."""
    apart = pairs_of([1.0, 1.1, 1.2, 1.3])
    together = stats.Pairs(np.array([1, 1, 2, 2]), np.array([0, 1, 0, 1]), apart.log_ratios)
    assert stats.block_flip_p(apart) == stats.sign_flip_p(apart) == stats.smallest_p(4)
    assert stats.block_flip_p(together) == stats.smallest_p(2) == 0.5
    assert stats.block_flip_p(pairs_of([])) == 1.0


def test_drawn_p_values_are_never_zero_and_agree_with_the_count() -> None:
    strong = pairs_of([1.0] * (stats.ENUMERATED_PAIRS + 5))
    assert stats.sign_flip_p(strong) == stats.smallest_p(len(strong)) > 0
    random = np.random.default_rng(3)
    differences = random.normal(0.25, 1, size=stats.ENUMERATED_PAIRS).tolist()
    exact = stats.sign_flip_p(pairs_of(differences))
    # One pair of no weight pushes the number over the limit and changes no sum.
    drawn = stats.sign_flip_p(pairs_of(differences), seed=1)
    assert drawn == exact
    padded = stats.Pairs(np.arange(21), np.array([0] * 20 + [0]), np.array([*differences, 0.0]))
    assert stats.sign_flip_p(padded, seed=5) == pytest.approx(exact, abs=4 * math.sqrt(exact / stats.DRAWN_PATTERNS))


@pytest.mark.parametrize("comparisons", [1, 3, 10, 30, 45, 100])
def test_pairs_needed_is_where_the_corrected_test_can_first_pass(comparisons: int) -> None:
    needed = stats.pairs_needed(comparisons)
    assert comparisons * stats.smallest_p(needed) <= stats.LEVEL < comparisons * stats.smallest_p(needed - 1)


def test_too_few_pairs_can_never_tell_apart_whatever_the_difference() -> None:
    logs = a_a_logs(1, 5, blocks=8, levels=1)
    logs[0] += 5
    assert not any(one.decidable or one.different for one in family(samples(logs)))
    logs = a_a_logs(1, 5, blocks=9, levels=1)
    logs[0] += 5
    assert all(one.decidable for one in family(samples(logs)))
    assert sum(one.different for one in family(samples(logs))) == 4


@pytest.mark.parametrize(("blocks", "levels"), [(10, 1), (5, 3)])
def test_equal_contestants_are_called_different_in_at_most_five_runs_of_a_hundred(blocks: int, levels: int) -> None:
    runs, false_alarms = 600, 0
    for run in range(runs):
        data = samples(a_a_logs(run, 5, blocks, levels))
        p_values = [stats.sign_flip_p(stats.pair(data[a], data[b])) for a, b in itertools.combinations(data, 2)]
        false_alarms += min(stats.holm(p_values)) <= stats.LEVEL
    three_sigma = 3 * math.sqrt(0.05 * 0.95 / runs)
    assert false_alarms / runs <= 0.05 + three_sigma
    assert false_alarms > 0  # the test is not one that can never speak


def test_a_real_difference_is_found_through_drift_ten_times_its_size() -> None:
    logs = a_a_logs(7, 2, blocks=12, levels=1)
    logs[1] += math.log(0.8)
    (one,) = family(samples(logs, ("a", "b")))
    assert one.different
    assert one.interval is not None
    assert one.interval.low < 1 / 0.8 < one.interval.high


# --- Holm --------------------------------------------------------------------------------------------------------


def test_holm_on_a_case_worked_by_hand() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_holm_lies_between_the_raw_value_and_bonferroni_and_keeps_order(p_values: list[float]) -> None:
    adjusted = stats.holm(p_values)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert raw <= corrected <= min(1.0, raw * len(p_values)) + 1e-12
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)


# --- intervals ---------------------------------------------------------------------------------------------------


def test_no_interval_below_five_blocks_and_one_from_five() -> None:
    assert stats.ratio_interval(pairs_of([0.1, 0.2, 0.3, 0.4])) is None
    assert stats.ratio_interval(pairs_of([0.1, 0.2, 0.3, 0.4, 0.5])) is not None


def test_resamples_are_enumerated_with_their_true_chances() -> None:
    multiplicities, chances = stats.resamples(5, seed=1)
    assert multiplicities.shape == (126, 5)
    assert (multiplicities.sum(axis=1) == 5).all()
    assert chances.sum() == pytest.approx(1)
    assert chances[(multiplicities == 1).all(axis=1)] == pytest.approx(math.factorial(5) / 5**5)


@given(st.lists(st.floats(-2, 2), min_size=5, max_size=9), st.floats(-3, 3))
@settings(max_examples=40)
def test_interval_contains_the_estimate_and_moves_with_the_unit(differences: list[float], shift: float) -> None:
    interval = stats.ratio_interval(pairs_of(differences))
    moved = stats.ratio_interval(pairs_of([d + shift for d in differences]))
    assert interval is not None
    assert moved is not None
    estimate = math.exp(stats.log_ratio(pairs_of(differences)))
    assert interval.low * (1 - 1e-9) <= estimate <= interval.high * (1 + 1e-9)
    assert moved.low == pytest.approx(interval.low * math.exp(shift), rel=1e-6)
    assert moved.high == pytest.approx(interval.high * math.exp(shift), rel=1e-6)


@pytest.mark.parametrize(("blocks", "at_least"), [(5, 0.90), (6, 0.91), (10, 0.92)])
def test_interval_covers_the_truth_as_often_as_the_record_says(blocks: int, at_least: float) -> None:
    """Coverage on normal differences: 92% at 5 blocks, 94% from 8 (docs/adr); three standard errors of room."""
    random = np.random.default_rng(11)
    runs = 500
    covered = 0
    for _ in range(runs):
        interval = stats.ratio_interval(pairs_of(random.normal(0.1, 0.05, size=blocks).tolist()))
        assert interval is not None
        covered += interval.low <= math.exp(0.1) <= interval.high
    room = 3 * math.sqrt(at_least * (1 - at_least) / runs)
    assert covered / runs >= at_least - room
    assert covered / runs <= 0.99  # and not by being endless


def test_a_block_is_drawn_whole_so_levels_of_one_block_are_not_counted_as_independent() -> None:
    """Every level of a block shares the block's luck: ten copies of a level must not shorten the interval."""
    luck = [0.3, -0.2, 0.1, 0.4, -0.1]
    one = stats.ratio_interval(pairs_of(luck))
    copies = stats.Pairs(np.repeat(np.arange(5), 10), np.tile(np.arange(10), 5), np.repeat(luck, 10))
    many = stats.ratio_interval(copies)
    assert one is not None
    assert many is not None
    assert (many.low, many.high) == pytest.approx((one.low, one.high))


# --- pairs, effects, ranks ---------------------------------------------------------------------------------------


def test_only_shared_cells_pair_and_each_level_weighs_the_same() -> None:
    a = {(1, "x"): 2.0, (2, "x"): 2.0, (3, "x"): 2.0, (1, "y"): 8.0, (9, "y"): 1.0}
    b = {(1, "x"): 1.0, (2, "x"): 1.0, (3, "x"): 1.0, (1, "y"): 1.0, (8, "y"): 1.0}
    pairs = stats.pair(a, b)
    assert len(pairs) == 4
    assert math.exp(stats.log_ratio(pairs)) == pytest.approx(4.0)  # sqrt(2 * 8), not (2*2*2*8)**(1/4)


def test_a_value_without_a_logarithm_is_an_error_not_an_answer() -> None:
    with pytest.raises(ValueError, match="above 0"):
        stats.pair({(1, "x"): 0.0}, {(1, "x"): 1.0})


def test_losing_its_slow_cells_does_not_make_a_contestant_fast() -> None:
    logs = np.zeros((2, 6, 2))
    logs[:, :, 1] = -3  # the second level is slow for both
    data = samples(logs, ("whole", "partial"))
    data["partial"] = {cell: value for cell, value in data["partial"].items() if cell[1] == "level 0"}
    effects = stats.effects(data)
    assert effects["partial"] == pytest.approx(effects["whole"])


def verdicts(*apart: tuple[str, str], names: str = "abc") -> list[stats.Comparison]:
    """A family over `names` (best first) in which exactly these pairs are told apart."""
    return [
        stats.Comparison(a, b, 12, 12, 1.5, None, 0.001, 0.01, decidable=True, different=(a, b) in apart)
        for a, b in itertools.combinations(names, 2)
    ]


def test_proven_differences_give_ranks_and_ties_share_one() -> None:
    everything = [("a", "b"), ("a", "c"), ("b", "c")]
    assert stats.ranks("abc", verdicts(*everything), "higher") == {"a": 1, "b": 2, "c": 3}
    assert stats.ranks("abc", verdicts(("a", "c"), ("b", "c")), "higher") == {"a": 1, "b": 1, "c": 3}
    assert stats.ranks("abc", verdicts(("a", "b"), ("a", "c")), "higher") == {"a": 1, "b": 2, "c": 2}
    assert stats.ranks("abc", verdicts(), "higher") == {"a": 1, "b": 1, "c": 1}


def test_a_chain_of_ties_shares_one_rank_though_its_ends_differ() -> None:
    chain = verdicts(("a", "c"))
    assert stats.ranks("abc", chain, "higher") == {"a": 1, "b": 1, "c": 1}
    assert stats.unbeaten("abc", chain, "higher") == ["a", "b"]


def test_lower_is_better_turns_the_winner_round() -> None:
    proven = verdicts(("a", "b"), names="ab")  # a's metric is 1.5 times b's
    assert stats.unbeaten("ab", proven, "higher") == ["a"]
    assert stats.unbeaten("ab", proven, "lower") == ["b"]


@given(st.integers(0, 2**10 - 1))
def test_whatever_is_not_told_apart_shares_a_rank(mask: int) -> None:
    everything = list(itertools.combinations("abcde", 2))
    apart = [both for bit, both in enumerate(everything) if mask >> bit & 1]
    ranks = stats.ranks("abcde", verdicts(*apart, names="abcde"), "higher")
    for a, b in everything:
        assert (a, b) in apart or ranks[a] == ranks[b]
        assert ranks[a] <= ranks[b]


def test_what_too_few_pairs_hide_is_undecided_and_not_a_tie() -> None:
    """One contestant lost a block: 8 pairs, 9 needed while nothing else is told apart; more when the rest is."""
    logs = a_a_logs(2, 5, blocks=9, levels=1)
    data = samples(logs)
    data["e"] = {cell: value * 8 for cell, value in data["e"].items() if cell[0] != 0}
    assert not any(one.decidable for one in family(data) if "e" in (one.a, one.b))
    logs[0] += 3
    logs[1] += 1.5
    data = samples(logs)
    data["e"] = {cell: value / 8 for cell, value in data["e"].items() if cell[0] != 0}
    assert all(one.different for one in family(data) if "a" in (one.a, one.b) and "e" not in (one.a, one.b))
    assert any(one.different for one in family(data) if "e" in (one.a, one.b))

"""The statistics against what is known: exact small cases, properties, and simulation where the truth is chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS

NAMES = ("a", "b", "c", "d", "e")


def samples(logs: np.ndarray, names: tuple[str, ...] = NAMES) -> dict[str, dict[stats.BlockLevel, float]]:
    """Contestants x blocks x levels of log metrics as the samples of each contestant."""
    return {
        name: {
            (block, f"level {level}"): math.exp(logs[number, block, level])
            for block in range(logs.shape[1])
            for level in range(logs.shape[2])
        }
        for number, name in enumerate(names)
    }


def a_a_logs(seed: int, contestants: int, blocks: int, levels: int) -> np.ndarray:
    """No contestant differs: a drift per block (shared), a size per level (shared), heavy-tailed noise per restart."""
    random = np.random.default_rng(seed)
    drift = random.normal(0, 0.5, size=(1, blocks, 1))
    size = random.normal(0, 1, size=(1, 1, levels))
    return np.asarray(10 + drift + size + 0.05 * random.standard_t(3, size=(contestants, blocks, levels)))


def family(data: Mapping[str, stats.Samples]) -> tuple[stats.Comparison, ...]:
    return stats.corrected([stats.compare(first, second, data) for first, second in itertools.combinations(data, 2)])


def pairs_of(differences: Sequence[float]) -> stats.Pairs:
    count = len(differences)
    return stats.Pairs(np.arange(count), np.zeros(count, dtype=np.int64), np.array(differences, dtype=np.float64))


# --- one interval, one test --------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.05, 0.05 / 16])
@pytest.mark.parametrize("away", [0.05, 0.3, 3.0])
def test_so_many_blocks_and_no_fewer_would_leave_a_mean_out(away: float, level: float) -> None:
    values = [0.0, 0.4, -0.4, 0.2, -0.2]
    fewest = stats.blocks_to_leave_out(pairs_of([away + value for value in values]), 0.0, level)
    assert fewest is not None

    def leaves_out(blocks: int) -> bool:
        return stats.student(blocks - 1, level) * float(np.std(values, ddof=1)) / math.sqrt(blocks) < away

    assert leaves_out(fewest)
    assert fewest == FEWEST_BLOCKS or not leaves_out(fewest - 1)


def test_what_lies_on_the_expected_mean_is_decided_by_no_blocks() -> None:
    assert stats.blocks_to_leave_out(pairs_of([-1.0, 1.0, -2.0, 2.0, 0.0]), 0.0) is None
    assert stats.blocks_to_leave_out(pairs_of([-1.0, 1.0, -2.0, 2.0, 0.05]), 0.0) is None  # 30,000 would do
    assert stats.blocks_to_leave_out(pairs_of([1.0]), 0.0) is None


def test_the_interval_is_that_of_student() -> None:
    """Worked by hand: mean 3, standard deviation 1.5811, and t of four degrees of freedom is 2.7764."""
    interval = stats.mean_interval(pairs_of([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=1e-4)
    assert stats.mean_p(pairs_of([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(0.01324, abs=1e-5)
    assert stats.mean_p(pairs_of([1.0, 2.0, 3.0, 4.0, 5.0]), 3.0) == pytest.approx(1.0)


def test_below_five_blocks_nothing_is_stated() -> None:
    assert FEWEST_BLOCKS == 5
    few = pairs_of([0.1, 0.11, 0.1, 0.11])
    assert stats.mean_interval(few) is None
    assert stats.mean_p(few) == 1.0
    (comparison,) = stats.corrected([stats.comparison("a", "b", few)])
    assert (comparison.interval, comparison.single, comparison.p, comparison.decidable, comparison.different) == (
        None,
        None,
        1.0,
        False,
        False,
    )
    assert stats.mean_interval(pairs_of([0.1, 0.11, 0.1, 0.11, 0.1])) is not None


def test_a_block_counts_once_however_many_levels_it_has() -> None:
    """Every level of a block shares the block's luck: ten copies of a level must not shorten the interval."""
    luck = [0.3, -0.2, 0.1, 0.4, -0.1]
    copies = stats.Pairs(np.repeat(np.arange(5), 10), np.tile(np.arange(10), 5), np.repeat(luck, 10))
    single, many = stats.mean_interval(pairs_of(luck)), stats.mean_interval(copies)
    assert single is not None
    assert many is not None
    assert (many.low, many.high) == pytest.approx((single.low, single.high))
    assert stats.mean_p(copies) == pytest.approx(stats.mean_p(pairs_of(luck)))


def test_the_same_in_every_block_is_certain_and_its_interval_has_no_width() -> None:
    """Counts: two system calls per message against one, in every block. No test can doubt that, and none is shown."""
    data = {"a": {(block, "x"): 0.3 for block in range(5)}, "b": {(block, "x"): 0.1 for block in range(5)}}
    (comparison,) = family(data)
    assert comparison.interval == stats.Interval(comparison.ratio, comparison.ratio)
    assert comparison.ratio == pytest.approx(3)
    assert (comparison.p_corrected, comparison.different) == (0.0, True)
    (unchanged,) = family({"a": data["a"], "b": data["a"]})
    assert (unchanged.interval, unchanged.p_corrected, unchanged.different) == (stats.Interval(1, 1), 1.0, False)


def test_rounding_is_no_spread() -> None:
    values = np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 0.3])
    assert len(set(values)) == 2
    assert stats.spread(values) == 0.0


def test_rounding_is_no_difference() -> None:
    """Equal figures whose last bit differs, in every block alike."""
    (comparison,) = family(
        {"a": {(block, "x"): 0.1 + 0.2 for block in range(5)}, "b": {(block, "x"): 0.3 for block in range(5)}}
    )
    assert (comparison.ratio, comparison.p_corrected, comparison.different) == (1.0, 1.0, False)


# --- a family ----------------------------------------------------------------------------------------------------

LOGS = st.lists(
    st.lists(st.floats(-2, 2).map(lambda log: round(log, 6)), min_size=3, max_size=3), min_size=5, max_size=9
)
"""Log metrics of three contestants, block by block: equal, or apart by more than rounding makes of them."""


def of_logs(logs: Sequence[Sequence[float]], names: str = "abc") -> dict[str, dict[stats.BlockLevel, float]]:
    return {
        name: {(block, "x"): math.exp(row[number]) for block, row in enumerate(logs)}
        for number, name in enumerate(names)
    }


def close(first: stats.Interval | None, second: stats.Interval | None) -> bool:
    """A width that has grown out of rounding alone does not count."""
    assert first is not None
    assert second is not None
    return (second.low, second.high) == pytest.approx((first.low, first.high), rel=1e-6)


@given(LOGS, st.floats(0.001, 0.3))
def test_the_verdict_is_the_interval(logs: list[list[float]], level: float) -> None:
    for comparison in stats.corrected(
        [stats.compare(first, second, of_logs(logs)) for first, second in ("ab", "ac", "bc")], level
    ):
        assert comparison.interval is not None
        assert comparison.single is not None
        assert comparison.different == (not comparison.interval.low <= 1 <= comparison.interval.high)
        assert comparison.interval.low <= comparison.ratio * (1 + 1e-9)
        assert comparison.ratio <= comparison.interval.high * (1 + 1e-9)
        if not math.isclose(comparison.p_corrected, level, rel_tol=1e-6):
            assert comparison.different == (comparison.p_corrected <= level)
        if not math.isclose(comparison.p, stats.SIGNIFICANCE, rel_tol=1e-6):
            assert (comparison.p <= stats.SIGNIFICANCE) == (not comparison.single.low <= 1 <= comparison.single.high)


@given(st.lists(st.lists(st.floats(-2, 2), min_size=6, max_size=6), min_size=3, max_size=6))
def test_of_differences_too_the_verdict_is_the_interval(differences: list[list[float]]) -> None:
    raw = [stats.comparison("a", str(number), pairs_of(row), ratios=False) for number, row in enumerate(differences)]
    for comparison in stats.corrected(raw):
        assert comparison.interval is not None
        assert comparison.different == (not comparison.interval.low <= 0 <= comparison.interval.high)


@given(LOGS)
def test_which_is_called_a_does_not_matter(logs: list[list[float]]) -> None:
    for comparison, turned in zip(
        family(of_logs(logs)), family(of_logs([row[::-1] for row in logs], "cba"))[::-1], strict=True
    ):
        assert (comparison.a, comparison.b) == (turned.b, turned.a)
        assert comparison.different == turned.different
        assert turned.interval is not None
        assert close(comparison.interval, stats.Interval(1 / turned.interval.high, 1 / turned.interval.low))
        assert turned.p_corrected == pytest.approx(comparison.p_corrected, abs=1e-9)


@given(LOGS, st.permutations("abc"))
def test_names_and_their_order_do_not_matter(logs: list[list[float]], names: list[str]) -> None:
    by_names = {(comparison.a, comparison.b): comparison for comparison in family(of_logs(logs))}
    renamed = {(comparison.a, comparison.b): comparison for comparison in family(of_logs(logs, "".join(names)))}
    for (first, second), comparison in by_names.items():
        renamed_comparison = renamed[names["abc".index(first)], names["abc".index(second)]]
        assert replace(renamed_comparison, a=first, b=second) == comparison


@given(LOGS, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(logs: list[list[float]], factor: float) -> None:
    data = of_logs([[round(value, 3) for value in row] for row in logs])
    scaled = {name: {cell: factor * value for cell, value in cells.items()} for name, cells in data.items()}
    for comparison, scaled_comparison in zip(family(data), family(scaled), strict=True):
        assert comparison.different == scaled_comparison.different
        assert close(comparison.interval, scaled_comparison.interval)


@given(LOGS)
def test_blocks_that_come_a_second_time_change_no_ratio_and_widen_nothing(logs: list[list[float]]) -> None:
    for comparison, twice in zip(family(of_logs(logs)), family(of_logs(logs + logs)), strict=True):
        assert twice.ratio == pytest.approx(comparison.ratio)
        assert comparison.interval is not None
        assert twice.interval is not None
        assert twice.interval.low >= comparison.interval.low * (1 - 1e-9)
        assert twice.interval.high <= comparison.interval.high * (1 + 1e-9)
        assert twice.different >= comparison.different


def test_each_comparison_has_its_share_of_the_level_and_one_that_cannot_be_judged_has_none() -> None:
    pairs = pairs_of([0.1, 0.2, 0.15, 0.12, 0.2])
    alone = stats.comparison("a", "b", pairs, axis="rate")
    another = stats.comparison("a", "b", pairs, axis="p99")
    few = stats.comparison("a", "c", pairs_of([0.1, 0.2]), axis="rate")
    assert stats.corrected([alone])[0].interval == alone.single
    two = stats.corrected([alone, another, few])
    assert [comparison.p_corrected for comparison in two] == pytest.approx([2 * alone.p, 2 * alone.p, 1])
    assert two[0].single == alone.single
    narrow, wide = alone.single, two[0].interval
    assert narrow is not None
    assert wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high
    assert two[2].interval is None


def test_half_a_part_of_the_spread_is_the_others() -> None:
    """Own variance 1, middle of the others' 4: two parts and one, and half as many degrees of freedom more."""
    assert stats.moderated(1.0, 4, [4.0, 1.0, 900.0]) == pytest.approx((math.sqrt(2), 6.0))
    assert stats.moderated(1.0, 4, [4.0]) == (1.0, 4.0)


def test_spread_is_borrowed_on_the_same_axis_only() -> None:
    quiet = [stats.comparison("a", name, pairs_of([0.1, 0.11, 0.1, 0.12, 0.11]), axis="cpu") for name in "bcd"]
    rough = [stats.comparison("a", name, pairs_of([0.1, 2, -1, 0.5, -2]), axis="p99") for name in "bcd"]
    apart, together = stats.corrected([*quiet, *rough]), stats.corrected(quiet, stats.SIGNIFICANCE / 2)
    assert apart[:3] == tuple(
        replace(comparison, p_corrected=separate.p_corrected)
        for comparison, separate in zip(together, apart, strict=False)
    )


def test_one_contestant_that_scatters_widely_widens_no_other_interval() -> None:
    logs = a_a_logs(5, 5, blocks=6, levels=1)
    calm = {(comparison.a, comparison.b): comparison.interval for comparison in family(samples(logs))}
    logs[4] += np.random.default_rng(1).normal(0, 3, size=(6, 1))
    for comparison in family(samples(logs)):
        before = calm[comparison.a, comparison.b]
        if "e" not in (comparison.a, comparison.b):
            assert before is not None
            assert comparison.interval is not None
            assert comparison.interval.high / comparison.interval.low < (before.high / before.low) ** 2


def test_a_large_difference_is_decided_by_five_blocks_among_fifty_comparisons() -> None:
    """Twice as fast, at a spread of a tenth, on each of five axes with ten comparisons."""
    raw = []
    for axis in range(5):
        logs = np.random.default_rng(axis).normal(0, 0.07, size=(5, 5, 1))
        logs[0] += math.log(2)
        data = samples(logs)
        raw += [stats.compare(first, second, data, axis=str(axis)) for first, second in itertools.combinations(data, 2)]
    outcomes = {comparison.different: 0 for comparison in stats.corrected(raw)}
    for comparison in stats.corrected(raw):
        outcomes[comparison.different] += 1
        assert comparison.different == (comparison.a == "a")
    assert outcomes == {True: 20, False: 30}


@pytest.mark.parametrize(("blocks", "levels"), [(10, 1), (5, 3)])
def test_equal_contestants_are_called_different_in_at_most_five_runs_of_a_hundred(blocks: int, levels: int) -> None:
    runs = 400
    false_alarms = sum(
        any(comparison.different for comparison in family(samples(a_a_logs(run, 5, blocks, levels))))
        for run in range(runs)
    )
    assert false_alarms / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_equal_contestants_with_normal_noise_are_now_and_then_called_different() -> None:
    """Else it would be a test that cannot speak."""
    random = np.random.default_rng(2)
    logs = random.normal(0, 0.1, size=(600, 3, 8, 1))
    false_alarms = sum(
        any(comparison.different for comparison in family(samples(run_logs, ("a", "b", "c")))) for run_logs in logs
    )
    assert 0.01 < false_alarms / 600 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


def test_luck_that_the_levels_of_a_block_share_makes_no_differences() -> None:
    """Half of the variance of a trial is its contestant's luck in that block: pairs flipped one by one would find a
    false difference in most runs."""
    random = np.random.default_rng(4)
    runs = 400
    luck = random.normal(0, 0.07, size=(runs, 5, 8, 1))
    noise = random.normal(0, 0.07, size=(runs, 5, 8, 6))
    false_alarms = sum(
        any(comparison.different for comparison in family(samples(run_logs))) for run_logs in luck + noise
    )
    assert false_alarms / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_a_real_difference_is_found_through_drift_ten_times_its_size() -> None:
    logs = a_a_logs(7, 2, blocks=12, levels=1)
    logs[1] += math.log(0.8)
    (comparison,) = family(samples(logs, ("a", "b")))
    assert comparison.different
    assert comparison.interval is not None
    assert comparison.interval.low < 1 / 0.8 < comparison.interval.high


# --- the interval of a single figure -----------------------------------------------------------------------------


def test_resamples_are_enumerated_with_their_true_chances() -> None:
    multiplicities, chances = stats.resamples(5, seed=1)
    assert multiplicities.shape == (126, 5)
    assert (multiplicities.sum(axis=1) == 5).all()
    assert chances.sum() == pytest.approx(1)
    assert chances[(multiplicities == 1).all(axis=1)] == pytest.approx(math.factorial(5) / 5**5)


def of_mean(values: Sequence[float]) -> stats.Interval | None:
    points = np.array(values)
    return stats.interval(lambda drawn: np.asarray(drawn @ points / len(points)), len(points))


def test_no_figure_has_an_interval_below_five_blocks() -> None:
    assert of_mean([0.1, 0.2, 0.3, 0.4]) is None
    assert of_mean([0.1, 0.2, 0.3, 0.4, 0.5]) is not None


@pytest.mark.parametrize(("blocks", "at_least"), [(5, 0.90), (6, 0.91), (10, 0.92)])
def test_interval_covers_the_truth_as_often_as_the_record_says(blocks: int, at_least: float) -> None:
    """Coverage on normal differences: 92% at 5 blocks, 94% from 8 (docs/adr); three standard errors of room."""
    random = np.random.default_rng(11)
    runs = 500
    covered = 0
    for _ in range(runs):
        interval = of_mean(random.normal(0.1, 0.05, size=blocks).tolist())
        assert interval is not None
        covered += interval.low <= 0.1 <= interval.high
    room = 3 * math.sqrt(at_least * (1 - at_least) / runs)
    assert covered / runs >= at_least - room
    assert covered / runs <= 0.99  # and not by being endless


# --- pairs, effects, ranks ---------------------------------------------------------------------------------------


def test_a_block_that_lost_a_level_is_left_out_and_shifts_nothing() -> None:
    """The first is twice as fast at x and eight times as fast at y, in all blocks; of the last, y is lost."""
    first = {(block, level): figure for block in range(6) for level, figure in (("x", 2.0), ("y", 8.0))}
    second = dict.fromkeys(first, 1.0)
    del second[5, "y"]
    pairs = stats.pair(first, second)
    assert sorted(set(pairs.blocks.tolist())) == [0, 1, 2, 3, 4]
    assert len(pairs) == 10
    assert math.exp(stats.log_ratio(pairs)) == pytest.approx(4.0)  # sqrt(2 * 8)


def test_a_level_that_one_can_hardly_carry_does_not_cost_all_blocks() -> None:
    first = {(block, level): figure for block in range(6) for level, figure in (("x", 2.0), ("y", 8.0))}
    second = {cell: 1.0 for cell in first if cell[1] == "x" or cell[0] < 2}
    pairs = stats.pair(first, second)
    assert (len(pairs), math.exp(stats.log_ratio(pairs))) == pytest.approx((6, 2.0))
    second[2, "y"] = 1.0  # and at half of them it counts
    pairs = stats.pair(first, second)
    assert (len(pairs), math.exp(stats.log_ratio(pairs))) == pytest.approx((6, 4.0))


@given(st.sets(st.tuples(st.integers(0, 8), st.sampled_from("xyz"))))
def test_every_block_that_counts_asks_the_same_question(shared: set[stats.BlockLevel]) -> None:
    cells = stats.counted(shared)
    assert set(cells) <= shared
    blocks, levels = {block for block, _ in cells}, {level for _, level in cells}
    assert set(cells) == set(itertools.product(blocks, levels))
    count_by_level = {level: sum(cell[1] == level for cell in shared) for level in "xyz"}
    most = max(count_by_level.values())
    expected = {level for level, count in count_by_level.items() if count and 2 * count >= most}
    assert blocks == {block for block in range(9) if expected and all((block, level) in shared for level in expected)}
    assert levels == (expected if blocks else set())


def test_a_value_without_a_logarithm_is_an_error_not_an_answer() -> None:
    with pytest.raises(ValueError, match="above 0"):
        stats.pair({(1, "x"): 0.0}, {(1, "x"): 1.0})


def test_losing_its_slow_cells_does_not_make_a_contestant_fast() -> None:
    logs = np.zeros((2, 6, 2))
    logs[:, :, 1] = -3  # the second level is slow for both
    data = samples(logs, ("whole", "partial"))
    data["partial"] = {cell: value for cell, value in data["partial"].items() if cell[1] == "level 0"}
    assert stats.compare("partial", "whole", data).ratio == pytest.approx(1.0)


def verdicts(*apart: tuple[str, str], names: str = "abc") -> list[stats.Comparison]:
    """A family over `names` (best first) in which exactly these pairs are proven different."""
    return [
        stats.Comparison(
            first, second, 12, 12, 1.5, None, 0.001, 0.01, decidable=True, different=(first, second) in apart
        )
        for first, second in itertools.combinations(names, 2)
    ]


def test_a_rank_is_one_and_how_many_are_proven_better() -> None:
    everything = [("a", "b"), ("a", "c"), ("b", "c")]
    assert stats.ranks("abc", verdicts(*everything), "higher") == {"a": 1, "b": 2, "c": 3}
    assert stats.ranks("abc", verdicts(("a", "c"), ("b", "c")), "higher") == {"a": 1, "b": 1, "c": 3}
    assert stats.ranks("abc", verdicts(("a", "b"), ("a", "c")), "higher") == {"a": 1, "b": 2, "c": 2}
    assert stats.ranks("abc", verdicts(), "higher") == {"a": 1, "b": 1, "c": 1}


def test_one_uncertain_pair_does_not_make_three_ranks_one() -> None:
    chain = verdicts(("a", "c"))
    assert stats.ranks("abc", chain, "higher") == {"a": 1, "b": 1, "c": 2}
    assert stats.unbeaten("abc", chain, "higher") == ["a", "b"]


def test_a_server_that_is_proven_worse_by_way_of_another_is_ranked_below() -> None:
    """All intervals hold together: b is better than c, and a is better than b."""
    assert stats.ranks("abc", verdicts(("a", "b"), ("b", "c")), "higher") == {"a": 1, "b": 2, "c": 3}


def test_verdicts_that_contradict_each_other_prove_nothing() -> None:
    circle = [*verdicts(("a", "b"), ("b", "c"), names="abc")[:1], *verdicts(("b", "c"), names="bc")]
    above = stats.Interval(1.4, 1.6)
    circle.append(stats.Comparison("c", "a", 12, 12, 1.5, above, 0.001, decidable=True, different=True))
    circle += verdicts(("c", "d"), names="cd")
    left = stats.without_circles(circle)
    assert [comparison.different for comparison in left] == [False, False, False, True]
    assert all(comparison.interval is None for comparison in left[:3])
    assert stats.ranks("abcd", left, "higher") == {"a": 1, "b": 1, "c": 1, "d": 2}


def test_lower_is_better_turns_the_winner_round() -> None:
    proven = verdicts(("a", "b"), names="ab")  # a's metric is 1.5 times b's
    assert stats.unbeaten("ab", proven, "higher") == ["a"]
    assert stats.unbeaten("ab", proven, "lower") == ["b"]


@given(st.integers(0, 2**10 - 1))
def test_a_contestant_proven_better_has_a_better_rank_and_none_unproven_is_ranked_below(mask: int) -> None:
    everything = list(itertools.combinations("abcde", 2))
    apart = [pair for bit, pair in enumerate(everything) if mask >> bit & 1]
    ranks = stats.ranks("abcde", verdicts(*apart, names="abcde"), "higher")
    for winner, loser in apart:
        assert ranks[winner] < ranks[loser]
    for name in "abcde":
        assert (ranks[name] == 1) == all(loser != name for _, loser in apart)


def test_what_too_few_blocks_hide_is_undecided_and_not_a_tie() -> None:
    data = samples(a_a_logs(2, 5, blocks=9, levels=1))
    data["e"] = {cell: value * 8 for cell, value in data["e"].items() if cell[0] < FEWEST_BLOCKS - 1}
    for comparison in family(data):
        assert comparison.decidable == ("e" not in (comparison.a, comparison.b))
        assert not comparison.different
    data["e"] = {(block, level): 8 * value for (block, level), value in data["d"].items() if block < FEWEST_BLOCKS}
    assert all(comparison.different for comparison in family(data) if "e" in (comparison.a, comparison.b))

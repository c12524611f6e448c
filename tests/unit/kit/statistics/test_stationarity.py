"""Whether a level moved: made-up series that drift, step, wander, repeat themselves, and do nothing of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netdyno.kit.statistics.stationarity import drift, movements, step, unit_root, wandering
from netdyno.kit.statistics.stats import Floats

POINTS = (8, 10, 20, 50, 100, 200)


def noise(points: int, correlation: float = 0.0, seed: int = 1) -> Floats:
    """An autoregressive series of first order, of standard deviation 1."""
    series = np.random.default_rng(seed).normal(size=points + 60)
    for index in range(1, len(series)):
        series[index] += correlation * series[index - 1]
    return np.asarray(series[60:] * math.sqrt(1 - correlation**2))


def walk(points: int, seed: int) -> Floats:
    return np.asarray(np.cumsum(np.random.default_rng(seed).normal(size=points)))


def test_a_drift_is_measured_from_the_first_point_to_the_last() -> None:
    movement = drift(np.linspace(80.0, 120.0, 10) + noise(10))
    assert (movement.kind, movement.proven) == ("drift", True)
    assert movement.share == pytest.approx(0.4, abs=0.05)
    assert drift(np.linspace(120.0, 80.0, 10)).share == pytest.approx(-0.4)


def test_a_step_is_measured_from_one_side_to_the_other_and_found_where_it_is() -> None:
    series = np.where(np.arange(10) < 4, 120.0, 80.0) + noise(10)
    movement = step(series)
    assert (movement.kind, movement.proven, movement.after) == ("step", True, 4)
    assert movement.share == pytest.approx(-40 / series.mean(), abs=0.03)


def test_a_step_has_three_points_on_each_side_and_a_tenth_of_a_long_series() -> None:
    one_slot = np.array([50.0, *[100.0] * 9])
    assert step(one_slot).after == 3
    assert not step(one_slot + noise(10)).proven
    assert step(np.where(np.arange(100) < 4, 50.0, 100.0)).after == 10


def test_what_fits_exactly_is_proven_and_what_never_moves_is_not() -> None:
    exact = step(np.where(np.arange(20) < 10, 1000.0, 600.0))
    assert (exact.proven, exact.t) == (True, -math.inf)
    assert drift(np.arange(10.0) + 3).proven
    for series in (np.full(50, 7.0), np.full(8, 1e9 / 3), np.full(200, 0.1)):
        assert [movement.proven for movement in movements(series)] == [False] * len(movements(series))
        assert [movement.share for movement in movements(series)] == pytest.approx(
            [0.0] * len(movements(series)), abs=1e-9
        )


def test_the_size_does_not_depend_on_the_unit() -> None:
    series = 10 + noise(40, 0.5)
    for movement, thousand in zip(movements(series), movements(1000 * series), strict=True):
        assert (thousand.kind, thousand.proven, thousand.after) == (movement.kind, movement.proven, movement.after)
        assert thousand.share == pytest.approx(movement.share)


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_still_series_are_seldom_found_moving(points: int, correlation: float) -> None:
    """One in a hundred for each of the tests; of 200, ten would be seen once in a thousand such tests."""
    by_seed = [movements(10 + noise(points, correlation, seed)) for seed in range(200)]
    for kind in range(len(by_seed[0])):
        assert sum(moves[kind].proven for moves in by_seed) < 10, by_seed[0][kind].kind


def test_correlated_noise_is_not_taken_for_a_drift() -> None:
    """What a t-test that believes in independent points would do: find a drift in a third of such series."""
    series = [10 + noise(50, 0.7, seed) for seed in range(200)]
    time = np.arange(50) - 24.5
    naive = 0
    for values in series:
        correlation = float(np.corrcoef(time, values)[0, 1])
        naive += abs(correlation * math.sqrt(48 / (1 - correlation * correlation))) > 2.01
    assert naive > 50
    assert sum(drift(values).proven for values in series) < 15


def test_short_series_are_not_judged() -> None:
    assert movements(np.full(7, 10.0)) == ()
    assert [movement.kind for movement in movements(np.full(8, 10.0))] == ["drift", "step"]
    assert [movement.kind for movement in movements(np.full(20, 10.0))] == ["drift", "step", "wandering"]
    assert movements(np.zeros(20)) == ()


# --- wandering ---------------------------------------------------------------------------------------------------


def test_a_random_walk_wanders() -> None:
    results = [wandering(100 + walk(200, seed)) for seed in range(100)]
    assert sum(result.proven for result in results) > 60
    assert all("ADF" in result.figures for result in results if result.proven)


def test_a_hump_moves_between_its_quarters() -> None:
    hump = 80 + 40 * np.sin(np.linspace(0, math.pi, 100)) + noise(100)
    assert not drift(hump).proven
    assert wandering(hump).proven
    assert wandering(hump).share == pytest.approx(0.2, abs=0.03)


def test_a_series_around_its_level_does_not_wander() -> None:
    assert sum(wandering(100 + noise(100, 0.5, seed)).proven for seed in range(200)) <= 4


def test_a_seasonal_series_does_not_wander() -> None:
    """Bursts, such as those of rounds."""
    bursts = np.tile([300.0, 0.0, 0.0, 0.0, 0.0], 20) + noise(100)
    assert not any(movement.proven for movement in movements(bursts))


def without_lags() -> Floats:
    """A series of 101 points for which Akaike's criterion wants none."""
    return next(series for series in (noise(101, seed=seed) for seed in range(100)) if unit_root(series).lags == 0)


def test_the_limit_of_the_dickey_fuller_test_is_that_of_the_surface() -> None:
    """MacKinnon 2010, table 2: with a constant, 5%. Fuller's own table (1976) has -2.93 for 50 and -2.89 for 100."""
    result = unit_root(without_lags())
    assert result.limit == pytest.approx(-2.86154 - 2.8903 / 100 - 4.234 / 100**2 - 40.040 / 100**3)
    assert result.limit == pytest.approx(-2.89, abs=0.005)


def test_the_dickey_fuller_statistic_is_that_of_the_regression() -> None:
    """Without lags it is the t of a correlation, r * sqrt(f / (1 - r^2)), of changes and the values before them."""
    series = without_lags()
    correlation = float(np.corrcoef(series[:-1], np.diff(series))[0, 1])
    assert unit_root(series).statistic == pytest.approx(correlation * math.sqrt(98 / (1 - correlation * correlation)))


def test_the_dickey_fuller_test_holds_its_level_and_has_power() -> None:
    """5% of random walks are taken for stationary; 30 of 300 would be seen once in thousands of such tests."""
    rejected = [unit_root(walk(100, seed)) for seed in range(300)]
    assert 3 <= sum(result.statistic < result.limit for result in rejected) < 30
    stationary = [unit_root(noise(100, 0.5, seed)) for seed in range(100)]
    assert sum(result.statistic < result.limit for result in stationary) >= 90


def test_lags_are_taken_where_the_changes_need_them() -> None:
    shocks = np.random.default_rng(1).normal(size=400)
    changes = np.zeros(400)
    for index in range(4, 400):
        changes[index] = 0.6 * changes[index - 4] + shocks[index]
    assert unit_root(np.cumsum(changes)).lags >= 4


def test_a_movement_tells_its_test() -> None:
    assert drift(10 + noise(10)).figures.endswith("limit 5.3")
    assert step(10 + noise(10)).figures.endswith("limit 6.7")

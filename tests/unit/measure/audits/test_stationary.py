"""The audit of a window that did not keep its level: proven and large, or not invalid."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from netdyno.kit.statistics.stats import Floats
from netdyno.measure.audits.stationary import stationary
from netdyno.model.load_result import Audit, LoadResult
from tests.support.builders.made_bursts import add_burst
from tests.support.builders.made_load import MS, changed, load

PER_SLOT = 300
BASE = load()


def counts(level: Floats, noise: float = 0.03, correlation: float = 0.5, seed: int = 1) -> tuple[int, ...]:
    """Completions around a level (1: what is usual), with noise of a standard deviation."""
    random = np.random.default_rng(seed).normal(size=len(level) + 60)
    for index in range(1, len(random)):
        random[index] += correlation * random[index - 1]
    deviation = noise * math.sqrt(1 - correlation**2) * random[60:]
    return tuple(int(value) for value in np.maximum(PER_SLOT * (level + deviation), 0))


def judged(level: Floats, noise: float = 0.03, seed: int = 1) -> Audit:
    window = changed(BASE, "plan.duration_s", 0.1 * len(level))
    return stationary(changed(window, "timeseries.completed", counts(level, noise, seed=seed)))


def half(points: int, low: float, high: float) -> Floats:
    return np.where(np.arange(points) < points // 2, high, low)


MOVING: dict[str, Callable[[int], Floats]] = {
    "drift": lambda points: np.linspace(1.25, 0.75, points),
    "step": lambda points: half(points, 0.75, 1.25),
}


@pytest.mark.parametrize("points", [10, 30, 100])
@pytest.mark.parametrize("shape", MOVING)
def test_half_of_the_throughput_lost_on_the_way_makes_a_trial_invalid(shape: str, points: int) -> None:
    audit = judged(MOVING[shape](points), noise=0.02)
    assert not audit.passed
    assert f"{shape} -" in audit.detail
    assert "bound 25%" in audit.detail


def test_a_step_is_reported_with_its_size_its_time_and_its_figures() -> None:
    audit = stationary(load((100, 101, 99, 100, 100, 67, 66, 67, 68, 67)))
    assert not audit.passed
    assert audit.detail.startswith("throughput over 10 points of 100 ms: ")
    assert "step -40% after 0.5 s (t -" in audit.detail


def test_going_up_and_coming_back_makes_a_trial_invalid() -> None:
    hump = 0.6 + 0.6 * np.sin(np.linspace(0, math.pi, 100))
    audit = judged(hump)
    assert not audit.passed
    assert "drift" not in audit.detail


def test_a_random_walk_makes_a_trial_invalid() -> None:
    walk = 1 + np.cumsum(np.random.default_rng(4).normal(scale=0.06, size=200))
    assert not judged(np.maximum(walk, 0.1), noise=0.0).passed


@pytest.mark.parametrize("points", [8, 10, 30, 100])
@pytest.mark.parametrize("noise", [0.0, 0.03, 0.1, 0.3])
def test_a_still_series_passes_however_noisy(points: int, noise: float) -> None:
    """Where noise is not small beside the bound, one or two trials in 100 may be invalid."""
    invalid = sum(not judged(np.ones(points), noise, seed).passed for seed in range(100))
    assert invalid <= {0.0: 0, 0.03: 0, 0.1: 1, 0.3: 3}[noise]


def test_a_certain_but_small_drift_passes() -> None:
    audit = judged(np.linspace(0.9, 1.1, 100), noise=0.01)
    assert audit.passed
    assert "drift +2" in audit.detail, "it is told"


def test_a_large_movement_that_noise_explains_passes() -> None:
    series = (210, 330, 140, 400, 290, 180, 320, 120, 260, 150)
    audit = stationary(load(series))
    assert audit.passed
    assert "drift -3" in audit.detail


def test_one_bad_moment_is_no_step() -> None:
    assert stationary(load((100,) * 4 + (10,) + (100,) * 5)).passed
    assert stationary(load((40,) + (100,) * 9)).passed


@pytest.mark.parametrize("slots", [2, 3, 5, 7])
def test_short_windows_are_not_judged(slots: int) -> None:
    audit = stationary(load((100,) * (slots // 2) + (10,) * (slots - slots // 2)))
    assert audit.passed
    assert audit.detail == f"not judged: throughput over {slots} points of 100 ms, and 8 are needed"


def test_the_rest_of_a_slot_at_the_end_is_left_out() -> None:
    broken_off = load((*(100,) * 8, 12), duration_s=0.81)
    assert stationary(broken_off).passed
    assert "over 8 points" in stationary(broken_off).detail


def test_a_window_in_which_nothing_came_is_another_audits() -> None:
    audit = stationary(load((0,) * 10))
    assert (audit.passed, audit.detail) == (True, "not judged: throughput over 10 points of 100 ms, which are all 0")


def test_rounds_are_judged_round_by_round() -> None:
    """A thousand clients that speak once a second are heard at once, and then none is."""
    bursts = load((500, 0, 0, 0, 0, 0, 0, 0, 0, 0) * 10)
    in_rounds = changed(bursts, "plan.round_s", 1.0)
    assert stationary(in_rounds).detail.startswith("throughput over 10 points of 1.00 s: ")
    fewer = tuple(value for first in range(500, 100, -40) for value in (first, *(0,) * 9))
    fading = changed(load(fewer), "plan.round_s", 1.0)
    assert stationary(in_rounds).passed
    assert not stationary(fading).passed


def test_a_closed_loop_is_judged_over_whole_responses() -> None:
    """All requests of one moment are answered at once, every 299 ms."""
    waves = load((300, 0, 0) * 10, service_ns=299 * MS)
    assert stationary(waves).detail.startswith("not judged: throughput over 5 points of 600 ms")


# --- response times ----------------------------------------------------------------------------------------------


def paced(p50_ns: tuple[int, ...], completed: tuple[int, ...] = ()) -> LoadResult:
    return load(completed or (100,) * len(p50_ns), p50_ns=p50_ns, arrivals="constant")


SLOWING = (*(MS, MS + 9000, MS - 4000, MS + 2000, MS), *(2 * MS, 2 * MS + 3000, 2 * MS, 2 * MS - 5000, 2 * MS + 1000))


def test_an_open_loop_whose_response_time_doubles_is_invalid() -> None:
    audit = stationary(paced(SLOWING))
    assert not audit.passed
    assert "median response time over 10 points of 100 ms: " in audit.detail
    assert "step +67% after 0.5 s" in audit.detail


def test_a_response_time_may_move_more_than_throughput() -> None:
    assert stationary(paced(tuple(MS if index < 5 else 3 * MS // 2 for index in range(10)))).passed


def test_in_a_closed_loop_response_times_are_throughput_and_not_judged_again() -> None:
    audit = stationary(changed(load(), "timeseries.p50_ns", SLOWING))
    assert audit.passed
    assert "median" not in audit.detail


def test_overload_is_judged_by_its_throughput() -> None:
    """An open loop that is not answered in time: responses take longer and longer, and that is no fault. Of 1,000 it is
    too many where 14 are not answered in time, and not where 13 are."""
    slowing = paced(tuple(MS * index for index in range(1, 11)))
    assert "median" in stationary(changed(slowing, "requests.completed", 987)).detail
    overloaded = changed(slowing, "requests.completed", 986)
    assert stationary(overloaded).passed
    assert "median" not in stationary(overloaded).detail
    falling = changed(overloaded, "timeseries.completed", (100, 101, 100, 99, 100, 60, 61, 60, 59, 60))
    assert not stationary(falling).passed


def test_a_moment_without_an_answer_has_no_median() -> None:
    gap = paced((*(MS,) * 5, 0, *(MS,) * 4), completed=(*(100,) * 5, 0, *(100,) * 4))
    audit = stationary(gap)
    assert audit.passed
    assert "median response time over 9 points" in audit.detail


def test_a_load_whose_rate_changes_is_not_judged() -> None:
    stepping = load((100,) * 5 + (300,) * 2 + (100,) * 9, arrivals="poisson")
    assert not stationary(load((100,) * 5 + (300,) * 11, arrivals="poisson")).passed
    changing = add_burst(stepping, (10,) * 16)
    assert stationary(changing).passed
    assert stationary(changing).detail == "not judged, because the rate changes within the window"

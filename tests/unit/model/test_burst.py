"""The place of a burst in a window, and its figures: goodput, recovery, and what had no answer in time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from netdyno.model import burst
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS
from tests.support.builders.made_bursts import add_burst
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_load import load
from tests.support.builders.made_run import SCENARIOS

QUIET, SLOW = 10, 500
BEFORE, DURING = (QUIET,) * 4, (SLOW,) * 2


def made(p99_ms: Sequence[int | None], **of_burst: int) -> LoadResult:
    """Return a load of 100 ms intervals, a burst among the third eighth of them, with these times in each."""
    return add_burst(load((60,) * len(p99_ms), arrivals="poisson"), p99_ms, **of_burst)


def recovery_s(p99_ms: Sequence[int | None]) -> float:
    recovery_ns = burst.compute_recovery_ns(made(p99_ms))
    assert recovery_ns is not None
    return recovery_ns / 1e9


def test_a_burst_is_an_eighth_of_the_window_after_a_quarter_of_it() -> None:
    assert burst.divide(8.0) == (2.0, 1.0, 5.0)
    assert sum(burst.divide(0.7)) == pytest.approx(0.7)


def test_it_is_over_when_p99_is_no_higher_than_it_was_before() -> None:
    assert recovery_s([*BEFORE, *DURING, SLOW, SLOW, 11, QUIET, SLOW, *(QUIET,) * 5]) == pytest.approx(0.4)


def test_what_p99_was_is_that_of_three_in_four_intervals_before_it() -> None:
    after = [SLOW, 12, 11, *(QUIET,) * 7]
    assert recovery_s([SLOW, QUIET, 11, QUIET, *DURING, *after]) == pytest.approx(0.3)
    assert recovery_s([SLOW, 11, 12, QUIET, *DURING, *after]) == pytest.approx(0.2)


def test_an_interval_without_an_answer_is_no_recovery() -> None:
    assert recovery_s([None, QUIET, QUIET, QUIET, *DURING, None, None, QUIET, *(QUIET,) * 7]) == pytest.approx(0.3)


def test_a_server_that_never_recovers_has_the_rest_of_the_window() -> None:
    assert recovery_s([*BEFORE, *DURING, *(SLOW,) * 10]) == pytest.approx(1.0)


def test_only_whole_intervals_count_on_either_side() -> None:
    # Ten intervals: the burst lasts from 250 ms to 375 ms.
    assert recovery_s([QUIET, QUIET, SLOW, *(QUIET,) * 7]) == pytest.approx(0.125)


def test_without_an_answer_before_it_there_is_no_recovery_to_speak_of() -> None:
    assert burst.compute_recovery_ns(made([None] * 4 + [SLOW] * 12)) is None


def test_late_answers_are_no_goodput() -> None:
    loaded = made([*BEFORE, *DURING, *(QUIET,) * 10], completed=240, late=40)
    assert burst.compute_goodput(loaded) == 200 / 0.2


def test_a_load_without_a_burst_has_none_of_its_figures() -> None:
    bursting = made([*BEFORE, *DURING, *(QUIET,) * 10])
    assert isinstance(bursting.steps, tuple)
    for steps in (UNSET, bursting.steps[:2]):
        plain = replace(bursting, steps=steps)
        assert (burst.compute_goodput(plain), burst.compute_recovery_ns(plain)) == (None, None)


def test_what_had_no_right_answer_in_time_is_a_share_of_what_was_due_in_the_window() -> None:
    trial = made_trial(SCENARIOS[0], 1, "a", {}, {})
    whole = load((50, 50))
    assert METRICS["unanswered"].value(trial, whole) == 0
    partly = replace(whole, errors={"timeout": 90}, timeseries=replace(whole.timeseries, errors=(5, 20)))
    assert METRICS["unanswered"].value(trial, partly) == 0.25
    assert METRICS["unanswered"].value(trial, replace(whole, requests=replace(whole.requests, due=None))) is None

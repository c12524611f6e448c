"""A stall that begins in a slice of a trial in turns ends after it, during the wait for the last answers."""

from __future__ import annotations

import msgspec
import pytest

from netdyno.measure.audits.stationary import stalled
from netdyno.model.load_result import LoadResult
from tests.support.builders.made_load import load


def in_slices(completed: tuple[int, ...], slowest_s: float) -> LoadResult:
    """Return a result of 50 ms intervals, with this longest response time."""
    result = load(completed)
    times = msgspec.structs.replace(result.timeseries, interval_ns=50_000_000, completed=completed)
    response = msgspec.structs.replace(result.latency.response_ns, max=round(slowest_s * 1e9))
    latency = msgspec.structs.replace(result.latency, response_ns=response)
    plan = msgspec.structs.replace(result.plan, duration_s=0.05 * len(completed))
    return msgspec.structs.replace(result, timeseries=times, plan=plan, latency=latency)


@pytest.mark.parametrize(
    ("second_slice", "slowest_s", "overrun_s", "passed"),
    [
        ((50, 0), 0.4, 0.35, False),  # it stood still from the middle of the slice on
        ((50, 0), 0.001, 0.35, True),  # the harness was late, and no answer was
        ((50, 50), 0.4, 0.35, True),  # one answer was late, and the others came
        ((50, 0), 0.4, 0.05, True),  # two intervals
    ],
)
def test_what_goes_on_after_a_slice_counts(
    second_slice: tuple[int, int], slowest_s: float, overrun_s: float, *, passed: bool
) -> None:
    audit = stalled(in_slices((50, 50, *second_slice), slowest_s), "loopback", overruns_s=(0.0, overrun_s))
    assert audit.passed == passed, audit.detail

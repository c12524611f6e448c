"""The decoder of HDR V2 against the package that others use."""

from __future__ import annotations

import base64
import importlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno.statistics import hdr

HOUR = 3_600_000_000_000
PERCENTS = (0.01, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0)


def recorded(values: list[int]) -> Any:
    histogram = importlib.import_module("hdrh.histogram").HdrHistogram(1, HOUR, 3)
    for value in values:
        assert histogram.record_value(value)
    return histogram


def encoded(values: list[int]) -> str:
    return str(recorded(values).encode().decode())


VALUES = st.lists(st.one_of(st.integers(1, 5000), st.integers(1, 10**7), st.integers(1, HOUR)), min_size=1, max_size=60)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_percentiles_are_those_of_the_reference(values: list[int]) -> None:
    reference, ours = recorded(values), hdr.decode(encoded(values))
    assert ours.count == len(values)
    for percent in PERCENTS:
        assert hdr.percentile(ours, percent) == reference.get_value_at_percentile(percent)


@given(VALUES, VALUES)
@settings(max_examples=30, deadline=None)
def test_merging_is_recording_together(first: list[int], second: list[int]) -> None:
    merged = hdr.merge([hdr.decode(encoded(first)), hdr.decode(encoded(second))])
    together = hdr.decode(encoded(first + second))
    assert (merged.highest == together.highest).all()
    assert (merged.counts == together.counts).all()


def test_an_empty_histogram_has_no_percentile() -> None:
    empty = hdr.decode(encoded([]))
    assert empty.count == 0
    assert hdr.percentile(empty, 99) != hdr.percentile(empty, 99)  # NaN
    assert hdr.merge([]).count == 0


@pytest.mark.parametrize(
    "text", ["", "not base64!", base64.b64encode(b"\0" * 40).decode(), encoded([5, 70_000])[:-8] + "AAAAAAA="]
)
def test_anything_else_is_an_error_that_says_so(text: str) -> None:
    with pytest.raises(hdr.HistogramError):
        hdr.decode(text)


def test_what_is_kept_for_the_next_who_asks_cannot_be_changed() -> None:
    kept = hdr.decode(encoded([1, 2, 3]))
    assert hdr.decode(encoded([1, 2, 3])) is kept
    for array in (kept.highest, kept.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7

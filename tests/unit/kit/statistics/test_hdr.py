"""The decoder of HDR V2 against the package that others use."""

from __future__ import annotations

import base64
import importlib
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import HistogramError

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


@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None)
def test_percentiles_of_a_weighted_merge_are_those_of_recording_so_often(
    recorded_by_each: list[list[int]], often: list[int]
) -> None:
    histograms = [hdr.decode(encoded(values)) for values in recorded_by_each]
    times = np.array([often[: len(histograms)], [1] * len(histograms)], dtype=np.float64)
    percentiles = hdr.percentiles(*hdr.align(histograms), PERCENTS, times)
    for merge, row in enumerate(times):
        again = [histogram for histogram, count in zip(histograms, row, strict=True) for _ in range(int(count))]
        expected = hdr.curve(hdr.merge(again), PERCENTS)
        assert np.array_equal(percentiles[:, merge], expected, equal_nan=True)


def test_an_empty_histogram_has_no_percentile() -> None:
    empty = hdr.decode(encoded([]))
    assert empty.count == 0
    assert hdr.percentile(empty, 99) != hdr.percentile(empty, 99)  # NaN
    assert hdr.merge([]).count == 0


@pytest.mark.parametrize(
    "text", ["", "not base64!", base64.b64encode(b"\0" * 40).decode(), encoded([5, 70_000])[:-8] + "AAAAAAA="]
)
def test_anything_else_is_an_error_that_says_so(text: str) -> None:
    with pytest.raises(HistogramError):
        hdr.decode(text)


@given(st.text(), st.binary(max_size=60), st.integers(0, 200), st.sampled_from(["text", "outside", "inside"]))
@settings(max_examples=300, deadline=None)
def test_whatever_a_stored_text_is_it_is_a_histogram_or_an_error_that_says_so(
    text: str, noise: bytes, offset: int, where: str
) -> None:
    outer = base64.b64decode(encoded([1, 500, 70_000, HOUR]))
    plain = zlib.decompress(outer[8:])
    if where == "outside":
        text = base64.b64encode(outer[:offset] + noise + outer[offset + len(noise) :]).decode()
    elif where == "inside":
        packed = zlib.compress(plain[:offset] + noise + plain[offset + len(noise) :])
        text = base64.b64encode(outer[:4] + struct.pack(">i", len(packed)) + packed).decode()
    try:
        decoded = hdr.decode(text)
    except HistogramError:
        return
    assert (decoded.highest >= 0).all()
    assert (decoded.counts >= 0).all()
    assert not decoded.count or hdr.percentile(decoded, 99) in decoded.highest


@pytest.mark.parametrize("text", ["\u20ac", "é" * 40])
def test_a_text_beyond_ascii_is_none(text: str) -> None:
    with pytest.raises(HistogramError):
        hdr.decode(text)


def test_more_buckets_than_there_are_values_are_none() -> None:
    """A run of 2^55 zeros, and then a count."""
    outer = base64.b64decode(encoded([1]))
    plain = zlib.decompress(outer[8:])
    counts = b"\xff" * 7 + b"\x7f" + b"\x02"
    packed = zlib.compress(plain[:4] + struct.pack(">i", len(counts)) + plain[8:40] + counts)
    with pytest.raises(HistogramError, match="more buckets than values"):
        hdr.decode(base64.b64encode(outer[:4] + struct.pack(">i", len(packed)) + packed).decode())


def test_what_is_kept_for_the_next_caller_cannot_be_changed() -> None:
    kept = hdr.decode(encoded([1, 2, 3]))
    assert hdr.decode(encoded([1, 2, 3])) is kept
    for array in (kept.highest, kept.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7

"""The histogram recorded in Python: the package that others use records, encodes and reads the same."""

from __future__ import annotations

import importlib
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno.kit.paths import ROOT
from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import HIGHEST, Histogram
from netdyno.model.load_result import Distribution
from netdyno_client.recorder import distribution

PERCENTS = (0.01, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
VALUES = st.lists(
    st.one_of(
        st.integers(0, 5000), st.integers(0, 10**7), st.integers(0, HIGHEST), st.sampled_from([0, 1, 2047, 2048, 4096])
    ),
    max_size=100,
)


def recorded(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


def package() -> Any:
    return importlib.import_module("hdrh.histogram").HdrHistogram


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_the_package_reads_what_was_recorded(values: list[int]) -> None:
    ours = recorded(values)
    theirs = package().decode(ours.encode())
    assert theirs.get_total_count() == ours.count == len(values)
    assert [theirs.get_value_at_percentile(percent) for percent in PERCENTS] == ours.percentiles(*PERCENTS)
    assert theirs.get_max_value() == ours.find_percentile(100)
    assert ours.mean() == pytest.approx(statistics.fmean(values) if values else 0)


@given(VALUES)
@settings(max_examples=30, deadline=None)
def test_the_package_would_have_counted_the_same(values: list[int]) -> None:
    reference = package()(1, HIGHEST, 3)
    for value in values:
        reference.record_value(value)
    theirs = package().decode(recorded(values).encode())
    assert [theirs.get_count_at_index(index) for index in range(theirs.counts_len)] == [
        reference.get_count_at_index(index) for index in range(reference.counts_len)
    ]


@given(VALUES.filter(bool))
@settings(max_examples=100, deadline=None)
def test_the_harness_reads_the_same(values: list[int]) -> None:
    ours = recorded(values)
    decoded = hdr.decode(ours.encode())
    assert decoded.count == ours.count
    assert [hdr.percentile(decoded, percent) for percent in PERCENTS] == ours.percentiles(*PERCENTS)


def test_a_count_beyond_32_bits_is_encoded() -> None:
    ours = recorded([5])
    ours._counts[5] = 1 << 40
    assert hdr.decode(ours.encode()).count == 1 << 40


def test_a_distribution_has_the_figures_read_most() -> None:
    summary = distribution(recorded(list(range(1, 1001))))
    assert (summary.count, summary.mean, summary.p50, summary.p90, summary.p99, summary.p999, summary.max) == (
        *(1000, 500.5, 500, 900, 990, 999, 1000),
    )
    empty = distribution(Histogram())
    assert (empty.count, empty.mean, empty.p50, empty.max) == (0, 0, 0, 0)


def test_a_page_names_the_figures_of_a_distribution() -> None:
    *figures, _histogram = Distribution.__struct_fields__
    assert f"`{', '.join(figures)}`" in (ROOT / "protocol" / "load-result.md").read_text()


def test_more_than_an_hour_counts_as_an_hour() -> None:
    assert recorded([HIGHEST * 5]).find_percentile(100) == recorded([HIGHEST]).find_percentile(100)


def test_a_negative_duration_never_becomes_part_of_a_result() -> None:
    with pytest.raises(ValueError, match="negative duration -1 ns"):
        Histogram().record(-1)

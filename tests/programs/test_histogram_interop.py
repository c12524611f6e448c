"""The generator's histograms, decoded by the PyPI package `hdrhistogram` and by netdyno.kit.statistics.hdr: the same "
"figures."""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
from collections.abc import Iterator
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno.kit.paths import build_dir
from netdyno.kit.statistics import hdr

pytestmark = pytest.mark.needs_build

HOUR = 3_600_000_000_000
VALUES = st.lists(
    st.one_of(st.integers(0, 5000), st.integers(0, 10**7), st.integers(0, HOUR), st.sampled_from([0, 1, 2047, 2048])),
    max_size=200,
)


class ToolHistogram:
    """The C++ histogram at the other end of a pipe."""

    def __init__(self, to_tool: IO[str], from_tool: IO[str]) -> None:
        self.to_tool, self.from_tool = to_tool, from_tool

    def record(self, values: list[int]) -> dict[str, Any]:
        self.to_tool.write(" ".join(map(str, values)) + "\n")
        self.to_tool.flush()
        return dict(json.loads(self.from_tool.readline()))


@pytest.fixture(scope="module")
def recorder() -> Iterator[ToolHistogram]:
    program = build_dir() / "tests" / "histogram_tool"
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdin is not None
        assert tool.stdout is not None
        yield ToolHistogram(tool.stdin, tool.stdout)


def decoded_by_the_package(encoded: str) -> Any:
    return importlib.import_module("hdrh.histogram").HdrHistogram.decode(encoded)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_the_package_reads_the_same_percentiles(recorder: ToolHistogram, values: list[int]) -> None:
    ours = recorder.record(values)
    theirs = decoded_by_the_package(ours["encoded"])
    assert theirs.get_total_count() == ours["count"] == len(values)
    for percentile, value in ours["percentiles"].items():
        if float(percentile) > 0:  # at 0 the package gives the lowest value of the step, not the highest
            assert theirs.get_value_at_percentile(float(percentile)) == value
    assert theirs.get_max_value() == ours["max"]
    assert ours["mean"] == pytest.approx(statistics.fmean(values) if values else 0)


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_the_package_would_have_encoded_the_same_counts(recorder: ToolHistogram, values: list[int]) -> None:
    reference = importlib.import_module("hdrh.histogram").HdrHistogram(1, HOUR, 3)
    for value in values:
        reference.record_value(value)
    theirs = decoded_by_the_package(recorder.record(values)["encoded"])
    assert theirs.counts_len == reference.counts_len
    assert [theirs.get_count_at_index(index) for index in range(theirs.counts_len)] == [
        reference.get_count_at_index(index) for index in range(reference.counts_len)
    ]


@given(VALUES.filter(bool))
@settings(max_examples=100, deadline=None)
def test_the_harness_reads_the_same_percentiles(recorder: ToolHistogram, values: list[int]) -> None:
    ours = recorder.record(values)
    decoded = hdr.decode(ours["encoded"])
    for percentile, value in ours["percentiles"].items():
        if float(percentile) > 0:
            assert hdr.percentile(decoded, float(percentile)) == value


def test_large_counts_survive(recorder: ToolHistogram) -> None:
    """More than 127 and more than 16383 of one value: numbers of two and three bytes in the encoding."""
    for count in (127, 128, 16383, 16384, 100_000):
        ours = recorder.record([777] * count + [10**9])
        theirs = decoded_by_the_package(ours["encoded"])
        assert theirs.get_count_at_value(777) == count
        assert theirs.get_total_count() == count + 1

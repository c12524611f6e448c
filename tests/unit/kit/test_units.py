"""Durations: what people write, what programs take, and that a round trip loses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdyno.kit.units import duration_words, format_clock, format_duration, parse_bytes, parse_duration, parse_rate


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("1s", 1.0), ("1.5s", 1.5), ("10us", 1e-5), ("2m", 120.0), ("7ns", 7e-9)]
)
def test_a_duration_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "ms", "-1s", "1 s", "1h", "1s 2ms", "nans"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="250ms"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("512", 512), ("512B", 512), ("16KiB", 16384), ("1MiB", 1 << 20), ("2GiB", 2 << 30)]
)
def test_a_size_is_read_in_its_unit(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1.5MiB", "1 KiB", "1kb", "1KB"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="16KiB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "rate_hz"), [("1bit", 1), ("64kbit", 64_000), ("10mbit", 10_000_000), ("1gbit", 1_000_000_000)]
)
def test_the_rate_of_a_link_is_read_in_its_unit(text: str, rate_hz: int) -> None:
    assert parse_rate(text) == rate_hz


@pytest.mark.parametrize("text", ["", "10", "gbit", "0gbit", "-1gbit", "1.5gbit", "1 gbit", "1Gbit", "1gbps"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="10mbit"):
        parse_rate(text)


@given(st.integers(min_value=0, max_value=10**13))
def test_a_duration_survives_the_way_to_a_program(nanoseconds: int) -> None:
    assert round(parse_duration(format_duration(nanoseconds / 1e9)) * 1e9) == round(nanoseconds / 1e9 * 1e9)


def test_the_largest_whole_unit_is_chosen() -> None:
    shown = [format_duration(seconds) for seconds in (0.0, 1.0, 0.25, 0.0001, 1.5, 3e-9)]
    assert shown == ["0s", "1s", "250ms", "100us", "1500ms", "3ns"]


@pytest.mark.parametrize("text", ["0s", "7ns", "20us", "999us", "1.5ms", "250ms", "1s", "1.5s", "90s", "2m"])
def test_a_duration_is_stated_as_people_write_it(text: str) -> None:
    assert duration_words(parse_duration(text)) == text


def test_a_clock_is_for_people() -> None:
    assert [format_clock(seconds) for seconds in (0, 59.6, 245, 3723, -5)] == [
        "0:00",
        "1:00",
        "4:05",
        "1:02:03",
        "0:00",
    ]

"""Reading a server's line of totals."""

from __future__ import annotations

import msgspec
import pytest

from netdyno.measure.trial.serving import read_connections_per_thread, read_tick_lag, read_totals
from tests.support.builders.made_load import distribution


def test_whole_numbers_are_totals_and_the_list_is_the_shares_of_threads() -> None:
    line = '{"connections": 3, "connections_per_thread": [2, 1], "lock": "free", "clean": true, "share": 0.5}'
    assert read_totals(line) == {"connections": 3}
    assert read_connections_per_thread(line) == (2, 1)


@pytest.mark.parametrize(
    "line", ["", "[1]", "{}", '{"connections_per_thread": 3}', '{"connections_per_thread": ["3"]}']
)
def test_a_server_that_tells_no_shares_has_none(line: str) -> None:
    assert read_connections_per_thread(line) == ()


def test_the_lag_of_the_main_loop_is_a_distribution() -> None:
    lag = distribution(100, 1000)
    assert read_tick_lag(f'{{"requests": 1, "tick_lag_ns": {msgspec.json.encode(lag).decode()}}}') == lag


@pytest.mark.parametrize("line", ["", "{}", '{"tick_lag_ns": 3}', '{"tick_lag_ns": {"count": 1}}'])
def test_without_a_whole_distribution_there_is_no_lag(line: str) -> None:
    assert read_tick_lag(line) is None

"""What is read of a server's line of totals."""

from __future__ import annotations

import pytest

from netdyno.trial.trial import read_connections_per_thread, read_totals


def test_whole_numbers_are_totals_and_the_list_is_the_shares_of_threads() -> None:
    line = '{"connections": 3, "connections_per_thread": [2, 1], "lock": "free", "clean": true, "share": 0.5}'
    assert read_totals(line) == {"connections": 3}
    assert read_connections_per_thread(line) == (2, 1)


@pytest.mark.parametrize(
    "line", ["", "[1]", "{}", '{"connections_per_thread": 3}', '{"connections_per_thread": ["3"]}']
)
def test_who_tells_no_shares_has_none(line: str) -> None:
    assert read_connections_per_thread(line) == ()

"""The encoding of the wire contract where it has no golden vector."""

from __future__ import annotations

import pytest

from netdyno.protocol import wire

LARGEST_FIELD = (1 << 29) - 1


def with_field(number: int) -> bytes:
    """A request of job 7 that also has an unknown number field."""
    return wire.bytes_field(wire.REQUEST, wire.number_field(1, 7) + wire.number_field(number, 5))


def test_an_unknown_field_of_any_number_that_there_is_is_skipped() -> None:
    assert [wire.parse_request(with_field(number)).job_id for number in (15, 16, LARGEST_FIELD)] == [7, 7, 7]


@pytest.mark.parametrize("number", [0, LARGEST_FIELD + 1, (1 << 32) - 1])
def test_a_field_number_that_there_is_not_is_malformed(number: int) -> None:
    with pytest.raises(wire.MalformedError, match=f"field number {number}"):
        wire.parse_request(with_field(number))

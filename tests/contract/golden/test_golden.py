"""golden.json is what the reference makes of the cases today, and the reference itself does what WIRE.md says."""

from __future__ import annotations

import pytest

from tests.contract.golden import wire
from tests.contract.golden.vectors import GOLDEN, document


def test_the_committed_vectors_are_those_of_the_reference() -> None:
    same = GOLDEN.read_text(encoding="utf-8") == document()
    assert same, (
        "protocol/golden.json is not what tests/contract/golden makes: run "
        "`python -m tests.contract.golden` and look at the diff"
    )


def test_a_stamp_by_hand() -> None:
    # CRC-32 of 20 zero characters, as `python3 -c "import zlib; print(hex(zlib.crc32(b'0'*20)))"` has it.
    assert wire.stamp(0, 0, 28) == b"00000000" + b"000000000000" + b"c4854223"
    assert wire.stamp(0xAB, 25, 30)[28:] == bytes([ord("a") + (25 + 28) % 26, ord("a") + (25 + 29) % 26])


@pytest.mark.parametrize("position", range(40))
def test_a_stamp_with_one_damaged_byte_is_refused(position: int) -> None:
    text = bytearray(wire.stamp(1, 2, 40))
    text[position] ^= 0x01
    with pytest.raises(wire.MalformedError):
        wire.read_stamp(bytes(text))


def test_protobuf_by_hand() -> None:
    # The bytes that `protoc --encode=netdyno.protocol.wire.WorkMessage protocol/work.proto` makes of these messages.
    assert wire.request(150, b"ab", 1).hex() == "0a0908960110011a026162"
    assert wire.request(1, workload=-1).hex() == "0a0d080110ffffffffffffffffff01"
    assert wire.response(150, b"ab").hex() == "1209089601" + "1001" + "1a026162"


def test_a_response_survives_the_way_there_and_back() -> None:
    for job_id, text in ((0, b""), (150, b"ab"), (2**32 - 1, b"x" * 300)):
        encoded = wire.response(job_id, text)
        assert wire.parse_response(encoded) == wire.WorkResponse(job_id, True, text)
        assert wire.response_size(job_id, len(text)) == len(encoded)


def test_the_last_member_of_a_oneof_counts_and_repeated_ones_are_merged() -> None:
    request, response = wire.request(7, b"seven"), wire.response(8, b"eight")
    assert wire.parse_request(response + request) == wire.WorkRequest(7, 0, b"seven")
    assert wire.parse_response(request + response).job_id == 8
    assert wire.parse_response(response + wire.response(9)) == wire.WorkResponse(9, True, b"eight")
    for body, parse in ((request + response, wire.parse_request), (response + request, wire.parse_response)):
        with pytest.raises(wire.MalformedError, match="no re"):
            parse(body)


def test_a_response_is_not_complete_unless_it_says_so() -> None:
    assert not wire.parse_response(wire.bytes_field(wire.RESPONSE, b"")).is_complete
    assert not wire.parse_response(wire.bytes_field(wire.RESPONSE, wire.number_field(2, 0))).is_complete


def test_a_request_survives_the_way_there_and_back() -> None:
    assert wire.parse_request(wire.request(9, b"text", -5)) == wire.WorkRequest(9, -5, b"text")

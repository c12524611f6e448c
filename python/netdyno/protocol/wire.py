"""The wire contract (protocol/WIRE.md) in Python, written from that page and the Protobuf encoding guide alone.

It shares no code with the C++ programs, so that the two can be tested against each other. Pure functions: bytes in,
bytes out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgspec

FRAME_HEADER = 4
STAMP_MINIMUM = 28
ALPHABET = b"abcdefghijklmnopqrstuvwxyz"


class MalformedError(Exception):
    """The bytes break a rule of WIRE.md."""


# --- framing ------------------------------------------------------------------------------------------------------


def frame(body: bytes) -> bytes:
    """A message of the workloads rpc and chat: length in network byte order, then the body."""
    return header(len(body)) + body


def header(length: int) -> bytes:
    """The 4 bytes before a body, of any length that fits (a test may give a wrong one)."""
    return length.to_bytes(FRAME_HEADER, "big")


def frames(stream: bytes) -> list[bytes]:
    """The bodies of a stream of complete frames. Raises MalformedError where it ends inside one."""
    bodies = []
    while stream:
        size = int.from_bytes(stream[:FRAME_HEADER], "big")
        body = stream[FRAME_HEADER : FRAME_HEADER + size]
        if len(stream) < FRAME_HEADER or len(body) < size:
            raise MalformedError(f"the stream ends inside a frame of {size} bytes")
        bodies.append(body)
        stream = stream[FRAME_HEADER + size :]
    return bodies


# --- stamps -------------------------------------------------------------------------------------------------------


def stamp(client: int, sequence: int, size: int) -> bytes:
    """The text that identifies a message, `size` bytes long (at least 28)."""
    if size < STAMP_MINIMUM:
        raise ValueError(f"a stamp has at least {STAMP_MINIMUM} bytes, not {size}")
    identity = f"{client:08x}{sequence:012d}".encode()
    first_letter = (sequence + STAMP_MINIMUM) % 26  # the alphabet over and over, from this letter on
    padding = (ALPHABET * (size // 26 + 2))[first_letter : first_letter + size - STAMP_MINIMUM]
    return identity + f"{zlib.crc32(identity + padding):08x}".encode() + padding


def read_stamp(text: bytes) -> tuple[int, int]:
    """Return (client, sequence) of a stamp that is right in every byte; raises MalformedError otherwise."""
    try:
        client, sequence = int(text[:8], 16), int(text[8:20])
        expected = stamp(client, sequence, len(text))
    except ValueError as error:
        raise MalformedError(f"no stamp: {text[:64]!r}") from error
    if text != expected:
        raise MalformedError(f"a stamp is damaged: {text[:64]!r}")
    return client, sequence


# --- Protobuf (https://protobuf.dev/programming-guides/encoding/) -------------------------------------------------

VARINT, I64, LEN, START_GROUP, END_GROUP, I32 = range(6)
LONGEST_NUMBER, LONGEST_LENGTH = 10, 5
"""The most bytes of a varint: of a value; of a tag, or of a length."""
MOST_NESTED = 100
"""The deepest nesting of messages and groups below WorkMessage."""


def varint(value: int) -> bytes:
    """An unsigned number of up to 64 bits; a negative one as its two's complement in 64 bits, as for an int32."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """A varint field, present even where its value is 0."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A length-delimited field: bytes, or a message."""
    return varint(number << 3 | LEN) + varint(len(value)) + value


def request(job_id: int, text: bytes = b"", workload: int = 0) -> bytes:
    """WorkMessage{request}; as in proto3, a field at its default is left out. `workload` in microseconds."""
    fields = number_field(1, job_id) if job_id else b""
    fields += number_field(2, workload) if workload else b""
    fields += bytes_field(3, text) if text else b""
    return bytes_field(1, fields)


def response(job_id: int, text: bytes = b"") -> bytes:
    """WorkMessage{response} with is_complete true."""
    fields = number_field(1, job_id) if job_id else b""
    fields += number_field(2, 1)
    fields += bytes_field(3, text) if text else b""
    return bytes_field(2, fields)


def response_size(job_id: int, text_size: int) -> int:
    """The length of `response(job_id, text)`."""
    fields = (1 + _varint_size(job_id) if job_id else 0) + 2
    fields += 1 + _varint_size(text_size) + text_size if text_size else 0
    return 1 + _varint_size(fields) + fields


def _varint_size(value: int) -> int:
    return max(1, (value.bit_length() + 6) // 7)


class WorkRequest(msgspec.Struct, frozen=True):
    """The fields of a request that decide about its reply."""

    job_id: int = 0
    workload: int = 0
    stamp: bytes = b""


class WorkResponse(msgspec.Struct, frozen=True):
    """The fields of a response that a client verifies."""

    job_id: int = 0
    is_complete: bool = False
    stamp: bytes = b""


REQUEST, RESPONSE = 1, 2
"""The members of WorkMessage's oneof, by their field numbers."""


def parse_request(body: bytes) -> WorkRequest:
    """The request of a WorkMessage. Raises MalformedError where the body does not parse, or holds no request."""
    return _parse_fields_of_request(_merge_member(body, REQUEST))


def parse_response(body: bytes) -> WorkResponse:
    """The response of a WorkMessage. Raises MalformedError where the body does not parse, or holds no response."""
    job_id, is_complete, text = 0, False, b""
    for number, kind, value in _parse_fields(_merge_member(body, RESPONSE), 1):
        if kind == VARINT and isinstance(value, int):
            job_id = value & 0xFFFF_FFFF if number == 1 else job_id
            is_complete = value != 0 if number == 2 else is_complete
        elif kind == LEN and number == 3 and isinstance(value, bytes):
            text = value
    return WorkResponse(job_id, is_complete, text)


def _merge_member(body: bytes, member: int) -> bytes:
    """The fields of one member of the oneof; MalformedError where another or none is set."""
    merged: bytes | None = None
    for number, kind, value in _parse_fields(body):
        if number in (REQUEST, RESPONSE) and kind == LEN and isinstance(value, bytes):
            list(_parse_fields(value, 1))  # each piece must parse by itself
            # A repeated message field is merged, which is concatenation; the other member takes the place of this one.
            merged = (merged or b"") + value if number == member else None
    if merged is None:
        raise MalformedError("no request" if member == REQUEST else "no response")
    return merged


def _parse_fields_of_request(fields: bytes) -> WorkRequest:
    job_id, workload, text = 0, 0, b""
    for number, kind, value in _parse_fields(fields, 1):
        if kind == VARINT and isinstance(value, int):
            low_bits = value & 0xFFFF_FFFF
            job_id = low_bits if number == 1 else job_id
            workload = low_bits - (1 << 32 if low_bits >> 31 else 0) if number == 2 else workload
        elif kind == LEN and number == 3 and isinstance(value, bytes):
            text = value
    return WorkRequest(job_id, workload, text)


def _parse_fields(body: bytes, depth: int = 0) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of each field, groups skipped. Raises MalformedError."""
    offset = 0
    while offset < len(body):
        number, kind, value, offset = _parse_field(body, offset, depth)
        if kind == END_GROUP:
            raise MalformedError("the end of a group that never began")
        yield number, kind, value


def _parse_field(body: bytes, offset: int, depth: int) -> tuple[int, int, int | bytes, int]:
    tag, offset = _parse_varint(body, offset, LONGEST_LENGTH)
    number, kind = tag >> 3, tag & 7
    if number == 0 or tag >> 32:
        raise MalformedError(f"field number {number}")
    if kind == VARINT:
        value, offset = _parse_varint(body, offset, LONGEST_NUMBER)
        return number, kind, value, offset
    if kind == START_GROUP:
        return number, kind, b"", _skip_group(body, offset, number, depth + 1)
    if kind == END_GROUP:
        return number, kind, b"", offset
    size = {I64: 8, I32: 4}.get(kind)
    if kind == LEN:
        size, offset = _parse_varint(body, offset, LONGEST_LENGTH)
    if size is None or offset + size > len(body):
        raise MalformedError(f"a field of wire type {kind} that is cut off or unknown")
    return number, kind, body[offset : offset + size], offset + size


def _skip_group(body: bytes, offset: int, group: int, depth: int) -> int:
    if depth > MOST_NESTED:
        raise MalformedError("groups too deep")
    while offset < len(body):
        number, kind, _, offset = _parse_field(body, offset, depth)
        if kind == END_GROUP:
            if number != group:
                raise MalformedError("the end of another group")
            return offset
    raise MalformedError("a group without end")


def _parse_varint(body: bytes, offset: int, longest: int) -> tuple[int, int]:
    value = 0
    for index in range(longest):
        if offset + index >= len(body):
            raise MalformedError("a number that is cut off")
        value |= (body[offset + index] & 0x7F) << 7 * index
        if body[offset + index] < 0x80:
            return value & (1 << 64) - 1, offset + index + 1
    raise MalformedError(f"a number of more than {longest} bytes")

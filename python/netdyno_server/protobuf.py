"""WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone: Google's
package takes longer to import than a server takes to start."""

from __future__ import annotations

_VARINT, _I64, _LEN, _START_GROUP, _END_GROUP, _I32 = range(6)
_FIXED = {_I64: 8, _I32: 4}
_MAX_DEPTH = 100  # as Google's parsers have it: nested groups must not exhaust the stack
_LONGEST_NUMBER = 10  # bytes
_LONGEST_LENGTH = 5  # and tag


class MalformedError(Exception):
    """Bytes that are no Protobuf."""


def parse_request(data: bytes, at: int, end: int) -> tuple[int, int, bytes] | None:
    """(job_id, workload, stamp) of the WorkRequest in `data[at:end]`, a WorkMessage; None where that does not parse or
    holds no request. A repeated message is merged, and the last member of the oneof counts."""
    request: tuple[int, int, bytes] | None = None
    try:
        while at < end:
            number, kind, value, after = _field(data, at, end, 0)
            if kind == _END_GROUP:
                return None
            if kind == _LEN and number == 1:
                request = _request(data, after - value, after, request or (0, 0, b""))
            elif kind == _LEN and number == 2:
                _request(data, after - value, after, (0, 0, b""))  # a response must parse too
                request = None
            at = after
    except MalformedError:
        return None
    return request


def response(job_id: int, stamp: bytes) -> bytes:
    """WorkMessage{WorkResponse{job_id, is_complete: true, stamp}}; as proto3 has it, a default is left out."""
    fields = b"\x10\x01"
    if job_id:
        fields = b"\x08" + varint(job_id) + fields
    if stamp:
        fields += b"\x1a" + varint(len(stamp)) + stamp
    return b"\x12" + varint(len(fields)) + fields


def varint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "big")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _request(data: bytes, at: int, end: int, merged: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
    job_id, workload, stamp = merged
    while at < end:
        number, kind, value, at = _field(data, at, end, 1)
        if kind == _END_GROUP:
            raise MalformedError("the end of a group that never began")
        if kind == _VARINT and number == 1:
            job_id = value & 0xFFFF_FFFF
        elif kind == _VARINT and number == 2:
            low = value & 0xFFFF_FFFF
            workload = low - (low >> 31 << 32)
        elif kind == _LEN and number == 3:
            stamp = data[at - value : at]
    return job_id, workload, stamp


def _field(data: bytes, at: int, end: int, depth: int) -> tuple[int, int, int, int]:
    """(number, wire type, value, place after it) of the field at `at`; the value of a field that has a length is that
    length. Groups are skipped."""
    tag, at = _varint(data, at, end, _LONGEST_LENGTH)
    number, kind = tag >> 3, tag & 7
    if number == 0 or tag >> 32:
        raise MalformedError("field number")
    if kind == _VARINT:
        value, at = _varint(data, at, end, _LONGEST_NUMBER)
        return number, kind, value, at
    if kind == _LEN:
        value, at = _varint(data, at, end, _LONGEST_LENGTH)
    elif kind == _START_GROUP and depth < _MAX_DEPTH:
        return number, kind, 0, _end_of_group(data, at, end, number, depth + 1)
    elif kind == _END_GROUP:
        return number, kind, 0, at
    elif kind in _FIXED:
        value = _FIXED[kind]
    else:
        raise MalformedError("wire type, or groups too deep")
    if value > end - at:
        raise MalformedError("a field that is cut off")
    return number, kind, value, at + value


def _end_of_group(data: bytes, at: int, end: int, group: int, depth: int) -> int:
    while True:
        number, kind, _, at = _field(data, at, end, depth)
        if kind == _END_GROUP:
            if number != group:
                raise MalformedError("the end of another group")
            return at


def _varint(data: bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 7 * longest:
        if at >= end:
            raise MalformedError("a number that is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise MalformedError("a number of too many bytes")

"""WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone: Google's
package takes longer to import than a server takes to start."""

from __future__ import annotations

_VARINT, _I64, _LEN, _START_GROUP, _END_GROUP, _I32 = range(6)
_FIXED = {_I64: 8, _I32: 4}
_MAX_DEPTH = 100  # that of Google's parsers: nested groups must not exhaust the stack
_LONGEST_NUMBER = 10  # bytes
_LONGEST_LENGTH = 5  # and tag


class MalformedProtobufError(Exception):
    """Bytes that are no Protobuf."""


def parse_request(data: bytes, offset: int, end: int) -> tuple[int, int, bytes] | None:
    """Return (job_id, workload, stamp) of the WorkRequest in `data[offset:end]`, a WorkMessage; None where that does
    not parse or holds no request. A repeated message is merged, and the last member of the oneof counts."""
    request: tuple[int, int, bytes] | None = None
    try:
        while offset < end:
            number, kind, value, next_offset = _parse_field(data, offset, end, 0)
            if kind == _END_GROUP:
                return None
            if kind == _LEN and number == 1:
                request = _merge_request(data, next_offset - value, next_offset, request or (0, 0, b""))
            elif kind == _LEN and number == 2:
                _merge_request(data, next_offset - value, next_offset, (0, 0, b""))  # a response must parse too
                request = None
            offset = next_offset
    except MalformedProtobufError:
        return None
    return request


def encode_response(job_id: int, stamp: bytes) -> bytes:
    """WorkMessage{WorkResponse{job_id, is_complete: true, stamp}}; as in proto3, a default is left out."""
    fields = b"\x10\x01"
    if job_id:
        fields = b"\x08" + encode_varint(job_id) + fields
    if stamp:
        fields += b"\x1a" + encode_varint(len(stamp)) + stamp
    return b"\x12" + encode_varint(len(fields)) + fields


def encode_varint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "big")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _merge_request(data: bytes, offset: int, end: int, merged: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
    job_id, workload, stamp = merged
    while offset < end:
        number, kind, value, offset = _parse_field(data, offset, end, 1)
        if kind == _END_GROUP:
            raise MalformedProtobufError("the end of a group that never began")
        if kind == _VARINT and number == 1:
            job_id = value & 0xFFFF_FFFF
        elif kind == _VARINT and number == 2:
            low_bits = value & 0xFFFF_FFFF
            workload = low_bits - (low_bits >> 31 << 32)
        elif kind == _LEN and number == 3:
            stamp = data[offset - value : offset]
    return job_id, workload, stamp


def _parse_field(data: bytes, offset: int, end: int, depth: int) -> tuple[int, int, int, int]:
    """Return (number, wire type, value, offset after it) of the field at `offset`; the value of a field that has a
    length is that length. Groups are skipped."""
    tag, offset = _parse_varint(data, offset, end, _LONGEST_LENGTH)
    number, kind = tag >> 3, tag & 7
    if number == 0 or tag >> 32:
        raise MalformedProtobufError("field number")
    if kind == _VARINT:
        value, offset = _parse_varint(data, offset, end, _LONGEST_NUMBER)
        return number, kind, value, offset
    if kind == _LEN:
        value, offset = _parse_varint(data, offset, end, _LONGEST_LENGTH)
    elif kind == _START_GROUP and depth < _MAX_DEPTH:
        return number, kind, 0, _skip_group(data, offset, end, number, depth + 1)
    elif kind == _END_GROUP:
        return number, kind, 0, offset
    elif kind in _FIXED:
        value = _FIXED[kind]
    else:
        raise MalformedProtobufError("wire type, or groups too deep")
    if value > end - offset:
        raise MalformedProtobufError("a field that is cut off")
    return number, kind, value, offset + value


def _skip_group(data: bytes, offset: int, end: int, group: int, depth: int) -> int:
    while True:
        number, kind, _, offset = _parse_field(data, offset, end, depth)
        if kind == _END_GROUP:
            if number != group:
                raise MalformedProtobufError("the end of another group")
            return offset


def _parse_varint(data: bytes, offset: int, end: int, longest: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 7 * longest:
        if offset >= end:
            raise MalformedProtobufError("a number that is cut off")
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, offset
        shift += 7
    raise MalformedProtobufError("a number of too many bytes")

"""What the calibration servers can do to answers, whatever the transport, and what they report of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from netdyno.verbs.instruments.calibrate.done import ServerTotals
from tests.contract.golden import wire
from tests.support.server import Server

FAULTS = ("--lose", "10", "--corrupt", "15", "--duplicate", "4")
"""Number 30 is due to be lost and corrupted, and is only lost; number 20 is lost and not sent twice."""
NUMBERS = range(1, 46)
LOST = {number for number in NUMBERS if number % 10 == 0}
CORRUPTED = {number for number in NUMBERS if number % 15 == 0} - LOST
TWICE = {number for number in NUMBERS if number % 4 == 0} - LOST - CORRUPTED


def text(number: int) -> bytes:
    return b"message %d\n" % number


def request(number: int) -> bytes:
    return wire.frame(wire.request(number, b"stamp"))


def response(number: int) -> bytes:
    return wire.frame(wire.response(number, b"stamp"))


def spoken(workload: str) -> tuple[Callable[[int], bytes], list[bytes]]:
    """What is said, by its number, and the answers to all NUMBERS with FAULTS; of a corrupted one the highest bit of
    its last byte is wrong, that of a text before its end."""
    say, right, spoilt_at = (request, response, -1) if workload == "rpc" else (text, text, -2)
    expected = []
    for number in NUMBERS:
        answer = bytearray(right(number))
        if number in CORRUPTED:
            answer[spoilt_at] ^= 0x80
        expected += [bytes(answer)] * (0 if number in LOST else 2 if number in TWICE else 1)
    return say, expected


def expect_counted(report: ServerTotals) -> None:
    """Check that the report counts the FAULTS to NUMBERS."""
    assert (report.lost, report.corrupted, report.duplicated) == (len(LOST), len(CORRUPTED), len(TWICE))
    assert report.arrived == len(NUMBERS)
    assert report.delay_actual_ns.count == len(NUMBERS) - len(LOST) - len(CORRUPTED)


def done(server: Server) -> ServerTotals:
    """What it says at its end."""
    return msgspec.convert(server.stop()["calibration"], ServerTotals)

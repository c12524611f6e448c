"""A log-linear histogram of nanoseconds, recorded in Python: the counterpart of lib/measure/histogram.hpp.

Values from 1 ns to 1 h with 3 significant digits (HdrHistogram by Gil Tene), encoded as HDR V2, compressed, in base64.
`netdyno.kit.statistics.hdr` reads them. No numpy here: a program that only records starts without it."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

HIGHEST = 3_600_000_000_000
SIGNIFICANT_DIGITS = 3
SUB_BUCKET_BITS = 11  # 2048 linear steps in each doubling: 3 significant digits
HALF_MAGNITUDE = SUB_BUCKET_BITS - 1

# HdrHistogram's EncodableHistogram (Java) and the codec of the PyPI package. 0x10 marks "no fixed word size" (ZigZag
# LEB128).
COMPRESSED_COOKIE = 0x1C849304
PLAIN_COOKIE = 0x1C849303
NO_WORD_SIZE = 0x10
HEADER = struct.Struct(">Iiiiqqd")


class HistogramError(ValueError):
    """A text is not an HDR V2 histogram of the shape this project writes. It is defined here to need no numpy."""


class Histogram:
    """Counts of durations. Owning thread only."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._sum = 0
        self.count = 0

    def record(self, value: int, times: int = 1) -> None:
        """Add a value in nanoseconds; above an hour it counts as an hour. Raises ValueError for a negative one, which
        is a defect of the caller and must not become part of a result."""
        if value < 0:
            raise ValueError(f"a histogram was given the negative duration {value} ns")
        value = min(value, HIGHEST)
        bucket = max(0, value.bit_length() - SUB_BUCKET_BITS)
        index = (bucket << HALF_MAGNITUDE) + (value >> bucket)
        self._counts[index] = self._counts.get(index, 0) + times
        self._sum += value * times
        self.count += times

    def mean(self) -> float:
        """The exact mean; 0 when empty."""
        return self._sum / self.count if self.count else 0.0

    def find_percentile(self, percentile: float) -> int:
        """Return the value that `percentile` (0 to 100) of all do not exceed, rounded as the package does; 0 when
        empty."""
        return self.percentiles(percentile)[0]

    def percentiles(self, *percents: float) -> list[int]:
        """Return the values at several percentiles, given in rising order."""
        ranks = [max(int(percent * self.count / 100 + 0.5), 1) for percent in percents]
        values: list[int] = []
        seen = 0
        for index in sorted(self._counts):
            seen += self._counts[index]
            while len(values) < len(ranks) and seen >= ranks[len(values)]:
                values.append(_find_highest_equivalent(index))
        return values or [0] * len(percents)

    def encode(self) -> str:
        """Encode in the HdrHistogram V2 format: compressed with zlib, in base64."""
        counts = b"".join(_encode_zigzag(number) for number in self._runs())
        cookie = PLAIN_COOKIE | NO_WORD_SIZE
        header = HEADER.pack(cookie, len(counts), 0, SIGNIFICANT_DIGITS, 1, HIGHEST, 1.0)
        body = zlib.compress(header + counts)
        return base64.b64encode(struct.pack(">Ii", COMPRESSED_COOKIE | NO_WORD_SIZE, len(body)) + body).decode()

    def _runs(self) -> Iterator[int]:
        """Yield the counts in the order of their values, and each run of n zeros between them as -n."""
        position = 0
        for index in sorted(self._counts):
            if index > position:
                yield position - index
            yield self._counts[index]
            position = index + 1


def _find_highest_equivalent(index: int) -> int:
    half = 1 << HALF_MAGNITUDE
    if index < 2 * half:
        return index
    bucket = index // half - 1
    return ((index % half + half + 1) << bucket) - 1


def _encode_zigzag(number: int) -> bytes:
    """Encode a number in the format's LEB128. It has at most 9 bytes: the ninth carries eight bits."""
    value = number << 1 if number >= 0 else (-number << 1) - 1
    encoded = bytearray()
    while value > 0x7F and len(encoded) < 8:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

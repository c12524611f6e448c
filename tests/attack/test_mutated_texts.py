"""What people write and programs hand over, changed by chance: an experiment, a manifest, a histogram. Each is read, or
refused with one line that says why."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import COMPRESSED_COOKIE, HEADER, Histogram, HistogramError
from netdyno.question import experiment
from netdyno.question.contestants.contestants import parse_manifest
from tests.support.mutation import mutated

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))
MANIFESTS = sorted((*ROOT.glob("servers/*/server.json"), *ROOT.glob("clients/*/client.json")))
VALUE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|\b\d+(?:\.\d+)?\b|\btrue\b|\bfalse\b')
VALUES = (b"0", b"-1", b"1e308", b"9223372036854775807", b'""', b'"x"', b'"1e999s"', b"true", b"[]", b"{}", b"[[]]")
MOST_LINE = 4000


def revalued(chance: Random, good: bytes) -> bytes:
    """Put other values in the place of one or two."""
    for _ in range(chance.choice((1, 2))):
        match = chance.choice(list(VALUE.finditer(good)))
        replacement = chance.choice((*VALUES, chance.choice(list(VALUE.findall(good)))))
        good = good[: match.start()] + replacement + good[match.end() :]
    return good


def changed(chance: Random, good: bytes) -> bytes:
    return chance.choice((mutated, revalued, revalued))(chance, good)


def read_experiment(chance: Random, path: Path) -> None:
    good = chance.choice(EXPERIMENTS)
    path = path.with_name(good.name)
    path.write_bytes(changed(chance, good.read_bytes()))
    experiment.list_budgets(path)
    experiment.load(path)


def read_manifest(chance: Random, path: Path) -> None:
    path.write_bytes(changed(chance, chance.choice(MANIFESTS).read_bytes()))
    parse_manifest(path)


def read_histogram(chance: Random, path: Path) -> None:
    """Read a histogram whose text, packed header or packed counts are changed."""
    histogram = Histogram()
    for _ in range(chance.choice((0, 1, 50))):
        histogram.record(chance.randrange(1 << chance.randrange(1, 45)))
    text = histogram.encode().encode()
    if chance.random() < 0.7:
        plain = zlib.decompress(base64.b64decode(text)[8:])
        head, counts = plain[: HEADER.size], plain[HEADER.size :]
        if chance.random() < 0.3:
            head = mutated(chance, head)[: HEADER.size]
        else:
            counts = mutated(chance, counts)
        packed = zlib.compress(head + counts)
        text = base64.b64encode(struct.pack(">Ii", COMPRESSED_COOKIE, len(packed)) + packed)
    else:
        text = mutated(chance, text)
    decoded = hdr.decode(text.decode("latin-1"))
    low, high = hdr.curve(decoded, [0, 100])
    assert not low > high
    assert (decoded.counts > 0).all()
    assert hdr.merge([decoded, decoded]).count == 2 * decoded.count


@pytest.mark.parametrize(("read", "times"), [(read_experiment, 50), (read_manifest, 200), (read_histogram, 200)])
def test_it_is_read_or_refused(seed: int, read: Callable[[Random, Path], None], times: int, tmp_path: Path) -> None:
    chance = Random(seed)
    for _ in range(times):
        try:
            read(chance, tmp_path / "text")
        except (UserError, HistogramError) as error:
            message = str(error)
        else:
            message = ""
        assert len(message) < MOST_LINE

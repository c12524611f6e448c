"""The vectors of protocol/golden.json for sessions in languages whose own tests have no JSON, and their slicings."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from netdyno.kit.paths import ROOT

JsonWords: TypeAlias = dict[str, Any]
VECTORS: list[JsonWords] = json.loads((ROOT / "protocol" / "golden.json").read_text())["vectors"]


def undated(stream: bytes) -> bytes:
    """Without the lines Date of http replies: these differ with each second."""
    return re.sub(rb"(?<=\r\n)Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n", b"", stream)


def joined(effects: Iterable[JsonWords]) -> list[JsonWords]:
    """A write joins the one before it: where a server read twice, it may write twice."""
    made: list[JsonWords] = []
    for effect in effects:
        if "write" in effect and made and "write" in made[-1]:
            made[-1] = {"write": made[-1]["write"] + effect["write"]}
        else:
            made.append(effect)
    return made


def cuts(stream: bytes, places: int = 64) -> Iterator[list[bytes]]:
    """In one piece, byte by byte, in two at about so many places, and at random."""
    yield [stream] if stream else []
    yield [stream[offset : offset + 1] for offset in range(len(stream))]
    for offset in range(1, len(stream), 1 + len(stream) // places):
        yield [stream[:offset], stream[offset:]]
    for seed in range(5):
        rolled, pieces, offset = random.Random(seed), [], 0
        while offset < len(stream):
            size = rolled.randint(1, 60)
            pieces.append(stream[offset : offset + size])
            offset += size
        yield pieces

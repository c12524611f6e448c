"""Every vector of protocol/golden.json, sliced in many ways, against the sessions of a language: a program of that
language reads a connection a line and prints what its session makes of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

from tests.support.golden import VECTORS, JsonWords, cuts, joined, undated


def connections(places: int) -> Iterator[tuple[JsonWords, list[bytes]]]:
    """Yield each vector with its chunks as given and cut in many ways."""
    for vector in VECTORS:
        chunks = [bytes.fromhex(chunk) for chunk in vector["chunks"]]
        yield vector, chunks
        yield from ((vector, pieces) for pieces in cuts(b"".join(chunks), places))


def line(vector: JsonWords, slices: list[bytes]) -> str:
    return "\t".join([vector["resolved"], "ends" if vector["ends"] else "stays", *(piece.hex() for piece in slices)])


def in_words(output: str) -> JsonWords:
    kind, _, value = output.partition(" ")
    match kind:
        case "write":
            return {"write": undated(bytes.fromhex(value)).hex()}
        case "broadcast":
            return {"broadcast": value.split(" ")}
        case "close":
            return {"close": True}
    return {kind: int(value)}


def expect_golden_sessions(program: Sequence[str], places: int) -> None:
    cases = list(connections(places))
    text = "".join(line(*case) + "\n" for case in cases)
    done = subprocess.run(program, input=text, capture_output=True, text=True, timeout=240, check=True)
    output = iter(done.stdout.splitlines())
    for vector, slices in cases:
        effects = []
        while not (answer := next(output)).startswith("totals"):
            effects.append(in_words(answer))
        _, requests, errors = answer.split()
        may_join = vector["options"].get("write-mode") != "split" or vector["workload"] == "echo"
        expected = joined(vector["effects"]) if may_join else vector["effects"]
        assert (joined(effects) if may_join else effects) == expected, (vector["name"], slices)
        assert int(errors) == vector["protocol_errors"], (vector["name"], slices)
        assert vector["requests"] in (None, int(requests)), (vector["name"], slices)
    assert next(output, None) is None

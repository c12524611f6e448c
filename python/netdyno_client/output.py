"""The output of a client for programs: events while it runs, and its result (protocol/client.md)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.kit.files import write_whole
from netdyno.model.load_result import LoadResult


def write_event(descriptor: int, **event: object) -> None:
    """Write an event as a line of JSON to a descriptor; nothing where the descriptor is below 0."""
    if descriptor < 0:
        return
    with suppress(OSError):  # a reader that left concerns the events, not the measurement
        os.write(descriptor, json.dumps(event, separators=(",", ":")).encode() + b"\n")


def write_result(result: LoadResult, json_file: str, summary: str) -> str:
    """Write a result to its file (`-` is stdout), and print the summary where stdout is free. Return the reason where
    either fails, else an empty string."""
    encoded = msgspec.json.encode(result)
    is_to_stdout = json_file == "-"
    problem = ""
    try:
        print(encoded.decode() if is_to_stdout else summary, flush=True)
    except OSError as error:
        problem = f"cannot write standard output: {error.strerror}"
    if json_file and not is_to_stdout:
        try:
            write_whole(Path(json_file), encoded + b"\n")
        except OSError as error:
            problem = f"cannot write {json_file}: {error.strerror}"
    return problem

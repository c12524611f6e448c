"""The log of one trial: the command lines, word for word, and the output of each program: all of it, or its beginning
and its end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from netdyno.kit import quantities
from netdyno.kit.errors import UserError

KEPT = 64 << 10
"""Bytes kept of the beginning, and as many of the end, of a program's output: the part between is left out."""


class TrialLog:
    """The file of the log; each program writes to a part of its own, so that no line is taken for another program's.
    Raises UserError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._append(b"")

    @contextmanager
    def section(self, name: str, command: Sequence[str]) -> Iterator[IO[bytes]]:
        """Open a file for one program's output; at the end it goes into the log under its command line."""
        part = self.path.with_suffix(f".{name}")
        with self._open(part, "wb") as output:
            try:
                yield output
            finally:
                self._append(f"== {name}: {shlex.join(command)}\n".encode() + _shorten(output))
                part.unlink(missing_ok=True)

    def note(self, text: str) -> None:
        """Write a line of the harness's own."""
        self._append(f"== {text}\n".encode())

    def _append(self, content: bytes) -> None:
        with self._open(self.path, "ab") as file:
            try:
                file.write(content if content.endswith(b"\n") or not content else content + b"\n")
            except OSError as error:
                raise self._make_error(error) from error

    def _open(self, path: Path, mode: str) -> IO[bytes]:
        """Open a file unbuffered; make its folder again where that was removed."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open(mode, buffering=0)
        except OSError as error:
            raise self._make_error(error) from error

    def _make_error(self, error: OSError) -> UserError:
        return UserError(f"the log {self.path} cannot be written: {error.strerror}")


def end_of(output: IO[bytes], size: int) -> bytes:
    """Read the last bytes that were written to a file, also where it has been removed."""
    with _reopen(output) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)


def _shorten(output: IO[bytes]) -> bytes:
    with _reopen(output) as file:
        left_out = os.fstat(file.fileno()).st_size - 2 * KEPT
        if left_out <= 0:
            return file.read(2 * KEPT)
        beginning = file.read(KEPT)
    gap = f"\n== {quantities.memory(left_out)} left out here\n"
    return beginning + gap.encode() + end_of(output, KEPT)


def _reopen(output: IO[bytes]) -> IO[bytes]:
    return Path(f"/proc/self/fd/{output.fileno()}").open("rb")

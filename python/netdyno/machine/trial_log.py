"""The log of one trial: what was run, word for word, and what each program said: all of it, or its beginning and its
end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from netdyno.base import quantities
from netdyno.base.errors import UserError

KEPT = 64 << 10
"""Bytes of the beginning, and as many of the end, of what one program wrote: what lies between is left out."""


class TrialLog:
    """One file; each program writes to a part of its own, so that no line is taken for another program's. Raises
    UserError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._append(b"")

    @contextmanager
    def section(self, name: str, command: Sequence[str]) -> Iterator[IO[bytes]]:
        """A file for one program's output; at the end it goes into the log under its command line."""
        part = self.path.with_suffix(f".{name}")
        with self._open(part, "wb") as output:
            try:
                yield output
            finally:
                self._append(f"== {name}: {shlex.join(command)}\n".encode() + _kept(output))
                part.unlink(missing_ok=True)

    def note(self, text: str) -> None:
        """A line of the harness's own."""
        self._append(f"== {text}\n".encode())

    def _append(self, content: bytes) -> None:
        with self._open(self.path, "ab") as file:
            try:
                file.write(content if content.endswith(b"\n") or not content else content + b"\n")
            except OSError as error:
                raise self._unwritable(error) from error

    def _open(self, path: Path, mode: str) -> IO[bytes]:
        """Unbuffered; with its folder, should somebody have taken that away."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open(mode, buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"the log {self.path} cannot be written: {error.strerror}")


def end_of(output: IO[bytes], size: int) -> bytes:
    """The last bytes that were written to a file, also where it has been taken away."""
    with _reading(output) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size)


def _kept(output: IO[bytes]) -> bytes:
    with _reading(output) as file:
        left_out = os.fstat(file.fileno()).st_size - 2 * KEPT
        if left_out <= 0:
            return file.read(2 * KEPT)
        beginning = file.read(KEPT)
    said = f"\n== {quantities.memory(left_out)} left out here\n"
    return beginning + said.encode() + end_of(output, KEPT)


def _reading(output: IO[bytes]) -> IO[bytes]:
    return Path(f"/proc/self/fd/{output.fileno()}").open("rb")

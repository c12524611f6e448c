"""The log of one trial: what was run, word for word, and what each program said."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class TrialLog:
    """One file; each program writes to a part of its own, so that no line is taken for another program's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    @contextmanager
    def section(self, name: str, command: Sequence[str]) -> Iterator[IO[bytes]]:
        """A file for one program's output; at the end it goes into the log under its command line."""
        part = self.path.with_suffix(f".{name}")
        try:
            with part.open("wb", buffering=0) as output:
                yield output
        finally:
            self._append(f"== {name}: {shlex.join(command)}\n".encode() + part.read_bytes())
            part.unlink()

    def note(self, text: str) -> None:
        """A line of the harness's own."""
        self._append(f"== {text}\n".encode())

    def _append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content if content.endswith(b"\n") else content + b"\n")

"""The console on which anything stored is shown."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import IO, Any

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from netdyno.kit.escape import harmless_lines


class Console(console.Console):
    """Rich's console, rendering plain text only: a stored name, reason or claim moves no cursor and sets no colour, and
    a bracket is a bracket. A row that is wider than the console is printed whole."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        if isinstance(self.file, io.TextIOWrapper):
            self.file.reconfigure(errors="replace")  # a terminal that lacks a minus sign ends no run

    def on_broken_pipe(self) -> None:
        """Leave the end to the verb: Rich would end the program with 1, which of a gate is a verdict."""
        raise BrokenPipeError

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless_lines(segment.text))


def open_for_sentences(file: IO[str]) -> Console:
    """Return a console on which a sentence is a line, wrapped between words where it is a terminal."""
    console = Console(file=file, highlight=False)
    console.soft_wrap = not console.is_terminal
    return console

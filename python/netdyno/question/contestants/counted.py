"""Counts source files with lizard and remembers the counts between runs: reading all files takes half a second of
CPU."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import msgspec

from netdyno.kit.files import write_whole
from netdyno.kit.paths import ROOT

REMEMBERED = ROOT / ".netdyno" / "counted.json"
"""Beside the memory of set-up; it can be deleted at any time."""
_ERLANG = (".erl", ".hrl")


class CodeError(Exception):
    """A source file that cannot be counted; the text names it and the reason."""


class SourceCounts(msgspec.Struct, frozen=True, array_like=True):
    """The counts of one source file: when it was changed last (ns), its bytes, its lines without blanks and comments,
    and the cyclomatic complexity of each of its functions."""

    changed_ns: int
    size: int
    lines: int
    complexities: tuple[int, ...]


class _Memory(msgspec.Struct):
    """`counted_by`: the version of lizard; another may count differently. `files`: by path."""

    counted_by: str
    files: dict[str, SourceCounts] = msgspec.field(default_factory=dict)


class _Function(Protocol):
    cyclomatic_complexity: int


def count(files: Iterable[Path]) -> list[SourceCounts]:
    """Count source files, those that have not changed since from memory. Raises CodeError naming a file that cannot be
    counted."""
    memory = _read_memory()
    return [_count(path, memory) for path in files]


def remember() -> None:
    """Keep the counts for other processes, without files that are gone. Where they cannot be written, all is counted
    again the next time."""
    memory = _read_memory()
    memory.files = {path: counted for path, counted in memory.files.items() if Path(path).exists()}
    if not memory.files:
        return
    content = msgspec.json.encode(memory)
    with suppress(OSError):
        if not REMEMBERED.exists() or REMEMBERED.read_bytes() != content:
            REMEMBERED.parent.mkdir(exist_ok=True)
            write_whole(REMEMBERED, content)


def _count(path: Path, memory: _Memory) -> SourceCounts:
    try:
        status = path.stat()
        counted = memory.files.get(str(path))
        if counted is not None and (counted.changed_ns, counted.size) == (status.st_mtime_ns, status.st_size):
            return counted
        # by name, because most commands start without it, and it has no types
        lizard = importlib.import_module("lizard")
        text = path.read_text(encoding="utf-8")
        analysis = lizard.analyze_file.analyze_source_code(str(path), text)
    except (OSError, UnicodeDecodeError, LookupError, AttributeError, RecursionError) as error:
        # lizard has no error of its own: on what it cannot read its states run into one of these
        raise CodeError(f"{path.name} cannot be counted ({type(error).__name__}: {error})") from error
    functions: Iterable[_Function] = analysis.function_list
    lines = analysis.nloc if path.suffix not in _ERLANG else _count_lines(text)
    complexities = tuple(function.cyclomatic_complexity for function in functions)
    counted = memory.files[str(path)] = SourceCounts(status.st_mtime_ns, status.st_size, lines, complexities)
    return counted


def _count_lines(text: str) -> int:
    """Count the lines of Erlang: its lexer leaves lizard no newlines."""
    return sum(not line.lstrip().startswith("%") for line in text.splitlines() if line.strip())


@functools.cache
def _read_memory() -> _Memory:
    """Read the remembered counts; none where they cannot be read, or another version of lizard made them."""
    fresh = _Memory(version("lizard"))
    with suppress(OSError, msgspec.DecodeError):
        memory = msgspec.json.decode(REMEMBERED.read_bytes(), type=_Memory)
        return memory if memory.counted_by == fresh.counted_by else fresh
    return fresh

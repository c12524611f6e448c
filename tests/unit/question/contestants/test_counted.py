"""The counts of a source file are cached until the file changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from netdyno.question.contestants import codesize, counted
from netdyno.question.contestants.counted import CodeError, SourceCounts, count, remember

SOURCE = "def answer(number):\n    return 1 if number else 2\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that an earlier process has counted."""
    monkeypatch.setattr(counted, "REMEMBERED", tmp_path / "counted.json")
    path = tmp_path / "main.py"
    path.write_text(SOURCE)
    counted._read_memory.cache_clear()
    assert [(file.lines, file.complexities) for file in count([path])] == [(2, (2,))]
    restart()
    yield path
    counted._read_memory.cache_clear()


def restart() -> None:
    """End the process that has counted, and start another."""
    remember()
    counted._read_memory.cache_clear()


def change_memory(source: Path, **changes: object) -> None:
    """Change the cached counts of the file."""
    memory = counted._read_memory()
    memory.files[str(source)] = msgspec.structs.replace(memory.files[str(source)], **changes)
    counted.REMEMBERED.write_bytes(msgspec.json.encode(memory))
    restart()


def lines_of(source: Path) -> int:
    return count([source])[0].lines


def test_an_unchanged_file_is_not_counted_again(source: Path) -> None:
    change_memory(source, lines=99)
    assert lines_of(source) == 99


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_changed_file_is_counted_again(source: Path, change: str) -> None:
    change_memory(source, lines=99)
    if change == "size":
        changed_ns = source.stat().st_mtime_ns
        source.write_text(SOURCE + SOURCE)
        os.utime(source, ns=(changed_ns, changed_ns))
    else:
        os.utime(source, ns=(1, 1))
    assert lines_of(source) != 99
    restart()
    assert counted._read_memory().files[str(source)].lines == lines_of(source)


def test_what_another_version_counted_is_counted_again(source: Path) -> None:
    change_memory(source, lines=99)
    counted.REMEMBERED.write_bytes(counted.REMEMBERED.read_bytes().replace(b'"counted_by":"', b'"counted_by":"0.'))
    assert lines_of(source) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"counted_by": 1}'])
def test_a_damaged_memory_is_as_none(source: Path, content: bytes) -> None:
    counted.REMEMBERED.write_bytes(content)
    assert lines_of(source) == 2


def test_where_nothing_can_be_remembered_it_is_counted_all_the_same(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "REMEMBERED", Path("/proc/none/counted.json"))
    assert lines_of(source) == 2


def test_a_file_that_is_gone_is_forgotten_and_cannot_be_counted(source: Path) -> None:
    renamed = source.with_name("other.py")
    renamed.write_text(SOURCE)
    source.unlink()
    with pytest.raises(CodeError, match=r"main\.py cannot be counted"):
        count([source])
    count([renamed])
    restart()
    assert set(counted._read_memory().files) == {str(renamed)}
    assert isinstance(counted._read_memory().files[str(renamed)], SourceCounts)


def test_what_a_run_counts_is_remembered(source: Path) -> None:
    shared = source.parent / "lib" / "shared.py"
    shared.parent.mkdir()
    shared.write_text(SOURCE)
    codesize.describe([], [], source.parent)
    counted._read_memory.cache_clear()
    assert str(shared) in counted._read_memory().files

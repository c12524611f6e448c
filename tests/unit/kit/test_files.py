"""A file appears whole or not at all, and what is no regular file stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from netdyno.kit import files
from netdyno.kit.files import read_given, write_whole
from tests.support.nodes import NODES
from tests.support.patience import PATIENCE_S


def test_a_file_is_replaced_by_the_whole_new_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "the first")
    with file.open() as old:
        write_whole(file, b"the second")
        assert old.read() == "the first", "who reads the old one has it to its end"
    assert file.read_text() == "the second"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", NODES)
def test_what_is_no_regular_file_is_written_and_stays_what_it_is(name: str, tmp_path: Path) -> None:
    node, content = NODES[name](tmp_path)
    kind = stat.S_IFMT(node.lstat().st_mode)
    write_whole(node, "new")
    assert stat.S_IFMT(node.lstat().st_mode) == kind
    assert content() in {"new", ""}
    if name != "device":
        assert content() == "new"


def test_a_link_to_a_file_is_replaced_behind_it_in_one_step(tmp_path: Path) -> None:
    node, _ = NODES["link"](tmp_path)
    with node.open() as old:
        write_whole(node, "new")
        assert old.read().startswith("the old one")


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_descriptor_goes_on_where_it_stands(folder: str, tmp_path: Path) -> None:
    """As with /dev/stdout, which is /dev/fd/1."""
    with (tmp_path / "output").open("wb", buffering=0) as output:
        output.write(b"before ")
        write_whole(Path(folder) / str(output.fileno()), "between")
        output.write(b" after")
    assert (tmp_path / "output").read_text() == "before between after"


def test_a_pipe_that_is_open_is_written_by_its_number(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    (tmp_path / "link").symlink_to(f"/dev/fd/{writing}")
    write_whole(tmp_path / "link", "new")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "new"


def test_what_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "file", tmp_path):
        with pytest.raises(OSError, match=r"No such file|Is a directory"):
            write_whole(path, "new")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="Too many levels"):
        write_whole(tmp_path / "round", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["round"]


def test_a_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"content")
    os.close(writing)
    assert read_given(Path(f"/dev/fd/{reading}")) == b"content"
    os.close(reading)


def write_in_thread(descriptor: Callable[[], int]) -> threading.Thread:
    def write() -> None:
        with os.fdopen(descriptor(), "wb") as pipe:
            pipe.write(b"late")

    writer = threading.Thread(target=write)
    writer.start()
    return writer


def test_a_pipe_that_is_opened_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PEER_MS", 1000 * PATIENCE_S)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = write_in_thread(lambda: os.open(pipe, os.O_WRONLY))  # waits for the reader
    assert read_given(pipe) == b"late"
    writer.join()


def test_a_pipe_that_is_written_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PEER_MS", 0)
    reading, writing = os.pipe()
    writer = write_in_thread(lambda: writing)
    assert read_given(Path(f"/dev/fd/{reading}")) == b"late"
    writer.join()
    os.close(reading)


def test_a_pipe_without_a_writer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PEER_MS", 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a pipe to which no program writes"):
        read_given(tmp_path / "pipe")


def test_a_pipe_that_no_program_reads_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PEER_MS", 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a pipe that no program reads"):
        write_whole(tmp_path / "pipe", "new")


def test_a_device_without_an_end_is_an_error() -> None:
    with pytest.raises(OSError, match="more than 64 MiB"):
        read_given(Path("/dev/zero"))

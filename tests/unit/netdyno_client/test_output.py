"""The result of a client: where one output fails, the other is written, and the reason is stated."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import msgspec
import pytest

from netdyno.model.load_result import LoadResult
from netdyno_client.output import write_result
from tests.support.builders.made_load import load


class FullDisk(io.StringIO):
    """A file on a disk that takes no more."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_summary_is_kept_where_the_result_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "missing" / "load.json"
    assert write_result(load(), str(target), "120 messages/s") == f"cannot write {target}: No such file or directory"
    assert capsys.readouterr().out == "120 messages/s\n"


def test_the_result_is_kept_where_stdout_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", FullDisk())
    problem = write_result(load(), str(tmp_path / "load.json"), "120 messages/s")
    assert problem == "cannot write standard output: No space left on device"
    assert msgspec.json.decode((tmp_path / "load.json").read_bytes(), type=LoadResult) == load()


def test_the_result_goes_to_stdout_in_place_of_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_result(load(), "-", "120 messages/s") == ""
    assert msgspec.json.decode(capsys.readouterr().out, type=LoadResult) == load()

"""A trial's log: the output of every program, or its two ends, in a file that stays small."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.measure.machine.trial_log import KEPT, TrialLog, end_of


def test_each_program_has_its_part_under_its_command(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "logs" / "one.log")
    with log.section("server", ["serve", "a b"]) as server, log.section("load", ["load"]) as load:
        server.write(b"listening\n")
        load.write(b"done")
    log.note("failed: so it is")
    assert log.path.read_text() == "== load: load\ndone\n== server: serve 'a b'\nlistening\n== failed: so it is\n"
    assert list(log.path.parent.iterdir()) == [log.path]


@pytest.mark.parametrize("more", [0, 1, 5 << 20])
def test_of_much_the_beginning_and_the_end_are_kept_and_what_was_left_out_is_stated(tmp_path: Path, more: int) -> None:
    log = TrialLog(tmp_path / "one.log")
    beginning, end = b"a" * KEPT, b"z" * KEPT
    with log.section("server", ["serve"]) as output:
        output.write(beginning + b"m" * more + end)
    notice = {0: b"", 1: b"\n== 1.00 B left out here\n", 5 << 20: b"\n== 5.00 MiB left out here\n"}[more]
    assert log.path.read_bytes() == b"== server: serve\n" + beginning + notice + end + b"\n"


def test_a_folder_that_was_taken_away_is_recreated_and_nothing_is_lost(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "logs" / "one.log")
    with log.section("server", ["serve"]) as output:
        output.write(b"listening\n")
        shutil.rmtree(log.path.parent)
        assert end_of(output, 4) == b"ing\n"
    assert log.path.read_text() == "== server: serve\nlistening\n"


def test_a_log_that_cannot_be_written_is_stated_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"the log .*file/one.log cannot be written: File exists"):
        TrialLog(tmp_path / "file" / "one.log")
    log = TrialLog(tmp_path / "one.log")
    log.path.unlink()
    log.path.symlink_to("/dev/full")
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        log.note("x")

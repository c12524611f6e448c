"""Runs that earlier releases stored are read for ever: one of each lies in releases/, by its version.

A change of the schema that makes one unreadable needs a conversion in netdyno.store.read, and no new file here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netdyno.analysis.analysis import analyse
from netdyno.kit.version import VERSION
from netdyno.present.prose.repeat import format_typed
from netdyno.store import read, schema

RELEASES = sorted(Path(__file__).with_name("releases").glob("*.sqlite"))


def test_each_release_has_a_run() -> None:
    assert VERSION in [path.stem for path in RELEASES]


@pytest.mark.parametrize("path", RELEASES, ids=[path.stem for path in RELEASES])
def test_a_run_that_a_release_stored_is_read_and_analysed(path: Path, tmp_path: Path) -> None:
    copied = tmp_path / schema.FILE_NAME
    shutil.copyfile(path, copied)  # opening a run may roll back its journal
    run = read.load(copied)
    analysis = analyse(run)
    assert run.environment["netdyno"] == path.stem
    assert analysis.counts.valid == len(run.all_trials) > 0
    assert all(question.standings for question in analysis.scenarios)
    assert format_typed(analysis).startswith("./netdyno run ")

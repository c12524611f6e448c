"""`netdyno list claims`: every claim of every experiment, with its id; a broken file says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netdyno.question import experiment
from netdyno.verbs import cli, listing
from tests.support.builders.made_claims import RATIO, text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "one.toml").write_text(text(f"[claim.test]{RATIO}above = 2", 'published = { "ms" = 3.9 }'))
    monkeypatch.setattr(experiment, "find_experiments_folder", lambda: tmp_path)
    return tmp_path


def test_a_claim_is_an_object_with_its_id(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "claims", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "id": "X1",
            "experiment": "one",
            "tests": ["ratio of throughput"],
            "needs": [],
            "needs_to_confirm": [],
            "needs_to_refute": [],
            "text": "So it is",
            "published": {"ms": 3.9},
        }
    ]
    assert cli.main(["list", "claims"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id  experiment  text", "X1  one         So it is"]


def test_a_broken_file_says_why(folder: Path) -> None:
    (folder / "two.toml").write_text("question = 1")
    rows = listing.list_claims()
    assert [row["id"] for row in rows] == ["X1", ""]
    assert "the key 'scenario' is missing" in str(rows[1]["text"])

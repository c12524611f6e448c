"""A temporary folder is removed by its owner, or after a kill by the next start; never while its owner lives."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from netdyno.kit.temporary import temporary_folder

OWNER = """
import signal
from netdyno.kit.temporary import temporary_folder
with temporary_folder("test") as folder:
    (folder / "inside").mkdir()
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_it_is_gone_with_its_block(tmp_path: Path) -> None:
    with temporary_folder("test") as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith("netdyno-test-")
        (folder / "file").write_text("something")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_owners_is_removed_by_the_next_start_and_a_living_ones_is_not(tmp_path: Path) -> None:
    owners = [subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        dead, living = (Path(owner.stdout.readline().strip()) for owner in owners if owner.stdout)
        owners[0].send_signal(signal.SIGKILL)
        owners[0].wait()
        assert dead.exists()
        with temporary_folder("other"):
            assert dead.exists(), "another kind's is not checked"
        with temporary_folder("test") as own:
            assert not dead.exists()
            assert (living / "inside").is_dir()
            assert own.is_dir()
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate()


def test_a_link_that_is_called_so_leads_nowhere(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "netdyno-test-link").symlink_to(kept)
    with temporary_folder("test"):
        assert kept.is_dir()

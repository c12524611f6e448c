"""The scripts of bench/ start: each prints its help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT

SCRIPTS = sorted(path for path in (ROOT / "bench").glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_prints_its_help(script: Path) -> None:
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("usage: ")) == (0, True), done.stderr

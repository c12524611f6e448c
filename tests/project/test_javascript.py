"""The tests of contestants in JavaScript: each `*.test.js` in a contestant's folder, or in one that some share, by
Node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT

FOLDERS = ("servers/*", "servers/_shared/*", "clients/*")
TESTS = sorted(path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.test.js"))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed (package nodejs)")
@pytest.mark.parametrize("file", TESTS, ids=[str(file.relative_to(ROOT)) for file in TESTS])
def test_javascript(file: Path) -> None:
    command = ["node", "--test-reporter=tap", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE), done.stdout

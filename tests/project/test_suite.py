"""Every test is in one step of `netdyno test`: those marked quiet in the last, all others in the one before it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from netdyno.base.paths import ROOT

pytestmark = pytest.mark.quick

SOME = ("tests/harness/test_process.py", "tests/harness/test_pinning.py", "tests/unit/base/test_paths.py")
"""Of the first some are marked, of the second all, of the third none."""


def collected(*options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *SOME, *options]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if "::" in line]


def test_each_test_is_either_beside_others_or_alone() -> None:
    every, beside, alone = collected(), collected("--machine", "shared"), collected("--machine", "quiet")
    assert sorted(beside + alone) == sorted(every)
    assert [name for name in alone if "test_process.py" in name] == [
        "tests/harness/test_process.py::test_kill_9_of_the_harness_takes_its_children_along"
    ]
    assert not [name for name in beside if "test_pinning.py" in name]
    assert [name for name in every if "test_paths.py" in name] == [name for name in beside if "test_paths.py" in name]

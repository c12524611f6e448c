"""Every test is in one step of `netdyno test`: those marked quiet in the last, all others in the one before it, where
those of one file stay together."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from netdyno.base.paths import ROOT
from tests.support.patience import SLOWER, slowness

pytestmark = pytest.mark.quick

SOME = ("tests/harness/test_process.py", "tests/harness/test_pinning.py", "tests/unit/base/test_paths.py")
"""Of the first some are marked, of the second all, of the third none."""

ONE_FILE = "tests/unit/base/test_units.py"


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


def test_tests_of_one_file_run_in_one_process() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", ONE_FILE]
    options = ["--numprocesses", "2", "--dist", "loadgroup"]
    said = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ran_by = re.findall(r"^\[(gw\d)\].*PASSED", said, re.MULTILINE)
    assert len(ran_by) > 2
    assert len(set(ran_by)) == 1


@pytest.mark.parametrize(("kind", "times"), [("", 1), ("address", SLOWER), ("thread", SLOWER)])
def test_programs_with_a_sanitizer_are_waited_for_longer(kind: str, times: int, tmp_path: Path) -> None:
    assert slowness(tmp_path) == 1
    (tmp_path / "CMakeCache.txt").write_text(f"CMAKE:STRING=x\nNETDYNO_SANITIZE:STRING={kind}\nOTHER:STRING=y\n")
    assert slowness(tmp_path) == times

"""`./netdyno test --attack` ends in its time, and says what it has not tried."""

from __future__ import annotations

import subprocess
import sys

from netdyno.kit.paths import ROOT
from tests.support.patience import PATIENCE_S


def test_when_the_time_is_over_the_first_seed_of_each_kind_runs_and_the_rest_is_counted() -> None:
    command = (sys.executable, "-m", "pytest", "tests/attack/test_mutated_texts.py", "--attack", "-k", "manifest")
    over = ("--attack-seconds", "0", "-p", "no:cacheprovider")
    done = subprocess.run(
        (*command, *over), cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed, 39 skipped" in done.stdout
    assert "not tried: 39 attacks" in done.stdout

"""The simulation behind docs/adr/statistics.md still runs and still says why the plain intervals were not taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SIMULATION = Path(__file__).resolve().parents[2] / "bench" / "interval_coverage.py"


def test_the_simulation_prefers_expanded_tails_at_five_blocks() -> None:
    command = [sys.executable, str(SIMULATION), "150"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    rows = [line.rsplit(None, 5) for line in done.stdout.splitlines()[1:]]
    percentile, bca, expanded = next(
        [float(share.rstrip("%")) for share in row[2:5]] for row in rows if row[:2] == ["normal", "5"]
    )
    assert expanded > max(percentile, bca)

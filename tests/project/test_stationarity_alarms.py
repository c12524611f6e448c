"""The simulation behind docs/adr/stationary.md still runs and still says that noise is seldom struck out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SIMULATION = Path(__file__).resolve().parents[2] / "bench" / "stationarity_alarms.py"


def test_still_windows_are_seldom_struck_out_and_moving_ones_often() -> None:
    command = [sys.executable, str(SIMULATION), "60"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=250)
    rows = [line.split() for line in done.stdout.partition("struck out")[2].splitlines()[2:]]
    shares = {
        (row[0], row[-5], row[-4]): [float(share.rstrip("%")) for share in row[-3:]] for row in rows
    }  # by shape, correlation and points: for little noise, some and much
    still = [found for (shape, correlation, _), found in shares.items() if (shape, correlation) == ("still", "0.5")]
    assert len(still) == 6
    assert all(little == 0 and some < 4 and much < 8 for little, some, much in still)
    assert shares["drift", "0.5", "100"][0] > 95
    assert shares["step", "0.5", "100"][0] > 95
    assert shares["hump", "0.5", "100"][0] > 60

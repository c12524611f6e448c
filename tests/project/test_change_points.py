"""A gate's history as Apache Otava reads it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from netdyno.analysis.found.gate import GatedMetric, GateFindings
from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.stats import Interval
from netdyno.model.experiment import Gate
from netdyno.present.gate import format_history

CPU = GatedMetric("same rate", "cpu", 0.05, "within", 6, 21e3, 21e3, 1.0, Interval(0.99, 1.01))
RATE = GatedMetric("most", "throughput", 0.05, "within", 6, 5e4, 5e4, 1.0, Interval(0.99, 1.01))
DEARER_FROM = 10


def search(history: Path, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "packages/ci/change_points.py"), str(history)]
    return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Sixteen gates, a day each; the CPU grows by a fifth, one gate has no throughput."""
    path = tmp_path / "gates"
    with path.open("w") as file:
        for day in range(16):
            noise = 1 + 0.01 * (-1) ** day
            cpu = replace(CPU, after=CPU.after * noise * (1.2 if day >= DEARER_FROM else 1))
            lines = (cpu,) if day == 3 else (cpu, replace(RATE, after=RATE.after * noise))
            findings = GateFindings(Gate(before="old", after="new", margins={}), lines, (), "passes", may_go_on=False)
            file.write(format_history(findings, f"202611{day + 1:02}-120000-web", f"{day:08x}"))
    return path


def test_where_nothing_can_be_searched_it_fails(history: Path) -> None:
    for text in ("", history.read_text().splitlines()[0]):
        history.write_text(text)
        done = search(history, os.environ["PATH"])
        assert (done.returncode, "fewer than two gates" in done.stderr) == (1, True)


@pytest.mark.skipif(shutil.which("otava") is None, reason="no otava: uv tool install apache-otava")
def test_a_change_is_found_where_it_is_and_no_other(history: Path) -> None:
    done = search(history, os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    assert "1 of 16 gates lack a figure, and are left out" in done.stderr
    shown = re.findall(r"[+-][\d.]+%|(?<=-)\d\d(?= 12:00)", done.stdout)
    assert len([text for text in shown if text.endswith("%")]) == 1
    at = next(number for number, text in enumerate(shown) if text.endswith("%"))
    assert shown[at - 1 : at + 2] == [f"{DEARER_FROM:02}", "+19.9%", f"{DEARER_FROM + 1:02}"]


def test_without_otava_it_says_how_to_get_it(history: Path, tmp_path: Path) -> None:
    done = search(history, str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("otava is missing: uv tool install apache-otava\n")

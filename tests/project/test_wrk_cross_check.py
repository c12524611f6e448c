"""The cross-check against wrk: what it makes of figures, its order, and what it does where wrk is missing."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from netdyno.base.paths import ROOT, build_dir
from tests.support import bench_script

SCRIPT = ROOT / "bench" / "wrk_cross_check.py"


@pytest.fixture(scope="module")
def cross() -> ModuleType:
    """The script as a module."""
    return bench_script.load("wrk_cross_check")


def blocks(cross: ModuleType, own: list[float], other: list[float]) -> list[dict[str, list[Any]]]:
    """Blocks in which all figures of each load are the same; two runs of a load differ by 4%."""

    def twice(value: float) -> list[Any]:
        return [cross.Read(value * f, value * f, value * f, value * f) for f in (1.0, 1.04)]

    return [{"netdyno-load": twice(a), "wrk": twice(b)} for a, b in zip(own, other, strict=True)]


def test_a_ratio_stands_beside_its_spread_and_the_noise(cross: ModuleType) -> None:
    found = blocks(cross, [90.0, 110.0, 100.0, 100.0, 100.0], [100.0] * 5)
    text = cross._judged(found, "p99_us")
    assert "p99: ours / wrk 1.000 (quartiles 1.000 to 1.000, blocks 0.900 to 1.100)" in text
    assert "4.0% apart, at most 4.0%" in text


def test_littles_law_stands_beside_it(cross: ModuleType) -> None:
    found = [{"netdyno-load": [cross.Read(1e5, 100.0, 1.0, 1.0)], "wrk": [cross.Read(1e5, 900.0, 1.0, 1.0)]}]
    assert cross._little(found, 10) == "rate x mean, which is 10 by Little's law: netdyno-load 10.00, wrk 90.00\n"


def test_each_load_runs_twice_in_each_block_in_random_order_against_one_server(
    cross: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    @contextmanager
    def serving(_: object) -> Iterator[Any]:
        said.append("server")
        yield cross.Served("tcp://127.0.0.1:1", 0)

    def load(name: str) -> Any:
        def run(*_: object) -> Any:
            said.append(name)
            return cross.Read(1.0, 1.0, 1.0, 1.0)

        return run

    monkeypatch.setattr(cross.Bench, "serving", serving)
    monkeypatch.setattr(cross, "ours", load("warm"))
    monkeypatch.setattr(cross, "LOADS", {"netdyno-load": load("ours"), "wrk": load("wrk")})
    bench = cross.Bench(Path(), ["epoll-reactor"], 10, 1, False)
    rng = random.Random(1)
    orders = set()
    for _ in range(40):
        said.clear()
        found = cross.block(bench, rng)
        assert said[:2] == ["server", "warm"]
        assert sorted(said[2:]) == ["ours", "ours", "wrk", "wrk"]
        assert {name: len(runs) for name, runs in found.items()} == {"netdyno-load": 2, "wrk": 2}
        orders.add(tuple(said[2:]))
    assert len(orders) == 6  # all that there are


def test_without_wrk_it_says_so(tmp_path: Path) -> None:
    said = bench_script.without_programs("wrk_cross_check", tmp_path)
    assert said == "skipped: wrk is not installed (Debian: apt-get install wrk)\n"


@pytest.mark.quiet
@pytest.mark.needs_build
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (packages/debian.txt)")
def test_it_prints_both_and_their_ratios() -> None:
    """One short block: what is printed, not what it says of speed."""
    command = [sys.executable, str(SCRIPT), "--build", str(build_dir())]
    short = ["--blocks", "1", "--seconds", "1", "--connections", "2"]
    ended = subprocess.run([*command, *short], capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    for figure in ("requests/s", "mean", "p50", "p99"):
        assert f"{figure}: ours / wrk " in ended.stdout

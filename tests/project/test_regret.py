"""The bench of the advice: what it draws, how it judges an answer by a longer run, and that it may be stopped."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from netdyno.analysis.split import Part, split
from netdyno.experiment import experiment, workload
from netdyno.model import outcomes
from netdyno.present.export.advice import document
from tests.support import bench_script
from tests.support.builders import made_advice


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return bench_script.load("regret")


def part(costs: Mapping[str, float], p99_ms: Mapping[str, float] | None = None) -> Part:
    (found,) = split(outcomes.judged(made_advice.made(costs, blocks=20, spread=0.01, p99_ms=p99_ms)))
    return found


def said(costs: Mapping[str, float], slo: str = "", spread: float = 0.02) -> dict[str, Any]:
    return document(made_advice.advice(made_advice.made(costs, blocks=8, spread=spread, slo=slo)), None)


def test_what_is_drawn_can_be_asked_and_the_seed_says_it_all(bench: ModuleType) -> None:
    kinds = set()
    for number in range(60):
        one = bench.drawn(1, number)
        given = {name: workload.value_of(name, value, name) for name, value in one.items()}
        (scenario,) = experiment.parse(workload.toml(given, ("a",), 60), "drawn", "drawn").scenarios
        kinds.add((scenario.workload, scenario.arrivals, scenario.metric, bool(workload.slo_of(given))))
    assert len(kinds) >= 6
    assert bench.drawn(1, 3) == bench.drawn(1, 3) != bench.drawn(2, 3)


def test_the_best_has_no_regret_and_another_has_what_it_costs_more(bench: ModuleType) -> None:
    costs = {"a": 10.0, "b": 13.0}
    right = bench.judged(said(costs), part(costs))
    assert (right["first"], right["best"], right["regret"], right["bound_holds"]) == ("a", "a", 0, True)
    wrong = bench.judged(said(costs), part({"a": 13.0, "b": 10.0}))
    assert (wrong["first"], wrong["best"], wrong["bound_holds"]) == ("a", "b", False)
    assert wrong["regret"] == pytest.approx(0.3, abs=0.03)
    assert wrong["best_of_halves"] == pytest.approx(0.3, abs=0.03)
    (interval,) = wrong["intervals"]
    assert (interval["holds"], interval["contradicted"]) == (False, True)
    assert [one["holds"] for one in right["intervals"]] == [True]


def test_who_misses_the_objective_has_no_finite_regret(bench: ModuleType) -> None:
    costs = {"a": 10.0, "b": 13.0}
    found = bench.judged(said(costs, slo="p99<5ms"), part(costs, p99_ms={"a": 9.0, "b": 1.0}))
    assert found["missed"]
    assert (found["regret"], found["bound_holds"]) == (None, False)
    cheap_but_slow = bench.judged(said({"b": 13.0}, slo="p99<5ms"), part(costs, p99_ms={"a": 9.0, "b": 1.0}))
    assert (cheap_but_slow["missed"], cheap_but_slow["regret"]) == (False, 0)


def test_a_best_by_luck_alone_is_none_in_the_other_half(bench: ModuleType) -> None:
    names = dict.fromkeys("abcdef", 10.0)
    (noisy,) = split(outcomes.judged(made_advice.made(names, blocks=12, spread=0.2)))
    found = bench.judged(said({"a": 10.0, "b": 30.0}), noisy)
    assert found["best_of_halves"] < found["regret"]


def test_quartiles_may_be_infinite(bench: ModuleType) -> None:
    assert bench.quartiles([0.0, 0.02, 0.04, math.inf]) == (0.015, 0.03, math.inf)
    assert bench.quartiles([0.5]) == (0.5, 0.5, 0.5)


class Asked:
    """In place of programs: each answer is right, and each takes so long by a clock of its own."""

    def __init__(
        self, bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float = 1.0
    ) -> None:
        self._bench, self._monkeypatch, self._tmp_path = bench, monkeypatch, tmp_path
        self._seconds = seconds
        self.numbers: list[int] = []
        self.store = tmp_path / "regret.json"
        self.now_s = 0.0
        monkeypatch.setattr(bench.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(bench, "advised", self._advised)
        monkeypatch.setattr(bench, "measured", lambda *_: part({"a": 10.0, "b": 13.0}))

    def _advised(self, one: Mapping[str, Any], *_: object) -> dict[str, Any]:
        self.numbers.append(one["seed"] - 1)
        self.now_s += self._seconds
        if one["seed"] == 2:
            return {"take": []}
        return {**said({"a": 10.0, "b": 13.0}), "run": "made"}

    def main(self, *words: str) -> None:
        there = ["--store", str(self.store), "--results", str(self._tmp_path / "results")]
        self._monkeypatch.setattr(sys, "argv", ["regret.py", *there, *words])
        self._bench.main()

    def answers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.store.read_text())["answers"]
        return found


def test_it_goes_on_where_it_was_and_keeps_to_its_budget(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked(bench, monkeypatch, tmp_path, seconds=10.0)
    asked.main("--workloads", "9", "--budget", "25s")
    assert asked.numbers == [0, 1]
    assert len(asked.answers()) == 2
    asked.main("--workloads", "3", "--budget", "1h")
    assert asked.numbers == [0, 1, 2]
    assert "3 workloads, 2 with an answer, 2 of them settled" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="of other settings"):
        asked.main("--blocks", "99")


def test_the_page_has_a_line_for_each(bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Asked(bench, monkeypatch, tmp_path)
    asked.main("--workloads", "2")
    monkeypatch.setattr(bench, "PAGE", tmp_path / "regret.md")
    asked.main("--page")
    text = (tmp_path / "regret.md").read_text()
    assert "regret: median 0% (goal: at most 5%), quartiles 0% and 0%" in text
    assert "the stated bound holds: 1 of 1 (100%)" in text
    assert " | a | a | 0% | 0% |" in text
    assert " | nobody | | |" in text
    assert text.startswith(
        "# How good the advice is\n\nMade by `python bench/regret.py --advice 2m --blocks 16 --seed 1`"
    )

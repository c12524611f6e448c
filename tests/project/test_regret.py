"""The bench of the advice: what it draws, how it judges an answer by a longer run, and that it may be stopped."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from netdyno.analysis.split import Part, split
from netdyno.experiment import experiment, workload
from netdyno.model import outcomes
from netdyno.model.outcomes import Saturated
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
    assert (found["best"], found["regret"], found["bound_holds"]) == ("b", None, False)
    cheap_but_slow = bench.judged(said({"b": 13.0}, slo="p99<5ms"), part(costs, p99_ms={"a": 9.0, "b": 1.0}))
    assert (cheap_but_slow["missed"], cheap_but_slow["regret"]) == (False, 0)


def test_who_is_not_there_in_the_longer_run_is_not_as_good_as_the_best(bench: ModuleType) -> None:
    costs = {"a": 10.0, "b": 13.0}
    for there in ({"b": 13.0}, {}):
        longer = replace(part(costs), ranked=tuple(one for one in part(costs).ranked if one[0].contestant in there))
        found = bench.judged(said(costs), longer)
        assert (found["missed"], found["regret"], found["best_of_halves"]) == (True, None, None)


def test_where_the_generator_was_at_its_limit_nobody_knows_who_is_best(bench: ModuleType) -> None:
    costs = {"a": 10.0, "b": 13.0}
    at_limit = replace(part(costs), saturated=(Saturated("workload", "", "a", 1.0),))
    assert not bench.judged(said(costs), at_limit)["saturated"]  # CPU is what it is
    of_throughput = bench.judged({**said(costs), "metric": "throughput"}, at_limit)
    assert of_throughput["saturated"]
    answer = {"workload": bench.drawn(1, 0), "run": "made", **of_throughput}
    clean = {"workload": bench.drawn(1, 0), "run": "made", **bench.judged(said(costs), part(costs))}
    assert " | unknown | " in bench.line(answer)
    lines = bench.summary([answer, clean])
    assert lines[0].startswith("2 workloads, 2 with an answer")
    assert "the longer run's generator was at its limit: 1; " in lines[1]
    assert "all stated intervals hold the longer run's ratios: 1 of 1" in lines[-1]
    assert bench.summary([answer])[-1].startswith("the longer run's generator")


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


def test_what_ends_with_an_error_is_counted_and_does_not_end_the_bench(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked(bench, monkeypatch, tmp_path)

    def fails(code: int) -> None:
        def truth(*_: object) -> Part:
            raise subprocess.CalledProcessError(code, "run", "", "Traceback")

        monkeypatch.setattr(bench, "measured", truth)

    fails(1)
    asked.main("--workloads", "1")
    assert asked.answers() == [{"workload": bench.drawn(1, 0), "run": None, "error": "Traceback"}]
    assert "ended with an error, and have none: 1" in capsys.readouterr().out
    fails(143)
    with pytest.raises(subprocess.CalledProcessError):
        asked.main("--workloads", "3")
    assert len(asked.answers()) == 2


def test_a_workload_in_a_line_is_no_wider_than_a_page(bench: ModuleType) -> None:
    name = "threads-snapshot-unlocked"
    found = {"run": "made", "first": name, "best": name, "missed": True, "bound": 1.2345}
    for one in (bench.drawn(1, number) for number in range(500)):
        assert len(f"| {bench.line({'workload': one, 'saturated': 'rate' not in one, **found})} |") <= 120


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
    assert max(map(len, text.splitlines())) <= 120
    assert text.startswith("# How good the advice is\n")
    assert "\nMade by `python bench/regret.py --advice 2m --blocks 16 --seed 1`" in text

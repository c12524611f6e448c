"""What bench/answers.py makes of the comparisons of its runs, and what it plants."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.stats import Comparison, Interval
from tests.support import bench_script

answers = bench_script.load("answers")

SLOWER = Comparison(
    a="plain",
    b="5-percent",
    pairs=9,
    blocks=9,
    ratio=1 / 1.05,
    interval=Interval(0.94, 0.96),
    p=0.001,
    different=True,
    axis="cpu",
)


def test_a_verdict_is_of_the_planted_server_over_the_first_one() -> None:
    for comparison in (SLOWER, replace(SLOWER, a=SLOWER.b, b=SLOWER.a, ratio=1.05, interval=Interval(1.04, 1.06))):
        verdict = answers.verdict_of(comparison, "plain")
        assert verdict.ratio == pytest.approx(1.05)
        assert verdict.half_width == pytest.approx(0.01, abs=0.001)
        assert verdict.is_right("cpu")
        assert not verdict.is_right("throughput"), "more throughput would be better"


def test_what_is_not_proven_is_neither_right_nor_wrong() -> None:
    verdict = answers.RunVerdict(1.05, 0.2, different=False)
    summary = answers.summarise([verdict] * 4, "cpu")
    assert (summary.runs, summary.right, summary.wrong) == (4, 0, 0)


def test_the_opposite_of_what_was_planted_is_wrong_and_so_is_any_difference_of_equals() -> None:
    verdicts = [
        answers.RunVerdict(1.05, 0.01, different=True),
        answers.RunVerdict(0.95, 0.02, different=True),
        answers.RunVerdict(1.01, 0.03, different=False),
    ]
    assert answers.summarise(verdicts, "cpu")[:3] == (3, 1, 1)
    assert answers.summarise(verdicts, "cpu", equal=True)[:3] == (3, 0, 2)
    assert answers.summarise(verdicts, "cpu")[3:] == (1.01, 0.02)


def test_a_run_that_could_not_compare_has_no_part_in_the_ratio() -> None:
    undecided = answers.RunVerdict(math.nan, math.inf, different=False)
    summary = answers.summarise([undecided, answers.RunVerdict(1.05, 0.01, different=True), undecided], "cpu")
    assert (summary.ratio, summary.half_width) == (1.05, math.inf)


@pytest.mark.parametrize("question", answers.PLANTED)
def test_one_server_is_equal_and_the_others_are_worse(question: str) -> None:
    planted = answers.PLANTED[question]
    plain = planted[answers.BASE]
    assert planted[answers.EQUAL] == plain
    for name, arguments in planted.items():
        if name not in (answers.BASE, answers.EQUAL):
            assert all(value >= base for value, base in zip(arguments, plain, strict=True))
            assert arguments != plain


@pytest.mark.parametrize("question", answers.PLANTED)
def test_the_settings_differ_in_turns_alone(question: str) -> None:
    on, off = (answers.make_experiment(question, turns, 70.0, 1) for turns in ("on", "off"))
    (in_turns,), (alone,) = on.scenarios, off.scenarios
    assert {key for key in in_turns.__struct_fields__ if getattr(in_turns, key) != getattr(alone, key)} == {"turns"}
    assert (on.time_budget_s, on.seed) == (off.time_budget_s, off.seed)


def test_the_server_knows_the_size_of_a_message() -> None:
    source = (ROOT / "bench" / "planted_server.cpp").read_text(encoding="utf-8")
    assert f"MESSAGE = {answers.SIZE};" in source

"""Only contestants warmed up for longer than the scenario says are named, in the table and in the report."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.run import Run
from netdyno.model.trial import Warmup
from netdyno.present import findings_json
from netdyno.present.prose import notices, repeat
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import EPOLL, made_run
from tests.support.printed import assert_in_table_and_report

SHORT = Warmup(seconds=3.0, measured_s=2.0, steady=True)
LONG = Warmup(seconds=4.25, measured_s=3.0, steady=True)
UNSETTLED = "the cost of a message had not settled after 10 s, so its JIT is part of its figures"
NEVER = Warmup(seconds=10.0, measured_s=10.0, steady=False)


def run_with(*by_level: Warmup | None) -> Run:
    """A run in which one contestant had these warm-ups for `echo` at 10, 100 and 1000 connections."""
    run = made_run()
    warmup_by_level = dict(zip((10, 100, 1000), by_level, strict=False))

    def warmed(level: object) -> Warmup | None:
        return warmup_by_level.get(level) if isinstance(level, int) else None

    trials = tuple(
        replace(trial, warmup=warmed(trial.levels.get("connections")))
        if (trial.scenario, trial.contestant) == ("echo", EPOLL)
        else trial
        for trial in run.trials
    )
    return replace(run, trials=trials)


@pytest.mark.parametrize(
    ("by_level", "text"),
    [
        ((SHORT,), f"Warm-up of {EPOLL}: 3.0 s in echo, measured."),
        ((SHORT, LONG, SHORT), f"Warm-up of {EPOLL}: 3.0 to 4.2 s in echo, measured."),
        (
            (SHORT, NEVER),
            f"Warm-up of {EPOLL}: 3.0 to 10.0 s in echo; {UNSETTLED}.",
        ),
    ],
)
def test_it_is_stated_in_the_table_and_in_the_report(by_level: tuple[Warmup, ...], text: str) -> None:
    analysis = analyse(run_with(*by_level))
    assert [notices.describe_warm_up_times(findings) for findings in analysis.scenarios] == [(text,), (), (), ()]
    assert text in list_caveats(analysis.scenarios[0])
    assert_in_table_and_report(analysis, text)


def test_a_trial_by_hand_has_the_warm_up_of_the_trial() -> None:
    trial = next(trial for trial in run_with(SHORT).trials if trial.warmup is not None)
    analysis = replace(analysed(made_run()), example=trial)
    assert any("--warmup 3s" in command.line for command in repeat.list_commands(analysis))


def test_a_closed_loop_before_it_is_a_command_of_its_own() -> None:
    closed = replace(SHORT, closed=True)
    trial = next(trial for trial in run_with(closed).trials if trial.warmup is not None)
    warming, load = repeat.list_commands(replace(analysed(made_run()), example=trial))[-2:]
    assert warming.purpose == "One trial by hand: its warm-up"
    assert "--arrivals closed" in warming.line
    assert "--duration 3s" in warming.line
    assert "--warmup 2s" in load.line


def test_programs_read_them_level_by_level() -> None:
    document: Any = findings_json.make_document(analyse(run_with(SHORT, LONG)))
    assert document["questions"][0]["warmups"][0] == {
        "contestant": EPOLL,
        "each": [
            {"seconds": 3.0, "measured_s": 2.0, "steady": True, "closed": False},
            {"seconds": 4.25, "measured_s": 3.0, "steady": True, "closed": False},
        ],
    }

"""The announcement before a run's first trial: the questions it will answer, and when it ends."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from netdyno.measure.run.preparation import leave_out_repeats
from netdyno.measure.run.progress import RunPlan
from netdyno.model.experiment import Budget, Experiment
from netdyno.model.observation import Pinning
from netdyno.present.prose.announcement import describe_questions, format_announcement
from netdyno.question import experiment
from netdyno.question.blocks import apply_overrides
from netdyno.question.experiment import find_experiments_folder
from netdyno.verbs.gate import convert_to_gate
from tests.support.chosen import discover_once

MORNING = datetime(2026, 11, 22, 9, 30)  # a clock on the wall has no time zone
NIGHT = datetime(2026, 11, 22, 23, 58)


def repository(name: str, budget: Budget = "normal") -> Experiment:
    """Return an experiment as a machine with two cores runs it."""
    loaded = experiment.load(find_experiments_folder() / f"{name}.toml", budget)
    return leave_out_repeats(loaded, Pinning(server=(0,), generator=(1,), note=""))


def announce(requested: Experiment, begins: datetime) -> list[str]:
    servers = {
        contestant.name: contestant
        for contestant in discover_once()
        if any(contestant.name in scenario.contestants for scenario in requested.scenarios)
    }
    return format_announcement(RunPlan(requested, begins, servers)).splitlines()


def test_the_first_lines_of_quick() -> None:
    question, answers, trials, time = announce(repository("quick"), MORNING)
    assert question == "quick: Which concurrency model should a small TCP server use?"
    assert answers == (
        "It answers which server is best, by how much and at what cost: compute (by throughput), wait (by p99), chat "
        "(by p99) and echo (by p50)."
    )
    assert trials.startswith("It makes 6 or more blocks of 25 trials over loopback (5 contestants")
    assert time == (
        "It takes about 4:30, up to 9:00 on a disturbed machine (minutes:seconds), and ends at about "
        "09:34, at the latest at 09:39."
    )


def test_a_fixed_number_of_blocks_has_one_end() -> None:
    trials, time = announce(apply_overrides(repository("quick"), 2, 0.2, None), MORNING)[-2:]
    assert trials.startswith("It makes 2 blocks of 25 trials")
    assert re.fullmatch(r"It takes about 0:2\d \(minutes:seconds\), and ends at about 09:30.", time)


def test_a_gate_ends_when_it_has_decided() -> None:
    gate = convert_to_gate(repository("quick"), {"cpu": 0.05}, 600.0)
    assert announce(gate, MORNING)[-1] == "It takes up to 10:00 (minutes:seconds), and ends at the latest at 09:40."


def test_with_a_precision_it_ends_between_two_times_and_another_day_is_named() -> None:
    time = announce(apply_overrides(repository("quick"), None, None, None, 0.05), NIGHT - timedelta(minutes=2))[-1]
    assert time.startswith("It takes between ")
    assert time.endswith(", and ends between 23:59 and Monday 00:00.")


@pytest.mark.parametrize(
    ("name", "part"),
    [("sources", "scenarios, from"), ("sources", "published claims hold here"), ("quick", "and echo (by p50)")],
)
def test_many_scenarios_are_counted_and_claims_are_named(name: str, part: str) -> None:
    assert part in describe_questions(repository(name))

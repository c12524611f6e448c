"""Flips of a stored run: which levels and blocks are compared, what is printed of them, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from netdyno.analysis.flips import judge_flips
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.trials.split import split
from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.model import outcomes
from netdyno.model.base import type_level
from netdyno.model.contestant import About
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Pinning
from netdyno.model.run import Run
from netdyno.present.prose.flips import describe_flip, list_rows, summarise_flip
from netdyno.store import read
from netdyno.verbs import flips as command
from tests.support.builders.made_run import EPOLL, LOCK, load_result, made_run

CONNECTIONS = (10, 100, 1000)
BOTH = ("connections", EPOLL, LOCK)


def crossing_run(root: float, factor: str = "connections", levels: tuple[type_level, ...] = CONNECTIONS) -> Run:
    """Of `echo`: the lock is faster below `root`, the coroutines above; each block has its own speed."""
    scenario = Scenario(name="echo", workload="echo", factors={factor: levels})
    run = made_run()
    random = np.random.default_rng(3)
    trials = []
    for trial in run.trials:
        if trial.scenario != "echo" or trial.contestant not in (EPOLL, LOCK) or trial.block > 6 or trial.load is None:
            continue
        number = CONNECTIONS.index(int(trial.levels["connections"]))
        drift = (0.02 * (trial.block % 3 - 1) if trial.contestant == EPOLL else 0.0) + 0.001 * random.normal()
        better = math.log(CONNECTIONS[number] / root) * 0.2 if trial.contestant == EPOLL else 0.0
        level = {factor: levels[number]}
        load = load_result(scenario, level, 50_000 * math.exp(better + drift), 1e6, 0.5, random)
        trials.append(replace(trial, status="valid", audits=(), levels=level, load=load))
    return replace(run, trials=tuple(trials), experiment=replace(run.experiment, scenarios=(scenario,), claims=()))


def answer(run: Run, factor: str = "connections", metric: str | None = None) -> FlipFound:
    (result,) = judge_flips.find_flips(split(outcomes.judge_run(run))[0], factor, EPOLL, LOCK, metric)
    return result


def test_a_flip_along_connections_is_found_and_stated_with_its_interval() -> None:
    result = answer(crossing_run(40.0))
    (crossing,) = result.flips.crossings
    assert result.log
    assert (crossing.before, crossing.after, crossing.rising) == (10, 100, True)
    assert crossing.interval.low < 40 < crossing.interval.high
    text = describe_flip(result)
    low, high = (f"{end:.3g}" for end in (crossing.interval.low, crossing.interval.high))
    assert text == (
        f"Throughput: the winner changes from {LOCK} to {EPOLL} between {low} and {high} connections (95% interval), "
        f"at about {crossing.place:.3g}"
    )
    assert [row[3] for row in list_rows(result)] == [LOCK, EPOLL, EPOLL]


def test_those_that_could_use_different_numbers_of_cores_are_not_compared() -> None:
    run = crossing_run(40.0)
    about = (
        About(kind="server", name=EPOLL, threads="one"),
        About(kind="server", name=LOCK, threads="per-connection"),
    )
    four = Pinning(server=(0, 1, 2, 3), generator=(4, 5, 6, 7), note="")
    on_four = tuple(replace(trial, pinning=four) for trial in run.trials)
    assert not judge_flips.find_flips(split(outcomes.judge_run(replace(run, about=about, trials=on_four)))[0], *BOTH)
    (level,) = split(outcomes.judge_run(replace(run, about=about)))  # with one core they are alike
    assert judge_flips.find_flips(level, *BOTH)[0].uneven == ()


def test_a_flip_that_is_pursued_says_why_nothing_is_compared() -> None:
    result = replace(answer(crossing_run(40.0)), uneven=(100.0,))
    assert (
        "; at 100 they could use different numbers of cores, so they are not compared (server-cores"
        in describe_flip(result)
    )


def test_of_a_time_less_is_better() -> None:
    result = answer(crossing_run(40.0), metric="p50")
    assert {point.side for point in result.flips.points} == {0}  # all have the same latency
    assert describe_flip(result).endswith("is proven better at 10, 100 and 1,000: the difference is at most 0%")


def test_a_server_that_is_not_proven_better_is_better_by_this_at_most() -> None:
    result = answer(crossing_run(10.0))
    (undecided,) = (point for point in result.flips.points if not point.side)
    assert undecided.interval
    most = max(-undecided.interval.low, undecided.interval.high)
    place = f"undecided at {undecided.place:g}"
    assert describe_flip(result).endswith(f"{place}: the difference is at most {quantities.share(math.expm1(most))}")


def test_of_bounds_none_knows_by_how_much_one_may_be_better() -> None:
    at_limit = replace(answer(crossing_run(10.0)), bounded=(10.0,))
    assert describe_flip(at_limit).endswith(
        "undecided at 10; at 10 the generator was at its limit, which shrinks or hides a difference"
    )


def test_without_a_flip_the_better_one_is_named() -> None:
    text = describe_flip(answer(crossing_run(2.0)))
    assert text == (
        f"Throughput: no flip between 10 and 1,000 connections: {EPOLL} is better than {LOCK} at each of 3 levels"
    )


def test_one_level_has_no_flip() -> None:
    run = crossing_run(2.0)
    result = answer(replace(run, trials=tuple(trial for trial in run.trials if trial.levels["connections"] == 1000)))
    assert (result.flips.verdict, summarise_flip(result)) == ("open", "Only one level: no flip")
    assert describe_flip(result) == (
        "Throughput: both were measured at one level only (1,000 connections), where no flip can be seen: "
        f"{EPOLL} is better at 1,000"
    )


def test_levels_may_be_durations() -> None:
    result = answer(crossing_run(40.0, "server.service-time", ("0s", "10us", "100us")), "server.service-time")
    assert not result.log
    assert [point.place for point in result.flips.points] == pytest.approx([0.0, 1e-5, 1e-4])
    assert "µs" in describe_flip(result)


def test_a_block_without_one_of_the_two_says_nothing_there() -> None:
    run = crossing_run(40.0)
    without = tuple(
        trial for trial in run.trials if (trial.block, trial.contestant, trial.levels["connections"]) != (1, LOCK, 10)
    )
    assert [point.blocks for point in answer(replace(run, trials=without)).flips.points] == [
        answer(run).flips.points[0].blocks - 1,
        *(point.blocks for point in answer(run).flips.points[1:]),
    ]


@pytest.mark.parametrize(
    ("first", "second", "factor", "metric", "message"),
    [
        (
            EPOLL,
            LOCK,
            "rate",
            None,
            "no two levels of 'rate' .* cannot show a flip; it has several of connections",
        ),
        (EPOLL, "nobody", "connections", None, "'nobody' was not measured across connections"),
        (EPOLL, EPOLL, "connections", None, "is named twice: a flip is between two contestants"),
        (EPOLL, LOCK, "connections", "thruput", "unknown metric 'thruput'"),
    ],
)
def test_what_cannot_be_requested_is_stated(
    first: str, second: str, factor: str, metric: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        command.find_flips(split(outcomes.judge_run(crossing_run(40.0))), first, second, factor, metric)


def test_the_command_prints_table_or_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(read, "find", lambda results, run: results / run)
    monkeypatch.setattr(read, "load", lambda path: crossing_run(40.0))
    assert command.run("x", EPOLL, LOCK, "connections", None, tmp_path, as_json=True) == 0
    (printed,) = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == "flip"
    assert printed["sentence"].startswith("Throughput: ")
    assert command.run("x", EPOLL, LOCK, "connections", None, tmp_path, as_json=False) == 0
    out = capsys.readouterr().out
    assert "echo: Throughput" in out
    assert "1,000" in out

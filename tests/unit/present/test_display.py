"""A pipe gets clean lines, a terminal a block that is drawn in place; neither needs a thread of its own."""

from __future__ import annotations

import io
import threading

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.measure.run.progress import FirstFailure, Progress
from netdyno.model.load_result import Audit
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.present.prose.progress import format_left
from netdyno.present.terminal.display import LiveDisplay, PlainDisplay, describe_result, render
from netdyno.question.plan import Cell
from tests.support.builders.made_run import EPOLL, REUSEPORT, ZMQ, messages_run

CELLS = tuple(
    Cell(block=block, position=0, scenario="echo", contestant="a", levels={"connections": 10}) for block in (1, 2)
)
BEGUN = FirstFailure(UserError("two trials"))


def trial(status: str = "failed", seconds: float = 4.0) -> Trial:
    return Trial(
        block=1,
        position=0,
        scenario="echo",
        contestant="a",
        levels={"connections": 10},
        status=status,  # type: ignore[arg-type]
        reason="no ready\nline",
        started_at="",
        seconds=seconds,
    )


def test_a_pipe_gets_one_clean_line_per_trial() -> None:
    stream = io.StringIO()
    display, progress = PlainDisplay(stream), Progress(CELLS, 1.0)
    display.begin(BEGUN)
    display.trial_started(CELLS[0], progress)
    display.throughput(100, 0.5)
    progress.add(trial())
    display.trial_done(trial(), progress)
    display.close()
    assert stream.getvalue() == (
        "two trials\nblock 1/2 trial 1/2 (0:04 left) echo connections=10 a: failed: no ready line\n"
    )


def test_a_pipe_is_not_left_without_a_line_for_longer_than_half_a_minute() -> None:
    stream, now = io.StringIO(), [0.0]
    display, progress = PlainDisplay(stream, lambda: now[0]), Progress(CELLS, 90.0)
    display.begin(FirstFailure(UserError("two trials\nof 90 s")))
    display.trial_started(CELLS[0], progress)
    for second in range(1, 91):
        now[0] = second
        display.throughput(1000 * second, float(second))
    line = "block 1/2 trial 1/2 (3:00 left) echo connections=10 a: 1,000/s so far\n"
    assert stream.getvalue() == "two trials\nof 90 s\n" + 3 * line


def test_loss_stands_beside_the_latency_of_a_trial_over_messages() -> None:
    descriptions = {
        trial.contestant: describe_result(trial)
        for trial in messages_run(1).trials
        if trial.levels["connections"] == 1000
    }
    assert descriptions[REUSEPORT].endswith(" us, 12% lost")
    assert descriptions[ZMQ].endswith(" us, 0% lost")
    assert descriptions[EPOLL].endswith(" us")


def test_a_trial_that_the_machine_disturbed_says_by_what_and_from_the_second_on_which_try() -> None:
    audits = tuple(Audit(name=name, passed=False, detail="") for name in ("steal", "window"))
    first = replace(trial("struck_out"), audits=audits)
    assert describe_result(first) == "the machine disturbed it (steal and window)"
    assert describe_result(replace(first, attempt=2)) == "the machine disturbed it (steal and window), try 2"


def test_a_trial_that_falls_behind_in_its_slices_does_not_blame_the_machine() -> None:
    behind, stolen = (Audit(name=name, passed=False, detail="") for name in ("backlog", "steal"))
    slow = replace(trial("struck_out"), audits=(behind,))
    assert describe_result(slow) == "it fell behind a slice's rate; if most of its trials do, each server runs alone"
    assert describe_result(replace(slow, audits=(behind, stolen))) == "the machine disturbed it (backlog and steal)"


def test_a_trial_that_only_the_generator_doubts_tells_its_figures_and_counts_as_a_bound() -> None:
    doubt = Audit(name="generator", passed=False, detail="0.98 of 1 cores")
    measured = next(trial for trial in messages_run(1).trials if trial.load and trial.status == "valid")
    doubted = replace(measured, status="struck_out", reason="generator: 0.98 of 1 cores", audits=(doubt,))
    assert describe_result(doubted) == f"{describe_result(measured)}, as a bound"
    progress = Progress(CELLS, 1.0)
    progress.add(doubted)
    assert render(CELLS[1], progress, 5.0, 100)[2] == "5 messages/s   (1 as a bound)"
    wrong = replace(doubted, audits=(doubt, Audit(name="server_totals", passed=False, detail="")))
    assert describe_result(wrong) == "invalid: generator: 0.98 of 1 cores"


def test_what_is_not_known_is_no_nought() -> None:
    measured = next(trial for trial in messages_run(1).trials if trial.load and trial.status == "valid")
    assert measured.load is not None
    empty = msgspec.structs.replace(measured.load.latency.response_ns, count=0, p99=0)
    latency = msgspec.structs.replace(measured.load.latency, response_ns=empty)
    requests = msgspec.structs.replace(measured.load.requests, per_second=0.25)
    silent = replace(measured, load=msgspec.structs.replace(measured.load, latency=latency, requests=requests))
    assert describe_result(silent).startswith(f"0.250/s, p99 {quantities.DASH}")
    assert silent.load is not None
    for metric in ("mean", "p50", "p90", "p99", "jitter"):
        assert METRICS[metric].value(silent, silent.load) is None
    progress = Progress(CELLS, 1.0)
    assert render(CELLS[0], progress, None, 100)[2] == "starting"
    assert render(CELLS[0], progress, 0.0, 100)[2] == "0 messages/s", "a server that stands still"


def test_the_time_left_is_the_plan_s_until_there_are_trials() -> None:
    progress = Progress(CELLS, 1.5)
    assert progress.left_s() == pytest.approx(3.0)
    progress.add(trial(seconds=4.0))
    assert progress.left_s() == pytest.approx(4.0)
    progress.add(trial(seconds=0.0))
    assert progress.left_s() == 0.0


def test_of_a_run_that_may_go_on_the_time_left_is_the_most_that_it_may_take() -> None:
    progress = Progress(CELLS, 1.5, time_budget_s=60.0)
    progress.expect(2, 10, 5)
    assert format_left(progress) == "at most 0:15 left"
    progress.add(trial(seconds=20.0))
    assert format_left(progress) == "at most 0:40 left"  # 180 s for nine trials, and no time for them
    progress.expect(8, 10, 5)
    assert format_left(progress) == "at most 2:20 left"  # what is planned comes, whatever the budget
    assert "block 1/5, trial 2/10" in render(CELLS[0], progress, 0.0, 100)[1]
    progress.expect(2, 2, 2)
    assert format_left(progress) == "0:20 left"


def test_the_live_block_says_which_trial_which_block_how_long_and_how_fast() -> None:
    progress = Progress(CELLS, 90.0)
    progress.add(trial(seconds=90.0))
    first, second, third = render(CELLS[1], progress, 1234567.0, 100)
    assert "50%" in first
    assert "1:30 left" in first
    assert second == "block 2/2, trial 2/2: echo connections=10 a"
    assert third == "1,234,567 messages/s   (1 failed)"


def test_a_terminal_is_drawn_in_place_without_a_thread() -> None:
    stream = io.StringIO()
    display = LiveDisplay(Console(file=stream, force_terminal=True, width=100))
    progress = Progress(CELLS, 1.0)
    threads = set(threading.enumerate())  # other tests of this process may have left some
    display.begin(BEGUN)
    display.trial_started(CELLS[0], progress)
    started = set(threading.enumerate()) - threads
    display.throughput(100, 0.5)
    display.trial_done(trial(), progress)
    display.close()
    assert started == set()
    assert "two trials" in stream.getvalue()
    assert "block 1/2, trial 1/2" in stream.getvalue()
    assert "failed: no ready" in stream.getvalue()


def test_redraws_are_few_however_often_the_runner_calls() -> None:
    stream = io.StringIO()
    display = LiveDisplay(Console(file=stream, force_terminal=True, width=100))
    display.begin(BEGUN)
    display.trial_started(CELLS[0], Progress(CELLS, 1.0))
    drawn = len(stream.getvalue())
    for _ in range(1000):
        display.throughput(1, 1.0)
    assert len(stream.getvalue()) < drawn * 2
    display.close()

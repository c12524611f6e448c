"""The choice of traced trials, and the result of one: with a fake server that may ask the kernel for more."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.trial import traced
from netdyno.measure.trial.context import TrialContext
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import middle
from netdyno.model.options import settings
from netdyno.model.run import Run
from netdyno.model.trial import Traced
from netdyno.question import plan
from netdyno.store import read, schema, write


@pytest.fixture
def servers(contestant: Contestant) -> dict[str, Contestant]:
    absent = msgspec.structs.replace(contestant, name="absent", available=False, why_not="Folly not found")
    return {server.name: server for server in (contestant, msgspec.structs.replace(contestant, name="other"), absent)}


# --- which -------------------------------------------------------------------------------------------------------


def test_a_scenario_is_traced_at_one_combination_in_the_middle_of_its_levels() -> None:
    factors: dict[str, tuple[type_level, ...]] = {
        "connections": (1, 10, 100),
        "both.nodelay": ("on", "off"),
        "size": (31,),
    }
    assert middle(Scenario(name="a", workload="echo", factors=factors)) == {
        "connections": 10,
        "both.nodelay": "off",
        "size": 31,
    }
    assert middle(Scenario(name="a", workload="echo")) == {}


def long(experiment: Experiment, *names: str) -> Experiment:
    """Return an experiment a hundred times as long as its tracing."""
    return experiment.with_each(contestants=names, blocks=100, duration_s=2.0)


def test_each_contestant_of_each_scenario_is_traced_once(
    experiment: Experiment, servers: dict[str, Contestant]
) -> None:
    tasks = traced.plan_tasks(long(experiment, "fake", "other", "absent"), servers)
    assert [(task.contestant, task.levels, task.reason) for task in tasks] == [
        ("fake", {"connections": 2}, ""),
        ("other", {"connections": 2}, ""),
        ("absent", {"connections": 2}, "Folly not found"),
    ]
    assert traced.estimate_seconds(tasks) == pytest.approx(2 * traced.estimate_seconds(tasks[:1]))
    assert traced.count_tasks(tasks) == 2


def test_a_burst_is_no_part_of_a_trace(experiment: Experiment, servers: dict[str, Contestant]) -> None:
    first = experiment.scenarios[0]
    bursting = msgspec.structs.replace(first, arrivals="poisson", rate=100, burst_rate=300)
    plain = msgspec.structs.replace(bursting, burst_rate=None)
    shortened = [traced.shorten(settings(scenario, {})) for scenario in (bursting, plain)]
    assert shortened[0] == shortened[1]


def test_tracing_takes_a_tenth_of_a_run_at_most_and_all_of_a_scenario_or_nothing(
    experiment: Experiment, servers: dict[str, Contestant]
) -> None:
    first = experiment.scenarios[0]
    two = msgspec.structs.replace(experiment, scenarios=(first, msgspec.structs.replace(first, name="second")))
    for blocks in range(1, 40):
        requested = two.with_each(contestants=("fake", "other"), blocks=blocks, duration_s=0.3)
        tasks = traced.plan_tasks(requested, servers)
        assert traced.estimate_seconds(tasks) <= traced.SHARE * plan.estimate_seconds(requested, servers)
        for name in ("echo", "second"):
            assert len({task.reason for task in tasks if task.scenario.name == name}) == 1, "all or none"
    few, many = (
        traced.plan_tasks(two.with_each(contestants=("fake",), blocks=blocks, duration_s=0.3), servers)
        for blocks in (1, 39)
    )
    assert ["--trace always" in task.reason for task in few] == [True, True]
    assert [task.reason for task in many] == ["", ""]


def test_on_request_it_is_always_or_never_done(experiment: Experiment, servers: dict[str, Contestant]) -> None:
    requested = experiment.with_each(contestants=("fake",), blocks=1)
    assert [task.reason for task in traced.plan_tasks(requested, servers, trace="always")] == [""]
    assert traced.plan_tasks(long(experiment, "fake"), servers, trace="never") == ()
    assert traced.count_tasks(()) == 0


def test_one_that_stands_already_is_not_held_up(experiment: Experiment, contestant: Contestant) -> None:
    there = msgspec.structs.replace(contestant, own=Own(command="", workload="echo", address="tcp://127.0.0.1:1"))
    requested = experiment.with_each(contestants=("fake",), blocks=1)
    (task, *_) = traced.plan_tasks(requested, {"fake": there}, trace="always")
    assert task.reason == "an already running server is not traced"


def test_a_trace_is_short_whatever_the_window(experiment: Experiment, servers: dict[str, Contestant]) -> None:
    tasks = traced.plan_tasks(
        experiment.with_each(contestants=("fake",), duration_s=60.0, warmup_s=9.0), servers, trace="always"
    )
    assert traced.estimate_seconds(tasks) < 1.5


# --- what comes of one -------------------------------------------------------------------------------------------


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load sends all through its window, which is long enough for a busy machine."""
    monkeypatch.setenv("FAKE_LOAD", "steady")
    monkeypatch.setattr(traced, "WINDOW_S", 1.0)


def trace_one(experiment: Experiment, contestant: Contestant, context: TrialContext) -> Traced:
    requested = experiment.with_each(contestants=(contestant.name,), duration_s=1.0)
    (task,) = traced.plan_tasks(requested, {contestant.name: contestant}, trace="always")
    return traced.trace_task(task, contestant, context)


def per_message(result: Traced) -> dict[str, float]:
    assert result.reason == ""
    return {call.name: call.calls / result.messages for call in result.calls}


@pytest.mark.calm
@pytest.mark.usefixtures("strace_program", "steady")
def test_a_server_that_makes_one_more_system_call_a_message_is_seen(
    experiment: Experiment, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = trace_one(experiment, contestant, context)
    monkeypatch.setenv("FAKE_SERVER", "asks_more")
    more = trace_one(experiment, contestant, context)
    usual, unusual = per_message(plain), per_message(more)
    assert usual["recvfrom"] == pytest.approx(1, abs=0.15)
    assert usual["sendto"] == pytest.approx(1, abs=0.15)
    assert "getppid" not in usual
    assert unusual["getppid"] == pytest.approx(1, abs=0.15)
    assert sum(unusual.values()) - sum(usual.values()) == pytest.approx(1, abs=0.3)
    assert (plain.scenario, plain.contestant, plain.levels) == ("echo", "fake", {"connections": 2})
    assert plain.threads == 1
    assert 0.5 < plain.window_s < 20


@pytest.mark.usefixtures("strace_program", "steady")
def test_calls_are_counted_in_the_window_of_the_load_however_late_the_harness_reads_that_it_began(
    experiment: Experiment, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = traced.TracedWindow.window_start

    def begin_late(window: traced.TracedWindow) -> None:
        time.sleep(0.5)
        begin(window)

    monkeypatch.setattr(traced.TracedWindow, "window_start", begin_late)
    result = trace_one(experiment, contestant, context)
    calls = {call.name: call.calls for call in result.calls}
    assert calls["sendto"] == pytest.approx(result.messages, abs=4), "two connections, and a round before the window"
    assert result.window_s == pytest.approx(1.0)


@pytest.mark.calm
@pytest.mark.usefixtures("strace_program", "steady")
def test_what_a_server_does_before_and_after_the_window_is_no_messages_work(
    experiment: Experiment, contestant: Contestant, context: TrialContext
) -> None:
    assert (
        not {"accept4", "listen", "execve", "exit_group"}
        & per_message(trace_one(experiment, contestant, context)).keys()
    )


@pytest.mark.usefixtures("strace_program", "steady")
def test_the_log_stays_and_the_trace_goes(
    experiment: Experiment, contestant: Contestant, context: TrialContext
) -> None:
    result = trace_one(experiment, contestant, context)
    text = (context.folder / result.log).read_text()
    assert "== strace: " in text
    assert "== server: " in text
    assert [path.name for path in (context.folder / "logs").iterdir()] == [Path(result.log).name]


@pytest.mark.usefixtures("strace_program", "steady")
def test_answers_are_waited_for_no_longer_than_a_trace_needs(
    experiment: Experiment, contestant: Contestant, context: TrialContext
) -> None:
    for asked_s, waits in ((60.0, "2s"), (1.0, "1s")):
        result = trace_one(experiment.with_each(timeout_s=asked_s), contestant, context)
        loads = [line for line in (context.folder / result.log).read_text().splitlines() if "--arrivals" in line]
        assert f"--timeout {waits} " in loads[-1]


def test_without_strace_it_is_a_stated_skip(
    experiment: Experiment, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "which", lambda _: None)
    assert trace_one(experiment, contestant, context).reason == "strace is not installed (package strace)"


def test_where_none_may_trace_it_is_one_too(
    experiment: Experiment,
    contestant: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    refused = tmp_path / "refused"
    refused.write_text("#!/bin/sh\necho 'attach: ptrace(PTRACE_SEIZE, 7): Operation not permitted' >&2\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setattr(traced, "which", lambda _: str(refused))
    result = trace_one(experiment, contestant, context)
    assert result.reason.startswith("strace may not trace here: attach: ptrace")
    assert (result.messages, result.calls) == (0, ())


@pytest.mark.usefixtures("strace_program")
def test_too_few_messages_to_count_by_are_a_reason(
    experiment: Experiment, contestant: Contestant, context: TrialContext
) -> None:
    assert "6 messages in " in trace_one(experiment, contestant, context).reason


@pytest.mark.usefixtures("strace_program")
def test_a_server_that_dies_under_it_is_a_reason_and_no_fault(
    experiment: Experiment, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "dies_under_load")
    assert "the server ended with signal SIGKILL" in trace_one(experiment, contestant, context).reason


def test_over_a_link_that_is_not_measured_over_nothing_is_traced(
    experiment: Experiment, contestant: Contestant, context: TrialContext
) -> None:
    bad = msgspec.structs.replace(context, bad_links={"loopback": "it takes 9 ms"})
    assert trace_one(experiment, contestant, bad).reason == "it takes 9 ms"


# --- how it is stored --------------------------------------------------------------------------------------------


def test_it_is_stored_beside_the_trials_and_read_back(experiment: Experiment, tmp_path: Path) -> None:
    run = Run(run_id="x", experiment=experiment, started_at="now", finished_at=None, environment={}, trials=())
    results = [Traced(scenario="echo", contestant=name, levels={"connections": 2}, messages=7) for name in ("b", "a")]
    with write.Store.create(tmp_path, run, [], ()) as stored:
        for result in results:
            stored.add_traced(result)
    found_again = read.load(tmp_path / schema.FILE_NAME)
    assert found_again.traced == tuple(results)
    assert found_again.trials == ()

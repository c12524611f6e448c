"""The whole chain over machines of 1 to 128 processors: plan, pinning, command lines, stored trials, analysis,
sentence, table, report, JSON and export. Contestants have the same cores and use them, or are not ranked with each
other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.kit.paths import ROOT
from netdyno.measure.machine import pinning, topology
from netdyno.measure.run import preparation, runner
from netdyno.measure.trial import warm_up
from netdyno.model.observation import Pinning
from netdyno.model.run import Run
from netdyno.present import findings_json, report
from netdyno.present.export import collect, tables
from netdyno.question import experiment
from netdyno.store import read, schema
from tests.support.builders.made_blocks import execute
from tests.support.builders.made_machine import MACHINES, run_trial
from tests.support.printed import print_in_one_line, print_table
from tests.support.recorded_machine import unpack

pytestmark = pytest.mark.usefixtures("trial_by_trial", "steady_canary")

ONE_THREAD = {"epoll-coroutines", "epoll-reactor", "node-events"}
DRAWN = ("vm-2", "i9-12900k")
"""Machines without parallel servers and with them."""
BLOCKS = 6
PerformRun = Callable[..., tuple[Run, Analysis]]


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path) -> PerformRun:
    """Run scenarios of an experiment of this project on a machine: all of it but the programs of a trial."""

    def carry_out(machine: str, name: str, *scenarios: str, **fields: object) -> tuple[Run, Analysis]:
        monkeypatch.setattr(topology, "ROOT", unpack(machine, tmp_path / machine))
        used = {core.cpu for core in topology.read().alike}
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: used)
        monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)  # there is no such processor here
        monkeypatch.setattr(runner, "run_trial", run_trial)
        monkeypatch.setattr(warm_up, "measure", lambda *_: iter(()))  # it would pin programs
        whole = experiment.load(ROOT / "experiments" / f"{name}.toml").with_each(
            blocks=BLOCKS, most_blocks=None, **fields
        )
        selected = tuple(scenario for scenario in whole.scenarios if scenario.name in scenarios)
        requested = msgspec.structs.replace(
            whole, scenarios=selected, aa_share=0.0, time_budget_s=None, time_limit_s=None
        )
        requested = preparation.leave_out_repeats(requested, pinning.choose())
        done = execute(requested, tmp_path / "results", fake_build, trace="never")
        run = read.load(done.folder / schema.FILE_NAME)
        return run, analyse(run)

    return carry_out


def question(analysis: Analysis, name: str) -> Mapping[str, Any]:
    questions = findings_json.make_document(analysis)["questions"]
    assert isinstance(questions, list)
    entry: Mapping[str, Any] = next(candidate for candidate in questions if candidate["name"] == name)
    return entry


@pytest.mark.parametrize("name", MACHINES)
def test_a_server_that_can_use_all_cores_does_and_none_is_ranked_with_those_that_cannot(
    name: str, carried_out: PerformRun
) -> None:
    machine = MACHINES[name]
    run, analysis = carried_out(name, "quick", "compute", "compute on one core", "echo")
    (sides,) = {trial.pinning for trial in run.trials if trial.scenario != "compute on one core"}
    assert sides is not None
    assert (len(sides.server), len(sides.generator)) == (machine.server, machine.generator)
    cores = max(machine.server, 1)
    asio = [
        trial.added["threads"]
        for trial in run.trials
        if trial.contestant.startswith("asio-") and trial.scenario != "compute on one core"
    ]
    assert set(asio) == {cores}
    names = set(run.experiment.scenarios[0].contestants)
    able = names - ONE_THREAD
    compute, one_client = question(analysis, "compute"), question(analysis, "echo")
    assert not compute["censored"]  # the generator has as many threads as it takes

    ranks = {contestant["name"]: contestant["rank"] for contestant in compute["contestants"]}
    compared = {
        frozenset((comparison["a"], comparison["b"])) for axis in compute["axes"] for comparison in axis["comparisons"]
    }
    mixed = {pair for pair in compared if len(pair & ONE_THREAD) == 1}
    sentences = f"{compute['sentence']} {compute['headline']}"
    if machine.parallel:
        assert {name for name, rank in ranks.items() if rank is None} == names & ONE_THREAD
        assert min(ranks[name] for name in able) == 1
        assert not mixed
        best = [name for name, rank in ranks.items() if rank == 1]
        assert compute["verdict"] in ("winner", "equal", "undecided")
        assert compute["verdict"] != "winner" or best[0].startswith(("asio-", "threads-"))
        assert f"epoll-coroutines, which could use {'one core'}" in sentences
        assert [len(group["contestants"]) for group in compute["ground"]["together"]] == [4, 1]
        assert "on one core:" in print_table(analysis, 100)
        on_one_core = question(analysis, "compute on one core")
        assert len(on_one_core["ground"]["together"]) == 1
        assert None not in [contestant["rank"] for contestant in on_one_core["contestants"]]
    else:
        assert [scenario.name for scenario in run.experiment.scenarios] == ["compute", "echo"]
        assert None not in ranks.values()
        assert mixed
        assert "Not ranked here" not in sentences
        assert len(compute["ground"]["together"]) == 1
    # What a core more gives is no difference between models: they are within a tenth of each other, core by core.
    assert not re.search(r"\d times that of", sentences)
    assert not compute["whys"] or all(1 / 1.5 < why["result"]["ratio"] < 1.5 for why in compute["whys"])
    assert all(
        contestant["rank"] is not None for contestant in one_client["contestants"]
    )  # one client is served by one thread


@pytest.mark.parametrize("name", DRAWN)
def test_those_with_one_core_are_ranked_among_themselves(name: str, carried_out: PerformRun) -> None:
    """The question for a web server: two contestants that can use all cores, and two that run one thread."""
    machine = MACHINES[name]
    _, analysis = carried_out(name, "web", "most")
    most = question(analysis, "most")
    by_ground: dict[int, dict[str, int]] = {}
    for contestant in most["contestants"]:
        by_ground.setdefault(contestant["ground"], {})[contestant["name"]] = contestant["rank"]
    pages = [
        print_table(analysis, 100),
        tables.format_markdown(collect.collect(analysis)),
        report.render_html(analysis),
    ]
    if machine.parallel:
        assert [set(group) for group in by_ground.values()] == [
            {"asio-callbacks", "threads-global-lock"},
            {"epoll-reactor", "node-events"},
        ]
        assert all(1 in ranks.values() for ranks in by_ground.values())
        assert len(most["elsewhere"]) == 1
        many, one_core = most["sentence"].split("of those that could use one core")
        assert "asio-callbacks" in many
        assert not ONE_THREAD & set(re.findall(r"[a-z]+-[a-z]+", many.rpartition(". ")[0]))
        assert "asio-callbacks" not in one_core
        assert all("one core" in page for page in pages)
    else:
        assert list(by_ground) == [0]
        assert most["elsewhere"] == []
        assert all("could use" not in page for page in pages)
    scored = {score["contestant"]: score["ground"] for axis in most["axes"] for score in axis["scores"]}
    assert scored == {contestant["name"]: contestant["ground"] for contestant in most["contestants"]}
    rows = [row for row in tables.list_rows(collect.collect(analysis)) if row["table"] == "ranking"]
    assert {(row["contestant"], row["ground"]) for row in rows} == set(scored.items())


def test_with_one_processor_the_terminal_says_that_both_sides_share_it(carried_out: PerformRun) -> None:
    _, analysis = carried_out("vm-1", "quick", "compute")
    assert "Server and generator shared one core" in print_in_one_line(analysis, 100)
    assert "The server had" not in print_table(analysis, 100)


def test_every_answer_under_a_quota_says_so(carried_out: PerformRun) -> None:
    _, analysis = carried_out("vm-2-quota", "quick", "compute")
    notice = "Measured under a CPU quota of 0.4 cores for server, generator and netdyno together."
    assert notice in print_in_one_line(analysis, 100)
    assert notice in report.render_html(analysis)
    assert question(analysis, "compute")["ground"]["quota_cores"] == 0.4
    _, analysis = carried_out("vm-2", "quick", "compute")
    assert "quota" not in print_table(analysis, 100)


def test_on_two_processors_a_run_says_what_it_always_has(carried_out: PerformRun) -> None:
    _, analysis = carried_out("vm-2", "quick", "compute")
    printed = print_in_one_line(analysis, 100)
    assert "The server had one core: lock contention and parallel work cannot show here" in printed
    assert "could use" not in printed


def test_with_one_core_for_the_server_all_models_are_ranked_on_a_large_machine(carried_out: PerformRun) -> None:
    run, analysis = carried_out("i7-8550u", "quick", "compute", server_cores=1)
    assert {(len(trial.pinning.server), len(trial.pinning.generator)) for trial in run.trials if trial.pinning} == {
        (1, 4)
    }
    compute = question(analysis, "compute")
    assert None not in [contestant["rank"] for contestant in compute["contestants"]]
    assert len(compute["ground"]["together"]) == 1


@pytest.mark.parametrize(("cores", "kept"), [((), 1), ((0,), 1), ((0, 1), 2)])
def test_a_question_about_one_core_is_left_out_where_the_server_has_no_more(cores: tuple[int, ...], kept: int) -> None:
    whole = experiment.load(ROOT / "experiments" / "quick.toml")
    sides = Pinning(server=cores, generator=cores, note="")
    left = [scenario.name for scenario in preparation.leave_out_repeats(whole, sides).scenarios]
    assert left == [
        scenario.name for scenario in whole.scenarios if kept == 2 or scenario.name != "compute on one core"
    ]


def test_a_request_made_twice_is_carried_out_twice() -> None:
    whole = experiment.load(ROOT / "experiments" / "quick.toml")
    compute = whole.scenarios[0]
    twice = msgspec.structs.replace(whole, scenarios=(compute, msgspec.structs.replace(compute, name="again")))
    assert preparation.leave_out_repeats(twice, Pinning(server=(0,), generator=(1,), note="")) == twice


def test_a_question_that_is_requested_in_another_way_is_not_left_out() -> None:
    whole = experiment.load(ROOT / "experiments" / "quick.toml")
    on_one_core = msgspec.structs.replace(whole.scenarios[1], turns="off")
    two_ways = msgspec.structs.replace(whole, scenarios=(whole.scenarios[0], on_one_core))
    assert preparation.leave_out_repeats(two_ways, Pinning(server=(0,), generator=(1,), note="")) == two_ways

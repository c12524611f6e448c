"""How throughput grew with cores stands in the findings, the table and the report, with what it cannot say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.notices import Scaling
from netdyno.kit.quantities import TIMES
from netdyno.model.base import type_level
from netdyno.model.load_result import Audit
from netdyno.model.observation import Pinning
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.findings_json import make_document
from netdyno.present.prose.scaling import SHARED, describe_contestants
from netdyno.present.report import render_html
from tests.support.builders.made_run import EPOLL, LOCK, made_run
from tests.support.printed import print_in_one_line

ALL: dict[str, type_level] = {"server-cores": "all"}
BUSY = Audit(name="generator", passed=False, detail="the busiest thread used 99% of a core")
CORES = {10: 1, 100: 2, 1000: 4}
SPEEDUPS = {EPOLL: {1: 1.0, 2: 2.0, 4: 4.0}, LOCK: {1: 1.0, 2: 1 / 0.7, 4: 4 / 2.2}}


def run_on_cores(*, arrivals: str = "closed", without: int | None = None, censored: int | None = None) -> Run:
    """`echo` on 1, 2 and 4 cores: epoll grows in proportion, the lock with 40% serial. `without` a number of cores;
    with the generator of the lock at its limit on `censored`."""
    run = made_run()
    (echo,) = (scenario for scenario in run.experiment.scenarios if scenario.name == "echo")
    echo = replace(echo, factors={"server-cores": tuple(CORES.values())}, arrivals=arrivals)
    single = {
        (trial.contestant, trial.block): trial.load.requests.per_second
        for trial in run.trials
        if trial.scenario == "echo" and trial.levels == {"connections": 10} and trial.load
    }

    def place(trial: Trial) -> Trial:
        cores = CORES[int(trial.levels["connections"])]
        levels: dict[str, type_level] = {"server-cores": cores}
        first = single.get((trial.contestant, trial.block))
        if trial.load is None or first is None:
            return replace(trial, levels=levels)
        rate = first * SPEEDUPS[trial.contestant][cores]
        load = replace(trial.load, requests=replace(trial.load.requests, per_second=rate))
        if trial.contestant == LOCK and cores == censored:
            thread = replace(load.generator.threads[0], cpu_user_s=1.0, cpu_system_s=0.99)
            load = replace(load, generator=replace(load.generator, threads=(thread,), cores_used=0.995))
            return replace(trial, levels=levels, load=load, status="struck_out", audits=(BUSY,))
        return replace(trial, levels=levels, load=load)

    trials = tuple(
        place(trial)
        for trial in run.trials
        if trial.scenario == "echo"
        and trial.contestant in SPEEDUPS
        and CORES[int(trial.levels["connections"])] != without
    )
    return replace(run, experiment=replace(run.experiment, scenarios=(echo,), claims=(), figures=()), trials=trials)


def find_by_contestant(run: Run) -> dict[str, Scaling]:
    (findings,) = analyse(run).scenarios
    return {scaling.contestant: scaling for scaling in findings.scaling}


def test_speedups_and_the_serial_part_are_those_of_the_run() -> None:
    by_contestant = find_by_contestant(run_on_cores())
    assert [speedup.cores for speedup in by_contestant[LOCK].speedups] == [2, 4]
    assert [speedup.ratio.value for speedup in by_contestant[LOCK].speedups] == pytest.approx([1 / 0.7, 4 / 2.2])
    for name, share in ((EPOLL, 0.0), (LOCK, 0.4)):
        scaling = by_contestant[name]
        assert scaling.serial
        assert scaling.contention
        assert scaling.coherency
        assert scaling.serial.value == pytest.approx(share, abs=1e-9)
        assert scaling.contention.value == pytest.approx(share, abs=1e-9)
        assert scaling.coherency.value == pytest.approx(0, abs=1e-9)
        assert scaling.serial.interval


def test_they_stand_in_the_table_the_report_and_the_document() -> None:
    run = run_on_cores()
    speedups = f"{TIMES}1.43 [1.43, 1.43] on 2 cores and {TIMES}1.82 [1.82, 1.82] on 4 cores, relative to one"
    assert f"{LOCK}: {speedups}; by Amdahl's law 40% [40%, 40%] of the work is serial." in print_in_one_line(
        analyse(run), 200
    )
    page = render_html(analyse(run))
    assert "Throughput by the cores of the server" in page
    assert ">ideal</text>" in page
    (question,) = make_document(analyse(run))["questions"]
    assert [entry["contestant"] for entry in question["scaling"]] == sorted(SPEEDUPS)


def test_of_shared_cores_the_load_takes_a_part() -> None:
    run = run_on_cores()
    assert SHARED not in print_in_one_line(analyse(run), 200)
    assert SHARED not in render_html(analyse(run))
    shared = Pinning(server=(0, 1), generator=(0, 1), harness=(), note="")
    run = replace(run, trials=tuple(replace(trial, pinning=shared) for trial in run.trials))
    assert SHARED in print_in_one_line(analyse(run), 200)
    assert SHARED in render_html(analyse(run))


def test_two_numbers_of_cores_do_not_tell_the_losses_of_gunther_apart() -> None:
    scaling = find_by_contestant(run_on_cores(without=4))[LOCK]
    assert scaling.serial
    assert scaling.serial.value == pytest.approx(0.4)
    assert scaling.contention is None
    assert scaling.coherency is None


def test_without_one_core_there_is_no_speedup() -> None:
    run = run_on_cores(without=1)
    assert not find_by_contestant(run)
    assert "relative to one" not in print_in_one_line(analyse(run), 200)
    assert "Throughput by the cores" not in render_html(analyse(run))


def test_a_schedule_decides_the_throughput_of_an_open_loop_and_of_rounds() -> None:
    assert not find_by_contestant(run_on_cores(arrivals="poisson"))
    run = run_on_cores()
    (echo,) = run.experiment.scenarios
    rounds = replace(run.experiment, scenarios=(replace(echo, round_s=0.1),))
    assert not find_by_contestant(replace(run, experiment=rounds))


@pytest.mark.parametrize("known", [True, False])
def test_all_cores_are_as_many_as_the_server_was_given(known: bool) -> None:
    run = run_on_cores(without=4)
    (echo,) = run.experiment.scenarios
    given = Pinning(server=(0, 1), generator=(2,), harness=(), note="") if known else None

    def give_all(trial: Trial) -> Trial:
        return trial if trial.levels["server-cores"] == 1 else replace(trial, levels=ALL, pinning=given)

    experiment = replace(run.experiment, scenarios=(replace(echo, factors={"server-cores": (1, "all")}),))
    by_contestant = find_by_contestant(replace(run, experiment=experiment, trials=tuple(map(give_all, run.trials))))
    assert [speedup.cores for entry in by_contestant.values() for speedup in entry.speedups] == [2, 2] * known


def test_a_number_of_cores_with_few_blocks_does_not_empty_the_fit_of_the_others() -> None:
    run = run_on_cores()
    few = tuple(trial for trial in run.trials if trial.levels["server-cores"] != 4 or trial.block == 1)
    scaling = find_by_contestant(replace(run, trials=few))[LOCK]
    assert [speedup.cores for speedup in scaling.speedups] == [2, 4]
    assert scaling.serial
    assert scaling.serial.interval
    assert scaling.contention is None


def test_a_server_that_is_slower_on_more_cores_is_not_called_serial() -> None:
    run = run_on_cores()
    (findings,) = analyse(run).scenarios
    slow = replace(findings.scaling[0], serial=Estimate(1.2, None, ()))
    (text,) = describe_contestants(replace(findings, scaling=(slow,)))
    assert "serial" not in text


def test_a_speedup_that_the_generator_limits_is_a_bound_and_in_no_fit() -> None:
    run = run_on_cores(censored=4)
    for scaling in find_by_contestant(run).values():
        assert [speedup.bound for speedup in scaling.speedups] == ["", "at least"]
    scaling = find_by_contestant(run)[LOCK]
    assert scaling.serial
    assert scaling.serial.value == pytest.approx(0.4)
    assert scaling.contention is None
    assert f"and at least {TIMES}1.82" in print_in_one_line(analyse(run), 200)

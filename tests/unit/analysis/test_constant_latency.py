"""Only a response time that no load changes is reported as smelling of a timer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import notices
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.made_run import UDP, ZMQ, distribution, messages_run
from tests.support.printed import assert_in_table_and_report

# What source C published for multicast at 100 and 1000 clients, in nanoseconds.
PUBLISHED = {100: 4_874_520_000.0, 1000: 4_863_360_000.0}
TIGHT, LOOSE = 0.01, 0.1  # p99 is 2.3% above p50, and 26%


def run_with(
    medians: dict[int, float], spread: float = TIGHT, factor: str = "connections", name: str = ZMQ, **fields: object
) -> Run:
    """A run in which one contestant answers in a given time at each of two levels of a factor."""
    run = messages_run()
    (scenario,) = run.experiment.scenarios
    factors: dict[str, tuple[type_level, ...]] = {factor: tuple(medians)}
    scenario = replace(scenario, factors=factors, **{key: fields.pop(key) for key in list(fields) if key in SCENARIO})
    medians_in_order = dict(zip((100, 1000), medians.items(), strict=True))

    def retime(trial: Trial) -> Trial:
        load = trial.load
        assert load is not None
        level, median = medians_in_order[int(trial.levels["connections"])]
        trial = replace(trial, levels={factor: level})
        if trial.contestant != name:
            return trial
        response = distribution(median, spread, 2000)
        return replace(trial, load=replace(load, latency=replace(load.latency, response_ns=response)))

    experiment = replace(run.experiment, scenarios=(scenario,), **fields)
    return replace(run, experiment=experiment, trials=tuple(retime(trial) for trial in run.trials if trial.load))


SCENARIO = set(Scenario.__struct_fields__)


def timers(run: Run) -> tuple[str, ...]:
    (findings,) = analyse(run).scenarios
    printed = notices.describe_constant_latency(findings)
    assert len(printed) == len(findings.constant)
    assert set(printed) <= set(list_caveats(findings))
    return printed


def test_the_multicast_of_source_c_smells_of_a_timer() -> None:
    (text,) = timers(run_with(PUBLISHED))
    assert text.startswith(f"{ZMQ} (none lost) answers in 4.87 s to 4.98 s (p50 to p99)")
    assert "at 100 connections and 1000 connections alike" in text
    assert "suggests a timer" in text


def test_so_does_the_stall_of_a_delayed_ack() -> None:
    """Within a tick of the kernel's timers, which is more than 5% here."""
    assert len(timers(run_with({100: 44.1e6, 1000: 44.3e6}, spread=0.05))) == 1


def test_it_stands_in_the_table_and_in_the_report_beside_the_loss() -> None:
    analysis = analyse(run_with(PUBLISHED, name=UDP))
    (text,) = notices.describe_constant_latency(analysis.scenarios[0])
    assert text.startswith(f"{UDP} (0.02% lost) answers in")
    assert_in_table_and_report(analysis, text)


@pytest.mark.parametrize(
    ("why", "run"),
    [
        ("the second load takes longer", run_with({100: 4.8e9, 1000: 5.0e9})),
        ("some messages take longer than others", run_with(PUBLISHED, spread=LOOSE)),
        ("it is shorter than any timer of TCP", run_with({100: 9e6, 1000: 9e6})),
        ("the size of a message is no amount of load", run_with({64: 4.8e9, 128: 4.8e9}, factor="size")),
        ("a delay of the link was asked for", run_with(PUBLISHED, link="wan", link_delay_s=2.0)),
        ("a service time was asked for", run_with(PUBLISHED, service_time_s=4.8, workload="rpc")),
        ("a service time of the server was asked for", run_with(PUBLISHED, server={"service-time": "4800ms"})),
    ],
)
def test_it_is_silent_where(why: str, run: Run) -> None:
    assert timers(run) == (), why


def test_one_load_says_nothing_of_another() -> None:
    run = run_with(PUBLISHED)
    alone = tuple(trial for trial in run.trials if trial.contestant != ZMQ or trial.levels["connections"] == 100)
    assert timers(replace(run, trials=alone)) == ()


def test_loads_are_compared_only_where_all_else_is_equal() -> None:
    """100 connections with Nagle's algorithm and 1000 without are two questions."""
    run = run_with(PUBLISHED)
    (scenario,) = run.experiment.scenarios
    scenario = replace(scenario, factors=scenario.factors | {"server.nodelay": ("on", "off")})
    split = tuple(
        replace(trial, levels=trial.levels | {"server.nodelay": "on" if trial.levels["connections"] == 100 else "off"})
        for trial in run.trials
    )
    assert timers(replace(run, experiment=replace(run.experiment, scenarios=(scenario,)), trials=split)) == ()


def test_ordinary_runs_are_free_of_it() -> None:
    assert timers(messages_run()) == ()

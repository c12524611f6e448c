"""Which cells of a stored experiment are a workload, however they were written, and which lie around it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netdyno.analysis.advice import covered
from netdyno.analysis.advice.covered import StoredCell
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.model.values import CORES
from tests.support.builders.made_advice import SCENARIO, made

SERVED: dict[str, Any] = {"threads": CORES, "service-time": "500us", "service-kind": "wait"}
REQUESTED = replace(SCENARIO, connections=50, server=SERVED)


def stored(**fields: Any) -> Experiment:
    scenario = replace(REQUESTED, name="there", **fields)
    return Experiment(name="stored", question="?", scenarios=(scenario,))


def places(cores: int = 1, **fields: Any) -> list[StoredCell]:
    return list(covered.find_exact_cells(stored(**fields), REQUESTED, cores))


@pytest.mark.parametrize(
    "fields",
    [
        {"metric": "p99", "duration_s": 9.0, "warmup_s": 3.0, "timeout_s": 1.0},
        {"server": {"service-time": "0.5ms"}},
        {"server": {"threads": CORES}, "service_time_s": 0.0005},
        {"server": {**SERVED, "nodelay": "on", "audience": "all"}},
        {"server": {**SERVED, "pool": 10, "build": "release", "accept": "reuseport"}},
        {"server": {"service-time": "500us"}, "where_possible": {"threads": CORES}},
        {"server": {**SERVED, "application-tick": "on"}},
        {"rate": None, "rate_per_connection": 100},
    ],
)
def test_the_same_work_is_found_however_it_was_written(fields: dict[str, Any]) -> None:
    assert places(**fields) == [StoredCell("there", {})]


@pytest.mark.parametrize(
    "fields",
    [
        {"connections": 51},
        {"busy_connections": 5},
        {"rate": 4999},
        {"size": 65},
        {"arrivals": "constant"},
        {"link": "lan"},
        {"server": {**SERVED, "service-kind": "cpu"}},
        {"server": {**SERVED, "service-time": "501us"}},
        {"server": {**SERVED, "nodelay": "off"}},
        {"server": {**SERVED, "read-buffer": 100}},
        {"nodelay": "off"},
    ],
)
def test_other_work_is_not(fields: dict[str, Any]) -> None:
    assert places(**fields) == []


def test_one_thread_is_one_for_each_core_only_where_there_is_one_core() -> None:
    server = {"service-time": "500us", "threads": 1}
    assert places(cores=1, server=server)
    assert not places(cores=2, server=server)


def test_a_server_without_a_number_of_threads_has_one_for_each_core() -> None:
    assert places(cores=2, server={"service-time": "500us"})


def test_levels_count_as_the_cell_has_them() -> None:
    levels = {"connections": (10, 50, 100), "server.service-time": ("100us", "500us")}
    assert places(factors=levels) == [StoredCell("there", {"connections": 50, "server.service-time": "500us"})]


def test_what_lies_on_both_sides_in_one_number_is_around_it() -> None:
    (neighbours,) = covered.find_nearest_cells(stored(factors={"rate": (100, 1000, 20_000, 40_000)}), REQUESTED, 1)
    assert (neighbours.option, neighbours.values) == ("rate", (1000, 20_000))
    assert (neighbours.below, neighbours.above) == (
        StoredCell("there", {"rate": 1000}),
        StoredCell("there", {"rate": 20_000}),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"factors": {"rate": (6000, 7000)}},
        {"factors": {"rate": (1000, 20_000)}, "size": 65},
        {"factors": {"nodelay": ("off",)}},
    ],
)
def test_beyond_the_last_level_nothing_is_stated(fields: dict[str, Any]) -> None:
    assert list(covered.find_nearest_cells(stored(**fields), REQUESTED, 1)) == []


def test_messages_are_counted_where_they_are_heard() -> None:
    room = stored(workload="chat", rate=None, rate_per_connection=2, duration_s=0.5, server={})
    assert covered.count_timed_messages(room, StoredCell("there", {})) == 50 * 2 * 0.5 * 50
    idle = stored(rate=None, rate_per_connection=2, duration_s=0.5, busy_connections=5)
    assert covered.count_timed_messages(idle, StoredCell("there", {})) == 5 * 2 * 0.5
    levels = {"rate": (1000, 5000)}
    assert (
        covered.count_timed_messages(
            stored(factors=levels, rate=None, duration_s=0.1), StoredCell("there", {"rate": 1000})
        )
        == 100
    )


def test_a_cell_alone_is_ranked_as_is_requested() -> None:
    scenario: Scenario = replace(REQUESTED, name="there", metric="p99", factors={"rate": (1000, 5000)}, rate=None)
    run = made({"a": 10.0, "b": 12.0, "c": 9.0}, scenario=scenario, levels={"rate": 5000})
    more = made({"a": 99.0, "b": 12.0}, scenario=scenario, levels={"rate": 1000})
    run = replace(run, trials=(*run.trials, *more.trials))
    place = StoredCell("there", {"rate": 5000})
    assert covered.list_contestants(run, place) == {"a", "b", "c"}
    alone = covered.extract_cell(run, place, REQUESTED, Advise(), ["a", "b"])
    assert {trial.contestant for trial in alone.trials} == {"a", "b"}
    assert len(alone.trials) == 16
    (single,) = alone.experiment.scenarios
    assert (single.rate, single.metric, single.factors) == (5000, "cpu", {})

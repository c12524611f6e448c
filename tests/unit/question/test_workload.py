"""A workload as its owner describes it, and the experiment that it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.model.experiment import Advise, Experiment, Scenario
from netdyno.question import experiment, workload


def read_values(**options: Any) -> dict[str, Any]:
    texts = {name.replace("_", "-"): value for name, value in options.items()}
    values = {name: workload.read_option(name, value, name) for name, value in texts.items()}
    workload.check(values)
    return values


def parse_experiment(**options: Any) -> Experiment:
    return experiment.parse(workload.write_toml(read_values(**options), ("a", "b"), 90), "advise", "advise")


def scenario(**options: Any) -> Scenario:
    return parse_experiment(**options).scenarios[0]


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("rate", "5k", 5000.0),
        ("rate", "1.5M", 1_500_000.0),
        ("rate", 250, 250.0),
        ("slow-readers", "5%", 0.05),
        ("slow-readers", ".5", 0.5),
        ("slow-readers", 0.25, 0.25),
        ("service-time", "500us", "500us"),
        ("languages", "c++, go", ("c++", "go")),
        ("languages", ["rust"], ("rust",)),
        ("objective", "p99<5ms", "p99<5ms"),
        ("objective", "memory", "memory"),
        ("time-budget", "5m", 300.0),
    ],
)
def test_what_is_written_is_understood(name: str, written: object, value: object) -> None:
    assert workload.read_option(name, written, name) == value


@pytest.mark.parametrize(
    ("name", "written", "complaint"),
    [
        ("rate", "fast", "'fast' is no rate"),
        ("rate", "20M", "is not between"),
        ("slow-readers", "100%", "'100%' is no share"),
        ("objective", "latency", "'latency' is no objective: write throughput, cpu, memory"),
        ("objective", "p99<5", "is not a duration"),
        ("service-time", "5", "is not a duration"),
        ("connections", 0, "at least 1"),
    ],
)
def test_what_is_not_is_refused(name: str, written: object, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        workload.read_option(name, written, name)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"fan_out": "room"}, "needs the --rate"),
        ({"fan_out": "room", "rate": "1k", "service_time": "1ms"}, "passed on"),
        ({"fan_out": "room", "rate": "1k", "speaks": "http"}, "nothing else"),
        ({"service_time": "1ms"}, "--waits"),
        ({"service_kind": "wait"}, "need a --service-time"),
        ({"service_time": "1ms", "service_kind": "cpu", "speaks": "echo"}, "'rpc', 'http' or 'web'"),
        ({"slow_readers": "5%"}, "--fan-out room"),
        ({"objective": "p99<5ms"}, "need a --rate"),
        ({"objective": "throughput", "rate": "1k"}, "leave --rate out"),
    ],
)
def test_what_contradicts_itself_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        read_values(**options)


def test_a_rate_and_a_wait_become_an_open_loop_of_requests() -> None:
    parsed = scenario(connections=200, rate="5k", size=256, service_time="500us", service_kind="wait")
    assert (parsed.workload, parsed.arrivals, parsed.rate, parsed.connections, parsed.size) == (
        "rpc",
        "poisson",
        5000,
        200,
        256,
    )
    assert parsed.server == {"threads": "cores", "service-time": "500us", "service-kind": "wait"}
    assert parsed.metric == "cpu"


def test_requests_of_web_ask_for_the_service_time_themselves() -> None:
    parsed = scenario(speaks="web", rate="100", service_time="500us", service_kind="cpu")
    assert (parsed.workload, parsed.service_time_s, parsed.server["service-kind"]) == ("web", 500e-6, "cpu")
    values = read_values(speaks="web", rate="100", service_time="500us", service_kind="cpu")
    text = workload.write_neighbours_toml(values, workload.list_factors(values), ("a", "b"), 90)
    varied = experiment.parse(text, "beside", "beside").scenarios[-1]
    assert varied.factors == {"service-time": ("250us", "500us", "1ms")}


def test_a_room_is_a_chat_with_so_many_slow_readers() -> None:
    parsed = scenario(connections=50, rate="1k", fan_out="room", slow_readers="5%")
    assert (parsed.workload, parsed.slow_readers, parsed.server["audience"]) == ("chat", 3, "all")
    assert parsed.warmup_s == workload.SLOW_WARMUP_S
    assert scenario(connections=10, rate="1k", fan_out="room").warmup_s == workload.WARMUP_S


@pytest.mark.parametrize(
    ("options", "window_s"),
    [
        ({"rate": "100"}, workload.WINDOW_S),
        ({"rate": "5k", "objective": "p99<5ms"}, workload.WINDOW_S),
        ({"rate": "100", "objective": "p99<5ms"}, 1.0),
        ({"rate": "5k", "objective": "p99.99<5ms,mean<1ms"}, 2.0),
        ({"rate": "60", "objective": "p99<5ms"}, 1.7),
        ({"rate": "10", "connections": 20, "fan_out": "room", "objective": "p99<5ms"}, 0.5),
    ],
)
def test_a_window_has_the_messages_that_its_objective_needs(options: dict[str, Any], window_s: float) -> None:
    assert scenario(**options).duration_s == pytest.approx(window_s)


def test_at_half_the_rate_a_window_is_twice_as_long() -> None:
    values = read_values(rate="100", objective="p99<5ms", service_time="1ms", service_kind="wait")
    for factors, window_s in ((("rate",), 2.0), (("server.service-time",), 1.0)):
        parsed = experiment.parse(workload.write_neighbours_toml(values, factors, ("a", "b"), 90), "beside", "beside")
        assert {case.duration_s for case in parsed.scenarios} == {window_s}


@pytest.mark.parametrize(
    ("options", "metric", "objective"),
    [
        ({}, "throughput", ""),
        ({"rate": "1k"}, "cpu", ""),
        ({"objective": "memory"}, "memory", ""),
        ({"rate": "1k", "objective": "p99<5ms,mean<1ms"}, "cpu", "p99<5ms,mean<1ms"),
    ],
)
def test_the_objective_says_what_is_ranked(options: dict[str, Any], metric: str, objective: str) -> None:
    assert scenario(**options).metric == metric
    assert workload.advise_of(read_values(**options)) == Advise(objective=objective)


def test_the_experiment_is_within_its_time_and_has_no_control() -> None:
    parsed = parse_experiment(rate="1k", seed=7)
    assert (parsed.time_budget_s, parsed.time_limit_s, parsed.aa_share, parsed.seed) == (90, 90, 0, 7)
    assert parsed.scenarios[0].blocks == ADVICE_LOOKS[0]
    assert parsed.scenarios[0].most_blocks == ADVICE_LOOKS[-1]
    assert parsed.scenarios[0].contestants == ("a", "b")


def test_along_a_factor_are_half_and_double() -> None:
    values = read_values(connections=5, rate="1.5k", service_time="1ms", service_kind="cpu")
    factors = workload.list_factors(values)
    parsed = experiment.parse(workload.write_neighbours_toml(values, factors, ["a", "b"], 60), "beside", "beside")
    assert [varied.factors for varied in parsed.scenarios] == [
        {"rate": (750, 1500, 3000)},
        {"connections": (2, 5, 10)},
        {"server.service-time": ("500us", "1ms", "2ms")},
    ]
    assert [varied.name for varied in parsed.scenarios] == ["rate", "connections", "service-time"]
    assert parsed.scenarios[2].server == {"threads": "cores", "service-kind": "cpu"}  # the rest is the factor's


def test_a_file_has_the_options_as_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('connections = 20\nrate = "2k"\nlanguages = ["go"]\nslow-readers = 0.1\n')
    assert workload.read(path) == {"connections": 20, "rate": 2000.0, "languages": ("go",), "slow-readers": 0.1}
    path.write_text("conections = 20\n")
    with pytest.raises(UserError, match="unknown key 'conections'"):
        workload.read(path)
    path.write_text("rate = true\n")
    with pytest.raises(UserError, match="key 'rate': True is no rate"):
        workload.read(path)

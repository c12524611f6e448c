"""The command lines of a trial, from the cell alone."""

from __future__ import annotations

from netdyno.command import check_command, load_command, server_command
from netdyno.model import Contestant, Experiment, Scenario
from netdyno.options import settings

GENERATOR = ("netdyno-load",)
URL = "tcp://127.0.0.1:1"
CHAT = Scenario(
    name="s",
    workload="chat",
    arrivals="poisson",
    connections=50,
    rate=20000.0,
    size=64,
    connect_rate=100.0,
    server={"audience": "all", "write-mode": "split"},
)


def value(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_levels_take_the_place_of_what_the_scenario_says() -> None:
    wanted = settings(CHAT, {"connections": 7, "write-mode": "gathered", "rate": 5, "generator-threads": 2})
    assert (wanted.connections, wanted.rate, wanted.generator_threads) == (7, 5.0, 2)
    assert wanted.server == {"audience": "all", "write-mode": "gathered"}


def test_the_server_listens_on_a_free_port_with_its_options(contestant: Contestant) -> None:
    command = server_command(contestant, settings(CHAT, {}))
    assert command[: len(contestant.command)] == list(contestant.command)
    assert value(command, "--listen") == "tcp://127.0.0.1:0"
    assert (value(command, "--workload"), value(command, "--audience")) == ("chat", "all")
    assert value(command, "--write-mode") == "split"


def test_the_generator_gets_the_load(experiment: Experiment) -> None:
    command = load_command(GENERATOR, URL, settings(CHAT, {}), experiment, 3)
    assert command[:2] == ["netdyno-load", URL]
    assert (value(command, "-c"), value(command, "--rate"), value(command, "--arrivals")) == ("50", "20000", "poisson")
    assert (value(command, "--connect-rate"), value(command, "--size")) == ("100", "64")
    assert (value(command, "--duration"), value(command, "--warmup")) == ("100ms", "0s")
    assert (value(command, "--timeout"), value(command, "--audience")) == ("1s", "all")
    assert value(command, "--seed") == "3"
    assert "--depth" not in command  # of an open loop the generator refuses it


def test_a_closed_loop_names_no_rate(experiment: Experiment) -> None:
    closed = settings(Scenario(name="s", workload="echo"), {})
    command = load_command(GENERATOR, URL, closed, experiment, 3)
    assert "--rate" not in command
    assert value(command, "--depth") == "1"
    assert "--audience" not in command
    assert value(command, "--connect-rate") == "burst"


def test_the_closing_check_is_as_small_as_the_workload_allows(experiment: Experiment) -> None:
    echo = settings(Scenario(name="s", workload="echo"), {})
    assert value(check_command(GENERATOR, URL, echo, experiment), "-c") == "1"
    chat = check_command(GENERATOR, URL, settings(CHAT, {}), experiment)
    assert (value(chat, "-c"), value(chat, "--arrivals"), value(chat, "--audience")) == ("2", "closed", "all")

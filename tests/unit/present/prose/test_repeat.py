"""The command lines that repeat a run, its report and one of its trials."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.contestant import About, Own
from netdyno.model.run import OF_CLUSTER
from netdyno.present.prose.repeat import list_commands
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import paired_run


def test_the_commands_by_hand_are_those_of_the_trial() -> None:
    lines = [command.line for command in list_commands(analysed(paired_run()))]
    assert lines[2].startswith("./netdyno serve epoll-coroutines --listen tcp://127.0.0.1:7000 --workload rpc")
    assert lines[3].startswith("./netdyno load tcp://127.0.0.1:7000 --workload rpc --size 64")


def test_a_backend_is_started_before_its_server() -> None:
    run = paired_run()
    asking = {"service-kind": "backend", "pool": 3}
    backend, server, _ = list_commands(analyse(replace(run, experiment=run.experiment.with_each(server=asking))))[2:]
    assert backend.line == "./netdyno serve calibration --workload rpc --listen tcp://127.0.0.1:7001"
    assert server.line.endswith(" --service-kind backend --pool 3 --backend tcp://127.0.0.1:7001")


def test_a_database_is_started_before_its_server() -> None:
    run = paired_run()
    asking = {"service-kind": "backend", "backend": "postgresql"}
    backend, server, _ = list_commands(analyse(replace(run, experiment=run.experiment.with_each(server=asking))))[2:]
    assert backend.line == ".venv/bin/python -m netdyno.measure.trial.postgresql --listen tcp://127.0.0.1:7001"
    assert server.line.endswith(" --service-kind backend --backend postgresql://127.0.0.1:7001")


def test_a_trial_over_a_link_that_is_gone_is_repeated_over_the_loopback() -> None:
    run = paired_run()
    trials = tuple(
        replace(trial, load=replace(trial.load, plan=replace(trial.load.plan, url="tcp://10.77.0.1:7000")))
        for trial in run.trials
        if trial.load is not None
    )
    lan = analyse(replace(run, trials=trials, experiment=run.experiment.with_each(link="lan", link_rate="1gbit")))
    assert lan.links == ("lan at 1gbit",)
    server, load = list_commands(lan)[2:]
    assert server.purpose == "One trial by hand, over the loopback: the server"
    assert server.line.startswith("./netdyno serve epoll-coroutines --listen tcp://127.0.0.1:7000 ")
    assert load.line.startswith("./netdyno load tcp://127.0.0.1:7000 ")


def test_a_server_of_ones_own_is_started_by_its_own_command() -> None:
    run = paired_run()
    own = Own(command="mine --at '{address}:{port}'", workload="rpc")
    name = analyse(run).example.contestant  # type: ignore[union-attr]
    about = (About(kind="server", name=name, own=own),)
    _, _, server, _ = list_commands(analyse(replace(run, about=about)))
    assert server.line == "mine --at 127.0.0.1:7000"


def test_a_server_that_stands_already_is_not_started_to_repeat_a_trial() -> None:
    run = paired_run()
    own = Own(command="", workload="rpc", address="tcp://127.0.0.1:7000")
    name = analyse(run).example.contestant  # type: ignore[union-attr]
    about = (About(kind="server", name=name, own=own),)
    _, _, load = list_commands(analyse(replace(run, about=about)))
    assert load.line.startswith("./netdyno load tcp://127.0.0.1:7000 ")


def test_a_load_of_several_hosts_is_repeated_by_one_program() -> None:
    run = paired_run()
    hosts = replace(
        run,
        environment=run.environment | {OF_CLUSTER: "lab-7 at tls://10.0.0.2:8787"},
        experiment=run.experiment.with_each(client_hosts=2),
    )
    _, _, _, load = list_commands(analyse(hosts))
    assert "--share" not in load.line


def test_a_run_is_repeated_by_the_words_that_made_it() -> None:
    words = ("gate", "--before", "./old {port}", "--budget", "smoke")
    again, *_ = list_commands(analyse(replace(paired_run(), typed=words)))
    assert again.line == "./netdyno gate --before './old {port}' --budget smoke"


def test_a_command_line_shows_no_secret_and_no_permission_to_load_others() -> None:
    words = ("run", "web", "--address", "https://h", "--yes-i-may-load-it", "-H", "Authorization: Bearer abc", "--json")
    again, *_ = list_commands(analyse(replace(paired_run(), typed=words)))
    assert again.line == "./netdyno run web --address https://h -H 'Authorization: …' --json"


@pytest.mark.parametrize("typed", [(), ("run", "x" * 5000)])
def test_no_command_line_is_shown_that_a_person_would_not_type(typed: tuple[str, ...]) -> None:
    first, *_ = list_commands(analyse(replace(paired_run(), typed=typed)))
    assert first.purpose.startswith("This report again")


def test_an_id_that_a_shell_would_obey_is_quoted() -> None:
    _, report, *_ = list_commands(analyse(replace(paired_run(), run_id="x; touch y")))
    assert report.line == "./netdyno report 'x; touch y'"

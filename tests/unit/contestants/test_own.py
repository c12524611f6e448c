"""Servers of the user's own: what a command line makes of them, and what they cannot be asked."""

from __future__ import annotations

import sys

import pytest

from netdyno.base.errors import UserError
from netdyno.contestants import codesize, own, stand_in
from netdyno.experiment.plan import why_skip
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings
from netdyno.model.server_options import added_options
from netdyno.trial.command import server_command

SERVER = f"{sys.executable} -m mine --port {{port}}"


def mine(command: str = SERVER) -> Contestant:
    return own.contestant("mine", Own(command=command, workload="http"))


def test_each_is_called_as_it_is_asked_to_be_or_as_its_program() -> None:
    found = own.of_commands([SERVER, SERVER, "'/no such/a server' {port}"], ["old"], "http", ["new"])
    program = sys.executable.rpartition("/")[2]
    assert [one.name for one in found] == ["old", program, "a-server"]
    again = own.of_commands([SERVER, SERVER], [], "http", [])
    assert [one.name for one in again] == [program, f"{program}-2"]
    assert found[1].available
    assert "/no such/a server" in found[2].why_not


@pytest.mark.parametrize(
    ("commands", "names", "message"),
    [
        (["mine --port 80"], [], "write {port} there"),
        (["mine '{port}"], [], "cannot be read as a shell would"),
        (["mine \udcff {port}"], [], "is no text"),
        ([SERVER], ["a", "b"], "'b' names nobody"),
        ([SERVER], ["epoll"], "there is a server of that name already"),
        ([SERVER, SERVER], ["a", "a"], "there is a server of that name already"),
        ([SERVER], ["a/b"], "is no name"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(commands: list[str], names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as found:
        own.of_commands(commands, names, "http", ["epoll"])
    assert message in str(found.value)


def test_it_gets_a_port_and_no_option() -> None:
    scenario = Scenario(name="web", workload="http", server={"backlog": 7}, where_possible={"threads": "cores"})
    assert added_options(mine(), settings(scenario, {}), cores=2) == {}
    command = server_command(mine(), settings(scenario, {}), cores=2)
    asked = stand_in.parse(command[command.index(str(own.STAND_IN)) + 1 :])
    assert asked.address == "127.0.0.1"
    assert stand_in.filled(asked.command, asked.address, 81) == [sys.executable, "-m", "mine", "--port", "81"]


def test_a_listen_of_its_own_stays_its_own() -> None:
    asked = stand_in.parse(["mine", "--listen", "{address}:{port}", "--listen", "tcp://10.77.0.1:0", "--workload", "x"])
    assert stand_in.filled(asked.command, asked.address, 81) == ["mine", "--listen", "10.77.0.1:81"]


def test_levels_of_a_server_option_are_skipped() -> None:
    scenario = Scenario(name="web", workload="http", factors={"backlog": (1, 2), "connections": (1, 2)})
    assert why_skip(mine(), scenario, {"backlog": 1, "connections": 2}).endswith("is not told its backlog")
    assert why_skip(mine(), scenario, {"connections": 2}) == ""


def test_a_stored_run_knows_how_to_start_it_again() -> None:
    (about, *_) = codesize.describe([mine()], [])
    assert about.own == Own(command=SERVER, workload="http")
    assert about.code is None
    assert own.of_run([about]) == (mine(),)

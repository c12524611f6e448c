"""The user's own servers: what a command line makes of them, and what it refuses."""

from __future__ import annotations

import socket
import sys

import msgspec
import pytest

from netdyno.kit import addresses
from netdyno.kit.errors import UserError
from netdyno.measure.trial.command import build_server_command
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Scenario
from netdyno.model.options import settings
from netdyno.model.server_options import added_options
from netdyno.question.contestants import codesize, own, stand_in
from netdyno.question.plan import explain_skip

SERVER = f"{sys.executable} -m mine --port {{port}}"


def mine(command: str = SERVER) -> Contestant:
    return own.make_contestant("mine", Own(command=command, workload="http"))


def named(commands: list[str], names: list[str], taken: list[str]) -> tuple[Contestant, ...]:
    return own.make_contestants([Own(command=line, workload="http") for line in commands], names, taken)


def test_each_is_called_as_it_is_requested_to_be_or_as_its_program() -> None:
    contestants = named([SERVER, SERVER, "'/no such/a server' {port}"], ["old"], ["new"])
    program = sys.executable.rpartition("/")[2]
    assert [contestant.name for contestant in contestants] == ["old", program, "a-server"]
    again = named([SERVER, SERVER], [], [])
    assert [contestant.name for contestant in again] == [program, f"{program}-2"]
    assert contestants[1].available
    assert "/no such/a server" in contestants[2].why_not


def test_the_program_of_a_contestant_is_called_ones_own() -> None:
    program = sys.executable.rpartition("/")[2]
    assert [server.name for server in named([SERVER, SERVER], [], [program])] == [f"own-{program}", f"own-{program}-2"]
    (third,) = named([SERVER], [], [program, f"own-{program}"])
    assert third.name == f"own-{program}-2"


@pytest.mark.parametrize(
    ("commands", "names", "message"),
    [
        (["mine --port 80"], [], "write {port} there"),
        (["mine '{port}"], [], "cannot be read as a shell would"),
        (["mine \udcff {port}"], [], "is no text"),
        ([SERVER], ["a", "b"], "--as 'b': there is no --server or --address for this name"),
        ([SERVER], ["epoll"], "netdyno has a server of that name (./netdyno list servers); write --as own-epoll"),
        ([SERVER, SERVER], ["a", "a"], "there is a server of that name already"),
        ([SERVER], ["a/b"], "is no name"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(commands: list[str], names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as error:
        named(commands, names, ["epoll"])
    assert message in str(error.value)


def test_it_gets_a_port_and_no_option() -> None:
    scenario = Scenario(name="web", workload="http", server={"backlog": 7}, where_possible={"threads": "cores"})
    assert added_options(mine(), settings(scenario, {}), cores=2) == {}
    command = build_server_command(mine(), settings(scenario, {}), cores=2)
    arguments = stand_in.parse(command[command.index(str(own.STAND_IN)) + 1 :])
    assert arguments.address == "127.0.0.1"
    assert stand_in.fill_in(arguments.command, arguments.address, 81) == [sys.executable, "-m", "mine", "--port", "81"]


def test_a_listen_of_its_own_stays_its_own() -> None:
    arguments = stand_in.parse(
        ["mine", "--listen", "{address}:{port}", "--listen", "tcp://10.77.0.1:0", "--workload", "x"]
    )
    assert stand_in.fill_in(arguments.command, arguments.address, 81) == ["mine", "--listen", "10.77.0.1:81"]


def test_an_entry_stands_before_the_server_and_behind_its_stand_in() -> None:
    entry = ("sh", "-c", "x", "sh")
    settled = own.make_contestant("mine", Own(command=SERVER, workload="http", ready_path="/up"))
    for contestant in (mine(), settled):
        command = [*contestant.command, "--listen", "tcp://127.0.0.1:0"]
        inserted = own.insert_entry(command, entry)
        request = stand_in.parse(inserted[command.index(str(own.STAND_IN)) + 1 :])
        assert request.command[:5] == (*entry, sys.executable)
        assert request.settings.ready_path == ("/up" if contestant is settled else "")
    assert own.insert_entry(["a", "b"], entry) == [*entry, "a", "b"]


def test_levels_of_a_server_option_are_skipped() -> None:
    scenario = Scenario(name="web", workload="http", factors={"backlog": (1, 2), "connections": (1, 2)})
    assert explain_skip(mine(), scenario, {"backlog": 1, "connections": 2}).endswith("does not get the options backlog")
    assert explain_skip(mine(), scenario, {"connections": 2}) == ""


def test_a_stored_run_knows_how_to_start_it_again() -> None:
    (about, *_) = codesize.describe([mine()], [])
    assert about.own == Own(command=SERVER, workload="http")
    assert about.code is None
    assert own.restore_servers([about]) == (mine(),)


@pytest.mark.parametrize(
    ("address", "numeric", "name"),
    [
        ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000", "127.0.0.1-9000"),
        ("tcp://[::1]:9000", "tcp://[::1]:9000", "1-9000"),
    ],
)
def test_one_at_an_address_is_called_as_that(address: str, numeric: str, name: str) -> None:
    (contestant,) = own.make_contestants([own.resolve_server(address, "echo", may_be_loaded=False)], [], [])
    assert contestant.own == Own(command="", workload="echo", address=numeric)
    assert contestant.name == name
    assert not any("not on the loopback" in caveat for caveat in contestant.manifest.caveats)


@pytest.mark.parametrize("address", ["127.0.0.1:9000", "tcp://127.0.0.1", "tcp://:9000", "tcp://127.0.0.1:99999", ""])
def test_what_is_no_address_is_one_clear_line(address: str) -> None:
    with pytest.raises(UserError, match=r"^--address .* write http://HOST\[:PORT\][^\n]*$"):
        own.resolve_server(address, "http", may_be_loaded=True)


def test_a_name_that_no_host_can_have_is_one_clear_line() -> None:
    with pytest.raises(UserError, match=r"^--address 'tcp://a\.\.b:80': a\.\.b is no name of a host$"):
        own.resolve_server("tcp://a..b:80", "http", may_be_loaded=True)


def test_beyond_the_loopback_a_person_has_to_answer_for_it() -> None:
    with pytest.raises(UserError, match="--yes-i-may-load-it"):
        own.resolve_server("tcp://192.0.2.1:9000", "http", may_be_loaded=False)
    allowed = own.resolve_server("tcp://192.0.2.1:9000", "http", may_be_loaded=True)
    assert "confirmed that it may be loaded" in own._list_caveats(allowed.address)[-1]


def test_a_name_of_which_one_address_is_beyond_the_loopback_is_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = (addresses.SocketAddress(socket.AF_INET, (host, 9000)) for host in ("127.0.0.1", "192.0.2.1"))
    monkeypatch.setattr(addresses, "resolve", lambda _host, _port: [here, there])
    with pytest.raises(UserError, match="--yes-i-may-load-it"):
        own.resolve_server("tcp://both.example:9000", "http", may_be_loaded=False)


def test_one_that_stands_already_cannot_be_put_behind_a_link() -> None:
    there = own.make_contestant("there", Own(command="", workload="http", address="tcp://127.0.0.1:1"))
    there = msgspec.structs.replace(there, available=True)
    lan = Scenario(name="web", workload="http", link="lan")
    assert "cannot be put behind the link" in explain_skip(there, lan, {})
    assert explain_skip(mine(), lan, {}) == ""


def test_unknown_work_is_skipped() -> None:
    work = Scenario(name="web", workload="http", server={"service-time": "10us"})
    assert explain_skip(mine(), work, {}).endswith("does not get the options service-time")
    encrypted = Scenario(name="web", workload="http", server={"service-time": "10us", "tls": "on"})
    assert explain_skip(mine(), encrypted, {}).endswith("does not get the options service-time and tls")
    plain = Scenario(name="web", workload="http", server={"tls": "off"})
    assert explain_skip(mine(), plain, {}) == ""

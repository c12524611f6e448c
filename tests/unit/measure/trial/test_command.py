"""The command lines of a trial, from the cell alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import msgspec
import pytest

from netdyno.kit.paths import build_dir, certificate_path
from netdyno.measure.trial.command import (
    build_client_command,
    build_closed_command,
    build_load_command,
    build_server_command,
    build_user_commands,
    check_command,
)
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.options import Settings, settings
from netdyno.model.transports import TRANSPORTS
from netdyno.model.trial import Trial

GENERATOR = ("netdyno-load",)
URL = "tcp://127.0.0.1:1"
CHAT = Scenario(
    duration_s=0.1,
    timeout_s=1.0,
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
    parsed = settings(CHAT, {"connections": 7, "server.write-mode": "gathered", "rate": 5, "generator-threads": 2})
    assert (parsed.connections, parsed.rate, parsed.generator_threads) == (7, 5.0, 2)
    assert parsed.server == {"audience": "all", "write-mode": "gathered"}


def test_an_option_of_both_sides_is_the_loads_the_servers_or_moves_both() -> None:
    def sides(**levels: str) -> tuple[object, object]:
        parsed = settings(CHAT, {name.replace("_", "."): level for name, level in levels.items()})
        return parsed.nodelay, parsed.server.get("nodelay")

    assert sides() == ("on", None)
    assert sides(nodelay="off") == ("off", None)
    assert sides(server_nodelay="off") == ("on", "off")
    assert sides(both_nodelay="off") == ("off", "off")
    with pytest.raises(KeyError):
        sides(server_connections="1")


def test_the_server_listens_on_a_free_port_with_its_options(contestant: Contestant) -> None:
    command = build_server_command(contestant, settings(CHAT, {}), cores=1)
    assert command[: len(contestant.command)] == list(contestant.command)
    assert value(command, "--listen") == "tcp://127.0.0.1:0"
    assert (value(command, "--workload"), value(command, "--audience")) == ("chat", "all")
    assert value(command, "--write-mode") == "split"


def test_both_sides_speak_tls_where_the_cell_does(contestant: Contestant) -> None:
    encrypted = settings(msgspec.structs.replace(CHAT, workload="echo", server={}), {"tls": "on"})
    server = build_server_command(contestant, encrypted, cores=1)
    assert value(server, "--tls") == str(certificate_path(build_dir()))
    for command in (
        build_load_command(GENERATOR, URL, encrypted, 1),
        check_command(GENERATOR, URL, encrypted),
    ):
        assert command[1:3] == ["tls://127.0.0.1:1", "--insecure"]
    plain = settings(msgspec.structs.replace(CHAT, workload="echo", server={}), {"tls": "off"})
    assert "--tls" not in build_server_command(contestant, plain, cores=1)
    assert build_load_command(GENERATOR, URL, plain, 1)[1] == URL


def test_the_server_gets_its_backend_and_the_load_leaves_it_the_core(contestant: Contestant) -> None:
    asking = msgspec.structs.replace(CHAT, workload="rpc", arrivals="constant", rate=10, server={}, factors={})
    asks = settings(asking, {"service-kind": "backend", "pool": 3})
    command = build_server_command(contestant, asks, cores=1, backend="tcp://127.0.0.1:7")
    assert [value(command, f"--{name}") for name in ("service-kind", "pool", "backend")] == [
        "backend",
        "3",
        "tcp://127.0.0.1:7",
    ]
    assert value(build_load_command(GENERATOR, URL, asks, 1), "--spin") == "off"
    waits = settings(asking, {"service-kind": "wait"})
    assert "--backend" not in build_server_command(contestant, waits, cores=1)
    assert "--spin" not in build_load_command(GENERATOR, URL, waits, 1)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_server_listens_over_its_own_transport(transport: str, contestant: Contestant) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, transports=(transport, "tcp"))
    speaker = msgspec.structs.replace(contestant, manifest=manifest)
    listen = value(build_server_command(speaker, settings(CHAT, {}), cores=1), "--listen")
    assert listen.startswith(f"{transport}://")
    assert listen.partition("?")[0].endswith(":0")


def test_a_load_of_messages_gets_no_option_of_a_stream() -> None:
    plain = settings(CHAT, {})
    for url in ("udp://127.0.0.1:1", "zmq+tcp://127.0.0.1:1", "multicast://239.255.0.1:1?interface=lo"):
        command = build_load_command(GENERATOR, url, plain, 3)
        stream = build_load_command(GENERATOR, URL, plain, 3)
        assert [word for word in stream if word not in command] == [URL, "--nodelay", "on", "--write-mode", "gathered"]


def test_a_thread_for_each_connection_where_others_would_wait(contestant: Contestant) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, threads="any", clients="limited-by-threads")
    pool = msgspec.structs.replace(contestant, manifest=manifest)
    assert value(build_server_command(pool, settings(CHAT, {}), cores=1), "--threads") == "50"
    alone = build_server_command(pool, settings(CHAT, {"connections": 1}), cores=1)
    assert value(alone, "--threads") == "2"  # the closing check's
    command = build_server_command(pool, settings(CHAT, {"threads": 60}), cores=1)
    assert (value(command, "--threads"), command.count("--threads")) == ("60", 1)
    assert "--threads" not in build_server_command(contestant, settings(CHAT, {}), cores=1)


def test_a_thread_for_each_core_where_a_model_can_have_any_number(contestant: Contestant) -> None:
    def threads(kind: Literal["any", "one", "per-connection"], cores: int, requested: Settings) -> list[str]:
        manifest = msgspec.structs.replace(contestant.manifest, threads=kind)
        model = msgspec.structs.replace(contestant, manifest=manifest)
        command = build_server_command(model, requested, cores=cores)
        return [argument for option, argument in pairwise(command) if option == "--threads"]

    as_level = settings(CHAT, {"threads": "cores"})
    where_possible = settings(msgspec.structs.replace(CHAT, where_possible={"threads": "cores"}), {})
    for requested in (as_level, where_possible, settings(CHAT, {})):
        assert threads("any", 4, requested) == ["4"]
        assert threads("any", 1, requested) == ["1"]
        assert threads("any", 5000, requested) == ["1024"]
        assert threads("one", 4, requested) == []
        assert threads("per-connection", 4, requested) == []
    manifest = msgspec.structs.replace(contestant.manifest, threads="any", clients="limited-by-threads")
    pool = msgspec.structs.replace(contestant, manifest=manifest)
    assert value(build_server_command(pool, as_level, cores=4), "--threads") == "50"
    clients_leave = msgspec.structs.replace(as_level, workload="echo", requests_per_connection=1)
    assert value(build_server_command(pool, clients_leave, cores=4), "--threads") == "4"
    assert (
        value(build_server_command(pool, msgspec.structs.replace(clients_leave, server={}), cores=4), "--threads")
        == "50"
    )


def test_the_generator_gets_the_load() -> None:
    command = build_load_command(GENERATOR, URL, settings(CHAT, {}), 3)
    assert command[:2] == ["netdyno-load", URL]
    assert (value(command, "-c"), value(command, "--rate"), value(command, "--arrivals")) == ("50", "20000", "poisson")
    assert (value(command, "--connect-rate"), value(command, "--size")) == ("100", "64")
    assert (value(command, "--duration"), value(command, "--warmup")) == ("100ms", "0s")
    assert (value(command, "--timeout"), value(command, "--audience")) == ("1s", "all")
    assert value(command, "--seed") == "3"
    assert "--depth" not in command  # of an open loop the generator refuses it


def test_the_load_gets_its_own_socket_options_and_service_time() -> None:
    slow = Scenario(name="s", workload="rpc", nodelay="off", write_mode="split", service_time_s=0.001)
    command = build_load_command(GENERATOR, URL, settings(slow, {}), 3)
    assert (value(command, "--nodelay"), value(command, "--write-mode")) == ("off", "split")
    assert value(command, "--service-time") == "1ms"
    plain = build_load_command(GENERATOR, URL, settings(CHAT, {}), 3)
    assert (value(plain, "--nodelay"), value(plain, "--write-mode")) == ("on", "gathered")
    assert "--service-time" not in plain  # the generator knows it for rpc alone
    rare = Scenario(name="s", workload="rpc", slow_requests=0.01, slow_request_time_s=0.05)
    command = build_load_command(GENERATOR, URL, settings(rare, {}), 3)
    assert (value(command, "--slow-requests"), value(command, "--slow-request-time")) == ("0.01", "50ms")
    assert settings(rare, {}).longest_service_time_s == 0.05
    assert "--slow-request-time" not in build_load_command(GENERATOR, URL, settings(rare, {"slow-requests": 0}), 3)


def test_connections_can_be_opened_within_a_second_whatever_their_number() -> None:
    within = Scenario(name="s", workload="echo", connect_rate="connections")
    for connections in (100, 1000):
        command = build_load_command(GENERATOR, URL, settings(within, {"connections": connections}), 3)
        assert value(command, "--connect-rate") == str(connections)


def test_the_generator_can_have_a_thread_for_each_of_its_cores() -> None:
    def threads(requested: Scenario, cores: int) -> str:
        return value(build_load_command(GENERATOR, URL, settings(requested, {}), 3, cores=cores), "--threads")

    echo = Scenario(name="s", workload="echo", connections=6, generator_threads="cores")
    assert [threads(echo, cores) for cores in (1, 4, 64)] == ["1", "4", "6"]
    chat = Scenario(name="s", workload="chat", connections=6, generator_threads="cores")
    assert threads(chat, 64) == "3"


def test_a_rate_can_be_that_of_each_connection() -> None:
    paced = Scenario(name="s", workload="echo", arrivals="constant", rate_per_connection=1000)
    command = build_load_command(GENERATOR, URL, settings(paced, {}), 3)
    assert value(command, "--rate") == "1000/conn"
    assert value(build_load_command(GENERATOR, URL, settings(paced, {"rate-per-connection": 5}), 3), "--rate") == (
        "5/conn"
    )


def test_a_burst_makes_the_rates_the_window() -> None:
    bursting = Scenario(name="s", workload="echo", arrivals="poisson", rate=600, burst_rate=2000, duration_s=0.8)
    command = build_load_command(GENERATOR, URL, settings(bursting, {}), 3)
    assert value(command, "--rate") == "600/200ms,2000/100ms,600/500ms"
    assert "--duration" not in command
    stepped = build_load_command(GENERATOR, URL, settings(bursting, {"burst-rate": 1200}), 3)
    assert value(stepped, "--rate") == "600/200ms,1200/100ms,600/500ms"
    closed = build_closed_command(GENERATOR, URL, settings(bursting, {}), 1.0, reconnects=False)
    assert ("--rate" in closed, "--duration" in closed) == (False, True)


def test_an_open_loop_may_poll_now_and_then_and_join_what_is_due() -> None:
    paced = Scenario(name="s", workload="echo", arrivals="constant", rate_per_connection=1000, look_every_s=0.02)
    command = build_load_command(GENERATOR, URL, settings(paced, {}), 3)
    assert (value(command, "--look-every"), "--write-due" in command) == ("20ms", False)
    joined = build_load_command(GENERATOR, URL, settings(paced, {"write-due": "joined"}), 3)
    assert (value(joined, "--rate"), value(joined, "--write-due")) == ("1000/conn", "joined")


def test_the_load_program_of_others_gets_the_rate_of_an_open_loop() -> None:
    paced = Scenario(name="s", workload="echo", arrivals="constant", rate_per_connection=1000, client="c")
    command = build_client_command(["clients/c"], URL, settings(paced, {"connect-rate": "connections"}), 3)
    assert (value(command, "--rate"), value(command, "--connect-rate")) == ("1000/conn", "100")
    assert not {"--arrivals", "--write-due", "--depth", "--threads"} & set(command)
    joined = build_client_command(["clients/c"], URL, settings(paced, {"write-due": "joined"}), 3)
    assert value(joined, "--write-due") == "joined"


def test_a_client_gets_what_the_generator_gets_less_what_it_does_not_know() -> None:
    requested = settings(Scenario(name="s", workload="rpc", client="c", connections=3, service_time_s=0.001), {})
    command = build_client_command(["clients/c"], URL, requested, 3)
    generators = build_load_command(["clients/c"], URL, requested, 3)
    assert command[:2] == ["clients/c", URL]
    only_the_generator = {"--arrivals", "--depth", "--connect-rate", "--threads"}
    options = [word for word in generators if word.startswith("-")]
    assert [word for word in options if word not in command] == [word for word in options if word in only_the_generator]
    assert all(value(command, word) == value(generators, word) for word in command if word.startswith("-"))


def test_a_trial_is_repeated_by_hand_through_the_one_entry() -> None:
    trial = Trial(
        block=1,
        position=0,
        scenario="s",
        contestant="a",
        levels={},
        status="valid",
        reason="",
        started_at="",
        seconds=1.0,
        added={"threads": 50},
    )
    server, load = build_user_commands(trial, URL, settings(CHAT, {}), 3)
    assert server[:3] == ["./netdyno", "serve", "a"]
    assert (value(server, "--listen"), value(server, "--write-mode")) == (URL, "split")
    assert value(server, "--threads") == "50"
    assert load == build_load_command(["./netdyno", "load"], URL, settings(CHAT, {}), 3)
    cores, _ = build_user_commands(trial, URL, settings(CHAT, {"threads": "cores"}), 3)
    assert (value(cores, "--threads"), cores.count("--threads")) == ("50", 1)
    client = build_user_commands(trial, URL, settings(CHAT, {"client": "qt-signals"}), 3)[1]
    assert client[:4] == ["./netdyno", "client", "qt-signals", URL]


def test_the_build_says_which_program_is_started_and_is_no_option_of_it(contestant: Contestant) -> None:
    built = msgspec.structs.replace(contestant, command=("/tree/build/release/servers/x",))
    commands = [
        build_server_command(built, settings(CHAT, {"build": build}), cores=1) for build in ("release", "debug", "O3")
    ]
    assert [command[0].split("/")[3] for command in commands] == ["release", "dev", "o3"]
    assert {command[0].split("/")[-1] for command in commands} == {"x"}
    assert commands[0][1:] == commands[1][1:] == commands[2][1:]
    assert "--build" not in commands[1]


def test_a_closed_loop_names_no_rate() -> None:
    closed = settings(Scenario(name="s", workload="echo"), {})
    command = build_load_command(GENERATOR, URL, closed, 3)
    assert "--rate" not in command
    assert value(command, "--depth") == "1"
    assert "--audience" not in command
    assert value(command, "--connect-rate") == "burst"
    assert "--round" not in command
    in_rounds = settings(Scenario(name="s", workload="echo", round_s=0.05), {})
    assert value(build_load_command(GENERATOR, URL, in_rounds, 3), "--round") == "50ms"
    assert "--look-every" not in build_load_command(GENERATOR, URL, in_rounds, 3)
    polling = build_load_command(
        GENERATOR, URL, settings(Scenario(name="s", workload="echo", look_every_s=0.001), {}), 3
    )
    assert (value(polling, "--look-every"), "--round" in polling) == ("1ms", False)
    without_limits = settings(Scenario(name="s", workload="echo"), {})
    assert "--requests-per-connection" not in polling
    reconnecting = settings(Scenario(name="s", workload="echo", requests_per_connection=3), {})
    assert value(build_load_command(GENERATOR, URL, reconnecting, 3), "--requests-per-connection") == "3"
    assert "--requests-per-connection" not in check_command(GENERATOR, URL, reconnecting)
    web = settings(Scenario(name="s", workload="http"), {})
    for command in (build_load_command(GENERATOR, URL, web, 3), check_command(GENERATOR, URL, web)):
        assert "--reconnect" not in command
    assert "--reconnect" in build_load_command(GENERATOR, URL, web, 3, reconnects=True)
    assert "--reconnect" in check_command(GENERATOR, URL, web, reconnects=True)
    assert "--busy-connections" not in polling
    idle = settings(Scenario(name="s", workload="echo", connections=1000, busy_connections=5), {})
    assert value(build_load_command(GENERATOR, URL, idle, 3, cores=8), "--busy-connections") == "5"
    assert value(build_load_command(GENERATOR, URL, idle, 3, cores=8), "--threads") == "5"
    assert "--busy-connections" not in check_command(GENERATOR, URL, idle)
    assert "--slow-readers" not in polling
    slow = settings(Scenario(name="s", workload="chat", slow_readers=5), {})
    assert value(build_load_command(GENERATOR, URL, slow, 3), "--slow-readers") == "5"
    assert "--slow-readers" not in check_command(GENERATOR, URL, slow)
    assert [requested.threads_end for requested in (without_limits, reconnecting, slow)] == [False, True, True]


def test_a_stream_is_requested_by_its_chunks_and_their_distance() -> None:
    plain = Scenario(name="s", workload="web", size=64)
    assert "--chunks" not in build_load_command(GENERATOR, URL, settings(plain, {}), 3)
    streams = settings(msgspec.structs.replace(plain, chunks=5, every_s=0.2), {})
    command = build_load_command(GENERATOR, URL, streams, 3)
    assert (value(command, "--chunks"), value(command, "--every")) == ("5", "200ms")
    assert "--chunks" not in check_command(GENERATOR, URL, streams)
    assert streams.longest_service_time_s == streams.service_time_in_all_s == pytest.approx(0.8)


def test_a_client_speaks_with_the_others_unless_the_scenario_says_at_once() -> None:
    assert "--start" not in build_load_command(GENERATOR, URL, settings(CHAT, {}), 3)
    at_once = settings(Scenario(name="s", workload="chat", start="at-once"), {})
    assert value(build_load_command(GENERATOR, URL, at_once, 3), "--start") == "at-once"
    assert value(build_client_command(["asyncio"], URL, at_once, 3), "--start") == "at-once"
    assert "--start" not in check_command(GENERATOR, URL, at_once)


def test_clients_that_never_read_have_no_option_of_a_load_with_answers() -> None:
    writes = Scenario(name="s", workload="chat", connections=7, messages=3, every_s=0.002, generator_threads=1)
    command = build_load_command(GENERATOR, URL, settings(writes, {}), 3)
    assert (value(command, "-c"), value(command, "--messages"), value(command, "--every")) == ("7", "3", "2ms")
    assert not {"--duration", "--warmup", "--timeout", "--arrivals", "--depth", "--seed"} & set(command)


def test_a_load_that_shares_its_cores_never_spins_for_the_next_message() -> None:
    """Spinning would take the core of the server."""

    def spin(**load: Any) -> str | None:
        command = build_load_command(GENERATOR, URL, settings(Scenario(name="s", workload="chat", **load), {}), 3)
        return value(command, "--spin") if "--spin" in command else None

    for load in ({"arrivals": "constant", "rate": 9.0}, {"round_s": 0.1}):
        assert (spin(**load), spin(**load, placement="shared")) == (None, "off")
    assert spin(placement="shared") is None, "a closed loop never spins, and its generator refuses the option"


def test_a_client_gets_a_depth_only_where_there_is_one() -> None:
    """Clients without chat have no such option."""
    plain, deep = (settings(Scenario(name="s", workload="chat", depth=depth), {}) for depth in (1, 4))
    assert "--depth" not in build_client_command(("client",), URL, plain, 3)
    assert value(build_client_command(("client",), URL, deep, 3), "--depth") == "4"


def test_many_connections_come_from_several_addresses_of_the_loopback() -> None:
    few, many = (settings(Scenario(name="s", workload="echo", connections=count), {}) for count in (25_000, 50_001))
    assert "--source-ips" not in build_load_command(GENERATOR, "tcp://127.0.0.1:7000", few, 3)
    command = build_load_command(GENERATOR, "tcp://127.0.0.1:7000", many, 3)
    assert value(command, "--source-ips") == "127.0.0.1,127.0.0.2,127.0.0.3"
    assert "--source-ips" not in build_load_command(GENERATOR, "tcp://10.77.0.1:7000", many, 3)


def test_clients_that_leave_come_from_several_addresses_as_a_port_is_taken_for_a_second() -> None:
    leave = settings(Scenario(name="s", workload="echo", requests_per_connection=1), {})
    stay = settings(Scenario(name="s", workload="echo"), {})
    addresses = ",".join(f"127.0.0.{number}" for number in range(1, 9))
    assert value(build_load_command(GENERATOR, URL, leave, 3), "--source-ips") == addresses
    assert "--source-ips" not in build_load_command(GENERATOR, URL, stay, 3)
    assert value(build_load_command(GENERATOR, URL, stay, 3, reconnects=True), "--source-ips") == addresses


def test_the_closing_check_is_as_small_as_the_workload_allows() -> None:
    echo = settings(Scenario(name="s", workload="echo"), {})
    assert value(check_command(GENERATOR, URL, echo), "-c") == "1"
    chat = check_command(GENERATOR, URL, settings(CHAT, {}))
    assert (value(chat, "-c"), value(chat, "--arrivals"), value(chat, "--audience")) == ("2", "closed", "all")

"""The plan is pure: the same seed gives the same order, and every block holds every cell once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdyno.kit.paths import ROOT
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant, Manifest, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.options import settings
from netdyno.model.server_options import added_options
from netdyno.question import experiment
from netdyno.question.contestants.contestants import discover, select
from netdyno.question.plan import (
    CANARY_S,
    TRIAL_OVERHEAD_S,
    Cell,
    CellKind,
    estimate_seconds,
    explain_skip,
    find_most_descriptors,
    plan,
)

QUICK_LIMIT_S = 270  # five minutes, less what set-up, report and a slower machine take


def contestant(name: str, threads: str = "any", workloads: tuple[str, ...] = ("echo",), **more: object) -> Contestant:
    raw = {"kind": "cmake", "model": "m", "summary": "s", "threads": threads, "workloads": workloads, **more}
    return Contestant(name=name, manifest=msgspec.convert(raw, Manifest), command=("x",), available=True)


def with_seed(base: Experiment, seed: int) -> Experiment:
    return msgspec.structs.replace(base, seed=seed)


def test_every_block_holds_every_cell_once(experiment: Experiment) -> None:
    cells = plan(experiment.with_each(contestants=("a", "b")))
    expected = sorted((name, level) for name in "ab" for level in (1, 2))
    for block in (1, 2):
        mine = [cell for cell in cells if cell.block == block]
        assert sorted((cell.contestant, cell.levels["connections"]) for cell in mine) == expected
        assert [cell.position for cell in mine] == [0, 1, 2, 3]
    assert len(cells) == 8


def groups_of(cells: Sequence[Cell]) -> list[list[str]]:
    """Return the level and the contestants in order, for each run of cells that differ only in their contestant."""
    together = itertools.groupby(cells, key=lambda cell: (cell.block, cell.scenario, cell.levels["connections"]))
    return [[f"{scenario} {level}", *(cell.contestant for cell in group)] for (_, scenario, level), group in together]


@given(seed=st.integers(min_value=0, max_value=2**63))
def test_those_compared_follow_each_other(seed: int) -> None:
    """Each block has one group for a level, with every contestant in it, the twin included."""
    scenarios = tuple(
        Scenario(name=name, workload="echo", factors={"connections": (1, 2, 3)}, contestants=tuple("abc"), blocks=2)
        for name in "st"
    )
    base = with_seed(Experiment(name="e", question="?", scenarios=scenarios), seed)
    groups = groups_of(plan(base, [CellKind("s", "b", {"connections": 2})]))
    expected = [
        [f"{name} {level}", *("abbc" if (name, level) == ("s", 2) else "abc")] for name in "st" for level in (1, 2, 3)
    ]
    for half in (groups[:6], groups[6:]):
        assert sorted([first, *sorted(rest)] for first, *rest in half) == expected


def test_groups_and_those_within_them_stand_in_any_order() -> None:
    scenario = Scenario(name="s", workload="echo", factors={"connections": (1, 2)})
    base = Experiment(name="e", question="?", scenarios=(scenario,)).with_each(contestants=tuple("abc"), blocks=100)
    groups = groups_of(plan(base))
    assert len(groups) == 200
    levels = [first for first, *_ in groups]
    assert {tuple(rest) for _, *rest in groups} == set(itertools.permutations("abc"))
    assert 25 <= sum(level == "s 1" for level in levels[::2]) <= 75


@given(seed=st.integers(min_value=0, max_value=2**63))
def test_the_same_seed_gives_the_same_order(seed: int) -> None:
    scenario = Scenario(name="s", workload="echo", factors={"connections": (1, 2, 3)})
    base = Experiment(name="e", question="?", scenarios=(scenario,)).with_each(contestants=("a", "b"), blocks=3)
    assert plan(with_seed(base, seed)) == plan(with_seed(base, seed))


def test_the_order_differs_between_blocks_and_seeds(experiment: Experiment) -> None:
    many = experiment.with_each(contestants=tuple("abcdef"))
    cells = plan(many)
    orders = [
        [(cell.contestant, cell.levels["connections"]) for cell in cells if cell.block == block] for block in (1, 2)
    ]
    assert orders[0] != orders[1]
    assert plan(with_seed(many, 2)) != cells


def test_factors_are_crossed() -> None:
    scenario = Scenario(name="s", workload="echo", factors={"connections": (1, 2), "depth": (1, 4)})
    assert list(combinations(scenario)) == [
        {"connections": connections, "depth": depth} for connections in (1, 2) for depth in (1, 4)
    ]
    assert list(combinations(Scenario(name="s", workload="echo"))) == [{}]


def test_what_a_contestant_cannot_have_is_skipped_with_the_reason() -> None:
    scenario = Scenario(name="s", workload="echo")
    assert explain_skip(contestant("a"), scenario, {"threads": 8}) == ""
    assert explain_skip(contestant("a", "one"), scenario, {"threads": 1}) == ""
    assert "runs on exactly one thread" in explain_skip(contestant("a", "one"), scenario, {"threads": 8})
    assert "has a thread for each connection" in explain_skip(
        contestant("a", "per-connection"), scenario, {"threads": 8}
    )
    assert "workload 'chat'" in explain_skip(contestant("a"), Scenario(name="s", workload="chat"), {})
    unbuilt = msgspec.structs.replace(contestant("a"), available=False, why_not="Folly not found")
    assert explain_skip(unbuilt, scenario, {}) == "Folly not found"


def test_a_client_that_cannot_have_a_cell_is_a_skip_with_its_name() -> None:
    scenario = Scenario(name="s", workload="echo", client="qt")
    speaks, qt_rpc = contestant("qt"), contestant("qt", workloads=("rpc",))
    assert explain_skip(contestant("a"), scenario, {}, {"qt": speaks}) == ""
    assert (
        explain_skip(contestant("a"), scenario, {}, {"qt": qt_rpc})
        == "client qt: qt does not speak the workload 'echo'"
    )
    assert explain_skip(contestant("a"), scenario, {"client": "netdyno-load"}, {"qt": qt_rpc}) == ""
    unbuilt = msgspec.structs.replace(speaks, available=False, why_not="Qt not found")
    assert explain_skip(contestant("a"), scenario, {}, {"qt": unbuilt}) == "client qt: Qt not found"
    processes: dict[str, type_level] = {"client-processes": 2}
    assert explain_skip(contestant("a"), scenario, processes, {"qt": speaks}) == ""
    assert "netdyno-load is one process" in explain_skip(
        contestant("a"), Scenario(name="s", workload="echo"), processes
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("cmake", ""),
        ("go", "a does not have the option build"),
        ("framework", "a is a framework, which does not get the options build"),
    ],
)
def test_only_a_server_in_cpp_has_another_build(kind: str, reason: str) -> None:
    server = contestant("a", kind=kind)
    assert explain_skip(server, Scenario(name="s", workload="echo", server={"build": "debug"}), {}) == reason
    assert explain_skip(server, Scenario(name="s", workload="echo"), {"build": "O3"}) == reason
    assert explain_skip(server, Scenario(name="s", workload="echo", server={"build": "release"}), {}) == ""


UDP = ("udp",)


def test_an_option_that_means_nothing_to_a_transport_is_a_stated_skip() -> None:
    udp, tcp = contestant("u", transports=UDP), contestant("t")
    plain = Scenario(name="s", workload="echo", server={"socket-buffer": 65536})
    stream = Scenario(name="s", workload="echo", server={"read-buffer": 4096, "backlog": 10})
    assert explain_skip(udp, plain, {}) == ""
    assert explain_skip(tcp, plain, {}) == "t speaks tcp, where socket-buffer means nothing"
    assert explain_skip(tcp, stream, {}) == ""
    assert explain_skip(udp, stream, {}) == "u speaks udp, where backlog and read-buffer mean nothing"
    reconnecting = msgspec.structs.replace(plain, requests_per_connection=1)
    assert explain_skip(udp, reconnecting, {}) == "u speaks udp, where requests-per-connection means nothing"
    assert explain_skip(udp, plain, {"server.nodelay": "on"}) == "u speaks udp, where nodelay means nothing"


def test_what_only_zeromq_has_is_a_stated_skip_over_every_other_transport() -> None:
    scenario = Scenario(name="s", workload="echo", server={"io-threads": 2, "hwm": 10})
    assert explain_skip(contestant("z", transports=("zmq+tcp",)), scenario, {}) == ""
    for transport in ("tcp", "udp"):
        speaker = contestant("a", transports=(transport,))
        assert explain_skip(speaker, scenario, {}) == f"a speaks {transport}, where hwm and io-threads mean nothing"
    assert "io-threads" in explain_skip(contestant("a"), Scenario(name="s", workload="echo"), {"io-threads": 1})


def test_a_load_option_of_streams_is_a_skip_where_it_varies_or_is_not_its_default() -> None:
    udp, scenario = contestant("u", transports=UDP), Scenario(name="s", workload="echo")
    assert explain_skip(udp, scenario, {"connections": 7}) == ""
    assert "nodelay means nothing" in explain_skip(udp, scenario, {"nodelay": "on"})
    assert "nodelay means nothing" in explain_skip(udp, scenario, {"both.nodelay": "off"})
    assert "write-mode means nothing" in explain_skip(udp, msgspec.structs.replace(scenario, write_mode="split"), {})
    idle = msgspec.structs.replace(scenario, busy_connections=5)
    assert "busy-connections means nothing" in explain_skip(udp, idle, {})
    assert explain_skip(contestant("t"), idle, {}) == ""


def test_what_no_datagram_holds_and_an_audience_that_no_group_has_are_no_cells() -> None:
    udp = contestant("u", workloads=("echo", "rpc"), transports=UDP)
    zmq = contestant("z", transports=("zmq+tcp",))
    echo, rpc = (Scenario(name="s", workload=workload, size=65_507) for workload in ("echo", "rpc"))
    assert explain_skip(udp, echo, {}) == ""
    assert "65507 bytes do not fit into a datagram" in explain_skip(udp, rpc, {})
    assert explain_skip(udp, rpc, {"size": 65_439}) == ""  # 4 bytes of length, 64 for the other fields of a request
    assert "65440 bytes do not fit" in explain_skip(udp, rpc, {"size": 65_440})
    assert "65508 bytes do not fit" in explain_skip(udp, echo, {"size": 65_508})
    assert explain_skip(zmq, echo, {"size": 65_508}) == ""
    group = contestant("m", workloads=("chat",), transports=("multicast",))
    chat = Scenario(name="s", workload="chat")
    assert "the audience of a chat is all" in explain_skip(group, chat, {})
    assert explain_skip(group, chat, {"audience": "all"}) == ""


def test_a_client_contestant_reaches_only_servers_of_its_transports() -> None:
    scenario = Scenario(name="s", workload="echo", client="qt")
    qt = {"qt": contestant("qt")}
    assert explain_skip(contestant("t"), scenario, {}, qt) == ""
    assert (
        explain_skip(contestant("u", transports=UDP), scenario, {}, qt)
        == "client qt: qt speaks tcp and not udp, as u does"
    )


def test_the_first_transport_is_the_one_that_is_measured() -> None:
    dual = contestant("b", transports=("zmq+tcp", "tcp"))
    assert transports.find_transport(dual).name == "zmq+tcp"
    assert "backlog means nothing" in explain_skip(dual, Scenario(name="s", workload="echo", server={"backlog": 5}), {})


def test_what_is_requested_where_possible_goes_to_those_that_can_have_it() -> None:
    scenario = Scenario(name="s", workload="echo", where_possible={"threads": 2, "socket-buffer": 4096})

    def added(server: Contestant) -> dict[str, type_level]:
        assert explain_skip(server, scenario, {}) == ""
        return added_options(server, settings(scenario, {}), cores=3)

    assert added(contestant("pool")) == {"threads": 2}
    assert added(contestant("one", "one")) == {}
    assert added(contestant("udp", "one", transports=UDP)) == {"socket-buffer": 4096}
    assert added(contestant("waits", clients="limited-by-threads")) == {"threads": 100}
    three_threads = settings(msgspec.structs.replace(scenario, server={"threads": 3}), {})
    assert added_options(contestant("pool"), three_threads, cores=3) == {}


def test_zeromq_has_no_choice_of_deliveries_and_runs_beside_those_that_have() -> None:
    zeromq = contestant("z", "one", workloads=("chat",), transports=("zmq+tcp",))
    wished = Scenario(name="s", workload="chat", where_possible={"deliveries": "single"})
    assert explain_skip(zeromq, wished, {}) == ""
    assert added_options(zeromq, settings(wished, {}), cores=1) == {}
    for transport in ("tcp", "udp", "multicast"):
        server = contestant("x", "one", workloads=("chat",), transports=(transport,))
        assert added_options(server, settings(wished, {}), cores=1) == {"deliveries": "single"}
    varied = Scenario(name="s", workload="chat", factors={"deliveries": ("joined", "single")})
    assert "deliveries means nothing" in explain_skip(zeromq, varied, {"deliveries": "single"})


def test_an_option_that_a_manifest_names_is_of_that_server_alone() -> None:
    with_ticks, without_ticks = contestant("a", options=("application-tick",)), contestant("b")
    wished = Scenario(name="s", workload="echo", where_possible={"application-tick": "on"})
    assert added_options(with_ticks, settings(wished, {}), cores=1) == {"application-tick": "on", "threads": 1}
    assert added_options(without_ticks, settings(wished, {}), cores=1) == {"threads": 1}
    with_option = Scenario(name="s", workload="echo", server={"application-tick": "on"})
    plain = Scenario(name="s", workload="echo")
    assert (
        explain_skip(with_ticks, with_option, {}) == explain_skip(with_ticks, plain, {"application-tick": "on"}) == ""
    )
    assert explain_skip(without_ticks, with_option, {}) == "b does not have the option application-tick"
    assert (
        explain_skip(without_ticks, plain, {"application-tick": "on"}) == "b does not have the option application-tick"
    )


def test_a_backend_needs_a_server_with_a_pool() -> None:
    with_pool, without = contestant("a", options=("pool",), workloads=("rpc",)), contestant("b", workloads=("rpc",))
    asking = Scenario(name="s", workload="rpc", server={"service-kind": "backend", "service-time": "5ms"})
    assert explain_skip(with_pool, asking, {"pool": 3}) == ""
    assert explain_skip(without, asking, {}) == explain_skip(without, asking, {"pool": 3})
    assert explain_skip(without, asking, {}) == "b does not have the option pool"
    waiting = Scenario(name="s", workload="rpc", factors={"service-kind": ("wait", "backend")})
    assert explain_skip(without, waiting, {"service-kind": "wait"}) == ""
    assert explain_skip(without, waiting, {"service-kind": "backend"}) == "b does not have the option pool"


@pytest.mark.parametrize(("kind", "reason"), [("cmake", ""), ("go", "a does not have the option backend")])
def test_only_a_server_in_cpp_asks_postgresql(kind: str, reason: str) -> None:
    server = contestant("a", kind=kind, options=("pool",), workloads=("rpc",))
    asking = Scenario(name="s", workload="rpc", server={"service-kind": "backend", "service-time": "5ms"})
    assert explain_skip(server, asking, {"backend": "calibrated"}) == ""
    assert explain_skip(server, asking, {"backend": "postgresql"}) == reason


def test_a_cell_is_encrypted_only_where_both_sides_can() -> None:
    with_tls, without_tls = contestant("a", options=("tls",), workloads=("echo", "chat")), contestant("b")
    echo, room = Scenario(name="s", workload="echo"), Scenario(name="s", workload="chat", connections=2)
    assert explain_skip(with_tls, echo, {"tls": "on"}) == ""
    assert explain_skip(without_tls, echo, {"tls": "off"}) == ""
    assert explain_skip(without_tls, echo, {"tls": "on"}) == "b does not have the option tls"
    assert "does not encrypt chat" in explain_skip(with_tls, room, {"tls": "on"})
    assert explain_skip(with_tls, room, {"tls": "off"}) == ""


@pytest.mark.parametrize("threads", ["any", "one", "per-connection"])
def test_a_thread_for_each_core_leaves_none_out(threads: Literal["any", "one", "per-connection"]) -> None:
    scenario = Scenario(name="s", workload="echo", connections=10)
    assert explain_skip(contestant("x", threads), scenario, {"threads": "cores"}) == ""
    pool = contestant("pool", clients="limited-by-threads")
    assert explain_skip(pool, scenario, {"threads": "cores"}) == ""
    assert "are too many for it" in explain_skip(pool, scenario, {"threads": "cores", "connections": 2000})


def test_clients_that_would_wait_for_a_thread_are_no_cell() -> None:
    pool = contestant("pool", workloads=("echo", "chat"), clients="limited-by-threads")
    echo, chat = (Scenario(name="s", workload=workload, connections=10) for workload in ("echo", "chat"))
    assert explain_skip(pool, echo, {}) == ""
    assert explain_skip(pool, echo, {"threads": 10}) == ""
    assert "with threads = 8, 2 of 10 connections would wait" in explain_skip(pool, echo, {"threads": 8})
    assert explain_skip(contestant("a"), echo, {"threads": 8}) == ""
    assert explain_skip(pool, echo, {"threads": 8, "requests-per-connection": 1}) == "", "nobody stays"
    assert explain_skip(pool, echo, {"connections": 1024}) == ""
    assert "1025 connections are too many" in explain_skip(pool, echo, {"connections": 1025})
    prefork = contestant("prefork", clients="limited-by-processes")
    assert explain_skip(prefork, echo, {}) == ""
    assert explain_skip(prefork, echo, {"threads": 8}) == (
        "prefork serves no more clients at a time than it has processes; "
        "with threads = 8, 2 of 10 connections would wait until others leave"
    )
    assert explain_skip(pool, chat, {"connections": 1}) == ""  # the closing check brings a second client
    assert "1 of 2 connections" in explain_skip(pool, chat, {"connections": 1, "threads": 1})


def test_clients_that_would_wait_for_the_only_thread_are_no_cell() -> None:
    iterative = contestant("iterative", "one", clients="limited-by-threads")
    echo = Scenario(name="s", workload="echo", connections=10)
    assert "with threads = 1, 9 of 10 connections would wait" in explain_skip(iterative, echo, {})
    assert "runs on exactly one thread" in explain_skip(iterative, echo, {"threads": 10})
    assert explain_skip(iterative, echo, {"connections": 1}) == ""
    leaving = msgspec.structs.replace(echo, requests_per_connection=1, where_possible={"threads": 10})
    assert explain_skip(iterative, leaving, {}) == ""
    assert added_options(iterative, settings(leaving, {}), cores=2) == {}


def test_skipped_cells_cost_no_time(experiment: Experiment) -> None:
    servers = {"a": contestant("a"), "b": contestant("b", workloads=("chat",))}
    alone = estimate_seconds(experiment.with_each(contestants=("a",)), servers)
    assert alone > experiment.blocks * 2 * experiment.scenarios[0].duration_s
    assert estimate_seconds(experiment.with_each(contestants=("a", "b")), servers) == alone


def test_the_canary_beside_each_trial_costs_time(experiment: Experiment) -> None:
    cold = experiment.with_each(contestants=("a",), warmup_s=0.0)
    trials = cold.blocks * 2
    whole_s = trials * (cold.scenarios[0].duration_s + TRIAL_OVERHEAD_S + CANARY_S)
    assert math.isclose(estimate_seconds(cold, {"a": contestant("a")}), whole_s)
    assert 0.03 <= CANARY_S <= 0.06  # the exchange and the loop take 30 ms


def test_a_server_that_starts_slowly_costs_time(experiment: Experiment) -> None:
    single = experiment.with_each(contestants=("a",))
    seconds = [
        estimate_seconds(single, {"a": msgspec.structs.replace(contestant("a"), own=own)})
        for own in (Own(command="a", workload="echo"), Own(command="a", workload="echo", overhead_s=1.0))
    ]
    assert math.isclose(seconds[1] - seconds[0], single.blocks * 2 * (1.0 - TRIAL_OVERHEAD_S))


def test_a_link_that_is_made_for_each_trial_costs_time(experiment: Experiment) -> None:
    single = experiment.with_each(contestants=("a",))
    servers = {"a": contestant("a")}
    lan_s = estimate_seconds(single.with_each(link="lan"), servers)
    assert lan_s > estimate_seconds(single, servers)
    wan_s = estimate_seconds(single.with_each(link="wan", link_delay_s=0.1), servers)
    trials, trips = single.blocks * 2, 4 * 2  # connecting, last answers, closes, closing check: there and back
    assert math.isclose(wan_s - lan_s, trials * trips * 0.1)


def test_descriptors_are_those_of_the_cell_that_takes_most(experiment: Experiment) -> None:
    """Two contestants with 10 connections, and one with three descriptors a client in a scenario with 4."""
    few = experiment.scenarios[0]
    many = msgspec.structs.replace(few, name="many", factors={"connections": (5, 10)}, contestants=("a",))
    mixed = msgspec.structs.replace(experiment.with_each(contestants=("a", "b"), factors={}, connections=4))
    mixed = msgspec.structs.replace(mixed, scenarios=(*mixed.scenarios, many))
    servers = {"a": contestant("a"), "b": contestant("b", descriptors_per_client=3)}
    assert find_most_descriptors(mixed, servers) == 12
    assert find_most_descriptors(mixed, {**servers, "b": contestant("b", descriptors_per_client=2)}) == 10


def test_quick_fits_its_time_and_its_test() -> None:
    quick = experiment.load(ROOT / "experiments" / "quick.toml")
    names = quick.scenarios[0].contestants
    built = {
        server.name: msgspec.structs.replace(server, available=True, why_not="") for server in select(discover(), names)
    }
    assert len(built) >= 5
    assert estimate_seconds(quick, built) <= QUICK_LIMIT_S
    assert quick.blocks >= FEWEST_BLOCKS


def test_realtime_smoke_is_source_c_and_fits_its_time() -> None:
    realtime = experiment.load(ROOT / "experiments" / "realtime-smoke.toml")
    servers = {name: contestant(name, workloads=("chat",)) for name in realtime.scenarios[0].contestants}
    assert [scenario.connections for scenario in realtime.scenarios] == [100, 1000]
    for scenario in realtime.scenarios:
        assert (scenario.workload, scenario.arrivals, scenario.depth) == ("chat", "closed", 1)
        assert (scenario.metric, scenario.server["audience"], scenario.connect_rate) == ("mean", "all", "burst")
    # What was sent in the window is waited for: a round of the slowest at 1000 clients.
    slowest_round_s = 6
    drains_s = len(servers) * slowest_round_s
    assert 100 <= estimate_seconds(realtime, servers) <= 240 - drains_s


def test_a_scenario_with_fewer_blocks_is_in_the_first_ones() -> None:
    few, many = (
        Scenario(name=name, workload="echo", contestants=("a",), blocks=blocks) for name, blocks in (("f", 1), ("m", 3))
    )
    cells = plan(Experiment(name="e", question="?", scenarios=(few, many)))
    assert sorted((cell.block, cell.scenario) for cell in cells) == [(1, "f"), (1, "m"), (2, "m"), (3, "m")]


def test_a_warm_up_may_grow_with_the_connections(experiment: Experiment) -> None:
    slow = experiment.with_each(warmup_s=0.5, warmup_per_connection_s=0.25, contestants=("a",))
    (scenario,) = slow.scenarios
    assert [settings(scenario, levels).warmup_s for levels in combinations(scenario)] == [0.75, 1.0]
    at_least = [settings(scenario, levels, least_warmup_s=0.9).warmup_s for levels in combinations(scenario)]
    assert at_least == [0.9, 1.0], "what is for the connections counts towards the least warm-up"
    without = experiment.with_each(contestants=("a",))
    more = estimate_seconds(slow, {"a": contestant("a")}) - estimate_seconds(without, {"a": contestant("a")})
    assert math.isclose(more, slow.blocks * (0.75 + 1.0))


def test_connecting_at_a_rate_takes_its_time(experiment: Experiment) -> None:
    slow, burst = (experiment.with_each(contestants=("a",), connect_rate=rate) for rate in (10.0, "burst"))
    more = estimate_seconds(slow, {"a": contestant("a")}) - estimate_seconds(burst, {"a": contestant("a")})
    assert math.isclose(more, slow.blocks * (1 + 2) / 10)
    within_a_second = experiment.with_each(contestants=("a",), connect_rate="connections")
    longer = estimate_seconds(within_a_second, {"a": contestant("a")}) - estimate_seconds(burst, {"a": contestant("a")})
    assert math.isclose(longer, slow.blocks * (1 + 1))


def test_each_scenario_has_contestants_of_its_own() -> None:
    first, second = (Scenario(name=name, workload="echo", contestants=(name,)) for name in "ab")
    cells = plan(Experiment(name="e", question="?", scenarios=(first, second)))
    assert {(cell.scenario, cell.contestant) for cell in cells} == {("a", "a"), ("b", "b")}

"""An experiment is parsed once; what is not understood names the file, the key and the nearest valid key."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.model.experiment import Experiment
from netdyno.model.levels import combinations, links
from netdyno.model.options import settings
from netdyno.question import experiment
from tests.support.chosen import discover_once

GOOD = """
question = "Which?"
contestants = ["*"]
blocks = 3
warmup = "250ms"
duration = "1s"

[[scenario]]
name = "echo"
workload = "echo"
generator-threads = 2
[scenario.factors]
connections = [10, 100]
threads = [1, 2]
[scenario.server]
service-time = "1ms"
"""


WRITES = 'workload = "chat"\ngenerator-threads = 1\nmessages = 5\n'
ECHO = 'workload = "echo"\ngenerator-threads = 2'


def parse(text: str) -> Experiment:
    return experiment.parse(text, "good", "good.toml")


def test_units_names_and_defaults() -> None:
    parsed = parse(GOOD)
    (scenario,) = parsed.scenarios
    assert (parsed.name, scenario.blocks, scenario.warmup_s, scenario.duration_s) == ("good", 3, 0.25, 1.0)
    assert scenario.generator_threads == 2
    assert scenario.factors == {"connections": (10, 100), "threads": (1, 2)}
    assert scenario.server == {"service-time": "1ms"}
    assert (scenario.arrivals, scenario.depth, scenario.connect_rate) == ("closed", 1, "burst")


def test_a_link_and_its_rate() -> None:
    assert links(parse(GOOD)) == ("loopback",)
    assert links(parse(GOOD.replace("blocks = 3", 'blocks = 3\nlink = "lan"'))) == ("lan",)
    limited = parse(GOOD.replace("blocks = 3", 'blocks = 3\nlink = "lan"\nlink-rate = "100mbit"'))
    assert links(limited) == ("lan at 100mbit",)
    (scenario,) = limited.scenarios
    assert (scenario.link, scenario.link_rate) == ("lan", "100mbit")


def test_a_link_may_be_a_factor_and_its_rate_is_then_that_of_the_other() -> None:
    both = GOOD.replace("connections = [10, 100]", 'connections = [10, 100]\nlink = ["loopback", "lan"]')
    assert links(parse(both.replace("blocks = 3", 'blocks = 3\nlink-rate = "1gbit"'))) == ("loopback", "lan at 1gbit")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('link-delay = "20ms"', "wan with 20ms each way"),
        ("link-loss = 0.01", "wan with 1% lost"),
        ('link-delay = "20ms"\nlink-loss = 0.005', "wan with 20ms each way, 0.5% lost"),
        ('link-rate = "10mbit"', "wan at 10mbit"),
        ('link-delay = "1.5s"\nlink-rate = "10mbit"', "wan at 10mbit with 1.5s each way"),
    ],
)
def test_a_wan_is_named_by_what_it_does(keys: str, words: str) -> None:
    assert links(parse(GOOD.replace("blocks = 3", f'blocks = 3\nlink = "wan"\n{keys}'))) == (words,)


def test_a_level_is_a_name_and_a_cells_settings_have_its_value() -> None:
    varied = CLOSED.replace("[scenario.factors]", '[scenario.factors]\nservice-time = ["0s", "10us"]')
    (scenario,) = parse(varied.replace('service-time = "1ms"\n', "")).scenarios
    assert scenario.factors["service-time"] == ("0s", "10us")
    assert [settings(scenario, {"service-time": level}).service_time_s for level in ("0s", "10us")] == pytest.approx(
        [0.0, 1e-5]
    )


def test_what_a_wan_does_may_be_factors() -> None:
    levels = 'connections = [10]\nlink-delay = ["1ms", "20ms"]\nlink-loss = [0, 0.01]'
    several = GOOD.replace("connections = [10, 100]", levels).replace("blocks = 3", 'blocks = 3\nlink = "wan"')
    assert links(parse(several)) == (
        "wan with 1ms each way",
        "wan with 1ms each way, 1% lost",
        "wan with 20ms each way",
        "wan with 20ms each way, 1% lost",
    )


def test_where_the_link_is_a_factor_delay_and_loss_are_the_wans() -> None:
    factor = GOOD.replace("connections = [10, 100]", 'connections = [10]\nlink = ["loopback", "lan", "wan"]')
    link_keys = 'blocks = 3\nlink-delay = "20ms"\nlink-loss = 0.01\nlink-rate = "1gbit"'
    assert links(parse(factor.replace("blocks = 3", link_keys))) == (
        "loopback",
        "lan at 1gbit",
        "wan at 1gbit with 20ms each way, 1% lost",
    )


def test_the_limits_of_a_container_may_be_factors() -> None:
    levels = 'cpu-quota = ["0.5", 2, "none"]\nmemory-limit = ["none", "64MiB"]'
    (scenario,) = parse(GOOD.replace("connections = [10, 100]", levels)).scenarios
    assert scenario.factors["cpu-quota"] == ("0.5", 2, "none")
    cells = [settings(scenario, levels_of_cell) for levels_of_cell in combinations(scenario)]
    limits = [(cell.cpu_quota, cell.memory_limit) for cell in cells]
    assert list(dict.fromkeys(limits)) == [(quota, memory) for quota in (0.5, 2, None) for memory in (None, 64 << 20)]


def test_it_is_frozen() -> None:
    with pytest.raises(AttributeError):
        parse(GOOD).blocks = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("blocks = 3", "bloks = 3", "good.toml: unknown key 'bloks' (did you mean 'blocks'?)"),
        ("blocks = 3", "", "good.toml: the key 'blocks' is missing"),
        ("blocks = 3", "blocks = 0", "good.toml: key 'blocks': 0 is not a whole number of at least 1"),
        ("blocks = 3", "blocks = 9000000000000000000", "good.toml: key 'blocks': 9000000000000000000 is above 10"),
        (
            'duration = "1s"',
            f'duration = "{10**16}s"',
            "good.toml: key 'duration': 10000000000000000s is above 1e+15 s",
        ),
        ("blocks = 3", 'blocks = "3"', "good.toml: key 'blocks': '3' is not a whole number of at least 1"),
        ("blocks = 3", "blocks = 3 = 4", "good.toml: not valid TOML"),
        ('"1s"', "1", "good.toml: key 'duration': 1 is not a duration"),
        ('"1s"', '"1 sec"', "good.toml: key 'duration': '1 sec' is not a duration"),
        ('"1s"', '"0s"', "good.toml: key 'duration': '0s' is not above 0"),
        (
            "blocks = 3",
            "blocks = 3\nloss-bound = 1",
            "good.toml: key 'loss-bound': 1 is not a share from 0 to below 1",
        ),
        ('workload = "echo"', 'workload = "echo"\nthen-by = "p99"', "key 'then-by': 'p99' is not a list of words"),
        ('workload = "echo"', 'workload = "echo"\nthen-by = ["p99", "p99"]', "each once, such as ['throughput']"),
        ('workload = "echo"', 'workload = "echo"\nthen-by = ["p98"]', "'p98' is not valid (did you mean 'p99'?)"),
        ('workload = "echo"', 'workload = "echo"\nthen-by = ["capacity"]', "'capacity' is not valid"),
        ('workload = "echo"', 'workload = "echo"\nmargin = 5', "key 'margin': 5 is no precision"),
        (
            "blocks = 3",
            'blocks = 3\nloss-bound = "1%"',
            "key 'loss-bound': '1%' is not a share from 0 to below 1",
        ),
        (
            "[scenario.server]",
            "[scenario.where-possible]\nservice-time = '1s'\n[scenario.server]",
            "where-possible: unknown",
        ),
        (
            "[scenario.server]",
            "[scenario.where-possible]\nthreads = 0\n[scenario.server]",
            "where-possible: key 'threads': 0",
        ),
        ('["*"]', "[]", "good.toml: key 'contestants': names no contestant"),
        ("blocks = 3", 'blocks = 3\nlink = "lam"', "key 'link': 'lam' is not valid (did you mean 'lan'?)"),
        ("blocks = 3", "blocks = 3\ncpu-quota = 0", "key 'cpu-quota': 0 is not a number of cores from 0.01 to 1024"),
        ("blocks = 3", 'blocks = 3\ncpu-quota = "half"', "key 'cpu-quota': 'half' is not a number of cores"),
        ("blocks = 3", "blocks = 3\nmemory-limit = 64", "key 'memory-limit': 64 is not a size of at least 1MiB"),
        ("blocks = 3", 'blocks = 3\nmemory-limit = "64MB"', "key 'memory-limit': '64MB' is no size"),
        ("blocks = 3", 'blocks = 3\nlink-rate = "1gbit"', "key 'link-rate': the loopback has no rate; write link = "),
        (
            "blocks = 3",
            'blocks = 3\nlink-delay = "1ms"',
            "key 'link-delay': the loopback has none; write link = \"wan\"",
        ),
        ("blocks = 3", 'blocks = 3\nlink = "lan"\nlink-loss = 0.1', "key 'link-loss': a lan has none; write link = "),
        (
            "blocks = 3",
            'blocks = 3\nlink = "wan"',
            "key 'link': a wan needs 'link-delay', 'link-loss' or 'link-rate'",
        ),
        ("blocks = 3", 'blocks = 3\nlink = "wan"\nlink-delay = "0s"', "key 'link': a wan needs 'link-delay'"),
        ("blocks = 3", 'blocks = 3\nlink = "wan"\nlink-delay = 20', "key 'link-delay': 20 is not a duration"),
        ("blocks = 3", 'blocks = 3\nlink = "wan"\nlink-delay = "11s"', "key 'link-delay': 11s is above 10 s"),
        (
            "blocks = 3",
            'blocks = 3\nlink = "wan"\nlink-loss = 1',
            "key 'link-loss': 1 is not a share from 0 to below 1",
        ),
        (
            "connections = [10, 100]",
            'connections = [10]\nlink = ["lan", "wan"]\nlink-delay = ["1ms", "2ms"]',
            "key 'link-delay': a lan has none",
        ),
        (
            "blocks = 3",
            'blocks = 3\nlink = "lan"\nlink-rate = "fast"',
            "key 'link-rate': 'fast' is not a rate: write a whole number and a unit",
        ),
        (
            "blocks = 3",
            'blocks = 3\nlink = "lan"\nlink-rate = 1',
            "key 'link-rate': 1 is not a rate: write a text with",
        ),
        ("generator-threads", "generator-thread", "scenario 1 ('echo'): unknown key 'generator-thread' (did you mean"),
        (
            "generator-threads = 2",
            "generator-threads = 0",
            "'generator-threads': 0 is not a whole number of at least 1",
        ),
        ("generator-threads = 2", 'arrivals = "poison"', "'poison' is not valid (did you mean 'poisson'?)"),
        ("generator-threads = 2", 'arrivals = "poisson"', "arrivals = 'poisson' needs a 'rate'"),
        ("generator-threads = 2", "rate = 5", "a closed loop has no rate of its own"),
        ("generator-threads = 2", "burst-rate = 9", "key 'burst-rate': a burst interrupts a load at one 'rate'"),
        (
            "generator-threads = 2",
            'arrivals = "poisson"\nrate-per-connection = 5\nburst-rate = 900',
            "key 'burst-rate': a burst interrupts a load at one 'rate'",
        ),
        (
            "generator-threads = 2",
            'arrivals = "poisson"\nrate = 5\nburst-rate = 9\nrate-share = 0.5',
            "key 'burst-rate': 'rate-share' lowers only the other rate",
        ),
        (
            "generator-threads = 2",
            'arrivals = "poisson"\nrate = 5\nburst-rate = 9\nclient-hosts = 2',
            "key 'burst-rate': one host makes the load of a burst",
        ),
        ('workload = "echo"', 'workload = "chat"\nmetric = "ready"', "a single client of a chat gets none"),
        ("generator-threads = 2", 'metric = "recovery"', "key 'metric': 'recovery' is the time after a burst"),
        (
            "generator-threads = 2",
            'arrivals = "poisson"\nrate = 1e-300',
            "1e-300 is not a rate: a number per second, 0.001",
        ),
        ("generator-threads = 2", 'arrivals = "poisson"\nrate = 2e7', "20000000.0 is not a rate: a number per second"),
        ("generator-threads = 2", 'arrivals = "poisson"\nrate = 9\ndepth = 1', "'depth' is for a closed loop"),
        ("generator-threads = 2", 'arrivals = "poisson"\nrate = 9\nround = "1s"', "'round' is for a closed loop"),
        ("generator-threads = 2", 'round = "often"', "'often' is not a duration"),
        ("generator-threads = 2", "size = 28", "key 'size': 28 bytes; a message of 'echo' has at least 29"),
        (ECHO, 'workload = "http"\nsize = 16001', "16001 bytes; the path of a request of 'http' has at most 16000"),
        (ECHO, 'workload = "web"\nsize = 1048577', "1048577 bytes; a reply of 'web' has at most 1 MiB"),
        (ECHO, 'workload = "grpc"\nwrite-mode = "split"', "'split': a message of 'grpc' leaves whole"),
        ("generator-threads = 2", "generator-threads = 11", "11 threads need more connections that send than 10"),
        (ECHO, 'workload = "chat"\ngenerator-threads = 6', "two each, where a second one"),
        (ECHO, 'workload = "chat"\nclient-hosts = 6', "'client-hosts': 6: every thread of every host needs two of"),
        (
            "generator-threads = 2",
            "client-processes = 2",
            "'client-processes': 2: several processes make a closed loop of 'rpc'",
        ),
        (ECHO, 'workload = "rpc"\nclient-processes = 11', "'client-processes': 11: each process needs a connection"),
        ("generator-threads = 2", "client-hosts = 11", "'client-hosts': 11: every thread of every host needs one of"),
        (ECHO, 'workload = "chat"\nrequests-per-connection = 1', "connection': needs replies, and 'chat' has none"),
        ("generator-threads = 2", "busy-connections = 0", "'busy-connections': 0 is not a whole number of at least 1"),
        ("generator-threads = 2", "busy-connections = 11", "key 'busy-connections': 11: more than the 10 connections"),
        (
            "generator-threads = 2",
            "busy-connections = 2\ngenerator-threads = 3",
            "3 threads need more connections that send than 2",
        ),
        (
            "generator-threads = 2",
            "busy-connections = 2\nclient-hosts = 3",
            "every thread of every host needs one of the 2 connections that send",
        ),
        ("generator-threads = 2", "busy-connections = 2\nrequests-per-connection = 1", "idle connections stay open"),
        (ECHO, 'workload = "chat"\nbusy-connections = 2', "in 'chat' every connection receives"),
        ("generator-threads = 2", 'connect-rate = "when-due"', "'connect-rate': 'when-due': is for an open loop"),
        (
            "generator-threads = 2",
            'connect-rate = "when-due"\narrivals = "poisson"\nrate = 5',
            "'when-due': goes with 'requests-per-connection'",
        ),
        ("generator-threads = 2", "rate-share = 0.5", "key 'rate-share': lowers one 'rate'"),
        ("generator-threads = 2", "slow-readers = 1", "key 'slow-readers': only in 'chat' do clients receive"),
        (
            ECHO,
            'workload = "chat"\nslow-readers = 9',
            "key 'slow-readers': 9 of 10 leave no client to send and receive",
        ),
        ("generator-threads = 2", 'start = "at-once"', "key 'start': only in 'chat' do connected clients"),
        (ECHO, 'workload = "chat"\nstart = "at-once"\nround = "1s"', "'at-once' is for a closed loop without rounds"),
        (ECHO, 'workload = "chat"\nstart = "at-once"\nslow-readers = 1', "leave one of them out"),
        (ECHO, 'workload = "chat"\nstart = "soon"', "'soon' is not valid"),
        (ECHO, 'workload = "echo"\nmessages = 5', "key 'messages': is for the workload chat"),
        (ECHO, 'workload = "chat"\nmessages = 5', "one thread makes the burst; write generator-threads = 1"),
        (
            ECHO,
            WRITES + 'start = "at-once"',
            "these clients read nothing, and leave when they have written; leave 'start'",
        ),
        (ECHO, WRITES + 'round = "1s"', "leave 'round' out"),
        (ECHO, 'workload = "chat"\nmessages = 0', "key 'messages'"),
        ('service-time = "1ms"', 'sigpipe = "ends"', "'ends' is for clients that leave early"),
        ('service-time = "1ms"', 'backend = "postgresql"', "key 'backend': is for service kind 'backend'"),
        ('service-time = "1ms"', 'read-mode = "apart"\ntls = "on"', "key 'read-mode': 'apart' is for rpc and chat"),
        (
            "generator-threads = 2",
            'placement = "shared"\nlink = "wan"\nlink-delay = "9ms"',
            "key 'placement': server and generator would share their cores with the relay of the wan",
        ),
        ("blocks = 3", "blocks = 3\nseed = -1", "key 'seed': -1 is not a whole number of at least 0"),
        ("connections = [10", "conections = [10", "factors: unknown key 'conections' (did you mean 'connections'?)"),
        (
            "[scenario.factors]\nconnections = [10, 100]\nthreads = [1, 2]",
            "factors = 1",
            "key 'factors': must be a table",
        ),
        ("threads = [1, 2]", 'threads = [1, "core"]', "'core' is not a whole number of at least 1, nor 'cores'"),
        ("[10, 100]", "10", "factors: key 'connections' must be a list of levels"),
        ("[10, 100]", "[10, 10]", "factors: key 'connections' names a level twice"),
        ("[10, 100]", "[10, true]", "factors: key 'connections': True is not a whole number"),
        ("service-time", "service_time", "server: unknown key 'service_time' (did you mean 'service-time'?)"),
        ('"1ms"', '"soon"', "server: key 'service-time': 'soon' is not a duration"),
        ('service-time = "1ms"', 'write-mode = "splt"', "'splt' is not valid (did you mean 'split'?)"),
        ('workload = "echo"', "", "scenario 1 ('echo'): the key 'workload' is missing"),
        ("[[scenario]]", "[scenario]", "'scenario' must be one or more [[scenario]] tables"),
    ],
)
def test_a_mistake_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as error:
        parse(GOOD.replace(old, new, 1))
    assert str(error.value).startswith("good.toml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


CLOSED = """
question = "Which client?"
contestants = ["*"]
blocks = 1
warmup = "0s"
duration = "1s"
[[scenario]]
name = "rpc"
workload = "rpc"
nodelay = "off"
write-mode = "split"
service-time = "1ms"
[scenario.factors]
client = ["asio-*", "netdyno-load"]
server.nodelay = ["on", "off"]
both.write-mode = ["gathered", "split"]
"""
CLIENTS = ("asio-callbacks", "asio-coroutines", "qt-signals")


def test_the_loads_own_options_and_factors_of_either_side_and_of_both() -> None:
    (scenario,) = parse(CLOSED).scenarios
    assert (scenario.nodelay, scenario.write_mode, scenario.service_time_s) == ("off", "split", 0.001)
    assert scenario.factors["server.nodelay"] == ("on", "off")
    assert scenario.factors["both.write-mode"] == ("gathered", "split")


def test_clients_are_expanded_by_name_the_generator_among_them() -> None:
    def levels(text: str) -> tuple[object, ...]:
        return experiment.choose_clients(parse(text), CLIENTS, "good.toml").scenarios[0].factors["client"]

    assert levels(CLOSED) == ("asio-callbacks", "asio-coroutines", "netdyno-load")
    everyone = CLOSED.replace('["asio-*", "netdyno-load"]', '["*"]')
    assert levels(everyone) == ("netdyno-load", *CLIENTS)
    named = experiment.choose_clients(parse(everyone), CLIENTS, "good.toml")
    assert experiment.list_clients(named) == CLIENTS
    assert experiment.list_clients(parse(GOOD)) == ()


INSTRUMENT = """
question = "Which?"
contestants = ["*"]
blocks = 1
warmup = "0s"
duration = "1s"
[[scenario]]
name = "echo"
workload = "echo"
arrivals = "constant"
rate-per-connection = 10
connect-rate = "connections"
[scenario.factors]
client = ["*"]
"""


def test_the_load_program_of_others_is_in_no_pattern_of_clients() -> None:
    def levels(text: str) -> tuple[object, ...]:
        loaded = experiment.choose_clients(parse(text), (*CLIENTS, "tcpkali"), "good.toml", ("tcpkali",))
        return loaded.scenarios[0].factors["client"]

    assert levels(INSTRUMENT) == ("netdyno-load", *CLIENTS)
    assert levels(INSTRUMENT.replace('client = ["*"]', 'client = ["tcpkali"]')) == ("tcpkali",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('connect-rate = "connections"\n', "", "key 'connect-rate': client = '*' needs connections a second"),
        ('"constant"', '"poisson"', "an open loop, it is 'constant'"),
        (
            'name = "echo"',
            'name = "echo"\nlook-every = "1ms"',
            "key 'look-every': only netdyno-load supports '1ms'",
        ),
    ],
)
def test_what_the_load_program_of_others_cannot_do_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in INSTRUMENT
    with pytest.raises(UserError) as error:
        parse(INSTRUMENT.replace(old, new, 1))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '["asio-*", "netdyno-load"]',
            '["asio-calbaks"]',
            "scenario 1 ('rpc'): factors: key 'client': unknown client 'asio-calbaks' (did you mean 'asio-callbacks'?)",
        ),
        (
            'nodelay = "off"',
            'client = "qt-signal"',
            "scenario 1 ('rpc'): key 'client': unknown client 'qt-signal' (did you mean 'qt-signals'?)",
        ),
    ],
)
def test_an_unknown_client_is_one_clear_line(old: str, new: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        experiment.choose_clients(parse(CLOSED.replace(old, new, 1)), CLIENTS, "good.toml")
    assert str(error.value) == f"good.toml: {message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'nodelay = "off"',
            'nodelay = "of"',
            "scenario 1 ('rpc'): key 'nodelay': 'of' is not valid (did you mean 'off'?)",
        ),
        ('nodelay = "off"', "nodelays = 1", "unknown key 'nodelays' (did you mean 'nodelay'?)"),
        ('nodelay = "off"', "client = 5", "key 'client': 5 is not a name"),
        ("server.nodelay", "server.depth", "factors: server: unknown key 'depth'"),
        ("server.nodelay", "both.write-mod", "factors: both: unknown key 'write-mod' (did you mean 'write-mode'?)"),
        ("server.nodelay", "server.write-mode", "key 'both.write-mode': 'write-mode' varies on one side as well"),
        ('["on", "off"]', '["on", "of"]', "factors: key 'server.nodelay': 'of' is not valid (did you mean 'off'?)"),
        ('workload = "rpc"', 'workload = "echo"', "key 'service-time': a request of 'rpc', 'web' or 'grpc' can"),
        ('"1ms"', '"11s"', "key 'service-time': 11s is above 10 s"),
        ('"1ms"', '"1ms"\nslow-requests = 0.01', "key 'slow-requests': needs 'slow-request-time'"),
        (
            '"1ms"',
            '"1ms"\nslow-requests = 1\nslow-request-time = "2ms"',
            "key 'slow-requests': 1 is not a share from 0 to below 1",
        ),
        (
            'nodelay = "off"',
            'arrivals = "poisson"\nrate-per-connection = 5',
            "key 'arrivals': only netdyno-load supports 'poisson'; with client = 'asio-*'",
        ),
        ('nodelay = "off"', 'round = "1s"', "key 'round': only netdyno-load supports '1s'"),
        ('nodelay = "off"', "depth = 4", "key 'depth': only netdyno-load supports 4"),
        ('nodelay = "off"', "connect-rate = 100", "key 'connect-rate': only netdyno-load supports 100.0"),
        ('nodelay = "off"', "generator-threads = 2", "key 'generator-threads': only netdyno-load supports 2"),
        (
            'workload = "rpc"\nnodelay = "off"\nwrite-mode = "split"\nservice-time = "1ms"',
            'workload = "chat"\nserver.audience = "all"',
            "key 'audience': only netdyno-load supports 'all'",
        ),
        (
            'nodelay = "off"',
            "requests-per-connection = 1",
            "key 'requests-per-connection': only netdyno-load supports 1",
        ),
        ('nodelay = "off"', "requests-per-connection = 0", "'requests-per-connection': 0 is not a whole number of at"),
        ('nodelay = "off"', "requests-per-connection = 2\ndepth = 3", "-connection': 2; a depth of 3 needs as many"),
        (
            'nodelay = "off"',
            "rate-per-connection = 5",
            "'rate-per-connection' needs arrivals = 'constant' or 'poisson'",
        ),
    ],
)
def test_a_mistake_about_clients_or_sides_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in CLOSED
    with pytest.raises(UserError) as error:
        parse(CLOSED.replace(old, new, 1))
    assert str(error.value).startswith("good.toml: scenario 1")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_rate_is_stated_in_one_way() -> None:
    per_connection = GOOD.replace("generator-threads = 2", 'arrivals = "constant"\nrate-per-connection = 1000')
    assert parse(per_connection).scenarios[0].rate_per_connection == 1000
    with pytest.raises(UserError, match="say the same thing twice"):
        parse(per_connection.replace("[scenario.factors]", "[scenario.factors]\nrate = [5]"))


def test_a_burst_may_be_a_factor_and_its_metric_ranks() -> None:
    pace = 'workload = "echo"\narrivals = "poisson"\nrate = 600\nmetric = "recovery"'
    text = GOOD.replace(ECHO, pace).replace("connections = [10, 100]", "burst-rate = [1200, 2000]")
    (scenario,) = parse(text).scenarios
    assert (scenario.has_burst, scenario.metric) == (True, "recovery")
    assert {settings(scenario, levels).burst_rate for levels in combinations(scenario)} == {1200, 2000}
    assert not parse(GOOD).scenarios[0].has_burst


def test_an_open_loop_may_poll_now_and_then_and_join_what_is_due() -> None:
    pace = 'workload = "echo"\narrivals = "constant"\nrate-per-connection = 9\nlook-every = "8ms"\nwrite-due = "joined"'
    (scenario,) = parse(GOOD.replace(ECHO, pace)).scenarios
    assert (scenario.look_every_s, scenario.write_due) == (0.008, "joined")
    with pytest.raises(UserError, match="'write-due' = 'joined' and 'write-mode' = 'split': leave one of them out"):
        parse(GOOD.replace(ECHO, pace + '\nwrite-mode = "split"'))
    with pytest.raises(UserError, match="'look-every' and 'round': leave one of them out"):
        parse(GOOD.replace(ECHO, 'workload = "echo"\nlook-every = "20ms"\nround = "1s"'))


def test_two_scenarios_of_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="two scenarios are called 'echo'"):
        parse(GOOD + '[[scenario]]\nname = "echo"\nworkload = "echo"\n')


def test_an_experiment_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text(GOOD)
    assert experiment.find("quick", tmp_path) == tmp_path / "quick.toml"
    assert experiment.find(str(tmp_path / "quick.toml"), Path("/nowhere")) == tmp_path / "quick.toml"
    with pytest.raises(UserError, match=r"unknown experiment 'quik' \(did you mean 'quick'\?\)"):
        experiment.find("quik", tmp_path)
    with pytest.raises(UserError, match="no such experiment file: x/quick"):
        experiment.find("x/quick.toml", tmp_path)


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"binary.toml: cannot be read"):
        experiment.load(tmp_path / "binary.toml")


@pytest.mark.parametrize("name", experiment.list_names(ROOT / "experiments"))
def test_every_experiment_of_this_repository_parses(name: str) -> None:
    path = ROOT / "experiments" / f"{name}.toml"
    clients = [client.name for client in discover_once("client")]
    assert experiment.choose_clients(experiment.load(path), clients, str(path)).name == name


@pytest.mark.parametrize("included", ["1", "[1]", "[[]]", '"quick"'])
def test_what_is_included_has_names(included: str, tmp_path: Path) -> None:
    path = tmp_path / "whole.toml"
    path.write_text(f'question = "All?"\ninclude = {included}\n')
    experiment.list_budgets(path)
    with pytest.raises(UserError, match="key 'include': must be a list"):
        experiment.load(path)


OPEN = """
[[scenario]]
name = "at a rate"
workload = "echo"
arrivals = "poisson"
rate-per-connection = 5
"""


def test_the_load_of_the_command_line_replaces_what_the_file_has_and_varies() -> None:
    closed, at_a_rate = experiment.replace_load(parse(GOOD + OPEN), 500, 250.0).scenarios
    assert (closed.connections, closed.factors, closed.rate) == (500, {"threads": (1, 2)}, None)
    assert (at_a_rate.connections, at_a_rate.rate, at_a_rate.rate_per_connection) == (500, 250.0, None)
    assert experiment.replace_load(parse(GOOD + OPEN), None, 9.0).scenarios[0] == parse(GOOD).scenarios[0]
    assert experiment.replace_load(parse(GOOD), None, None) == parse(GOOD)


def test_a_load_that_an_experiment_cannot_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"^--rate: 'good' has only closed loops, and these have no rate$"):
        experiment.replace_load(parse(GOOD), None, 9.0)
    with pytest.raises(UserError, match="scenario 'echo': key 'generator-threads': 2 threads need more connections"):
        experiment.replace_load(parse(GOOD), 1, None)
    claimed = experiment.load(ROOT / "experiments" / "asio-vs-qt.toml")
    with pytest.raises(UserError, match=r"^--connections: 'asio-vs-qt' has claims, figures or flips"):
        experiment.replace_load(claimed, 9, None)
    searched = OPEN.replace(
        "rate-per-connection = 5", 'metric = "capacity"\nobjective = "p99<5ms"\nfactors = {rate = [5, 6]}'
    )
    with pytest.raises(UserError, match="--rate: its rates are those among which it finds a capacity"):
        experiment.replace_load(parse(GOOD + searched), None, 9.0)


ASKING = """
question = "q"
contestants = ["epoll-coroutines"]
blocks = 1
warmup = "0s"
duration = "1s"
[[scenario]]
name = "s"
workload = "rpc"
service-time = "1ms"
server.service-kind = "backend"
"""


def test_the_backend_s_time_and_the_pool_are_factors() -> None:
    factors = '[scenario.factors]\npool = [1, 10]\nserver.service-time = ["0s", "5ms"]\nslow-requests = [0, 0.1]\n'
    text = f'{ASKING}slow-request-time = "2ms"\n{factors}'
    (scenario,) = parse(text).scenarios
    assert scenario.factors["pool"] == (1, 10)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rpc"\nservice-time = "1ms"', '"echo"', "'backend': requests of rpc and http ask one, 'echo' does not"),
        ('service-time = "1ms"\n', "", "'backend': a request asks it for its service time; add a 'service-time'"),
        ('"backend"', '"backend"\nserver.pool = 0', "server: key 'pool': 0 is not a whole number of at least 1"),
    ],
)
def test_requests_that_ask_no_backend_are_an_error(old: str, new: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse(ASKING.replace(old, new, 1))
    assert message in str(error.value)

"""The figures that each source publishes, put through its own claims: a claim that the source's own figures do not bear
out is either tested wrongly or contradicted by them, and then its study says so.

The figures are those of the texts, as a machine with cores enough would have stored them. Where a source states a
figure in words only ("flat at about 16,000"), that is what it is taken for. No source says what it lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec
import pytest

from netdyno.analysis.claims.judge_claims import judge_claims
from netdyno.model.base import type_level
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Environment, Run
from netdyno.model.trial import Trial
from netdyno.question.contestants import codesize
from netdyno.question.contestants.contestants import discover
from tests.support.builders.made_claims import TruthPoint, of_points
from tests.support.studies import load_study

BLOCKS = 12
ASIO, THREADS, POOL = "asio-callbacks", "qt-thread-per-client", "qt-thread-pool"
LOCK, SNAPSHOT = "threads-global-lock", "threads-snapshot"
FOLLY = "folly-async"
OF_SERVERS = {"switching", "switches", "lock-wait"}
"""What is known of a server beside its answers, where a made run has it."""


LAN = "ten over the LAN"


def points_of_a(where: str, rows: Sequence[tuple[str, str, float, float]]) -> Iterator[TruthPoint]:
    """A table of source A: requests in ten seconds of each pair, by default and with TCP_NODELAY."""
    for server, client, default, nodelay in rows:
        own: dict[str, str | int] = {"client": client, "write-mode": "split" if client == ASIO else "gathered"}
        if where == LAN:
            own["client-processes"] = 10
        for value, requests in (("off", default), ("on", nodelay)):
            scenario = f"{where}, {'Asio server' if server == ASIO else 'Qt servers'}"
            yield TruthPoint(scenario, server, {**own, "both.nodelay": value}, {"throughput": requests / 10})


QT = "qt-signals"


def shared(threads: float, pool: float) -> list[TruthPoint]:
    """The loopback's Asio client with TCP_NODELAY, which shared the cores with the server."""
    return [
        TruthPoint("shared cores", name, {"connections": 1}, {"throughput": requests / 10})
        for name, requests in ((THREADS, threads), (POOL, pool))
    ]


INTEL = [
    *shared(93_776.1, 116_093.5),
    *points_of_a(
        "one client",
        [
            (ASIO, ASIO, 91_281.5, 74_550.3),
            (ASIO, QT, 76_542.4, 76_532.9),
            (THREADS, QT, 43_096.4, 47_855.6),
            (THREADS, ASIO, 92_324.4, 93_776.1),
            (POOL, QT, 48_084.3, 48_819.3),
            (POOL, ASIO, 104_661.6, 116_093.5),
        ],
    ),
    *points_of_a(
        LAN,
        [
            (ASIO, ASIO, 2_097.5, 191_174.2),
            (ASIO, QT, 104_227.3, 207_779.3),
            (THREADS, ASIO, 2_109.5, 135_172.2),
            (THREADS, QT, 140_278.7, 137_324.6),
            (POOL, ASIO, 4_218.5, 136_204.3),
            (POOL, QT, 138_677.6, 137_728.3),
        ],
    ),
]
M4 = [
    *shared(224_973.7, 462_812.3),
    *points_of_a(
        "one client",
        [
            (ASIO, ASIO, 206_935.3, 200_891.7),
            (ASIO, QT, 264_311.3, 339_798.3),
            (THREADS, ASIO, 230_921.8, 224_973.7),
            (THREADS, QT, 611_292.1, 601_358.5),
            (POOL, ASIO, 461_792.6, 462_812.3),
            (POOL, QT, 609_290.5, 615_127.0),
        ],
    ),
    *points_of_a(
        LAN,
        [
            (ASIO, ASIO, 2_029.1, 200_925.7),
            (ASIO, QT, 2_026.4, 108_777.2),
            (THREADS, ASIO, 109_134.0, 214_652.5),
            (THREADS, QT, 106_598.7, 117_003.9),
            (POOL, ASIO, 216_184.2, 267_041.5),
            (POOL, QT, 109_924.4, 115_258.7),
        ],
    ),
]


def room(contestant: str, connections: int, backlog: int, **figures: float) -> TruthPoint:
    return TruthPoint("room", contestant, {"connections": connections, "backlog": backlog}, figures)


def flood(contestant: str, connections: int, **figures: float) -> TruthPoint:
    return TruthPoint("flood", contestant, {"connections": connections}, figures)


def python_room(lock: float, snapshot: float) -> list[TruthPoint]:
    """What a client in Python sees of 322."""
    return [
        TruthPoint("Python client", name, {"connections": 322}, {"moved": moved})
        for name, moved in ((LOCK, lock), (SNAPSHOT, snapshot))
    ]


ROOM = [
    *python_room(36_000, 16_000),
    room(LOCK, 400, 10, connected=0.15),
    *(room(LOCK, clients, 300, connected=1.0) for clients in (50, 128)),
    flood(LOCK, 322, moved=36_000),
    *(flood(SNAPSHOT, clients, moved=16_000) for clients in (206, 283, 322, 400)),
]
UNKNOWN_OF_B = {"B6": "not_testable", "B8": "undecided"}
"""Nothing is published of the lock at 400 clients, of switches and waits, or of any other client than the source's."""
BROADCAST = [
    TruthPoint(f"{clients} clients", name, {}, {"mean": 1e3 * microseconds[clients == 1000]})
    for name, *microseconds in (
        ("udp-reuseport", 2_872, 210_184),
        (LOCK, 5_072, 213_050),  # the source's threads may be either of ours
        (SNAPSHOT, 5_072, 213_050),
        ("udp-coroutines", 14_537, 44_820),
        ("zeromq-coroutines", 19_402, 844_780),
        ("epoll-coroutines", 41_025, 1_194_890),
        ("udp-multicast", 4_874_520, 4_863_360),
    )
    for clients in (100, 1000)
] + [TruthPoint("slow answers", "udp-multicast", {}, {"mean": 1e3 * 4_874_520})]
ECHO = [
    TruthPoint(
        "echo",
        name,
        {"connections": connections, "threads": threads},
        {"p50": 1e6 * milliseconds},
    )
    for name, threads, *medians in (
        (ASIO, 1, 3.9, 10.2, 40.1, 50.3, None),
        (ASIO, 2, 3.8, 9.8, 32.1, 45.9, 68.3),
        (ASIO, 8, 3, 5.8, 25.1, 34.6, 47.7),
        (FOLLY, 1, 2.4, 6.3, 23.5, 31.3, 42),
        (FOLLY, 2, 2.7, 6.3, 22.3, 31.9, 42.6),
        (FOLLY, 8, 2.8, 6.5, 22.8, 32.2, 43.9),
    )
    for connections, milliseconds in zip((100, 200, 500, 700, 1000), medians, strict=True)
    if milliseconds is not None
]
AT_A_TENTH = [  # of the source's rate, where the two libraries are taken to stand to each other as they do in full
    point._replace(scenario="echo, a tenth of the rate", figures={"p50": point.figures["p50"] / 100})
    for point in [*ECHO, TruthPoint("echo", ASIO, {"connections": 1000, "threads": 1}, {"p50": 70e6})]
]
BY_TCPKALI = [  # the source's instrument: with one thread, at what it opens on two cores
    point._replace(scenario="tcpkali", levels={"connections": point.levels["connections"]})
    for point in ECHO
    if point.levels["threads"] == 1 and point.levels["connections"] in (100, 200)
]
WEB = [  # a chart without figures: its two ratios
    TruthPoint(
        "requests", name, {"connections": 7000, "server.service-time": "0s"}, {"throughput": throughput, "mean": mean}
    )
    for name, throughput, mean in ((ASIO, 1.18e5, 1e6 / 1.19), (LOCK, 1e5, 1e6))
]


def stored(name: str, points: Sequence[TruthPoint]) -> Run:
    """A run of the published cells. Code is that of this tree."""
    requested = of_published_levels(load_study(name, "full"), points).with_each(blocks=BLOCKS)
    return msgspec.structs.replace(of_points(requested, points, without_unpublished), about=code_of_this_tree())


@cache
def code_of_this_tree() -> tuple[About, ...]:
    """Counted once for all tests."""
    return codesize.describe(discover(), discover(kind="client"))


def without_unpublished(trial: Trial, point: TruthPoint) -> Trial:
    """No source says what its servers did beside their answers; nor, but for its own figures, how long these took."""
    assert trial.load is not None
    latency = trial.load.latency
    unknown = {name: 0 for name in ("mean", "p50", "p90", "p99") if name not in point.figures}
    response = msgspec.structs.replace(latency.response_ns, **unknown)
    load = msgspec.structs.replace(trial.load, latency=msgspec.structs.replace(latency, response_ns=response))
    server = trial.server if point.figures.keys() & OF_SERVERS else None
    return msgspec.structs.replace(trial, load=load, server=server)


def of_published_levels(requested: Experiment, points: Sequence[TruthPoint]) -> Experiment:
    """The experiment without the levels that nothing is published of."""

    def levels(scenario: Scenario, factor: str) -> tuple[type_level, ...]:
        known = {point.levels[factor] for point in points if point.scenario == scenario.name and factor in point.levels}
        return tuple(level for level in scenario.factors[factor] if not known or level in known)

    return msgspec.structs.replace(
        requested,
        scenarios=tuple(
            msgspec.structs.replace(scenario, factors={factor: levels(scenario, factor) for factor in scenario.factors})
            for scenario in requested.scenarios
        ),
    )


def verdicts(name: str, points: Sequence[TruthPoint]) -> dict[str, str]:
    return {judged.claim.id: judged.verdict for judged in judge_claims(stored(name, points))}


@pytest.mark.parametrize(
    ("name", "points", "expected"),
    [
        ("asio-vs-qt", INTEL, {"A1": "confirmed", "A2": "confirmed", "A3": "confirmed", "A4": "confirmed"}),
        # with the server on the M4 its Qt client stalls on the Asio server as its Asio client does
        ("asio-vs-qt", M4, {"A1": "confirmed", "A2": "confirmed", "A3": "refuted", "A4": "confirmed"}),
        ("chatroom-backlog", ROOM, {"B1": "confirmed", "B4": "confirmed", "B7": "confirmed"} | UNKNOWN_OF_B),
        (
            "realtime-broadcast",
            BROADCAST,
            # the pools were not built
            {"C3": "confirmed", "C6": "not_testable", "C9": "confirmed", "C7": "not_testable"}
            # nor how it is on one core or two, how often threads switched, or more of an answer's time than its mean
            | {"C1": "not_testable", "C2": "not_testable", "C4": "not_testable", "C5": "undecided", "C8": "undecided"},
        ),
        ("asio-vs-folly", [*ECHO, *AT_A_TENTH, *BY_TCPKALI], {"D1": "confirmed", "D2": "confirmed", "D3": "confirmed"}),
        ("sync-vs-async", WEB, {"E1": "confirmed", "E2": "confirmed"}),
    ],
    ids=["A-intel", "A-m4", "B", "C", "D", "E"],
)
def test_the_published_figures_bear_out_the_claims_that_are_made_of_them(
    name: str, points: Sequence[TruthPoint], expected: Mapping[str, str]
) -> None:
    judged = verdicts(name, points)
    assert {claim: judged[claim] for claim in expected} == expected


def beside(points: Sequence[TruthPoint], *others: TruthPoint) -> list[TruthPoint]:
    """The same with what these say: of a cell that is published more of it, of another one all."""
    by_cell = {(point.scenario, point.contestant, tuple(point.levels.items())): point for point in points}
    for point in others:
        cell = point.scenario, point.contestant, tuple(point.levels.items())
        known = by_cell.get(cell, point)
        by_cell[cell] = point._replace(figures={**known.figures, **point.figures})
    return list(by_cell.values())


def second_core(threads: float, zeromq_on_one: float) -> list[TruthPoint]:
    """How many times the mean of threads on two cores is that on one; raw coroutines have the same on both, and the
    mean of ZeroMQ on one core is so many times theirs."""
    return [
        TruthPoint("second core", name, {"server-cores": cores}, {"mean": 1e7 * mean})
        for name, *means in (
            (SNAPSHOT, 1, threads),
            ("zeromq-coroutines", zeromq_on_one, 0.5),
            ("epoll-coroutines", 1, 1),
        )
        for cores, mean in zip((1, 2), means, strict=True)
    ]


def of_1000(contestant: str, **figures: float) -> TruthPoint:
    return TruthPoint("1000 clients", contestant, {}, figures)


def jitters(zeromq: float, raw: float) -> list[TruthPoint]:
    return [
        TruthPoint(f"{clients} clients", name, {}, {"p50": 1e6, "p99": 1e6 + jitter})
        for clients in (100, 1000)
        for name, jitter in (("zeromq-coroutines", zeromq), ("epoll-coroutines", raw))
    ]


def cliff(**figures: float) -> list[TruthPoint]:
    """The published room with the lock's cliff, and what its threads do beside those of the snapshot."""
    lock = {"mean": 1e9, "switches": 3.0, "lock-wait": 0.9} | figures
    snapshot = {"mean": 1e9, "switches": 1.0, "lock-wait": 0.1}
    return beside(ROOM, flood(LOCK, 400, moved=20_000, **lock), flood(SNAPSHOT, 400, **snapshot))


@pytest.mark.parametrize(
    ("name", "claim", "confirming", "refuting"),
    [
        ("chatroom-backlog", "B6", cliff(), cliff(**{"lock-wait": 0.02})),
        ("chatroom-backlog", "B6", cliff(), cliff(switches=0.3)),
        (
            "chatroom-backlog",
            "B8",
            beside(ROOM, flood(LOCK, 322, moved=500_000), flood(SNAPSHOT, 322, moved=500_000)),
            beside(ROOM, flood(LOCK, 322, moved=900_000), flood(SNAPSHOT, 322, moved=200_000)),
        ),
        (
            "realtime-broadcast",
            "C1",
            beside(BROADCAST, *second_core(0.5, 1)),
            beside(BROADCAST, *second_core(1.1, 1)),
        ),
        (
            "realtime-broadcast",
            "C4",
            beside(BROADCAST, *second_core(0.5, 1)),
            beside(BROADCAST, *second_core(0.5, 0.5)),
        ),
        (
            "realtime-broadcast",
            "C5",
            beside(BROADCAST, of_1000(SNAPSHOT, switching=0.02)),
            beside(BROADCAST, of_1000(SNAPSHOT, mean=2e9)),
        ),
        ("realtime-broadcast", "C8", beside(BROADCAST, *jitters(2e6, 9e6)), beside(BROADCAST, *jitters(9e6, 2e6))),
        ("realtime-broadcast", "C9", BROADCAST, beside(BROADCAST, of_1000("epoll-coroutines", mean=8e8))),
    ],
)
def test_what_is_not_published_decides_them_either_way(
    name: str, claim: str, confirming: Sequence[TruthPoint], refuting: Sequence[TruthPoint]
) -> None:
    assert (verdicts(name, confirming)[claim], verdicts(name, refuting)[claim]) == ("confirmed", "refuted")


def test_nothing_of_it_is_testable_on_the_cores_that_a_claim_says_are_too_few() -> None:
    small: Environment = {"cores_allowed": 2, "pinning.server": "0"}
    for name, points, claims in (
        ("realtime-broadcast", BROADCAST, "C1 C2 C4 C5 C6 C8 C9"),
        ("asio-vs-folly", ECHO, "D2"),
    ):
        run = stored(name, points)
        judged = {
            assessed.claim.id: assessed.verdict
            for assessed in judge_claims(msgspec.structs.replace(run, environment=small))
        }
        assert {judged[claim] for claim in claims.split()} == {"not_testable"}

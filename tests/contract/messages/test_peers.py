"""The known clients: HELO, WELC, FULL and BYE!, strangers, guesses, a table that is full, and clients that vanish."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack

import pytest

from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import MessageTalk, expect_nothing, joined, speak, talking
from tests.contract.messages.transport import BYE, FULL, HELO, WELC, MessageClient, control
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import PATIENCE_S, eventually
from tests.support.server import Server

MEMORY_BOUND = 8 << 20
FLOOD = 2000
FLOODS = 4
"""On a busy machine many of the first are there at once, and an allocator keeps the room for as many."""
LAST_ONES = 20
"""Clients after a crowd, so many that each of a server's few threads has one of them after all of the crowd."""


def ask(client: MessageClient, witness: MessageClient, workload: str, number: int) -> None:
    """A message, and its answer, which in chat another hears."""
    client.send(message(workload, client.identity, number))
    (witness if workload == "chat" else client).expect(reply(workload, client.identity, number))


@pytest.mark.once_a_language
def test_every_hello_is_welcomed_with_its_token(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with spoken.transport.client(server) as client:
            for token in (1, 1, 2**64 - 1, 0):
                assert client.hello(token) == WELC
        totals = server.stop()
    assert totals["connections"] == 1


@pytest.mark.once_a_family
def test_a_stranger_is_counted_and_not_answered(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk, spoken.transport.client(server) as stranger:
            for datagram in (message(workload, 99, 0), b"garbage", control(BYE, 1), control(WELC, 1), bytes(4)):
                stranger.send(datagram)
            expect_nothing(stranger, talk.listener, workload)
        totals = server.stop()
    assert (totals["strangers"], totals["protocol_errors"]) == (5, 0)


@pytest.mark.once_a_family
def test_a_client_that_says_bye_is_forgotten(spoken: Spoken, workload: str) -> None:
    """By every thread: some of these are known to another thread than the clients that talk on."""
    with spoken.serving(workload) as server:
        with talking(spoken.transport, server, workload) as talk, joined(spoken.transport, server, 8) as crowd:
            for client in crowd:
                client.bye()
                client.send(message(workload, client.identity, 0))
            eventually(lambda: not _hear(crowd, talk), "who has left still hears what the others say")
            for client in crowd:
                expect_nothing(client, talk.listener, workload)  # what it said itself is not answered
        totals = server.stop()
    assert totals["strangers"] == len(crowd)
    assert totals["protocol_errors"] == 0


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
@pytest.mark.transports("udp", "zmq+tcp")  # every member of a group hears it
def test_a_client_that_is_forgotten_hears_no_more(spoken: Spoken, workload: str) -> None:
    with (
        spoken.serving(workload, "--peer-timeout", "4s") as server,
        joined(spoken.transport, server, 8) as crowd,
        talking(spoken.transport, server, workload) as talk,
    ):

        def quiet() -> bool:
            talk.listener.expect_welcome()
            return not _hear(crowd, talk)

        eventually(quiet, "who was forgotten still hears what the others say")


def _hear(clients: list[MessageClient], talk: MessageTalk) -> bool:
    """Whether one of them hears anything while others talk: what was under way when it left may reach it still."""
    talk.check()
    heard = [client.poll(0.1 if client is clients[0] else 0) for client in clients]  # all of them, also after a hit
    return any(answer is not None for answer in heard)


@pytest.mark.once_a_language
def test_a_guess_throws_none_out(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with joined(spoken.transport, server, 2) as (client, witness):
            old = client.token
            client.join()  # its token is another one now
            for token in (0, old, client.token ^ 1):
                client.send(control(BYE, token))
            ask(client, witness, workload, 0)
            expect_nothing(client, witness, workload)
        totals = server.stop()
    assert (totals["protocol_errors"], totals["strangers"]) == (3, 0)


@pytest.mark.once_a_family
def test_another_address_with_somebodys_token_is_another_client(spoken: Spoken, workload: str) -> None:
    """It may have read the token on the way: that is worth nothing from elsewhere."""
    with spoken.serving(workload) as server:
        with joined(spoken.transport, server, 2) as (client, witness), spoken.transport.client(server) as thief:
            thief.send(control(BYE, client.token))
            ask(client, witness, workload, 0)
            assert thief.hello(client.token) == WELC
            thief.bye()
            ask(client, witness, workload, 1)
        totals = server.stop()
    assert (totals["strangers"], totals["connections"], totals["protocol_errors"]) == (1, 3, 0)


@pytest.mark.once_a_language
def test_a_client_that_has_only_sent_hello_gives_way_to_a_newcomer(spoken: Spoken, workload: str) -> None:
    """And not those that have spoken. Else HELOs from thousands of addresses shut out all others until they expire.
    The table is so large that each of a server's threads knows some of the flood."""
    room, flood = 30, 60
    with spoken.serving(workload, "--peers", str(room)) as server:
        with talking(spoken.transport, server, workload) as talk, ExitStack() as stack:
            speak(talk.clients, talk.clients, workload)
            crowd = [stack.enter_context(spoken.transport.client(server)) for _ in range(flood)]
            welcome = [client for client in crowd if client.hello() == WELC]
            late = stack.enter_context(spoken.transport.client(server))
            assert late.hello() == WELC
            eventually(
                lambda: welcome[0].poll(0.1) == control(BYE, welcome[0].token), "it is not told that it gave way"
            )
            speak([late], talk.clients, workload)
            talk.check()
            late.bye()
        totals = server.stop()
    gave_way = totals["connections"] - room
    assert gave_way > flood / 2 - 10
    assert totals["peers_expired"] == gave_way


@pytest.mark.once_a_family
def test_a_flood_of_hellos_is_refused_beyond_the_bound(spoken: Spoken, workload: str) -> None:
    """Where all clients have spoken, all stay known, what is refused costs nothing, and a place that is given up is
    given to another."""
    own = 2 if workload == "chat" else 1
    peers = 8
    with spoken.serving(workload, "--peers", str(peers)) as server:
        with (
            talking(spoken.transport, server, workload) as talk,
            joined(spoken.transport, server, peers - own) as crowd,
        ):
            speak([*talk.clients, *crowd], [*talk.clients, *crowd], workload)
            bound = math.inf if proc.sanitized(server.pid) else MEMORY_BOUND
            for _ in range(FLOODS):
                memory = proc.resident_bytes(server.pid)
                _say_hello_and_go(spoken, server, talk, crowd)
                if proc.resident_bytes(server.pid) - memory < bound:
                    break
            else:
                pytest.fail("each flood leaves something in the server")
            with spoken.transport.client(server) as late:
                assert late.hello() == FULL
                crowd[0].bye()
                eventually(lambda: late.hello() == WELC, "a place that was given up is not given to another")
                late.bye()
        totals = server.stop()
    assert totals["connections"] == peers + 1
    assert totals["peers_refused"] >= FLOOD // 100 + 1


def _say_hello_and_go(spoken: Spoken, server: Server, talk: MessageTalk, crowd: list[MessageClient]) -> None:
    for number in range(FLOOD):
        with spoken.transport.client(server) as visitor:
            if number % 100 == 0:
                assert visitor.hello() == FULL
                talk.check()
                _forget_what_was_said(crowd)
            else:
                visitor.send(control(HELO, visitor.token))  # and gone before the answer comes
    for _ in range(LAST_ONES):  # else a HELO that still waits at some thread's socket gets the place given up
        with spoken.transport.client(server) as visitor:
            assert visitor.hello() == FULL
    _forget_what_was_said(crowd)
    talk.check()


def _forget_what_was_said(crowd: list[MessageClient]) -> None:
    for client in crowd:
        while client.poll(0) is not None:
            pass


def test_a_client_that_vanishes_gets_a_notice_and_is_forgotten_and_one_that_speaks_is_not(
    spoken: Spoken, workload: str
) -> None:
    """The test repeats where the machine kept the two speakers silent for as long as the timeout."""
    timeout_s, quiet_s = 2.0, 0.0
    for _ in range(10):
        with spoken.serving(workload, "--peer-timeout", f"{timeout_s:g}s") as server:
            with joined(spoken.transport, server, 3) as (silent, talker, greeter):
                quiet_s, spoke = _speak_until_told(workload, silent, talker, greeter)
                silent.send(message(workload, silent.identity, 0))
                if workload == "chat":
                    _hear_the_rest(silent, talker)
                expect_nothing(silent, talker, workload)
            totals = server.stop()
            quiet_s = max(quiet_s, time.monotonic() - spoke)
        if quiet_s < timeout_s / 2:
            assert (totals["peers_expired"], totals["strangers"]) == (1, 1)
            return
    raise AssertionError(f"never did the speakers speak often enough: once in {quiet_s:g} s")


def _speak_until_told(
    workload: str, silent: MessageClient, talker: MessageClient, greeter: MessageClient
) -> tuple[float, float]:
    """Until the silent one gets its farewell. The longest time in s in which the others said nothing, and when they did
    last."""
    quiet_s, spoke = 0.0, time.monotonic()
    deadline = spoke + PATIENCE_S
    while spoke < deadline:
        talker.send(message(workload, talker.identity, talker.next_number()))
        greeter.send(control(HELO, greeter.token))
        _forget_what_was_said([talker])  # or its own words in a group leave no room for others'
        farewell = _hear_farewell(silent, 0.1)
        quiet_s, spoke = max(quiet_s, time.monotonic() - spoke), time.monotonic()
        if farewell is not None:
            assert farewell == control(BYE, silent.token)
            return quiet_s, spoke
    raise AssertionError(f"waited {PATIENCE_S:g} s and who is silent is not forgotten")


def _hear_farewell(silent: MessageClient, within_s: float) -> bytes | None:
    """The control message that comes within so long, if one does; what the talker says in chat is passed over."""
    deadline = time.monotonic() + within_s
    while (left_s := deadline - time.monotonic()) > 0:
        heard = silent.listen(left_s)
        if heard is not None and heard.startswith(bytes(4)):
            return heard
    return None


def _hear_the_rest(silent: MessageClient, talker: MessageClient) -> None:
    """One that was forgotten may still hear what was on its way, and in a group everything. It has heard all of that
    when it hears what is said next, known again. Nothing else was said to it, such as a second farewell."""
    silent.token ^= 1
    silent.send(control(HELO, silent.token))
    heard = _heard_before(silent, control(WELC, silent.token))
    last = message("chat", talker.identity, talker.next_number())
    talker.send(last)
    heard += _heard_before(silent, last)
    assert not [datagram for datagram in heard if datagram.startswith(bytes(4))]


def _heard_before(client: MessageClient, awaited: bytes) -> list[bytes]:
    heard = []
    while (got := client.receive()) != awaited:
        heard.append(got)
    return heard


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_client_that_leaves_while_it_is_served_is_answered_no_more_and_keeps_its_place_until_then(
    spoken: Spoken, workload: str
) -> None:
    with spoken.serving(workload, "--service-time", "500ms", "--peers", "1") as server:
        with joined(spoken.transport, server) as (client,):
            for _ in range(3):
                client.send(message(workload, client.identity, 0))
                client.expect_welcome()  # so the message has been taken
                client.bye()
                eventually(lambda: client.hello() == WELC, "the place of one who left is never free")
        totals = server.stop()
    assert totals["connections"] == 4
    assert totals["peers_refused"] > 0
    assert totals["bytes_out"] == 0

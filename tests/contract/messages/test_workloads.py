"""Every message is answered as its workload says, each by itself and right in every byte."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest

from tests.contract.golden import wire
from tests.contract.messages.conftest import Spoken
from tests.contract.messages.message_talk import expect_nothing, joined, talking
from tests.contract.messages.transport import MessageClient
from tests.contract.talk import message, reply
from tests.support import proc
from tests.support.patience import eventually


def requests(workload: str, client: MessageClient, numbers: list[int], sizes: list[int]) -> list[bytes]:
    return [message(workload, client.identity, number, size) for number, size in zip(numbers, sizes, strict=True)]


@pytest.mark.once_a_family
@pytest.mark.workloads("echo", "rpc")
def test_every_message_is_answered_whatever_its_size(spoken: Spoken, workload: str) -> None:
    sizes = [wire.STAMP_MINIMUM, 100, 1471, 1472, 1473, 9000, 60_000, spoken.transport.longest - 30]
    with spoken.serving(workload) as server, joined(spoken.transport, server) as (client,):
        for number, size in enumerate(sizes):
            client.send(message(workload, client.identity, number, size))
            assert client.receive() == reply(workload, client.identity, number, size)


@pytest.mark.workloads("echo", "rpc")
def test_each_client_gets_its_own_answers_and_no_others(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server, 100) as crowd:
        for number in range(3):
            for client in crowd:
                client.send(message(workload, client.identity, number))
            for client in crowd:
                assert client.receive() == reply(workload, client.identity, number)


@pytest.mark.once_a_family
@pytest.mark.workloads("echo", "rpc")
def test_messages_in_a_row_are_answered_in_order_and_one_by_one(spoken: Spoken, workload: str) -> None:
    sizes = [random.Random(1).choice((40, 40, 40, 41, 100)) for _ in range(100)]
    with spoken.serving(workload) as server, joined(spoken.transport, server) as (client,):
        for request in requests(workload, client, list(range(100)), sizes):
            client.send(request)
        for number, size in enumerate(sizes):
            assert client.receive() == reply(workload, client.identity, number, size)


@pytest.mark.once_a_family
@pytest.mark.workloads("echo", "rpc")
def test_messages_that_come_in_another_order_or_twice_are_answered_as_they_come(spoken: Spoken, workload: str) -> None:
    order = [*range(50), *range(0, 50, 7)]
    random.Random(2).shuffle(order)
    with spoken.serving(workload) as server:
        with joined(spoken.transport, server) as (client,):
            for number in order:
                client.send(message(workload, client.identity, number))
            for number in order:
                assert client.receive() == reply(workload, client.identity, number)
            expect_nothing(client, client, workload)
        totals = server.stop()
    assert (totals["requests"], totals["protocol_errors"]) == (len(order) + 1, 0)


@pytest.mark.workloads("chat")
def test_everybody_hears_everybody_once_and_each_in_order(spoken: Spoken, workload: str) -> None:
    members, rounds = 12, 5
    for audience in spoken.transport.audiences:
        with (
            spoken.serving(workload, "--audience", audience) as server,
            joined(spoken.transport, server, members) as crowd,
        ):
            for number in range(rounds):
                for client in crowd:
                    client.send(message(workload, client.identity, number, 40 + number % 2))
            for client in crowd:
                speakers = members - (0 if audience == "all" else 1)
                heard = [wire.read_stamp(wire.frames(client.receive())[0]) for _ in range(speakers * rounds)]
                for listener in crowd:
                    numbers = [number for identity, number in heard if identity == listener.identity]
                    own = listener is client and audience == "others"
                    assert numbers == ([] if own else list(range(rounds)))
            for client in crowd:  # nor is anything of what it said heard once more
                client.send(message(workload, client.identity, rounds))
                for listener in crowd:
                    if listener is not client or audience == "all":
                        listener.expect(message(workload, client.identity, rounds))


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_client_that_comes_later_hears_those_that_were_there_and_is_heard_by_them(
    spoken: Spoken, workload: str
) -> None:
    """From its welcome on, whatever threads they are known to."""
    crowd: list[MessageClient] = []
    with spoken.serving(workload) as server, ExitStack() as stack:
        for _ in range(8):
            crowd.append(stack.enter_context(spoken.transport.client(server)))
            crowd[-1].join()
            for speaker in crowd if len(crowd) > 1 else ():  # what has not been heard yet, the next one might hear
                payload = message(workload, speaker.identity, speaker.next_number())
                speaker.send(payload)
                for listener in crowd:
                    if listener is not speaker:
                        listener.expect(payload)


@pytest.mark.once_a_family
@pytest.mark.workloads("chat")
def test_a_message_that_comes_twice_is_heard_twice(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server, 2) as (speaker, listener):
        first, second = message(workload, speaker.identity, 0), message(workload, speaker.identity, 1)
        for payload in (first, first, second):
            speaker.send(payload)
        for payload in (first, first, second):
            listener.expect(payload)


@pytest.mark.workloads("echo", "rpc")
def test_the_totals_count_what_happened(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with joined(spoken.transport, server, 3) as crowd:
            for client in crowd:
                for number in range(5):
                    client.send(message(workload, client.identity, number))
                    client.receive()
                client.hello()  # once more: it is known already
            received = sum(client.taken for client in crowd)
        totals = server.stop()
    sent = sum(len(message(workload, client.identity, number)) for client in crowd for number in range(5))
    counted = {"requests": 15, "bytes_in": sent, "bytes_out": received, "connections": 3}
    of_all = {name: total for name, total in totals.items() if name != "calibration"}  # the instrument adds that
    assert of_all == dict.fromkeys(of_all, 0) | counted


@pytest.mark.workloads("chat")
def test_the_totals_of_chat(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload, "--audience", spoken.transport.audiences[0]) as server:
        with joined(spoken.transport, server, 4) as crowd:
            payload = message(workload, crowd[0].identity, 0)
            crowd[0].send(payload)
            for client in crowd[1:]:
                assert client.receive() == payload
        totals = server.stop()
    counted = {"requests": 1, "bytes_in": len(payload), "connections": 4, "bytes_out": totals["bytes_out"]}
    assert totals == dict.fromkeys(totals, 0) | counted
    assert totals["bytes_out"] == len(payload) * (1 if spoken.transport.sends_once else 3)


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_service_time_is_spent(spoken: Spoken, workload: str) -> None:
    """At least that long: a lower bound, which no busy machine can break."""
    with (
        spoken.serving(workload, "--service-time", "50ms") as server,
        joined(spoken.transport, server) as (client,),
    ):
        begin = time.monotonic()
        for number, extra_us in ((0, 0), (1, 30_000)):
            client.send(wire.frame(wire.request(number, b"s", extra_us)))
            assert client.receive() == wire.frame(wire.response(number, b"s"))
        assert time.monotonic() - begin >= 0.130


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_requests_of_one_client_are_served_in_order(spoken: Spoken, workload: str) -> None:
    durations_us = [100_000, 0, 20_000, 1, 0]
    with spoken.serving(workload) as server, joined(spoken.transport, server) as (client,):
        for number, duration_us in enumerate(durations_us):
            client.send(wire.frame(wire.request(number, b"s", duration_us)))
        for number in range(len(durations_us)):
            assert client.receive() == wire.frame(wire.response(number, b"s"))


@pytest.mark.workloads("rpc")
def test_waiting_holds_up_no_other_client(spoken: Spoken, workload: str) -> None:
    with (
        spoken.serving(workload, "--service-time", "300ms") as server,
        joined(spoken.transport, server, 50) as crowd,
    ):
        begin = time.monotonic()
        for client in crowd:
            client.send(wire.frame(wire.request(client.identity, b"s")))
        for client in crowd:
            assert client.receive() == wire.frame(wire.response(client.identity, b"s"))
        assert time.monotonic() - begin < 7.5  # one after the other they would take 15 s


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_long_wait_of_one_client_and_quick_answers_for_another(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, joined(spoken.transport, server, 2) as (patient, quick):
        patient.send(wire.frame(wire.request(1, b"long", 1_000_000)))
        for number in range(20):
            quick.send(wire.frame(wire.request(number, b"q")))
            assert quick.receive() == wire.frame(wire.response(number, b"q"))
        assert patient.receive() == wire.frame(wire.response(1, b"long"))


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_what_waits_for_one_client_is_bounded_and_the_rest_counted(spoken: Spoken, workload: str) -> None:
    """A client that sends on while its request is served. What its own socket or the server's lost on the way is in
    neither count."""
    size, how_many = 8_000, 60
    with spoken.serving(workload, "--socket-buffer", "2MiB") as server:
        with talking(spoken.transport, server, workload) as talk, joined(spoken.transport, server) as (eager,):
            eager.send(wire.frame(wire.request(0, b"s", 500_000)))
            for number in range(1, how_many):
                eager.send(message(workload, eager.identity, number, size))
            talk.check()
            assert eager.receive() == wire.frame(wire.response(0, b"s"))
            first = eager.receive()
            assert first == reply(workload, eager.identity, 1, size)
        totals = server.stop()
    if spoken.transport.bounds_requests:
        assert 0 < totals["receive_dropped"] < how_many
        assert totals["requests"] - 3 + totals["receive_dropped"] == how_many


@pytest.mark.once_a_family
@pytest.mark.workloads("rpc")
def test_a_request_that_does_not_parse_costs_its_sender_nothing_more(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server:
        with joined(spoken.transport, server) as (client,):
            for number in range(3):
                client.send(wire.frame(b"\xff" * 20))
                client.send(message(workload, client.identity, number))
                assert client.receive() == reply(workload, client.identity, number)
        totals = server.stop()
    assert (totals["requests"], totals["protocol_errors"]) == (3, 3)


def test_it_sleeps_when_no_client_speaks(spoken: Spoken, workload: str) -> None:
    with spoken.serving(workload) as server, talking(spoken.transport, server, workload) as talk:
        talk.check()
        eventually(lambda: _sleeps(server.pid), "the server spins")


def _sleeps(pid: int) -> bool:
    """No CPU in half a second, which is fifty ticks of its clock."""
    before = proc.cpu_seconds(pid)
    time.sleep(0.5)
    return proc.cpu_seconds(pid) - before <= 0.02

"""The counts of a Python client, by hand: verification, failures, the window, the audits."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from netdyno.kit.statistics.histogram import Histogram
from netdyno.model.load_result import LoadResult
from netdyno.protocol import wire
from netdyno_client import journal as journal_module
from netdyno_client.journal import Caller, FailedError, Failure, Journal, connect_failure
from netdyno_client.plan import ClientPlan, parse_client_plan
from netdyno_client.recorder import Recorder, Window, choose_slot_ns
from netdyno_client.result import Cpu, load_result

MS = 1_000_000
PLAN = parse_client_plan("test", ["tcp://127.0.0.1:9", "--warmup", "100ms", "--duration", "1s", "--retry-delay", "0"])


class Clock:
    """The monotonic clock, moved by hand."""

    def __init__(self) -> None:
        self.now = 10**12

    def monotonic_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(journal_module, "time", fake)
    return fake


class JournalTalk:
    """One instance with an established connection, and the load begun."""

    def __init__(self, clock: Clock, plan: ClientPlan = PLAN, waits_ns: int = 0) -> None:
        self.clock = clock
        self.plan = plan
        self.journal = Journal(plan)
        self.caller = Caller(self.journal, 0)
        self.caller.connecting()
        clock.now += MS
        self.caller.connected()
        clock.now += waits_ns
        self.window = self.journal.begin()

    def ask(self) -> wire.WorkRequest:
        header, body = self.caller.next()
        assert header == wire.header(len(body))
        return wire.parse_request(body)

    def answer(self, job_id: int, stamp: bytes) -> bool:
        body = wire.response(job_id, stamp)
        assert self.caller.parse_body_size(wire.header(len(body))) == len(body)
        return self.caller.receive(body)

    def exchange(self, took_ns: int = MS) -> None:
        request = self.ask()
        self.clock.now += took_ns
        assert self.answer(request.job_id, request.stamp)

    def result(self) -> LoadResult:
        self.journal.recorder.finish()
        return load_result(self.plan, self.journal, Cpu(0.5, 0.25), Histogram())

    def failed_audits(self) -> list[str]:
        return [audit.name for audit in self.result().audits if not audit.passed]


@pytest.fixture
def talk(clock: Clock) -> JournalTalk:
    return JournalTalk(clock)


def test_requests_are_numbered_and_stamped(talk: JournalTalk) -> None:
    for number in range(3):
        request = talk.ask()
        assert request == wire.WorkRequest(number, 0, wire.stamp(0, number, 31))
        assert talk.answer(request.job_id, request.stamp)


def test_a_whole_run_is_believed(talk: JournalTalk) -> None:
    while talk.journal.may_send():
        talk.exchange()
    result = talk.result()
    assert [audit.name for audit in result.audits if not audit.passed] == []
    assert (result.messages.sent, result.messages.received, result.messages.lost) == (1100, 1100, 0)
    assert (result.requests.sent, result.requests.completed, result.requests.per_second) == (1000, 1000, 1000)
    assert result.latency.response_ns.count == 1000
    assert result.latency.service_ns.mean == MS
    assert result.bytes.received == result.bytes.expected
    assert (result.timeseries.interval_ns, result.timeseries.completed) == (50 * MS, (50,) * 20)
    assert result.connect_ns.mean == MS
    assert result.generator.cores_used == 0.75


def test_a_client_that_waited_for_the_load_to_begin_was_not_waiting_for_an_answer(clock: Clock) -> None:
    talk = JournalTalk(clock, replace(PLAN, warmup_ns=0), waits_ns=500 * MS)
    talk.exchange(MS)
    response = talk.result().latency.response_ns
    assert (response.count, response.mean) == (1, MS)


def test_the_window_holds_its_start_and_not_its_end(talk: JournalTalk) -> None:
    talk.clock.now = talk.window.start - 2 * MS
    talk.exchange(2 * MS)  # before it, and answered at its very start
    talk.exchange(MS)  # meant for its start
    talk.clock.now = talk.window.end - MS
    talk.exchange(MS)  # answered at its end
    result = talk.result()
    assert (result.requests.completed, result.messages.received) == (2, 3)


DAMAGE: dict[str, Callable[[wire.WorkRequest], tuple[int, bytes]]] = {
    "a wrong checksum": lambda request: (request.job_id, request.stamp[:-1] + b"?"),
    "another's": lambda request: (request.job_id, wire.stamp(1, request.job_id, 31)),
    "of the future": lambda request: (request.job_id + 1, wire.stamp(0, request.job_id + 1, 31)),
    "another job": lambda request: (request.job_id + 1, request.stamp),
    "another size": lambda request: (request.job_id, wire.stamp(0, request.job_id, 32)),
    "no stamp": lambda request: (request.job_id, b""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_cannot_be_the_answer_is_corrupt_and_ends_the_connection(talk: JournalTalk, damage: str) -> None:
    talk.exchange()
    with pytest.raises(FailedError) as failed:
        talk.answer(*DAMAGE[damage](talk.ask()))
    assert failed.value.failure is Failure.PROTOCOL
    talk.caller.failed(failed.value.failure)
    result = talk.result()
    assert (result.messages.corrupt, result.messages.lost, result.errors["protocol"]) == (1, 1, 1)
    assert {"verification"} <= set(talk.failed_audits())


NOT_COMPLETE = wire.bytes_field(wire.RESPONSE, wire.bytes_field(3, wire.stamp(0, 0, 31)))


@pytest.mark.parametrize("body", [b"", b"\xff\xff\xff", wire.request(0, wire.stamp(0, 0, 31)), NOT_COMPLETE])
def test_what_is_no_response_is_corrupt(talk: JournalTalk, body: bytes) -> None:
    talk.ask()
    with pytest.raises(FailedError):
        talk.caller.receive(body)
    assert talk.result().messages.corrupt == 1


@pytest.mark.parametrize("size", [0, 31 + 65, 2**32 - 1])
def test_a_length_that_breaks_the_framing_ends_the_connection(talk: JournalTalk, size: int) -> None:
    with pytest.raises(FailedError) as failed:
        talk.caller.parse_body_size(wire.header(size))
    assert failed.value.failure is Failure.PROTOCOL


def test_an_answer_that_comes_again_is_counted_and_the_right_one_waited_for(talk: JournalTalk) -> None:
    first = talk.ask()
    assert talk.answer(first.job_id, first.stamp)
    second = talk.ask()
    assert not talk.answer(first.job_id, first.stamp)
    assert talk.caller.waiting
    assert talk.answer(second.job_id, second.stamp)
    assert talk.result().messages.duplicated == 1
    assert talk.result().messages.lost == 0


def test_an_answer_to_what_was_given_up_does_not_answer_the_next_request(talk: JournalTalk) -> None:
    first = talk.ask()
    talk.caller.failed(Failure.RESPONSE_TIMEOUT)
    second = talk.ask()
    assert not talk.answer(first.job_id, first.stamp)
    assert talk.caller.waiting
    assert talk.answer(second.job_id, second.stamp)
    assert talk.journal.messages.received == 2


def test_a_late_answer_is_reordered_and_no_loss(talk: JournalTalk) -> None:
    first = talk.ask()
    talk.caller.failed(Failure.RESPONSE_TIMEOUT)
    second = talk.ask()
    assert talk.answer(second.job_id, second.stamp)
    talk.ask()
    assert not talk.answer(first.job_id, first.stamp)
    messages = talk.result().messages
    assert (messages.reordered, messages.duplicated, messages.lost) == (1, 0, 1)


def test_a_failure_is_counted_at_its_stage_and_a_recovery_once(talk: JournalTalk) -> None:
    talk.ask()
    talk.caller.failed(Failure.RESPONSE_TIMEOUT)
    talk.caller.failed(Failure.CONNECT_REFUSED)
    talk.caller.connected()
    talk.exchange()
    result = talk.result()
    assert result.client is not None
    assert (result.client.response_timeout, result.client.connect_refused, result.client.recovered) == (1, 1, 1)
    assert result.errors == {"timeout": 1, "closed_by_server": 0, "reset": 0, "protocol": 0}
    assert (result.connections.attempted, result.connections.established, result.connections.refused) == (1, 1, 0)
    assert result.messages.lost == 1


@pytest.mark.parametrize(
    ("failure", "counted"),
    [
        (Failure.RESOLVE_FAILED, "other"),
        (Failure.CONNECT_REFUSED, "refused"),
        (Failure.CONNECT_TIMED_OUT, "timed_out"),
        (Failure.CONNECT_OTHER, "other"),
    ],
)
def test_connections_are_the_first_attempts_and_add_up(clock: Clock, failure: Failure, counted: str) -> None:
    journal = Journal(replace(PLAN, connections=2))
    callers = [Caller(journal, identity) for identity in range(2)]
    for _ in range(3):
        callers[0].failed(failure)
    assert not journal.settled()
    callers[1].connected()
    assert journal.settled()
    journal.begin()
    connections = load_result(replace(PLAN, connections=2), journal, Cpu(), Histogram()).connections
    assert (connections.attempted, connections.established, getattr(connections, counted)) == (2, 1, 1)


@pytest.mark.parametrize("failure", [Failure.CLOSED, Failure.RESET])
def test_a_connection_that_ended_early_fails_its_audit(talk: JournalTalk, failure: Failure) -> None:
    while talk.journal.may_send():
        talk.exchange()
    talk.caller.failed(failure)
    assert talk.failed_audits() == ["connections"]


def test_errno_says_how_a_connect_failed() -> None:
    assert connect_failure(OSError(errno.ECONNREFUSED, "")) is Failure.CONNECT_REFUSED
    assert connect_failure(OSError(errno.ETIMEDOUT, "")) is Failure.CONNECT_TIMED_OUT
    assert connect_failure(OSError(errno.EMFILE, "")) is Failure.CONNECT_OTHER


def test_a_run_that_was_cut_short_fails_the_audit_of_the_window_alone(talk: JournalTalk) -> None:
    while talk.clock.now < talk.window.start + 500 * MS:
        talk.exchange()
    talk.journal.stop()
    assert not talk.journal.may_send()
    assert talk.failed_audits() == ["window"]


def test_little_notices_a_lost_sense_of_time(talk: JournalTalk) -> None:
    while talk.journal.may_send():
        talk.exchange()
        talk.clock.now += MS  # of which neither a request nor an answer knows
        talk.caller.connected()
    assert talk.failed_audits() == ["little"]


def test_errors_stand_in_their_slot(clock: Clock) -> None:
    recorder = Recorder()
    recorder.set_window(Window(0, 12 * MS))
    recorder.error(2 * MS)
    recorder.error(11 * MS)
    recorder.error(12 * MS)
    recorder.finish()
    assert recorder.slots.interval_ns == 5 * MS
    assert recorder.slots.errors == [1, 0, 1]
    assert recorder.slots.completed == [0, 0, 0]


def test_the_series_has_response_times_and_no_service_times(clock: Clock) -> None:
    recorder = Recorder()
    recorder.set_window(Window(0, 10 * MS))
    recorder.sent(MS, 3 * MS)
    recorder.answered(MS, 3 * MS, 4 * MS)
    recorder.finish()
    assert recorder.slots.p50_ns == recorder.slots.p99_ns == [pytest.approx(3 * MS, rel=0.002), None]


@pytest.mark.parametrize(
    ("window_ms", "interval_ms"), [(10_000, 100), (2000, 100), (1999, 95), (600, 30), (100, 5), (20, 5)]
)
def test_a_short_window_has_twenty_intervals(window_ms: int, interval_ms: int) -> None:
    """The generator's recorder has the same test (tests/cpp/lib/test_recorder.cpp)."""
    assert choose_slot_ns(window_ms * MS) == interval_ms * MS

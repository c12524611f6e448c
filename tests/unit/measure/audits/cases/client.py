"""Audits of a client contestant, by the journal that it leaves of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from netdyno.model.load_result import Audit, Generator
from netdyno_client.journal import Failure, Journal, MessageCounts
from netdyno_client.plan import parse_client_plan
from netdyno_client.recorder import Window
from netdyno_client.result import run_audits
from tests.support.builders.made_load import MS, load, named
from tests.unit.measure.audits.cases import AuditCase

PLAN = parse_client_plan("test", ["tcp://127.0.0.1:9", "--warmup", "100ms", "--duration", "1s"])
SECOND = 1000 * MS
GENERATOR: Generator = load().generator


def judged(name: str, spoil: Callable[[Journal], object] = lambda _: None) -> Audit:
    """One connection, a thousand requests in a second, each answered after a millisecond, and then spoilt."""
    journal = Journal(PLAN)
    journal.first_attempts[None] = 1
    journal.messages = MessageCounts(
        sent=1000, expected=1000, received=1000, bytes_received=50_000, bytes_expected=50_000
    )
    journal.start, journal.end = 0, SECOND
    recorder = journal.recorder
    recorder.window = Window(0, SECOND)
    recorder.sent_in_window = recorder.completed_in_window = 1000
    recorder.completed_service_ns = recorder.in_flight_ns = SECOND
    for _ in range(1000):
        recorder.response.record(MS)
        recorder.service.record(MS)
    spoil(journal)
    return named(run_audits(PLAN, journal, GENERATOR), name)


def add_byte(journal: Journal) -> None:
    """A byte came that belongs to no reply."""
    journal.messages.bytes_received += 1


def hang_up(journal: Journal) -> None:
    """The server hung up."""
    journal.failures[Failure.CLOSED] += 1


def forget(journal: Journal) -> None:
    """Requests were under way for half of the time that they took."""
    journal.recorder.in_flight_ns //= 2


def damage(journal: Journal) -> None:
    """One reply was corrupt."""
    journal.messages.corrupt = 1


def end_early(journal: Journal) -> None:
    """The client ended its window at half of the time."""
    journal.end = SECOND // 2


SPOILT = {"bytes": add_byte, "connections": hang_up, "little": forget, "verification": damage, "window": end_early}
CASES = {name: AuditCase(partial(judged, name, spoil), partial(judged, name)) for name, spoil in SPOILT.items()}

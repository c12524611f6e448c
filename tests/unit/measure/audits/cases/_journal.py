"""The journal of a client contestant, as a run leaves it, and its audits."""

from __future__ import annotations

from collections.abc import Callable

from netdyno.model.load_result import Audit, Generator
from netdyno_client.journal import Journal, MessageCounts
from netdyno_client.plan import parse_client_plan
from netdyno_client.recorder import Window
from netdyno_client.result import run_audits
from tests.support.builders.made_load import MS, load, named

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

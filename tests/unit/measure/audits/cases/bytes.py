from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal
from tests.unit.measure.audits.cases._journal import judged


def fails() -> Audit:
    """A byte came that belongs to no reply."""

    def add(journal: Journal) -> None:
        journal.messages.bytes_received += 1

    return judged("bytes", add)


def passes() -> Audit:
    return judged("bytes")

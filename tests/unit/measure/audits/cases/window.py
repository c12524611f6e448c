from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal
from tests.unit.measure.audits.cases._journal import SECOND, judged


def fails() -> Audit:
    """The client ended its window at half of the time."""

    def end(journal: Journal) -> None:
        journal.end = SECOND // 2

    return judged("window", end)


def passes() -> Audit:
    return judged("window")

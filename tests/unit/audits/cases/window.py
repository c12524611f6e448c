from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal
from tests.unit.audits.cases._journal import SECOND, judged


def struck_out() -> Audit:
    """It was stopped after half of the window."""

    def end(journal: Journal) -> None:
        journal.end = SECOND // 2

    return judged("window", end)


def passes() -> Audit:
    return judged("window")

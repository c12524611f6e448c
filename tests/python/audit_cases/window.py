from audit_cases._journal import SECOND, judged

from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal


def struck_out() -> Audit:
    """It was told to end after half of the window."""

    def end(journal: Journal) -> None:
        journal.end = SECOND // 2

    return judged("window", end)


def passes() -> Audit:
    return judged("window")

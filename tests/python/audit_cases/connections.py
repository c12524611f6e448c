from audit_cases._journal import judged

from netdyno.client.journal import Failure, Journal
from netdyno.model import Audit


def struck_out() -> Audit:
    """The server hung up."""

    def hang_up(journal: Journal) -> None:
        journal.failures[Failure.CLOSED] += 1

    return judged("connections", hang_up)


def passes() -> Audit:
    return judged("connections")

from netdyno.model.load_result import Audit
from netdyno_client.journal import Failure, Journal
from tests.unit.measure.audits.cases._journal import judged


def fails() -> Audit:
    """The server hung up."""

    def hang_up(journal: Journal) -> None:
        journal.failures[Failure.CLOSED] += 1

    return judged("connections", hang_up)


def passes() -> Audit:
    return judged("connections")

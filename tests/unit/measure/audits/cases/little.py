from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal
from tests.unit.measure.audits.cases._journal import judged


def fails() -> Audit:
    """Requests were under way for half of the time that they took."""

    def forget(journal: Journal) -> None:
        journal.recorder.in_flight_ns //= 2

    return judged("little", forget)


def passes() -> Audit:
    return judged("little")

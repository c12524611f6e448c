from netdyno.model.load_result import Audit
from netdyno_client.journal import Journal
from tests.unit.measure.audits.cases._journal import judged


def fails() -> Audit:
    """One reply was corrupt."""

    def damage(journal: Journal) -> None:
        journal.messages.corrupt = 1

    return judged("verification", damage)


def passes() -> Audit:
    return judged("verification")

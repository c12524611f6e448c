from audit_cases._journal import judged

from netdyno.client.journal import Journal
from netdyno.model import Audit


def struck_out() -> Audit:
    """One reply was damaged."""

    def damage(journal: Journal) -> None:
        journal.messages.corrupt = 1

    return judged("verification", damage)


def passes() -> Audit:
    return judged("verification")

from netdyno.measure.audits.of_trial import ready
from netdyno.model.load_result import Audit


def fails() -> Audit:
    """The server was late."""
    return ready("no ready line from the server within 10 s")


def passes() -> Audit:
    return ready("")

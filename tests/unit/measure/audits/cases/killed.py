from netdyno.measure.audits.of_trial import killed
from netdyno.model.load_result import Audit


def fails() -> Audit:
    """SIGKILL ended the server."""
    return killed("signal SIGKILL")


def passes() -> Audit:
    return killed("")

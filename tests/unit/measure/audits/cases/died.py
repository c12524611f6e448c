from netdyno.measure.audits.of_trial import died
from netdyno.model.load_result import Audit


def fails() -> Audit:
    """The server crashed."""
    return died("signal SIGSEGV")


def passes() -> Audit:
    return died("")

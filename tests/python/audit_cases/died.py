from netdyno.audits import died
from netdyno.model import Audit


def struck_out() -> Audit:
    """It has crashed."""
    return died("signal SIGSEGV")


def passes() -> Audit:
    return died("")

from made_load import load

from netdyno.audits import server_alive
from netdyno.model import Audit


def struck_out() -> Audit:
    """It has crashed."""
    return server_alive("signal SIGSEGV", load(), "")


def passes() -> Audit:
    return server_alive("", load(), "")

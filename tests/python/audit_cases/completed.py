from made_load import load

from netdyno.audits import completed
from netdyno.model import Audit


def struck_out() -> Audit:
    """Nothing was answered."""
    return completed(load((0,) * 10))


def passes() -> Audit:
    return completed(load())

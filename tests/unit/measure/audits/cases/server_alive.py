from netdyno.measure.audits.of_trial import server_alive
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load


def fails() -> Audit:
    """The server no longer answers."""
    return server_alive(None, "no answer within 3 s")


def passes() -> Audit:
    return server_alive(load(), "")

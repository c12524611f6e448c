from netdyno.measure.audits.of_trial import server_totals
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import TOTALS, load


def fails() -> Audit:
    """The server counted one byte more than was sent."""
    return server_totals(TOTALS | {"bytes_in": TOTALS["bytes_in"] + 1}, [load()], "")


def passes() -> Audit:
    return server_totals(TOTALS, [load()], "")

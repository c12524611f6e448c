from netdyno.measure.audits.of_trial import strangers
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import TOTALS, load


def fails() -> Audit:
    """The server counted one connection more than the load opened."""
    return strangers(TOTALS | {"connections": TOTALS["connections"] + 1}, [load()], [])[0]


def passes() -> Audit:
    return strangers(TOTALS, [load()], [])[0]

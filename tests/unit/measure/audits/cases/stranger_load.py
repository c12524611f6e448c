from netdyno.measure.audits.of_trial import strangers
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import TOTALS, load


def fails() -> Audit:
    """Strangers opened more connections than the load sent messages."""
    return strangers(TOTALS | {"connections": TOTALS["connections"] + 90}, [load()], [])[1]


def passes() -> Audit:
    return strangers(TOTALS, [load()], [])[1]

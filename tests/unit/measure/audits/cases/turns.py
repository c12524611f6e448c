from netdyno.measure.audits.turn_audits import turns
from netdyno.model.load_result import Audit


def fails() -> Audit:
    return turns(kept=3, planned=8, dropped=17)


def passes() -> Audit:
    return turns(kept=8, planned=8, dropped=1)

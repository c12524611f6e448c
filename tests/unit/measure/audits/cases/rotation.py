from netdyno.measure.audits.turn_audits import rotation
from netdyno.model.load_result import Audit


def fails() -> Audit:
    return rotation(104, 1, 2, 0.145)


def passes() -> Audit:
    return rotation(103, 1, 2, 0.145)

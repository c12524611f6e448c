from netdyno.measure.audits.turn_audits import side_by_side
from netdyno.model.load_result import Audit


def fails() -> Audit:
    return side_by_side("python-asyncio", busy_s=0.041, others_s=4.0)


def passes() -> Audit:
    return side_by_side("python-asyncio", busy_s=0.039, others_s=4.0)

from netdyno.measure.audits.turn_audits import backlog
from netdyno.model.load_result import Audit


def fails() -> Audit:
    return backlog([0.001, 0.0131, 0.3], slice_s=0.05, request_s=0.003)


def passes() -> Audit:
    return backlog([0.001, 0.0129, 0.3], slice_s=0.05, request_s=0.003)

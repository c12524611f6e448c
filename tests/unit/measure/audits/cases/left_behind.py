from netdyno.measure.audits.of_trial import left_behind
from netdyno.model.load_result import Audit


def fails() -> Audit:
    return left_behind(["sleep", "sleep"])


def passes() -> Audit:
    return left_behind([])

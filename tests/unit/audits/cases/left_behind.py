from netdyno.audits.of_trial import left_behind
from netdyno.model.load_result import Audit


def struck_out() -> Audit:
    return left_behind(["sleep", "sleep"])


def passes() -> Audit:
    return left_behind([])

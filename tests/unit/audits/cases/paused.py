from netdyno.model.load_result import Audit
from netdyno.model.outcomes import excuse_stall
from tests.unit.audits.cases import stalled


def struck_out() -> Audit:
    return excuse_stall(stalled.struck_out())


def passes() -> Audit:
    return excuse_stall(stalled.passes())

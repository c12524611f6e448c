from netdyno.model.load_result import Audit
from netdyno.model.outcomes import excuse_fault
from tests.unit.measure.audits.cases import stalled


def fails() -> Audit:
    return excuse_fault(stalled.fails())


def passes() -> Audit:
    return excuse_fault(stalled.passes())

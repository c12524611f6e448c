from netdyno.measure.audits.stationary import stationary
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load


def fails() -> Audit:
    """A third of the throughput was gone after half a second."""
    return stationary(load((100, 101, 99, 100, 100, 67, 66, 67, 68, 67)))


def passes() -> Audit:
    return stationary(load((100, 101, 99, 100, 100, 99, 102, 100, 99, 100)))

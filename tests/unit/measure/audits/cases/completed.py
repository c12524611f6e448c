from netdyno.measure.audits.of_trial import completed
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load


def fails() -> Audit:
    """Nothing was answered."""
    return completed(load((0,) * 10))


def passes() -> Audit:
    return completed(load())

from netdyno.measure.audits.of_trial import foreign_load
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import machine, named


def fails() -> Audit:
    """A quota held programs back for 5% of two cores' time."""
    return named(foreign_load(machine(throttled_s=0.1, throttled_periods=3), "strike-out"), "throttled")


def passes() -> Audit:
    return named(foreign_load(machine(throttled_s=0.0), "strike-out"), "throttled")

from netdyno.measure.audits.of_trial import foreign_load
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import machine, named


def fails() -> Audit:
    """The hypervisor took 5% of two cores."""
    return named(foreign_load(machine(steal_s=0.1), "strike-out"), "steal")


def passes() -> Audit:
    return named(foreign_load(machine(), "strike-out"), "steal")

from netdyno.measure.audits.of_trial import foreign_load
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import machine, named


def fails() -> Audit:
    """Another program kept a core busy."""
    return named(foreign_load(machine(foreign_s=1.0), "strike-out"), "foreign_load")


def passes() -> Audit:
    return named(foreign_load(machine(), "strike-out"), "foreign_load")

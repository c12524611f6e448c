from netdyno.measure.audits.of_trial import harness_quiet
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import observed


def fails() -> Audit:
    """The harness used 3% of a core."""
    return harness_quiet(observed(harness_cpu_s=0.03))


def passes() -> Audit:
    return harness_quiet(observed())

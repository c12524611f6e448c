from netdyno.measure.audits.of_trial import observation
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import observed


def fails() -> Audit:
    """The server was read over half of the window."""
    return observation(observed(window_s=0.5), 1.0)


def passes() -> Audit:
    return observation(observed(), 1.0)

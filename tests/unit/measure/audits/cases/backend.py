from netdyno.measure.audits.of_trial import backend
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load

REPLIES = load().messages.received


def fails() -> Audit:
    """One reply was given without a question to the backend."""
    return backend(REPLIES - 1, [load()])


def passes() -> Audit:
    return backend(REPLIES, [load()])

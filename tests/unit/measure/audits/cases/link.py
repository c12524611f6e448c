from netdyno.measure.audits.of_trial import link
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import MS, relay


def fails() -> Audit:
    """One frame in a thousand was 5 ms late on a link of 20 ms."""
    return link(relay(p999_ns=5 * MS), delay_s=0.02)


def passes() -> Audit:
    return link(relay(), delay_s=0.02)

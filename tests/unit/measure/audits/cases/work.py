from netdyno.measure.audits.requested_work import RequestedWork, work
from netdyno.model.load_result import Audit
from tests.support.builders.made_load import load, observed

REQUEST = RequestedWork(service_s=0.002, burns=True, at_a_time=10)


def fails() -> Audit:
    """A thousand requests of 2 ms are two seconds of CPU, and the server used 0.3 s."""
    return work(load(), observed(), REQUEST)


def passes() -> Audit:
    return work(load(), observed(), REQUEST._replace(burns=False))

from netdyno.measure.audits.host_audits import common_start
from netdyno.model.load_result import Audit


def fails() -> Audit:
    """Two of three may have begun 11 ms apart, in a window of a second."""
    return common_start({"a": 5e6, "b": 1e5, "c": 6e6}, 1.0)


def passes() -> Audit:
    """10 ms are 1%."""
    return common_start({"a": 5e6, "b": 1e5, "c": 5e6}, 1.0)

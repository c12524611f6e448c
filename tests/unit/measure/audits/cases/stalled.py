import msgspec

from netdyno.measure.audits.stationary import stalled
from netdyno.model.load_result import Audit, LoadResult
from tests.support.builders.made_load import load


def _with(completed: tuple[int, ...]) -> LoadResult:
    result = load(completed)
    times = msgspec.structs.replace(result.timeseries, interval_ns=50_000_000, completed=completed)
    return msgspec.structs.replace(result, timeseries=times, plan=msgspec.structs.replace(result.plan, duration_s=0.6))


def fails() -> Audit:
    """The server answers nothing for 300 ms."""
    return stalled(_with((50, 50, 50, 0, 0, 0, 0, 0, 0, 50, 50, 50)), "loopback")


def passes() -> Audit:
    """Two intervals without an answer are 100 ms."""
    return stalled(_with((50, 50, 50, 0, 0, 50, 50, 0, 50, 50, 50, 50)), "loopback")

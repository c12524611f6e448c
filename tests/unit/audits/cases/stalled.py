import msgspec

from netdyno.audits.stationary import stalled
from netdyno.model.load_result import Audit, LoadResult
from tests.support.builders.made_load import load


def _with(completed: tuple[int, ...]) -> LoadResult:
    one = load(completed)
    times = msgspec.structs.replace(one.timeseries, interval_ns=50_000_000, completed=completed)
    return msgspec.structs.replace(one, timeseries=times, plan=msgspec.structs.replace(one.plan, duration_s=0.6))


def struck_out() -> Audit:
    """It answers nothing for 300 ms."""
    return stalled(_with((50, 50, 50, 0, 0, 0, 0, 0, 0, 50, 50, 50)), "loopback")


def passes() -> Audit:
    """Two intervals without an answer are 100 ms."""
    return stalled(_with((50, 50, 50, 0, 0, 50, 50, 0, 50, 50, 50, 50)), "loopback")

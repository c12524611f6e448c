import msgspec

from netdyno.measure.audits.host_audits import client_stalled
from netdyno.model.load_result import Audit, LoadResult
from tests.support.builders.made_load import load

STILL = (100, 100, 100, 0, 0, 0, 100, 100, 100, 100)
STEADY = (100,) * 10


def _judged(*completed: tuple[int, ...]) -> Audit:
    parts = {f"tls://10.0.0.{number}:8787": load(counts) for number, counts in enumerate(completed, 1)}
    total: LoadResult = load([sum(counts) for counts in zip(*completed, strict=True)])
    return client_stalled(parts, msgspec.structs.replace(total))


def fails() -> Audit:
    """One of two stands still for 300 ms, and the other goes on."""
    return _judged(STEADY, STILL)


def passes() -> Audit:
    """Neither is answered: the server stopped answering for a time."""
    return _judged(STILL, STILL)

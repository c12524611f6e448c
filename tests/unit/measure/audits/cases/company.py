"""Audits of a trial by what was beside it: contestants in the same turns, other hosts, the canary, other blocks."""

from __future__ import annotations

from netdyno.measure.audits import turn_audits
from netdyno.measure.audits.host_audits import client_slower, client_stalled, common_start
from netdyno.model import uneven_load
from netdyno.model.load_result import Audit, Part
from tests.support.builders.made_canary import judge_canary, of_speeds
from tests.support.builders.made_load import STEADY, load, named
from tests.unit.measure.audits.cases import AuditCase

STILL = (100, 100, 100, 0, 0, 0, 100, 100, 100, 100)


def audit_speeds(speeds: list[float]) -> Audit:
    return named(judge_canary(of_speeds([speeds]))[4].audits, "canary")


def audit_medians(*p50_ns: int) -> Audit:
    parts = [
        Part(host=f"tls://10.0.0.{number}:8787", connections=1, completed=9, p50_ns=p50, p99_ns=9 * p50, cores_used=0.1)
        for number, p50 in enumerate(p50_ns, 1)
    ]
    return client_slower(parts)


def audit_hosts(*completed: tuple[int, ...]) -> Audit:
    parts = {f"tls://10.0.0.{number}:8787": load(counts) for number, counts in enumerate(completed, 1)}
    return client_stalled(parts, load([sum(counts) for counts in zip(*completed, strict=True)]))


CASES = {
    "backlog": AuditCase(
        lambda: turn_audits.backlog([0.001, 0.0131, 0.3], slice_s=0.05, request_s=0.003),
        lambda: turn_audits.backlog([0.001, 0.0129, 0.3], slice_s=0.05, request_s=0.003),
    ),
    # In the middle of its block the machine was half as fast.
    "canary": AuditCase(lambda: audit_speeds([1.0] * 4 + [0.5] + [1.0] * 4), lambda: audit_speeds([1.0] * 9)),
    # One of three takes more than twice as long, and 200 us. A short time may more than double.
    "client_slower": AuditCase(
        lambda: audit_medians(500_000, 1_210_000, 490_000),
        lambda: audit_medians(100_000, 390_000, 100_000),
    ),
    # One of two stands still for 300 ms, and the other goes on. Where neither is answered, the server stopped.
    "client_stalled": AuditCase(lambda: audit_hosts(STEADY, STILL), lambda: audit_hosts(STILL, STILL)),
    # Two of three may have begun 11 ms apart, in a window of a second; 10 ms are 1%.
    "common_start": AuditCase(
        lambda: common_start({"a": 5e6, "b": 1e5, "c": 6e6}, 1.0),
        lambda: common_start({"a": 5e6, "b": 1e5, "c": 5e6}, 1.0),
    ),
    "rotation": AuditCase(
        lambda: turn_audits.rotation(104, 1, 2, 0.145),
        lambda: turn_audits.rotation(103, 1, 2, 0.145),
    ),
    "side_by_side": AuditCase(
        lambda: turn_audits.side_by_side("python-asyncio", busy_s=0.041, others_s=4.0),
        lambda: turn_audits.side_by_side("python-asyncio", busy_s=0.039, others_s=4.0),
    ),
    "turns": AuditCase(
        lambda: turn_audits.turns(kept=3, planned=8, dropped=17),
        lambda: turn_audits.turns(kept=8, planned=8, dropped=1),
    ),
    # Others ran beside one of two contestants in all blocks.
    "uneven_load": AuditCase(
        lambda: uneven_load.judge_scenario({"met": [1.0] * 6, "spared": [0.0] * 6}),
        lambda: uneven_load.judge_scenario({"met": [1.0, 0.0] * 3, "spared": [0.0, 1.0] * 3}),
    ),
}

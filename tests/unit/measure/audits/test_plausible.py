"""The audit of impossible figures: each bound has a figure that breaks it, and no possible figure does."""

from __future__ import annotations

from itertools import chain
from typing import Literal

import msgspec
import pytest

from netdyno.measure.audits.plausible import FigureLimit, TrialResources, accounts, physical, plausible
from netdyno.model.load_result import Audit, ForeignFault, LoadResult, Replies
from netdyno.model.observation import ServerObservation
from tests.support.builders.made_load import MS, changed, distribution, load, observed

LOAD = load()
"""A thousand messages of 31 bytes in a second, ten at a time, each after 10 ms."""
SERVER = msgspec.structs.replace(observed(), tick_lag_ns=distribution(100, MS))
LIMITS = TrialResources(
    server_cores=1,
    generator_cores=1,
    all_cores=2,
    copies_hz=1e10,
    rate_hz=1_000_000,
    delay_s=0.004,
)
WHOLE = (LOAD, SERVER, LIMITS)
FieldChange = tuple[str, object]
DISTRIBUTIONS = {
    "response time": "load.latency.response_ns",
    "service time": "load.latency.service_ns",
    "send lag": "load.send_lag_ns",
    "connect time": "load.connect_ns",
    "lag of the server's timer": "server.tick_lag_ns",
}

IMPOSSIBLE: dict[str, FieldChange] = {
    "messages sent in the window, of those sent at all": ("load.messages.sent", 999),
    "messages answered in the window, of those timed in it or sent before it": ("load.requests.completed", 1001),
    "messages timed, of those sent in the window": ("load.requests.sent", 999),
    "replies without repeated ones, of those expected": ("load.messages.expected", 999),
    "messages lost, off from those missing": ("load.messages.lost", 1),
    "messages answered in all intervals, off from those of the window": (
        "load.timeseries.completed",
        (101, *(100,) * 9),
    ),
    "messages per second times the window, off from those answered in it": ("load.requests.per_second", 1001.0),
    "connections, off from those that did not fail": ("load.connections.refused", 1),
    "messages sent, of those due": ("load.messages.due", 999),
    "messages never sent, off from those due and missing": ("load.messages.unsent", 1),
    "messages due in the window, of those due at all": ("load.requests.due", 1001),
    "messages sent in the window, of those due in it": ("load.requests.due", 999),
    "messages without an answer in time, of those due": ("load.errors", {"timeout": 1001}),
    "messages answered too late, of those without an answer in time": ("load.messages.late", 1),
    "connections that ended early, of those established": ("load.errors", {"reset": 6, "closed_by_server": 5}),
    "bytes of the messages sent, of all bytes sent": ("load.bytes.sent", 30_999),
    "bytes of the replies, of all bytes received": ("load.bytes.received", 30_999),
    "messages answered in the window, of those timed in it or under way at its start": (
        "load.requests.completed",
        1011,
    ),
    "CPU of the generator (s), off from its cores used times the window": ("load.generator.cores_used", 0.2),
    "service times, off from response times in number": ("load.latency.service_ns.count", 1001),
    "mean response time (ns), off from mean service time and send lag": ("load.send_lag_ns.mean", 1e6),
    "longest response time (s)": ("load.latency.response_ns.max", 5 * 10**9),
    "both ways over the link (ns), of the shortest connect time": ("load.connect_ns", distribution(10, 7 * MS)),
    "both ways over the link (ns), of the shortest service time": (
        "load.latency.service_ns",
        distribution(1000, 7 * MS),
    ),
    "a round trip through the kernel (ns), of the shortest service time": (
        "load.latency.service_ns",
        distribution(1000, 900),
    ),
    "messages that a closed loop answers, each after the one before": ("load.requests.completed", 1100),
    "CPU of the server (s)": ("server.cpu_system_s", 0.9),
    "CPU of the generator (s)": ("load.generator.cpu_user_s", 0.9),
    "CPU of spinning (s), of all of the generator's": ("load.generator.spun_s", 0.4),
    "least CPU that the messages cost (s), of the CPU of the server": ("server.cpu_user_s", 0.0),
    "least CPU that the messages cost (s), of the CPU of the generator": ("load.generator.cpu_system_s", 0.0),
    "bytes that are copied out of the kernel": ("limits.copies_hz", 10_000.0),
    "bits on their way to the server over the link": ("limits.rate_hz", 240_000),
    "bits on their way back over the link": ("limits.rate_hz", 240_000),
}
for _name, _path in DISTRIBUTIONS.items():
    IMPOSSIBLE[f"percentiles of the {_name} that lie below a lower one"] = (f"{_path}.p90", -1)
    IMPOSSIBLE[f"mean {_name} (ns), of the longest"] = (f"{_path}.mean", 1e12)
    IMPOSSIBLE[f"mean {_name} (ns) below 0"] = (f"{_path}.mean", -1.0)
    IMPOSSIBLE[f"values of the {_name}, off from those in its histogram"] = (f"{_path}.count", 1)
    for _percent, _figure in ((50, "p50"), (99, "p99"), (100, "max")):
        what = f"{_percent}% of the {_name} (ns), off from its histogram"
        IMPOSSIBLE[what] = (f"{_path}.{_figure}", 11 * MS)
for _figure in ("p50", "p90", "p99", "p999", "max", "mean"):
    what = f"{_figure} of the service time (ns), of the response time's"
    IMPOSSIBLE[what] = (f"load.latency.service_ns.{_figure}", 11 * MS)


def spoilt(change: FieldChange) -> tuple[LoadResult, ServerObservation, TrialResources]:
    where, _, path = change[0].partition(".")
    arguments = {"load": LOAD, "server": SERVER, "limits": LIMITS}
    return tuple((arguments | {where: changed(arguments[where], path, change[1])}).values())


def judged(what: LoadResult = LOAD, limits: TrialResources = LIMITS) -> Audit:
    return plausible(what, SERVER, limits)


def test_what_can_be_passes_and_says_what_was_nearest() -> None:
    audit = plausible(*WHOLE)
    assert audit.passed, audit.detail
    assert "accounts agree" in audit.detail
    assert "nearest to its limit: messages that a closed loop answers, each after the one before, 1000 of 1009." in (
        audit.detail
    )


def test_every_bound_has_a_figure_that_breaks_it() -> None:
    bounds = chain(accounts(LOAD, SERVER), physical(*WHOLE))
    assert {bound.what for bound in bounds} == IMPOSSIBLE.keys()


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_is_invalid_by_its_name(what: str) -> None:
    audit = plausible(*spoilt(IMPOSSIBLE[what]))
    assert not audit.passed
    assert f"{what}: " in audit.detail
    assert ", at most " in audit.detail


def test_reconnected_connections_carry_what_was_sent() -> None:
    reconnecting = changed(changed(LOAD, "plan.requests_per_connection", 100), "connections.in_window", 5)
    assert judged(reconnecting).passed, judged(reconnecting).detail
    few = judged(changed(reconnecting, "plan.requests_per_connection", 99))
    assert "messages sent, of those that the connections may carry: 1000, at most 990" in few.detail
    assert (
        "connections of the window, of all: 11, at most 10"
        in judged(changed(reconnecting, "connections.in_window", 11)).detail
    )


REPLIES = Replies(unexpected=0, resent=0, statuses={"200": 1000}, faults=(), other_faults=0)


def test_faults_are_no_more_than_the_things_that_they_are_of() -> None:
    def with_fault(count: int, of: Literal["messages", "connects"] | None) -> Audit:
        fault = ForeignFault(what="refused", count=count, counted=of)
        return judged(changed(LOAD, "replies", msgspec.structs.replace(REPLIES, faults=(fault,))))

    assert with_fault(10, "connects").passed
    assert "connects with the fault 'refused', of all: 11, at most 10" in with_fault(11, "connects").detail
    assert with_fault(11, "messages").passed
    assert with_fault(11, None).passed, "of what is not known in a result of before"


def test_each_reply_has_a_status() -> None:
    few = msgspec.structs.replace(REPLIES, statuses={"200": 999})
    assert "replies by their statuses" in judged(changed(LOAD, "replies", few)).detail


def test_a_result_from_before_the_populations_agrees() -> None:
    before = changed(changed(changed(LOAD, "requests.due", None), "messages.due", None), "messages.unsent", None)
    assert judged(before).passed, judged(before).detail


def test_what_is_no_number_is_invalid() -> None:
    assert FigureLimit("a", float("nan"), 1.0).broken
    assert FigureLimit("a", 1.0, float("nan")).broken
    assert not FigureLimit("a", 1.0, 1.0).broken
    assert not judged(changed(LOAD, "requests.per_second", float("nan"))).passed


def test_a_histogram_that_cannot_be_read_is_invalid() -> None:
    audit = judged(changed(LOAD, "latency.service_ns.histogram", "AAAA"))
    assert not audit.passed
    assert audit.detail.startswith("a histogram cannot be read: ")


def test_a_window_without_an_answer_is_another_audits() -> None:
    assert plausible(load((0,) * 10), SERVER, LIMITS).passed


def test_both_sides_together_use_no_more_than_the_cores_that_they_share() -> None:
    shared = msgspec.structs.replace(LIMITS, server_cores=2, generator_cores=2)
    assert judged(limits=shared).passed
    audit = plausible(LOAD, observed(cpu_s=1.95), shared)
    assert not audit.passed
    assert "CPU of both sides (s): 2.25, at most 2.13" in audit.detail
    assert plausible(LOAD, observed(cpu_s=1.75), shared).passed


def test_cpu_counts_until_the_last_answers_of_each_slice_have_come() -> None:
    late = msgspec.structs.replace(LIMITS, overrun_s=0.5)
    assert plausible(LOAD, observed(cpu_s=1.55), late).passed
    assert "CPU of the server (s): 1.65, at most 1.605" in plausible(LOAD, observed(cpu_s=1.65), late).detail
    assert not plausible(LOAD, observed(cpu_s=1.55), LIMITS).passed
    shared = msgspec.structs.replace(late, server_cores=2, generator_cores=2)
    assert plausible(LOAD, observed(cpu_s=2.75), shared).passed
    assert not plausible(LOAD, observed(cpu_s=2.95), shared).passed


# --- the link ----------------------------------------------------------------------------------------------------


def over(size: int, rate_hz: int | None, url: str = "tcp://10.77.0.1:7000") -> Audit:
    """Return the audit of a thousand messages a second of this size."""
    return judged(load(size=size, url=url), msgspec.structs.replace(LIMITS, rate_hz=rate_hz, delay_s=0.0))


def test_a_full_link_passes_and_one_that_carries_more_than_all_does_not() -> None:
    """1460 bytes are 1514 in a frame, and 1000 of them a second fill 12.1 Mbit/s."""
    assert over(1460, 12_200_000).passed
    audit = over(1460, 11_000_000)
    assert not audit.passed
    assert "bits on their way back over the link: 12112000" in audit.detail
    assert over(1460, None).passed


def test_datagrams_bear_their_own_headers() -> None:
    """73 bytes in a frame: 584 kbit/s, and as a stream, of which frames are full, 257 kbit/s."""
    assert over(31, 400_000).passed
    assert not over(31, 400_000, "udp://10.77.0.1:7000").passed
    assert over(31, 600_000, "udp://10.77.0.1:7000").passed
    assert "to the server over the link: 584000, at most" in over(31, 400_000, "udp://10.77.0.1:7000").detail


def test_a_broadcast_counts_for_each_that_got_it() -> None:
    crowd = changed(LOAD, "messages.expected", 10_000)
    crowd = changed(changed(crowd, "messages.received", 10_000), "bytes.received", 310_000)
    assert judged(crowd, msgspec.structs.replace(LIMITS, rate_hz=3_000_000)).passed
    audit = judged(crowd)
    assert not audit.passed
    assert "back over the link" in audit.detail
    assert "to the server over the link" not in audit.detail


def test_messages_may_cross_the_link_outside_the_window() -> None:
    """Messages in flight at either end of the window count, for the longest response time."""
    assert not over(1460, 8_000_000).passed
    slow = load(size=1460, service_ns=500 * MS, connections=500)
    assert judged(slow, msgspec.structs.replace(LIMITS, rate_hz=8_000_000, delay_s=0.0)).passed


def test_no_delay_and_an_open_loop_hold_nothing_against_anybody() -> None:
    bare = msgspec.structs.replace(LIMITS, rate_hz=None, delay_s=0.0)
    quick = load(service_ns=1100, arrivals="constant")
    assert judged(quick, bare).passed
    assert not judged(quick).passed


def test_in_rounds_a_message_is_answered_once_a_round() -> None:
    in_rounds = changed(load((10, 0, 0, 0, 0) * 2), "plan.round_s", 0.5)
    assert judged(in_rounds).passed
    assert not judged(changed(load((50, 0, 0, 0, 0) * 2), "plan.round_s", 0.5)).passed


def test_the_window_may_hold_a_part_of_a_round_at_either_end() -> None:
    """The window has two rounds, so each of the ten connections gets four answers at most."""
    most, more = (changed(load((completed, 0, 0, 0, 0) * 2), "plan.round_s", 0.5) for completed in (20, 21))
    assert judged(most).passed
    assert "each after the one before: 42, at most 40" in judged(more).detail


def test_a_few_messages_may_fall_beside_the_readings_of_the_cpu() -> None:
    idle = changed(SERVER, "cpu_user_s", 0.0)
    assert plausible(load((9,) * 11, duration_s=1.1), idle, LIMITS).passed
    assert not plausible(load((10,) * 10), idle, LIMITS).passed


@pytest.mark.parametrize("workload", ["web", "grpc"])
def test_a_request_of_a_framework_has_a_stamp_whatever_the_size_of_its_reply(workload: str) -> None:
    web = changed(changed(LOAD, "plan.workload", workload), "plan.size", 2048)
    whole = changed(changed(web, "bytes.sent", 28_000), "bytes.received", 2_048_000)
    assert plausible(whole, SERVER, msgspec.structs.replace(LIMITS, rate_hz=None)).passed
    assert not plausible(
        changed(whole, "bytes.sent", 27_999), SERVER, msgspec.structs.replace(LIMITS, rate_hz=None)
    ).passed

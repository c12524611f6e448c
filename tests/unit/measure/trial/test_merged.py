"""The results of several hosts, merged into one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import Histogram
from netdyno.measure.audits.plausible import TrialResources, plausible
from netdyno.measure.trial.merged import merge_distributions, merge_hosts, merge_processes
from netdyno.model.load_result import Audit, LoadResult
from tests.support.builders.made_load import MS, distribution, load

FIRST, SECOND = "tls://10.0.0.3:8787", "tls://10.0.0.4:8787"
FINE = Audit(name="verification", passed=True, detail="all right")


def part(completed: Sequence[int], value_ns: int, audits: Sequence[Audit] = (FINE,)) -> LoadResult:
    """Return a part of a load, with the histogram of each interval."""
    result = load(completed, service_ns=value_ns, audits=audits)
    histograms = tuple(distribution(count, value_ns).histogram for count in completed)
    times = msgspec.structs.replace(result.timeseries, histograms=histograms)
    return msgspec.structs.replace(result, timeseries=times, connection_mean_ns=distribution(10, value_ns))


def test_counts_are_added_and_percentiles_read_from_the_sum() -> None:
    total = merge_hosts({FIRST: part((300, 10), 1 * MS), SECOND: part((100, 0), 9 * MS)})
    assert total.requests.completed == total.requests.sent == 410
    assert total.requests.per_second == pytest.approx(2050)
    assert total.plan.connections == total.connections.established == 20
    assert total.messages.received == 410
    assert total.bytes.received == 410 * 31
    response = total.latency.response_ns
    assert response.count == 410
    assert response.p50 == pytest.approx(1 * MS, rel=1e-3)  # the mean of both medians is 5 ms
    assert response.p90 == response.max == pytest.approx(9 * MS, rel=1e-3)
    assert response.mean == pytest.approx((310 * 1 + 100 * 9) / 410 * MS)
    assert hdr.decode(response.histogram).count == 410
    assert total.timeseries.completed == (400, 10)
    assert total.timeseries.p99_ns == pytest.approx((9 * MS, 1 * MS), rel=1e-3)
    assert isinstance(total.parts, tuple)
    assert [(host_part.host, host_part.completed, host_part.connections) for host_part in total.parts] == [
        (FIRST, 310, 10),
        (SECOND, 100, 10),
    ]
    assert total.connection_mean_ns is not None
    assert total.connection_mean_ns.count == 20


def test_busy_connections_are_added_where_there_are_idle_ones() -> None:
    first, second = part((1,), MS), part((1,), MS)
    assert merge_hosts({FIRST: first, SECOND: second}).plan.busy_connections is None
    few, more = (
        msgspec.structs.replace(first, plan=msgspec.structs.replace(first.plan, busy_connections=busy))
        for busy in (2, 3)
    )
    assert merge_hosts({FIRST: few, SECOND: more}).plan.busy_connections == 5


def test_what_is_merged_agrees_with_itself() -> None:
    total = merge_hosts({FIRST: part((500,) * 10, 2 * MS), SECOND: part((480,) * 10, 3 * MS)})
    limits = TrialResources(server_cores=2, generator_cores=2, all_cores=4, copies_hz=1e9)
    judged = plausible(total, None, limits)
    assert judged.passed, judged.detail


def test_times_end_with_the_kernels_clock_where_all_do() -> None:
    by_generator = part((10,), MS)
    by_kernel = msgspec.structs.replace(
        by_generator, latency=msgspec.structs.replace(by_generator.latency, clock="kernel")
    )
    assert merge_hosts({FIRST: by_kernel, SECOND: by_kernel}).latency.clock == "kernel"
    assert merge_hosts({FIRST: by_kernel, SECOND: by_generator}).latency.clock == "generator"


def test_each_audit_is_that_of_its_host() -> None:
    bad = Audit(name="verification", passed=False, detail="1 lost")
    total = merge_hosts({FIRST: part((100,) * 10, MS), SECOND: part((100,) * 10, MS, [bad])}, [FINE])
    assert [(audit.passed, audit.detail) for audit in total.audits if audit.name == "verification"] == [
        (True, f"{FIRST}: all right"),
        (False, f"{SECOND}: 1 lost"),
        (True, "all right"),
    ]
    assert [audit.name for audit in total.audits[2:4]] == ["client_slower", "client_stalled"]


def test_nothing_is_the_sum_of_nothing() -> None:
    empty = distribution(0, 0)
    assert merge_distributions([empty, empty]) == empty


def test_a_value_counts_as_often_as_it_is_stated() -> None:
    several, one_by_one = Histogram(), Histogram()
    several.record(5_000_000, 3)
    for _ in range(3):
        one_by_one.record(5_000_000)
    assert several.encode() == one_by_one.encode()
    assert several.mean() == one_by_one.mean()


def test_processes_share_the_cores_that_hosts_have_for_themselves() -> None:
    loads = [part((300,), 1 * MS), part((100,), 9 * MS)]
    two = msgspec.structs.replace(loads[0].generator, cores=2)
    loads = [msgspec.structs.replace(load, generator=two) for load in loads]
    of_processes, of_hosts = merge_processes(loads), merge_hosts(dict(zip((FIRST, SECOND), loads, strict=True)))
    assert (of_processes.generator.cores, of_hosts.generator.cores) == (2, 4)
    assert of_processes.generator.cores_used == of_hosts.generator.cores_used == 2 * loads[0].generator.cores_used
    assert of_processes.latency == of_hosts.latency
    assert of_processes.requests == of_hosts.requests
    assert of_processes.parts is msgspec.UNSET


def test_an_audit_of_processes_says_which_has_failed_it() -> None:
    wrong = Audit(name="verification", passed=False, detail="lost 3")
    (audit,) = merge_processes([part((1,), MS), part((1,), MS, [wrong]), part((1,), MS, [wrong])]).audits
    assert (audit.passed, audit.detail) == (False, "process 2 of 3: lost 3 (2 processes failed it)")
    (audit,) = merge_processes([part((1,), MS), part((1,), MS)]).audits
    assert (audit.passed, audit.detail) == (True, "process 1 of 2: all right")

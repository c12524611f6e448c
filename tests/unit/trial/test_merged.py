"""What several hosts have made of a load, as one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from netdyno.audits.plausible import Limits, plausible
from netdyno.model.load_result import Audit, LoadResult
from netdyno.statistics import hdr
from netdyno.statistics.histogram import Histogram
from netdyno.trial.merged import merged, merged_processes, together
from tests.support.builders.made_load import MS, distribution, load

A, B = "tls://10.0.0.3:8787", "tls://10.0.0.4:8787"
FINE = Audit(name="verification", passed=True, detail="all right")


def part(completed: Sequence[int], value_ns: int, audits: Sequence[Audit] = (FINE,)) -> LoadResult:
    """With the histogram of each interval, as a part has it."""
    made = load(completed, service_ns=value_ns, audits=audits)
    histograms = tuple(distribution(count, value_ns).histogram for count in completed)
    times = msgspec.structs.replace(made.timeseries, histograms=histograms)
    return msgspec.structs.replace(made, timeseries=times, connection_mean_ns=distribution(10, value_ns))


def test_counts_are_added_and_percentiles_read_from_the_sum() -> None:
    whole = merged({A: part((300, 10), 1 * MS), B: part((100, 0), 9 * MS)})
    assert whole.requests.completed == whole.requests.sent == 410
    assert whole.requests.per_second == pytest.approx(2050)
    assert whole.plan.connections == whole.connections.established == 20
    assert whole.messages.received == 410
    assert whole.bytes.received == 410 * 31
    response = whole.latency.response_ns
    assert response.count == 410
    assert response.p50 == pytest.approx(1 * MS, rel=1e-3)  # the mean of both medians is 5 ms
    assert response.p90 == response.max == pytest.approx(9 * MS, rel=1e-3)
    assert response.mean == pytest.approx((310 * 1 + 100 * 9) / 410 * MS)
    assert hdr.decode(response.histogram).count == 410
    assert whole.timeseries.completed == (400, 10)
    assert whole.timeseries.p99_ns == pytest.approx((9 * MS, 1 * MS), rel=1e-3)
    assert isinstance(whole.parts, tuple)
    assert [(one.host, one.completed, one.connections) for one in whole.parts] == [(A, 310, 10), (B, 100, 10)]
    assert whole.connection_mean_ns is not None
    assert whole.connection_mean_ns.count == 20


def test_what_is_merged_agrees_with_itself() -> None:
    whole = merged({A: part((500,) * 10, 2 * MS), B: part((480,) * 10, 3 * MS)})
    limits = Limits(server_cores=2, generator_cores=2, all_cores=4, copies_hz=1e9)
    judged = plausible(whole, None, limits)
    assert judged.passed, judged.detail


def test_times_end_with_the_kernels_clock_where_all_do() -> None:
    by_generator = part((10,), MS)
    by_kernel = msgspec.structs.replace(
        by_generator, latency=msgspec.structs.replace(by_generator.latency, clock="kernel")
    )
    assert merged({A: by_kernel, B: by_kernel}).latency.clock == "kernel"
    assert merged({A: by_kernel, B: by_generator}).latency.clock == "generator"


def test_each_audit_is_that_of_its_host() -> None:
    bad = Audit(name="verification", passed=False, detail="1 lost")
    whole = merged({A: part((100,) * 10, MS), B: part((100,) * 10, MS, [bad])}, [FINE])
    assert [(one.passed, one.detail) for one in whole.audits if one.name == "verification"] == [
        (True, f"{A}: all right"),
        (False, f"{B}: 1 lost"),
        (True, "all right"),
    ]
    assert [one.name for one in whole.audits[2:4]] == ["client_slower", "client_stalled"]


def test_nothing_is_the_sum_of_nothing() -> None:
    empty = distribution(0, 0)
    assert together([empty, empty]) == empty


def test_a_value_counts_as_often_as_it_is_said() -> None:
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
    whole, of_hosts = merged_processes(loads), merged(dict(zip((A, B), loads, strict=True)))
    assert (whole.generator.cores, of_hosts.generator.cores) == (2, 4)
    assert whole.generator.cores_used == of_hosts.generator.cores_used == 2 * loads[0].generator.cores_used
    assert whole.latency == of_hosts.latency
    assert whole.requests == of_hosts.requests
    assert whole.parts is msgspec.UNSET


def test_an_audit_of_processes_says_which_has_failed_it() -> None:
    wrong = Audit(name="verification", passed=False, detail="lost 3")
    (audit,) = merged_processes([part((1,), MS), part((1,), MS, [wrong]), part((1,), MS, [wrong])]).audits
    assert (audit.passed, audit.detail) == (False, "process 2 of 3: lost 3 (2 processes failed it)")
    (audit,) = merged_processes([part((1,), MS), part((1,), MS)]).audits
    assert (audit.passed, audit.detail) == (True, "process 1 of 2: all right")

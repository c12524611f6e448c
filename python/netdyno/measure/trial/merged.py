"""Merge the loads of several hosts or processes into one. Pure. Histograms, counts and intervals are added, and
percentiles read from the sums; none is averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from netdyno.kit.statistics import hdr
from netdyno.kit.statistics.histogram import Histogram
from netdyno.measure.audits.host_audits import client_slower, client_stalled
from netdyno.model.load_result import (
    Audit,
    ClientReport,
    Distribution,
    Generator,
    Latency,
    LoadResult,
    Part,
    Requests,
    TimeSeries,
    summarise,
)

AddedCounts = TypeVar("AddedCounts", bound=msgspec.Struct)


def merge_hosts(by_host: Mapping[str, LoadResult], added: Sequence[Audit] = ()) -> LoadResult:
    """Merge the loads of at least one host, by address, and add `added` audits over all hosts. Raises
    HistogramError."""
    parts = tuple(_build_part(host, load) for host, load in by_host.items())
    whole = msgspec.structs.replace(_pool_loads(tuple(by_host.values())), parts=parts)
    part_audits = tuple(
        msgspec.structs.replace(audit, detail=f"{host}: {audit.detail}")
        for host, load in by_host.items()
        for audit in load.audits
    )
    host_audits = client_slower(parts), client_stalled(by_host, whole)
    return msgspec.structs.replace(whole, audits=(*part_audits, *host_audits, *added))


def merge_processes(loads: Sequence[LoadResult]) -> LoadResult:
    """Merge the loads of the client processes of one host, at least one. They share its cores. Each audit stands once,
    with the first process that failed it. Raises HistogramError."""
    whole = _pool_loads(loads)
    began_ns = max(load.began_ns for load in loads)
    generator = msgspec.structs.replace(whole.generator, cores=max(load.generator.cores for load in loads))
    audits = tuple(map(_merge_audits, zip(*(load.audits for load in loads), strict=True)))
    return msgspec.structs.replace(whole, began_ns=began_ns, generator=generator, audits=audits)


def _merge_audits(audits: Sequence[Audit]) -> Audit:
    """Merge one audit of all processes."""
    failed = [number for number, audit in enumerate(audits) if not audit.passed]
    first = failed[0] if failed else 0
    detail = f"process {first + 1} of {len(audits)}: {audits[first].detail}"
    more_words = f" ({len(failed)} processes failed it)" if len(failed) > 1 else ""
    return Audit(name=audits[0].name, passed=not failed, detail=detail + more_words)


def _pool_loads(loads: Sequence[LoadResult]) -> LoadResult:
    """Pool the figures of all loads, without audits."""
    first = loads[0]
    clients = [load.client for load in loads if load.client]
    completed = sum(load.requests.completed for load in loads)
    return LoadResult(
        version=first.version,
        plan=msgspec.structs.replace(
            first.plan,
            connections=sum(load.plan.connections for load in loads),
            busy_connections=_sum_known([load.plan.busy_connections for load in loads]),
            threads=sum(load.plan.threads for load in loads),
            rate_hz=None if first.plan.rate_hz is None else sum(load.plan.rate_hz or 0.0 for load in loads),
        ),
        requests=Requests(
            due=_sum_known([load.requests.due for load in loads]),
            sent=sum(load.requests.sent for load in loads),
            completed=completed,
            per_second=completed / first.plan.duration_s if first.plan.duration_s else 0.0,
        ),
        latency=Latency(
            response_ns=merge_distributions([load.latency.response_ns for load in loads]),
            service_ns=merge_distributions([load.latency.service_ns for load in loads]),
            clock="kernel" if all(load.latency.clock == "kernel" for load in loads) else "generator",
        ),
        send_lag_ns=merge_distributions([load.send_lag_ns for load in loads]),
        receive_lag_ns=merge_distributions([load.receive_lag_ns for load in loads if load.receive_lag_ns]),
        connections=_add_fields([load.connections for load in loads]),
        connect_ns=merge_distributions([load.connect_ns for load in loads]),
        connection_mean_ns=merge_distributions([load.connection_mean_ns for load in loads if load.connection_mean_ns]),
        messages=_add_fields([load.messages for load in loads]),
        bytes=_add_fields([load.bytes for load in loads]),
        generator=_pool_generators([load.generator for load in loads]),
        errors={name: sum(load.errors.get(name, 0) for load in loads) for name in first.errors},
        timeseries=_pool_intervals([load.timeseries for load in loads]),
        audits=(),
        client=_pool_clients(clients) if clients else None,
    )


def _pool_clients(reports: Sequence[ClientReport]) -> ClientReport:
    tick_lag = merge_distributions([report.tick_lag_ns for report in reports])
    counts = {name: sum(getattr(report, name) for report in reports) for name in ClientReport.__struct_fields__[:-1]}
    return ClientReport(**counts, tick_lag_ns=tick_lag)


def merge_distributions(distributions: Sequence[Distribution]) -> Distribution:
    """Merge several distributions into that of all their values."""
    sum_ns = sum(distribution.mean * distribution.count for distribution in distributions)
    merged_histogram = _merge_histograms([distribution.histogram for distribution in distributions])
    return summarise(merged_histogram, sum_ns / merged_histogram.count if merged_histogram.count else 0.0)


def _merge_histograms(texts: Sequence[str]) -> Histogram:
    values = hdr.merge([hdr.decode(text) for text in texts])
    merged_histogram = Histogram()
    for value, count in zip(values.highest.tolist(), values.counts.tolist(), strict=True):
        merged_histogram.record(value, int(count))
    return merged_histogram


def _add_fields(counters: Sequence[AddedCounts]) -> AddedCounts:
    """Add counters field by field."""
    first = counters[0]
    return type(first)(
        **{name: _sum_known([getattr(counter, name) for counter in counters]) for name in first.__struct_fields__}
    )


def _sum_known(counts: Sequence[int | None]) -> int | None:
    """Return the sum; None where one of the counts is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _pool_generators(generators: Sequence[Generator]) -> Generator:
    return Generator(
        cpu_user_s=sum(generator.cpu_user_s for generator in generators),
        cpu_system_s=sum(generator.cpu_system_s for generator in generators),
        spun_s=sum(generator.spun_s for generator in generators),
        cores_used=sum(generator.cores_used for generator in generators),
        cores=sum(generator.cores for generator in generators),
        busiest=max(generator.busiest for generator in generators),
        max_rss_bytes=sum(generator.max_rss_bytes for generator in generators),
        threads=tuple(thread for generator in generators for thread in generator.threads),
        socket_drops=sum(generator.socket_drops for generator in generators),
    )


def _pool_intervals(series: Sequence[TimeSeries]) -> TimeSeries:
    """Pool series with the same window, and so with the same intervals."""
    histograms = [_merge_histograms(texts) for texts in zip(*(part.histograms for part in series), strict=True)]
    return TimeSeries(
        interval_ns=series[0].interval_ns,
        completed=tuple(map(sum, zip(*(part.completed for part in series), strict=True))),
        p50_ns=tuple(histogram.find_percentile(50) if histogram.count else None for histogram in histograms),
        p99_ns=tuple(histogram.find_percentile(99) if histogram.count else None for histogram in histograms),
        errors=tuple(map(sum, zip(*(part.errors for part in series), strict=True))),
    )


def _build_part(host: str, load: LoadResult) -> Part:
    response = load.latency.response_ns
    return Part(
        host=host,
        connections=load.connections.established,
        completed=load.requests.completed,
        p50_ns=response.p50 if response.count else None,
        p99_ns=response.p99 if response.count else None,
        cores_used=load.generator.cores_used,
    )

"""One load of what several hosts or processes have made of it. Pure. Histograms, counts and intervals are added, and
percentiles read from the sums; none is averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from netdyno.audits.hosts import client_slower, client_stalled
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
)
from netdyno.statistics import hdr
from netdyno.statistics.histogram import Histogram

Counts = TypeVar("Counts", bound=msgspec.Struct)


def merged(by_host: Mapping[str, LoadResult], more: Sequence[Audit] = ()) -> LoadResult:
    """Of at least one host, each by its address, with `more` audits that know all hosts. Raises HistogramError."""
    parts = tuple(_part(host, load) for host, load in by_host.items())
    whole = msgspec.structs.replace(_pooled(tuple(by_host.values())), parts=parts)
    of_parts = tuple(
        msgspec.structs.replace(audit, detail=f"{host}: {audit.detail}")
        for host, load in by_host.items()
        for audit in load.audits
    )
    of_hosts = client_slower(parts), client_stalled(by_host, whole)
    return msgspec.structs.replace(whole, audits=(*of_parts, *of_hosts, *more))


def merged_processes(loads: Sequence[LoadResult]) -> LoadResult:
    """Return the load that several client processes of one host made, at least one. They share its cores. Each audit is
    one, which names the first process that failed it. Raises HistogramError."""
    whole = _pooled(loads)
    generator = msgspec.structs.replace(whole.generator, cores=max(load.generator.cores for load in loads))
    audits = tuple(map(_of_all, zip(*(load.audits for load in loads), strict=True)))
    return msgspec.structs.replace(whole, generator=generator, audits=audits)


def _of_all(audits: Sequence[Audit]) -> Audit:
    """One audit of all processes."""
    failed = [number for number, audit in enumerate(audits) if not audit.passed]
    first = failed[0] if failed else 0
    told = f"process {first + 1} of {len(audits)}: {audits[first].detail}"
    others = f" ({len(failed)} processes failed it)" if len(failed) > 1 else ""
    return Audit(name=audits[0].name, passed=not failed, detail=told + others)


def _pooled(loads: Sequence[LoadResult]) -> LoadResult:
    """The figures of all, without audits."""
    first = loads[0]
    clients = [load.client for load in loads if load.client]
    completed = sum(load.requests.completed for load in loads)
    return LoadResult(
        version=first.version,
        plan=msgspec.structs.replace(
            first.plan,
            connections=sum(load.plan.connections for load in loads),
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
            response_ns=together([load.latency.response_ns for load in loads]),
            service_ns=together([load.latency.service_ns for load in loads]),
            clock="kernel" if all(load.latency.clock == "kernel" for load in loads) else "generator",
        ),
        send_lag_ns=together([load.send_lag_ns for load in loads]),
        receive_lag_ns=together([load.receive_lag_ns for load in loads if load.receive_lag_ns]),
        connections=_added([load.connections for load in loads]),
        connect_ns=together([load.connect_ns for load in loads]),
        connection_mean_ns=together([load.connection_mean_ns for load in loads if load.connection_mean_ns]),
        messages=_added([load.messages for load in loads]),
        bytes=_added([load.bytes for load in loads]),
        generator=_generators([load.generator for load in loads]),
        errors={name: sum(load.errors.get(name, 0) for load in loads) for name in first.errors},
        timeseries=_intervals([load.timeseries for load in loads]),
        audits=(),
        client=_clients(clients) if clients else None,
    )


def _clients(some: Sequence[ClientReport]) -> ClientReport:
    tick_lag = together([one.tick_lag_ns for one in some])
    counts = {name: sum(getattr(one, name) for one in some) for name in ClientReport.__struct_fields__[:-1]}
    return ClientReport(**counts, tick_lag_ns=tick_lag)


def together(some: Sequence[Distribution]) -> Distribution:
    """The distribution of all values of several."""
    sum_ns = sum(one.mean * one.count for one in some)
    return _distribution(_histogram([one.histogram for one in some]), sum_ns)


def _histogram(texts: Sequence[str]) -> Histogram:
    found = hdr.merge([hdr.decode(text) for text in texts])
    made = Histogram()
    for value, count in zip(found.highest.tolist(), found.counts.tolist(), strict=True):
        made.record(value, int(count))
    return made


def _distribution(histogram: Histogram, sum_ns: float) -> Distribution:
    p50, p90, p99, p999, longest = histogram.percentiles(50, 90, 99, 99.9, 100)
    return Distribution(
        count=histogram.count,
        mean=sum_ns / histogram.count if histogram.count else 0.0,
        p50=p50,
        p90=p90,
        p99=p99,
        p999=p999,
        max=longest,
        histogram=histogram.encode(),
    )


def _added(some: Sequence[Counts]) -> Counts:
    """Field by field."""
    first = some[0]
    return type(first)(**{name: _sum_known([getattr(one, name) for one in some]) for name in first.__struct_fields__})


def _sum_known(counts: Sequence[int | None]) -> int | None:
    """The sum; None where one of the counts is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _generators(some: Sequence[Generator]) -> Generator:
    return Generator(
        cpu_user_s=sum(one.cpu_user_s for one in some),
        cpu_system_s=sum(one.cpu_system_s for one in some),
        spun_s=sum(one.spun_s for one in some),
        cores_used=sum(one.cores_used for one in some),
        cores=sum(one.cores for one in some),
        busiest=max(one.busiest for one in some),
        max_rss_bytes=sum(one.max_rss_bytes for one in some),
        threads=tuple(thread for one in some for thread in one.threads),
        socket_drops=sum(one.socket_drops for one in some),
    )


def _intervals(some: Sequence[TimeSeries]) -> TimeSeries:
    """All have the same window, so the same intervals."""
    histograms = [_histogram(texts) for texts in zip(*(one.histograms for one in some), strict=True)]
    return TimeSeries(
        interval_ns=some[0].interval_ns,
        completed=tuple(map(sum, zip(*(one.completed for one in some), strict=True))),
        p50_ns=tuple(one.at(50) if one.count else None for one in histograms),
        p99_ns=tuple(one.at(99) if one.count else None for one in histograms),
        errors=tuple(map(sum, zip(*(one.errors for one in some), strict=True))),
    )


def _part(host: str, load: LoadResult) -> Part:
    response = load.latency.response_ns
    return Part(
        host=host,
        connections=load.connections.established,
        completed=load.requests.completed,
        p50_ns=response.p50 if response.count else None,
        p99_ns=response.p99 if response.count else None,
        cores_used=load.generator.cores_used,
    )

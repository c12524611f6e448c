"""The figures of one cell: one contestant at one level, over the valid trials of all blocks.

Percentiles come from histograms merged over blocks and are never averaged; costs per message are sums over sums; every
interval resamples whole trials, for each is one restart of the server. No trial is left out for its value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from netdyno.analysis.findings import CellFigures, Cost, Estimate, Lag, Loss, Series, Tail
from netdyno.model.load_result import Distribution, LoadResult
from netdyno.model.metrics import METRICS, Counted
from netdyno.model.outcomes import rate_kept
from netdyno.statistics import hdr, stats
from netdyno.statistics.stats import Floats

NS_PER_S = 1e9
US_PER_NS = 1e-3
PERCENTS = (50.0, 90.0, 99.0, 99.9)
"""The percentiles of a `Tail`."""
BEYOND_LAST_POINT = 10
"""A percentile is drawn only while this many messages lie beyond it."""


def compute_figures(
    contestant: str, level: str, trials: Sequence[Counted], seed: int, loss: Loss | None = None
) -> CellFigures:
    """Return all figures of a cell. `trials` is not empty and holds valid trials only."""
    loads = [load for _, load in trials]
    response = tuple(load.latency.response_ns.histogram for load in loads)
    return CellFigures(
        contestant=contestant,
        level=level,
        trials=len(trials),
        throughput=mean([load.requests.per_second for load in loads], seed),
        mean_ns=per_message(
            [load.latency.response_ns.mean * load.latency.response_ns.count for load in loads],
            [float(load.latency.response_ns.count) for load in loads],
            seed,
        ),
        response_ns=_merge_tail(response, seed),
        service_ns=_merge_tail(tuple(load.latency.service_ns.histogram for load in loads), seed),
        curve=_sample_merged_curve(response),
        send_lag=_merge_lag([load.send_lag_ns for load in loads]),
        receive_lag=_merge_lag(received)
        if (received := [lag for load in loads if (lag := load.receive_lag_ns) and lag.count])
        else None,
        cost=_estimate_cost(trials, seed),
        connection_spread=_estimate_connection_spread(trials, seed),
        kept=mean([1.0 if (share := rate_kept(load)) is None else share for load in loads], seed),
        generator_cores=mean([load.generator.cores_used for load in loads], seed),
        generator_cpu_us=per_message(
            [1e6 * (load.generator.cpu_user_s + load.generator.cpu_system_s) for load in loads],
            [float(load.requests.completed) for load in loads],
            seed,
        ),
        generator_rss_bytes=max(load.generator.max_rss_bytes for load in loads),
        tick_lag_p99_ns=_merge_tick_lag_p99([load.client.tick_lag_ns for load in loads if load.client is not None]),
        server_tick_lag_p99_ns=_merge_tick_lag_p99(
            [lag for trial, _ in trials if trial.server is not None and (lag := trial.server.tick_lag_ns) is not None]
        ),
        series=tuple(_convert_series(trial.block, load) for trial, load in trials),
        loss=loss,
    )


def mean(values: Sequence[float], seed: int) -> Estimate:
    """Return the mean over trials with its interval."""
    points = np.array(values, dtype=np.float64)
    return Estimate(
        value=float(points.mean()),
        interval=stats.interval(lambda drawn: np.asarray(drawn @ points / len(points)), len(points), seed),
        points=tuple(values),
    )


def per_message(amounts: Sequence[float], messages: Sequence[float], seed: int) -> Estimate:
    """Return the sum of amounts over the sum of messages: a trial weighs as much as it carried."""
    over, under = np.array(amounts, dtype=np.float64), np.array(messages, dtype=np.float64)

    def ratio(drawn: Floats) -> Floats:
        below = drawn @ under
        return np.asarray(np.divide(drawn @ over, below, out=np.full(len(drawn), np.nan), where=below > 0))

    return Estimate(
        value=float(ratio(np.ones((1, len(over))))[0]),
        interval=stats.interval(ratio, len(over), seed),
        points=tuple(float(value) for value in ratio(np.eye(len(over)))),
    )


def _estimate_connection_spread(trials: Sequence[Counted], seed: int) -> Estimate | None:
    spreads = [METRICS["connection-spread"].of(*counted) for counted in trials]
    known = [spread for spread in spreads if spread is not None]
    return mean(known, seed) if len(known) == len(spreads) else None


@lru_cache(maxsize=1024)
def _merge_tail(histograms: tuple[str, ...], seed: int) -> Tail:
    """Return percentiles of the merged histogram; a resample merges the histograms of its trials. Cached, because a
    closed loop has its response times as service times too, and a run is often analysed more than once."""
    highest, rows = hdr.align([hdr.decode(text) for text in histograms])

    def merged(drawn: Floats) -> Floats:
        return hdr.percentiles(highest, rows, PERCENTS, drawn)

    values = merged(np.vstack([np.ones(len(rows)), np.eye(len(rows))]))
    intervals = stats.intervals(merged, len(rows), seed) or [None] * len(PERCENTS)
    return Tail(
        *(
            Estimate(value=float(whole), interval=interval, points=tuple(map(float, trial_values)))
            for (whole, *trial_values), interval in zip(values, intervals, strict=True)
        )
    )


@lru_cache(maxsize=1024)
def _sample_merged_curve(histograms: tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    return sample_curve(hdr.merge_encoded(histograms))


def sample_curve(histogram: hdr.Histogram) -> tuple[tuple[float, float], ...]:
    """Return (percent, ns) evenly spaced on the axis log 1/(1-q), from the median's side out to 99.99 at most."""
    if not histogram.count:
        return ()
    last = min(4.0, np.log10(histogram.count / BEYOND_LAST_POINT))
    nines = np.linspace(0, max(last, 0.0), 121)[1:] if last > 0 else np.array([])
    percents = [float(percent) for percent in 100 * (1 - 10.0**-nines)]
    return tuple(zip(percents, hdr.curve(histogram, percents), strict=True))


def _merge_tick_lag_p99(lags: Sequence[Distribution]) -> float | None:
    return hdr.percentile(hdr.merge_encoded([lag.histogram for lag in lags]), 99) if lags else None


def _merge_lag(distributions: Sequence[Distribution]) -> Lag:
    merged = hdr.merge_encoded([distribution.histogram for distribution in distributions])
    return Lag(
        p50_ns=hdr.percentile(merged, 50),
        p99_ns=hdr.percentile(merged, 99),
        max_ns=float(max(distribution.max for distribution in distributions)),
    )


def _estimate_cost(trials: Sequence[Counted], seed: int) -> Cost | None:
    """Return the server's costs; None where it was not observed."""
    seen = [(trial, load) for trial, load in trials if trial.server is not None]
    servers = [trial.server for trial, _ in seen if trial.server is not None]
    if not seen:
        return None

    def estimate(name: str, scale: float = 1.0) -> Estimate:
        metric = METRICS[name]
        amounts = [scale * (metric.amount(*counted) or 0.0) for counted in seen if metric.amount]
        return per_message(amounts, [metric.per(*counted) for counted in seen], seed)

    def estimate_if_known(name: str, scale: float = 1.0) -> Estimate | None:
        return None if any(METRICS[name].of(*counted) is None for counted in seen) else estimate(name, scale)

    return Cost(
        cpu_user_us=estimate("cpu-user", US_PER_NS),
        cpu_system_us=estimate("cpu-system", US_PER_NS),
        cpu_us=estimate("cpu", US_PER_NS),
        voluntary_switches=estimate_if_known("voluntary"),
        involuntary_switches=estimate_if_known("involuntary", 1e-3),
        run_queue_wait_us=estimate_if_known("run-queue", US_PER_NS),
        rss_peak_bytes=_estimate_largest([float(server.rss_peak_bytes) for server in servers]),
        connection_bytes=_estimate_connection_bytes(seen, seed),
        threads=max(server.threads for server in servers),
    )


def _estimate_connection_bytes(trials: Sequence[Counted], seed: int) -> Estimate | None:
    amounts = [
        (trial.server.rss_peak_bytes - trial.server.rss_ready_bytes, load.plan.connections)
        for trial, load in trials
        if trial.server is not None and trial.server.rss_ready_bytes
    ]
    if not amounts:
        return None
    return mean([beyond / connections for beyond, connections in amounts], seed)


def _estimate_largest(values: Sequence[float]) -> Estimate:
    """Return the largest peak; a resampled maximum has no honest interval, so the block values stand for it."""
    return Estimate(value=max(values), interval=None, points=tuple(values))


def _convert_series(block: int, load: LoadResult) -> Series:
    per_interval = NS_PER_S / load.timeseries.interval_ns
    return Series(
        block=block,
        interval_ns=load.timeseries.interval_ns,
        per_second=tuple(completed * per_interval for completed in load.timeseries.completed),
    )

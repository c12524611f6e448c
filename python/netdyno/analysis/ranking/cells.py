"""The figures of one cell: one contestant at one level, over the valid trials of all blocks.

Percentiles come from histograms merged over blocks and are never averaged; costs per message are sums over sums; every
interval resamples whole trials, for each is one restart of the server. No trial is left out for its value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from netdyno.analysis.found.cells import CellFigures, Estimate, Loss, Series
from netdyno.kit.statistics import hdr, stats
from netdyno.kit.statistics.stats import Floats, Interval
from netdyno.model import transports
from netdyno.model.load_result import PERCENTILES, LoadResult
from netdyno.model.metrics import METRICS, Metric, Percentile, TrialWithLoad

NS_PER_S = 1e9
BEYOND_LAST_POINT = 10
"""A percentile is drawn only while this many messages lie beyond it."""


def compute_figures(
    contestant: str, level: str, trials: Sequence[TrialWithLoad], seed: int, loss: Loss | None = None
) -> CellFigures:
    """Return all figures of a cell. `trials` is not empty and holds valid trials only."""
    return CellFigures(
        contestant=contestant,
        level=level,
        trials=len(trials),
        values={
            name: estimate
            for name, metric in METRICS.items()
            if metric.of_cells and (estimate := estimate_cell(metric, trials, seed)) is not None
        },
        curve=_sample_merged_curve(tuple(load.latency.response_ns.histogram for _, load in trials)),
        series=tuple(_convert_series(trial.block, load) for trial, load in trials),
        loss=loss,
    )


def estimate_cell(metric: Metric, trials: Sequence[TrialWithLoad], seed: int) -> Estimate | None:
    """Return the figure of a cell, of all its trials together; None where it was not measured. Reports, exports and
    `compare` show this one; comparisons are of the trials' own figures."""
    if metric.percentile is not None:
        return _pool_percentile(metric.percentile, trials, seed)
    if metric.lossy and not all(transports.may_lose(load) for _, load in trials):
        return None
    amounts = [amount for counted in trials if metric.amount and (amount := metric.amount(*counted)) is not None]
    if metric.largest and amounts:
        # A resampled maximum has no honest interval, so the trials' values stand for it.
        return Estimate(value=max(amounts), interval=None, points=tuple(amounts))
    if len(amounts) < len(trials):
        return None
    return divide_sums(amounts, [metric.per(*counted) for counted in trials], seed)


def _pool_percentile(percentile: Percentile, trials: Sequence[TrialWithLoad], seed: int) -> Estimate | None:
    histograms = tuple(found.histogram for counted in trials if (found := percentile.read(*counted)) is not None)
    if not histograms:
        return None
    if percentile.has_interval:
        return _merge_percentiles(histograms, seed)[percentile.percent]
    return Estimate(value=hdr.percentile(_merge(histograms), percentile.percent), interval=None, points=())


def divide_sums(amounts: Sequence[float], bases: Sequence[float], seed: int) -> Estimate:
    """Return the sum of amounts over the sum of bases: a trial weighs as much as it carried."""
    over, under = np.array(amounts, dtype=np.float64), np.array(bases, dtype=np.float64)

    def ratio(drawn: Floats) -> Floats:
        below = drawn @ under
        return np.asarray(np.divide(drawn @ over, below, out=np.full(len(drawn), np.nan), where=below > 0))

    return Estimate(
        value=float(ratio(np.ones((1, len(over))))[0]),
        interval=stats.interval(ratio, len(over), seed),
        points=tuple(float(value) for value in ratio(np.eye(len(over)))),
    )


def average_blocks(points: Mapping[int, float], *, geometric: bool) -> Estimate | None:
    """Return the mean of one value a block, with Student's interval; None without a point. `geometric`: of the
    logarithms, so that every value must be above 0."""
    if not points:
        return None
    transform, back = (math.log, math.exp) if geometric else (float, float)
    pairs = stats.pairs_of({(block, ""): transform(figure) for block, figure in points.items()})
    mean_interval = stats.mean_interval(pairs)
    interval = mean_interval and Interval(back(mean_interval.low), back(mean_interval.high))
    return Estimate(back(stats.log_ratio(pairs)), interval, tuple(points.values()))


@lru_cache(maxsize=1024)
def _merge_percentiles(histograms: tuple[str, ...], seed: int) -> Mapping[float, Estimate]:
    """Return percentiles of the merged histogram; a resample merges the histograms of its trials. Cached, because a
    closed loop has its response times as service times too, and a run is often analysed more than once."""
    highest, rows = hdr.align([hdr.decode(text) for text in histograms])

    def merged(drawn: Floats) -> Floats:
        return hdr.percentiles(highest, rows, tuple(PERCENTILES), drawn)

    values = merged(np.vstack([np.ones(len(rows)), np.eye(len(rows))]))
    intervals = stats.intervals(merged, len(rows), seed) or [None] * len(PERCENTILES)
    return {
        percent: Estimate(value=float(whole), interval=interval, points=tuple(map(float, trial_values)))
        for percent, (whole, *trial_values), interval in zip(PERCENTILES, values, intervals, strict=True)
    }


@lru_cache(maxsize=1024)
def _merge(histograms: tuple[str, ...]) -> hdr.DecodedHistogram:
    return hdr.merge([hdr.decode(text) for text in histograms])


@lru_cache(maxsize=1024)
def _sample_merged_curve(histograms: tuple[str, ...]) -> tuple[tuple[float, float], ...]:
    return sample_curve(_merge(histograms))


def sample_curve(histogram: hdr.DecodedHistogram) -> tuple[tuple[float, float], ...]:
    """Return (percent, ns) evenly spaced on the axis log 1/(1-q), from the median's side out to 99.99 at most."""
    if not histogram.count:
        return ()
    last = min(4.0, np.log10(histogram.count / BEYOND_LAST_POINT))
    nines = np.linspace(0, max(last, 0.0), 121)[1:] if last > 0 else np.array([])
    percents = [float(percent) for percent in 100 * (1 - 10.0**-nines)]
    return tuple(zip(percents, hdr.curve(histogram, percents), strict=True))


def _convert_series(block: int, load: LoadResult) -> Series:
    per_interval = NS_PER_S / load.timeseries.interval_ns
    return Series(
        block=block,
        interval_ns=load.timeseries.interval_ns,
        per_second=tuple(completed * per_interval for completed in load.timeseries.completed),
        p99_ns=load.timeseries.p99_ns,
    )

"""Tests of whether a series kept its level: a drift, a step, a wandering, each with its size and with a test of whether
it is more than noise. Pure functions.

Points of a time series depend on each other, so a plain t-test sees movement everywhere. All are tested with the error
that an autoregressive series of first order has (its correlation corrected for the fit: Kendall 1954, Biometrika
41:403), against limits that were simulated for short series (docs/adr/stationary.md). Strong correlation also looks
like a wandering, which may go up and come back: there the augmented Dickey-Fuller test decides.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from netdyno.kit.statistics.stats import Floats

LEAST_POINTS = 8
"""Below this, a step of three points leaves too few points to estimate the error."""
LEAST_SIDE = 3
LEAST_POINTS_OF_A_WALK = 20
"""Below this, the Dickey-Fuller test takes noise for a random walk as often as not."""
MOST_CORRELATION = 0.9
QUARTERS = 4
NOTHING = 1e-9
"""The rounding error of a figure that is 0."""


class UnitRoot(NamedTuple):
    """An augmented Dickey-Fuller test: a statistic below the limit rejects a random walk at 5%."""

    statistic: float
    limit: float
    lags: int


class Movement(msgspec.Struct, frozen=True):
    """A movement of a level. `share`: its size over the mean of the series; a drift's from the first point to the last,
    a step's from one side to the other, a wandering's between the highest and the lowest quarter. `t` is the test's
    statistic, `limit` the value that noise hardly exceeds; `after`: the points before the step; `root`: the second test
    of a wandering, where the first had found one."""

    kind: Literal["drift", "step", "wandering"]
    share: float
    t: float
    limit: float
    after: int = 0
    root: UnitRoot | None = None

    @property
    def proven(self) -> bool:
        """Whether noise does not explain it."""
        return abs(self.t) > self.limit and (self.root is None or self.root.statistic > self.root.limit)

    @property
    def figures(self) -> str:
        """The figures of the tests."""
        root = f"; ADF {self.root.statistic:.1f}, limit {self.root.limit:.1f}" if self.root else ""
        return f"t {self.t:.1f}, limit {self.limit:.1f}{root}"


def movements(series: Floats) -> tuple[Movement, ...]:
    """Return the movements of a series that can be judged: none where it is too short or its mean is not above 0."""
    if len(series) < LEAST_POINTS or series.mean() <= 0:
        return ()
    judged = (drift(series), step(series))
    return (*judged, wandering(series)) if len(series) >= LEAST_POINTS_OF_A_WALK else judged


# --- drift and step ----------------------------------------------------------------------------------------------


def drift_limit(points: int) -> float:
    """Return the limit that |t| of a drift exceeds in 1% of series without one, at a correlation of 0.5; simulated."""
    return 2.6 + 38 / (points + 4)


def step_limit(points: int) -> float:
    """Return the same limit for the highest |t| of all steps."""
    return 3.4 + 100 / (points + 20)


def drift(series: Floats) -> Movement:
    """Fit a straight line by least squares."""
    points = len(series)
    time = np.arange(points) - (points - 1) / 2
    spread = float(time @ time)
    slope = float(time @ series) / spread
    residuals = series - series.mean() - slope * time
    share = slope * (points - 1) / float(series.mean())
    statistic = _compute_t(slope, residuals, spread) if abs(share) > NOTHING else 0.0
    return Movement("drift", share, statistic, drift_limit(points))


def step(series: Floats) -> Movement:
    """Find the one step that explains most: the likelihood-ratio test for a change of the mean at an unknown time
    (Hawkins 1977, Journal of the American Statistical Association 72:180)."""
    points = len(series)
    side = max(LEAST_SIDE, points // 10)
    before = np.arange(side, points - side + 1)
    sums = np.cumsum(series)
    left = sums[before - 1] / before
    right = (sums[-1] - sums[before - 1]) / (points - before)
    weight = before * (points - before) / points
    best = int(np.argmax(weight * (right - left) ** 2))
    after, height = int(before[best]), float(right[best] - left[best])
    residuals = series - np.where(np.arange(points) < after, left[best], right[best])
    share = height / float(series.mean())
    statistic = _compute_t(height, residuals, float(weight[best])) if abs(share) > NOTHING else 0.0
    return Movement("step", share, statistic, step_limit(points), after)


def _compute_t(
    effect: float, residuals: Floats, weight: float, fitted: int = 2, most: float = MOST_CORRELATION
) -> float:
    """Return an effect over its standard error: that of independent residuals after `fitted` parameters were fitted,
    times the factor of their correlation, sqrt((1 + r) / (1 - r)), for an r of at most `most`. r is corrected for its
    loss by the fit."""
    points = len(residuals)
    squares = float(residuals @ residuals)
    if math.sqrt(squares / weight) <= NOTHING * abs(effect):  # it fits exactly, but for the arithmetic
        return math.copysign(math.inf, effect)
    lag_correlation = float(residuals[1:] @ residuals[:-1]) / squares
    correlation = min(max(lag_correlation + fitted / 2 * (1 + 4 * lag_correlation) / points, 0.0), most)
    error = math.sqrt(squares / (points - fitted) / weight * (1 + correlation) / (1 - correlation))
    return effect / error


# --- wandering ---------------------------------------------------------------------------------------------------

UNIT_ROOT_SURFACE = (-2.86154, -2.8903, -4.234, -40.040)
"""The 5% point of the Dickey-Fuller test with a constant over T observations is the sum of b_k / T^k: MacKinnon 2010,
Critical Values for Cointegration Tests, Queen's Economics Department working paper 1227, table 2."""
USUAL_CORRELATION = 0.5
"""The correlation that a level may have. Beyond it the Dickey-Fuller test decides whether there is a level at all."""


def wandering(series: Floats) -> Movement:
    """Test whether the series behaves as a random walk, which may come back to where it was: its quarters differ, and a
    unit root is not rejected at 5%. The highest of four quarters exceeds the lowest by less than the best of all steps
    does, so the limit of a step serves."""
    points = len(series)
    quarters = np.array_split(series, QUARTERS)
    means = [float(quarter.mean()) for quarter in quarters]
    height = max(means) - min(means)
    share = height / float(series.mean())
    if share <= NOTHING:
        return Movement("wandering", share, 0.0, step_limit(points))
    residuals = np.concatenate([quarter - mean for quarter, mean in zip(quarters, means, strict=True)])
    statistic = _compute_t(height, residuals, points / QUARTERS / 2, QUARTERS, USUAL_CORRELATION)
    movement = Movement("wandering", share, statistic, step_limit(points))
    return msgspec.structs.replace(movement, root=unit_root(series)) if movement.proven else movement


def unit_root(series: Floats) -> UnitRoot:
    """Do the test with a constant; the number of lags is Akaike's choice from none to Schwert's 12 (n/100)^(1/4) (1989,
    Journal of Business and Economic Statistics 7:147), and at most a quarter of the points."""
    points = len(series)
    scaled = (series - series.mean()) / series.std()
    most = min(int(12 * (points / 100) ** 0.25), points // 4)
    lags = min(range(most + 1), key=lambda count: _test_unit_root(scaled, count, most).criterion)
    chosen = _test_unit_root(scaled, lags, lags)
    limit = sum(value / chosen.rows**power for power, value in enumerate(UNIT_ROOT_SURFACE))
    return UnitRoot(chosen.statistic, limit, lags)


class _Regression(NamedTuple):
    statistic: float
    criterion: float
    rows: int


def _test_unit_root(series: Floats, lags: int, skipped: int) -> _Regression:
    """Regress each change on the value before it, a constant and the last changes, without the first `skipped` changes;
    with Akaike's criterion of that."""
    changes = np.diff(series)
    rows = np.arange(skipped, len(changes))
    known = np.column_stack([series[rows], np.ones(len(rows)), *(changes[rows - lag] for lag in range(1, lags + 1))])
    inverse = np.linalg.pinv(known.T @ known)
    weights = inverse @ known.T @ changes[rows]
    residuals = changes[rows] - known @ weights
    squares = max(float(residuals @ residuals), np.finfo(np.float64).tiny)
    error = math.sqrt(squares / (len(rows) - known.shape[1]) * float(inverse[0, 0]))
    criterion = len(rows) * math.log(squares / len(rows)) + 2 * known.shape[1]
    return _Regression(float(weights[0]) / error if error > 0 else -math.inf, criterion, len(rows))

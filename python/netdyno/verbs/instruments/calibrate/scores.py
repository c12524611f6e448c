"""One property of a generator, measured, beside its known truth. Pure."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from netdyno.model.load_result import Distribution

ScoreUnit = Literal["ns", "count", "hz", "share", "statistic"]
Rule = Literal["within", "exactly", "at most", "at least", "stated", "part"]

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
WITHIN = 0.02
"""The largest relative error of a time."""
RATE_BOUND = 0.01


class CalibrationScore(msgspec.Struct, frozen=True, kw_only=True):
    """`truth` is what `measured` is held against, by `rule`: within a relative `bound`, exactly, or as a limit. `error`
    is relative to the truth (absolute for counts; None where the truth is a limit). A "stated" score is not judged. A
    "part" is one part of the error of a reading of `truth`, and its `error` is its share of that; with a `most` it lies
    between 0 and that. `service` is the reading of a clock that starts at the actual send, in ns."""

    name: str
    unit: ScoreUnit
    rule: Rule
    truth: float
    measured: float
    bound: float = 0.0
    service: float | None = None
    most: float | None = None

    @property
    def has_bound(self) -> bool:
        """Whether there is a bound."""
        return self.rule != "stated" and (self.rule != "part" or self.most is not None)

    @property
    def error(self) -> float | None:
        if self.rule in ("at most", "at least"):
            return None
        off = self.measured - (0 if self.rule == "part" else self.truth)
        if self.rule == "exactly":
            return off
        return off / self.truth if self.truth else math.inf

    @property
    def passed(self) -> bool:
        if not math.isfinite(self.measured):
            return False
        match self.rule:
            case "within":
                return self.error is not None and abs(self.error) <= self.bound
            case "exactly":
                return self.measured == self.truth
            case "at most":
                return self.measured <= self.truth
            case "at least":
                return self.measured >= self.truth
            case "part":
                return self.most is None or 0 <= self.measured <= self.most
            case "stated":
                return True


def read_percentile(distribution: Distribution, name: str) -> float:
    """The value of a distribution at a percentile of QUANTILES; NaN where it is empty."""
    if not distribution.count:
        return math.nan
    value: int = getattr(distribution, name.replace(".", ""))
    return float(value)


def score_time(
    name: str, truth: float, measured: float, bound: float = WITHIN, service: float | None = None
) -> CalibrationScore:
    """The score of a time."""
    return CalibrationScore(
        name=name, unit="ns", rule="within", truth=truth, measured=measured, bound=bound, service=service
    )


def score_rate(name: str, truth: float, measured: float) -> CalibrationScore:
    """The score of a rate."""
    return CalibrationScore(name=name, unit="hz", rule="within", truth=truth, measured=measured, bound=RATE_BOUND)


def score_part(name: str, delay: float, measured: float, most: float | None = None) -> CalibrationScore:
    """The score of a part of the error of a time."""
    return CalibrationScore(name=name, unit="ns", rule="part", truth=delay, measured=measured, most=most)


def score_count(name: str, truth: int, measured: int) -> CalibrationScore:
    """The score of a count."""
    return CalibrationScore(name=name, unit="count", rule="exactly", truth=truth, measured=measured)

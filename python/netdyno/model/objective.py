"""A service-level objective that a user requires of a server, such as "p99<5ms" or "p99.9<20ms, lost<0.1%".

It is checked for each trial by itself, on the response time, which counts from the moment at which a message should
have been sent. Times are nanoseconds here. Pure functions."""

from __future__ import annotations

import re

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.units import format_duration, parse_duration
from netdyno.model.load_result import PERCENTILES, LoadResult, name_percentile

MEAN, LOST = "mean", "lost"
_FORM = "such as 'p99<5ms', 'p99.9<20ms', 'mean<1ms' or 'lost<0.1%', several joined by a comma"
_TERM = re.compile(r"\s*([A-Za-z][\w.]*)\s*<\s*([\w.]+%?)\s*")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_UNIT = re.compile(r"(?<=\d)([a-z]+)$")


class Term(msgspec.Struct, frozen=True):
    """One condition: the figure of that name is below the limit, in nanoseconds, or as a share where it is `lost`."""

    name: str
    limit: float

    @property
    def percent(self) -> float | None:
        """The number of a percentile, such as 99; None for a mean and for loss."""
        match = _PERCENTILE.fullmatch(self.name)
        return float(match[1]) if match else None

    def value(self, load: LoadResult) -> float:
        """Return the figure of a trial. Where nothing was answered there is no response time: NaN, which meets no
        limit."""
        if self.name == LOST:
            return load.messages.lost / load.messages.expected if load.messages.expected else 0.0
        response = load.latency.response_ns
        if not response.count:
            return float("nan")
        return response.mean if self.percent is None else response.find_percentile(self.percent)

    def speak(self, value: float) -> str:
        return quantities.share(value) if self.name == LOST else quantities.duration(value)

    @property
    def text(self) -> str:
        return f"{self.name} < {self.limit_text}"

    @property
    def limit_text(self) -> str:
        """The limit as requested, without rounding: "5 ms"."""
        if self.name == LOST:
            return f"{100 * self.limit:g}%"
        return _UNIT.sub(r" \1", format_duration(1e-9 * self.limit)).replace("us", "µs")


class Objective(msgspec.Struct, frozen=True):
    """An objective: all of its terms have to hold. There is at least one, and none twice."""

    terms: tuple[Term, ...]

    @property
    def text(self) -> str:
        """The objective as sentences name it: "p99 < 5 ms and lost < 0.1%"."""
        return quantities.listed([term.text for term in self.terms])

    @property
    def latency(self) -> Term | None:
        """The first term that is a time; a figure draws it as a line."""
        return next((term for term in self.terms if term.name != LOST), None)

    def broken(self, load: LoadResult) -> tuple[tuple[Term, float], ...]:
        """Return the terms that a trial does not keep, each with the measured value."""
        values = ((term, term.value(load)) for term in self.terms)
        return tuple((term, value) for term, value in values if not value < term.limit)  # NaN, too, is not below

    def least_messages(self) -> int:
        """Return the fewest messages in a window; with fewer, a single message would decide. A percentile needs at
        least one beyond it. Ten where only a mean is required."""
        shares = [1 - term.percent / 100 for term in self.terms if term.percent is not None]
        return max(10, round(1 / min(shares)) if shares else 0)


def parse(text: str, where: str) -> Objective:
    """Parse an objective as people write it; errors name `where` first. Raises UserError with one clear line."""
    terms: list[Term] = []
    for part in text.split(","):
        term = _parse_term(part, where)
        if any(term.name == earlier.name for earlier in terms):
            raise UserError(f"{where}: {term.name!r} has two limits; leave one of them out")
        terms.append(term)
    return Objective(tuple(terms))


def _parse_term(text: str, where: str) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        raise UserError(f"{where}: {text.strip()!r} is no objective; write one {_FORM}")
    name, limit = match[1], match[2]
    if name == LOST:
        return Term(name, _parse_share(limit, where))
    percentile = _PERCENTILE.fullmatch(name)
    if percentile is None and name != MEAN:
        hint = did_you_mean(name, (MEAN, LOST, *map(name_percentile, PERCENTILES)))
        raise UserError(f"{where}: unknown figure {name!r}{hint}")
    if percentile is not None and float(percentile[1]) == 0:
        raise UserError(f"{where}: {name!r} is no percentile; it lies above 0 and below 100")
    try:
        seconds = parse_duration(limit)
    except ValueError as error:
        raise UserError(f"{where}: the limit of {name!r}: {error}") from error
    if seconds <= 0:
        raise UserError(f"{where}: the limit of {name!r} must be above 0")
    return Term(name, 1e9 * seconds)


def _parse_share(limit: str, where: str) -> float:
    match = _SHARE.fullmatch(limit)
    if match is None or not 0 < float(match[1]) < 100:
        raise UserError(f"{where}: the limit of 'lost' is a percentage above 0, such as 0.1%, and not {limit!r}")
    return float(match[1]) / 100

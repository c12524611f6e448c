"""The text about what more code gains. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.notices import CodeGain
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS

HEADLINE = "What more code gains"
EXPLANATION = (
    "A mark is a server in one scenario. It shows how much code the server has, and how many times as good it is as "
    "the server with the fewest lines, by the metric of the scenario, over all loads. Code that only some servers "
    "share counts for each of them. A full mark is proven different, a hollow one is not."
)
HEADINGS = ("scenario", "server", "metric", "lines", "complexity", "times as good", "95% interval", "proven")
AXIS = "times as good (log scale)"


def describe_panel(gains: Sequence[CodeGain], measure: str) -> str:
    """Describe a panel for readers who do not see it."""
    ordered = sorted(gains, key=lambda gain: gain.gain)
    ends = " to ".join(f"{_format_gain(end)} ({end.contestant} in {end.question})" for end in (ordered[0], ordered[-1]))
    return f"{HEADLINE}, by {measure}: {quantities.plural(len(gains), 'mark')}, from {ends}. The table has all."


def make_row(gain: CodeGain) -> tuple[str, ...]:
    """Return a line under HEADINGS, without the figures by which a reader sorts."""
    interval = gain.interval
    return (
        gain.question,
        gain.contestant,
        METRICS[gain.metric].short,
        f"{gain.lines:,}",
        f"{gain.complexity:,}",
        _format_gain(gain),
        f"{quantities.three_digits(interval.low)} to {quantities.three_digits(interval.high)}"
        if interval
        else quantities.DASH,
        "yes" if gain.different else "no",
    )


def _format_gain(gain: CodeGain) -> str:
    return f"{quantities.TIMES}{quantities.three_digits(gain.gain)}"

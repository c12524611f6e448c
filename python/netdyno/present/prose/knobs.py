"""What a knob of a user's own server gains, in words. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.notices import Knob
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.model.metrics import METRICS
from netdyno.present.prose.ranking import format_change_interval

TIMES_FROM = 1.5
"""From this ratio on, a gain is written as a multiple; below it, in per cent."""


def describe_knobs(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each knob, for each level of the others."""
    return tuple(_describe_knob(knob, METRICS[findings.scenario.metric].title) for knob in findings.knobs)


def _describe_knob(knob: Knob, title: str) -> str:
    at = f" (at {knob.other_levels})" if knob.other_levels else ""
    if not knob.enough:
        return f"{knob.knob}{at}: too few blocks compare its levels."
    head = f"{knob.knob} = {knob.levels[knob.enough]}{at}"
    parts = [f"{head}: {_describe_gain(knob, title)}"]
    if knob.equal:
        equal = quantities.listed([knob.levels[name] for name in knob.equal])
        parts.append(f"{equal} {'is' if len(knob.equal) == 1 else 'are'} not proven better")
    parts += [f"{knob.levels[worse.a]} is worse ({quantities.percent_change(worse.ratio)})" for worse in knob.worse]
    return f"{'; '.join(parts)}."


def _describe_gain(knob: Knob, title: str) -> str:
    if knob.gain is None:
        return f"no other level is proven better in {title}"
    first = f"{knob.knob} = {knob.levels[knob.gain.b]}"
    if not knob.gain.different:
        return f"{title} is not proven different from that of {first}, yet no level is proven better"
    ends = knob.gain.interval
    if knob.gain.ratio >= TIMES_FROM:
        interval = f" [{quantities.three_digits(ends.low)}, {quantities.three_digits(ends.high)}]" if ends else ""
        return f"{title} is {quantities.three_digits(knob.gain.ratio)} times that of {first}{interval}"
    interval = f" [{format_change_interval(ends)}]" if ends else ""
    side = "above" if knob.gain.ratio > 1 else "below"
    return f"{title} is {quantities.margin(knob.gain.ratio)} {side} that of {first}{interval}"

"""What is said of the machine over a run, from what the canary read. Pure functions."""

from __future__ import annotations

from netdyno.analysis.canary import MachineOverTime
from netdyno.audits.canary import FACTOR
from netdyno.base import quantities

DRIFT_TOLD = 1.25
"""From this factor between the fastest and the slowest block on, the terminal's table says that the machine drifted."""


def drift_line(found: MachineOverTime | None) -> str:
    """The line for a terminal, where the machine drifted or the canary has struck trials out; else nothing."""
    if found is None:
        return ""
    one = found.drift
    said = []
    if one.drift >= DRIFT_TOLD:
        said.append(
            f"The machine drifted: by the canary ({one.name}), the fastest block was "
            f"{quantities.three_digits(one.drift)} times as fast as the slowest, from {quantities.rate(one.least)} to "
            f"{quantities.rate(one.most)} over the run."
        )
    if found.struck:
        said.append(_struck(found))
    return " ".join(said)


def sentences(found: MachineOverTime) -> tuple[str, ...]:
    """The same for the report, whatever it is."""
    one = found.drift
    blocks = len({trial.block for trial in found.trials})
    ranges = "; ".join(
        f"{each.name} {quantities.rate(each.least)} to {quantities.rate(each.most)}, median "
        f"{quantities.rate(each.median)}"
        for each in found.ranges
    )
    said = [f"Over the run: {ranges}."]
    if blocks > 1:
        said.append(
            f"From block to block the machine drifted by a factor of {quantities.three_digits(one.drift)} ({one.name}: "
            "the median of the fastest block over that of the slowest)."
        )
    if found.counted:
        said.append(
            "The distance of each trial from its block was only counted, as requested: no trial was excluded for it."
        )
    elif found.struck:
        said.append(_struck(found))
    else:
        said.append(f"No trial was further than a factor of {FACTOR:g} from the median of its block.")
    if found.unread:
        said.append(f"The canary could not be read at {quantities.plural(found.unread, 'trial')}.")
    if found.unjudged:
        said.append(f"{quantities.plural(found.unjudged, 'trial')} of an unfinished block could not be judged.")
    return tuple(said)


def _struck(found: MachineOverTime) -> str:
    trials = quantities.plural(found.struck, "trial")
    how = "was" if found.struck == 1 else "were"
    return f"{trials} {how} retried, because the machine was faster or slower there than in the rest of the block."

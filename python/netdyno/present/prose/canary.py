"""The text about the machine over a run, from the readings of the canary. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.canary import MachineOverTime
from netdyno.kit import quantities
from netdyno.measure.audits.canary_audit import FACTOR

LEAST_DRIFT = 1.25
"""From this factor between the fastest and the slowest block on, the terminal's table says that the machine drifted."""


def summarise_drift(machine: MachineOverTime | None) -> str:
    """The line for a terminal, where the machine drifted or the canary made trials invalid; else empty."""
    if machine is None:
        return ""
    drift = machine.drift
    texts = []
    if drift.drift >= LEAST_DRIFT:
        texts.append(
            f"The machine drifted: by the canary ({drift.name}), the fastest block was "
            f"{quantities.three_digits(drift.drift)} times as fast as the slowest, from "
            f"{quantities.rate(drift.least)} to {quantities.rate(drift.most)} over the run."
        )
    if machine.invalid:
        texts.append(_describe_excluded(machine))
    return " ".join(texts)


def describe_drift(machine: MachineOverTime) -> tuple[str, ...]:
    """The text for the report, also where nothing drifted."""
    drift = machine.drift
    blocks = len({trial.block for trial in machine.trials})
    ranges = "; ".join(
        f"{canary.name} {quantities.rate(canary.least)} to {quantities.rate(canary.most)}, median "
        f"{quantities.rate(canary.median)}"
        for canary in machine.ranges
    )
    texts = [f"Over the run: {ranges}."]
    if blocks > 1:
        texts.append(
            f"From block to block the machine drifted by a factor of {quantities.three_digits(drift.drift)} "
            f"({drift.name}: the median of the fastest block over that of the slowest)."
        )
    if machine.counted:
        texts.append(
            "The distance of each trial from its block was only counted, as requested: no trial is invalid for it."
        )
    elif machine.invalid:
        texts.append(_describe_excluded(machine))
    else:
        texts.append(f"No trial was further than a factor of {FACTOR:g} from the median of its block.")
    if machine.unread:
        texts.append(f"The canary could not be read in {quantities.plural(machine.unread, 'trial')}.")
    if machine.unjudged:
        texts.append(f"{quantities.plural(machine.unjudged, 'trial')} of an unfinished block could not be judged.")
    return tuple(texts)


def _describe_excluded(machine: MachineOverTime) -> str:
    trials = quantities.plural(machine.invalid, "trial")
    verb = "was" if machine.invalid == 1 else "were"
    return f"{trials} {verb} retried, because the machine was faster or slower there than in the rest of the block."

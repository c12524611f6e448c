"""The text about how throughput grew with the cores of the server. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.notices import Scaling, Speedup
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities

EXPLANATION = (
    "Throughput on several cores over that on one (or at the levels of a knob of your own server over that at 1), "
    "geometric mean over blocks; the ideal is the number of cores. "
    "serial: the part of the work that more cores do not make faster, by Amdahl's law; contention (waits for what is "
    "shared) and coherency (paid to every other core): by Gunther's. Both laws are fitted to these figures and say "
    "nothing of more cores than were measured. In brackets 95% intervals."
)

SHARED = (
    "The generator ran on all cores: where the server had fewer, the generator alone had the rest, so the speedups are "
    "too low, and the losses too high."
)


def describe_contestants(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that was measured on one core and on more, and what limits them all."""
    return (*map(_describe_scaling, findings.scaling), *list_caveats(findings))


def list_caveats(findings: ScenarioFindings) -> tuple[str, ...]:
    return (SHARED,) if findings.scaling and findings.ground.shared else ()


def _describe_scaling(scaling: Scaling) -> str:
    at = f" at {scaling.other_levels}" if scaling.other_levels else ""
    speedups = quantities.listed(
        [f"{format_speedup(speedup)} {_name_place(scaling, speedup)}" for speedup in scaling.speedups]
    )
    share = scaling.serial
    serial = f"; by Amdahl's law {format_loss(share)} of the work is serial" if share and share.value <= 1 else ""
    return f"{scaling.contestant}{at}: {speedups}, relative to one{serial}."


def _name_place(scaling: Scaling, speedup: Speedup) -> str:
    if scaling.knob:
        return f"at {scaling.knob} = {speedup.cores}"
    return f"on {quantities.plural(speedup.cores, 'core')}"


def format_speedup(speedup: Speedup) -> str:
    bound = f"{speedup.bound} " if speedup.bound else ""
    interval = speedup.ratio.interval
    ends = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else ""
    return f"{bound}{quantities.TIMES}{speedup.ratio.value:.2f}{ends}"


def format_loss(loss: Estimate) -> str:
    ends = f" [{_format_share(loss.interval.low)}, {_format_share(loss.interval.high)}]" if loss.interval else ""
    return f"{_format_share(loss.value)}{ends}"


def _format_share(share: float) -> str:
    """A loss below 0 is a gain: throughput grew faster than in proportion."""
    return f"{quantities.MINUS if share < 0 else ''}{quantities.share(abs(share))}"

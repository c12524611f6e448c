"""The events of a run, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.kit.quantities import plural
from netdyno.kit.units import clock_after, format_clock
from netdyno.measure.audits import neighbour
from netdyno.measure.run.progress import (
    FirstFailure,
    LateRun,
    LostHosts,
    MeasuredWarmup,
    NeighbourChange,
    PlannedTraces,
    Progress,
    ResumedRun,
    RunEvent,
    RunPlan,
    TimeOfTrials,
)
from netdyno.model.trial import Warmup
from netdyno.present.prose.announcement import format_announcement
from netdyno.present.prose.wrong_reply import describe_error


def describe_event(event: RunEvent) -> str:
    """Describe what happened to a run; its plan in several lines."""
    match event:
        case RunPlan():
            return format_announcement(event)
        case ResumedRun():
            done = f"{plural(event.done, 'trial')} of {event.planned} planned"
            return f"{event.run_id}: {event.question} Resuming after {done}"
        case FirstFailure():
            return describe_error(event.error)
        case MeasuredWarmup():
            return describe_warmups(event.contestant, event.where, [event.warmup])
        case TimeOfTrials():
            ends = clock_after(event.begins, event.seconds)
            return f"With these warm-ups the trials take about {format_clock(event.seconds)}, and end at about {ends}."
        case LateRun():
            limit = "" if event.limit_s is None else f", at most {format_clock(event.limit_s)} in all"
            return (
                f"The machine is disturbed: {plural(event.retried, 'trial')} retried so far. The rest takes about "
                f"{format_clock(event.left_s)} more{limit}."
            )
        case NeighbourChange():
            return _describe_change(event)
        case LostHosts():
            return f"The run ends here: {event.error}."
        case PlannedTraces():
            traces = plural(event.count, "short trial")
            return f"tracing system calls in {traces} of their own, about {event.seconds:.0f} s"


def format_left(progress: Progress) -> str:
    """ "4:05 left", or "at most 4:05 left"."""
    at_most = "at most " if progress.total > progress.planned else ""
    return f"{at_most}{format_clock(progress.left_s())} left"


def describe_warmups(contestant: str, where: str, warmups: Sequence[Warmup]) -> str:
    """Describe the warm-up in a scenario, at one level or several, in a line."""
    lengths = sorted({f"{warmup.seconds:.1f}" for warmup in warmups}, key=float)
    span = f"{lengths[0]} to {lengths[-1]} s" if len(lengths) > 1 else f"{lengths[0]} s"
    if all(warmup.closed for warmup in warmups):
        span += " of a closed loop before its load (its memory includes that)"
    unsettled_s = [warmup.measured_s for warmup in warmups if not warmup.steady]
    if not unsettled_s:
        return f"warm-up of {contestant}: {span} in {where}, measured"
    still = f"the cost of a message had not settled after {max(unsettled_s):g} s, so its JIT is part of its figures"
    return f"warm-up of {contestant}: {span} in {where}; {still}"


def _describe_change(event: NeighbourChange) -> str:
    name = neighbour.name(event.neighbour)
    lost = f"{event.tries} tries in a row were {'disturbed' if event.foreign_load == 'count' else 'lost'}"
    match event.change:
        case "quota":
            return (
                f"A CPU quota is too small for this run: {lost}, with {name}. For undisturbed figures, raise it "
                "(cpu.max; docker run --cpus). The run goes on: it compares the contestants under this quota; absolute "
                "figures are marked."
            )
        case "programs":
            return _describe_programs(event, f"{lost}, beside {name}")
        case "gone":
            rule = "" if event.foreign_load == "count" else ": disturbed trials are retried, as before"
            return f"The machine is free again, without {name}{rule}."


def _describe_programs(event: NeighbourChange, lost: str) -> str:
    """Say which programs take the cores, how to end that, and what the run does until then."""
    named = neighbour.named_programs(event.neighbour)
    shares = f" ({', '.join(f'{program.name} {program.cores:.1f}' for program in named)})" if len(named) > 1 else ""
    advice = "end them, or stop here (Ctrl-C) and run again later" if named else "run again later"
    return (
        f"Other programs use this machine: {lost}{shares} on {plural(event.neighbour.cores, 'core')}. For undisturbed "
        f"figures, {advice}. The run goes on: it compares where all contestants are disturbed equally; absolute "
        "figures are marked."
    )

"""A gate's lines, from a run. Pure functions.

The interval of a line holds together with those of all other lines and at all looks (statistics/looks.py), so that a
gate may end as soon as it has decided. docs/adr/gate.md has the rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Sequence

from netdyno.analysis.found.exclusions import Fault
from netdyno.analysis.found.gate import (
    METRIC_NAMES,
    Faults,
    GateDecision,
    GatedMetric,
    GateFindings,
    GateMetric,
    GateOutcome,
    NoFigures,
    Unmeasured,
)
from netdyno.analysis.ranking import axes
from netdyno.analysis.ranking.samples import collect_metric
from netdyno.analysis.trials.server_faults import find_faulty, find_unproven
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import looks, stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS, GATE_LOOKS
from netdyno.kit.statistics.stats import Better, Interval, Samples
from netdyno.model import outcomes
from netdyno.model.experiment import Gate, Scenario
from netdyno.model.levels import level_key
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial

PASSES: tuple[GateOutcome, ...] = ("better", "within")
FAILS: tuple[GateOutcome, ...] = ("worse", "faulty")
RATES = ("throughput", "kept")
FAULT_SHARE = 0.4
"""The share of the chance to err that the test of faults takes."""
SEVERAL_TRIALS = 2
"""The fewest trials without any answer that show a server to answer nothing."""


def select_metrics(gate: Gate, scenario: Scenario) -> tuple[GateMetric, ...]:
    """Return the metrics of a scenario that have a margin: in a closed loop no latency but the scenario's own, for a
    client that waits for its answer offers a slow server less."""
    return tuple(
        name
        for name in METRIC_NAMES
        if name in gate.margins and name in axes.list_names(scenario) and not _is_uninformative(name, scenario)
    )


def _is_uninformative(metric: GateMetric, scenario: Scenario) -> bool:
    return METRICS[metric].latency and scenario.arrivals == "closed" and metric != scenario.metric


def judge_gate(gate: Gate, parts: Sequence[ScenarioTrials], significance: float = stats.SIGNIFICANCE) -> GateFindings:
    """Judge all scenarios of a run that was judged by outcomes.judge_run. Faults have a test of their own."""
    line_count = sum(len(select_metrics(gate, part.scenario)) for part in parts)
    faulty = _find_faulty(gate, parts, significance * FAULT_SHARE)
    lines = tuple(
        _judge_line(gate, part, metric, significance * (1 - FAULT_SHARE) / line_count, faulty)
        for part in parts
        for metric in select_metrics(gate, part.scenario)
    )
    unmeasured = tuple(_explain_missing(gate, part) for part in parts if _is_unmeasured(gate, part, lines))
    decided = decide_gate([line.outcome for line in lines])
    decided = "unmeasured" if decided == "open" and unmeasured else decided
    return GateFindings(
        gate,
        lines,
        tuple(faults for part in parts if (faults := _count_faults(gate, part)).before or faults.after),
        decided,
        decided in ("open", "unmeasured") and _may_change(gate, parts, lines),
        unmeasured,
    )


def _may_change(gate: Gate, parts: Sequence[ScenarioTrials], lines: Sequence[GatedMetric]) -> bool:
    """Whether another block could decide anything: not if a server cannot be tried, nor if both have failed in every
    one of several blocks."""
    names = (gate.before, gate.after)
    have_failed = any(
        part.blocks >= FEWEST_BLOCKS and all(len(_list_faulty_blocks(part, name)) == part.blocks for name in names)
        for part in parts
    )
    were_tried = all(_was_tried(part, name) for part in parts for name in names)
    may_close = any(line.outcome == "open" and line.blocks < GATE_LOOKS[-1] for line in lines)
    return were_tried and not have_failed and may_close


def _was_tried(part: ScenarioTrials, name: str) -> bool:
    return any(trial.contestant == name and trial.status not in ("skipped", "failed") for trial in part.trials)


def _is_unmeasured(gate: Gate, part: ScenarioTrials, lines: Sequence[GatedMetric]) -> bool:
    """Whether no line of a scenario compares anything. An old server that alone is faulty is an answer, as is a new
    one."""
    own = [line for line in lines if line.scenario == part.scenario.name]
    is_new_measured = any(trial.contestant == gate.after for trial, _ in part.ranked)
    return not any(
        line.blocks or line.outcome == "faulty" or (line.outcome == "unsound" and is_new_measured) for line in own
    )


def _explain_missing(gate: Gate, part: ScenarioTrials) -> Unmeasured:
    before, after = (_explain_no_figures(part, name) for name in (gate.before, gate.after))
    return Unmeasured(part.scenario.name, before, after)


def _explain_no_figures(part: ScenarioTrials, name: str) -> NoFigures | None:
    if any(trial.contestant == name for trial, _ in part.ranked):
        return None
    reasons = [trial.reason for trial in part.trials if trial.contestant == name and trial.reason]
    return NoFigures(_find_faults(part, name), reasons[0] if reasons else "")


def decide_gate(line_outcomes: Sequence[GateOutcome]) -> GateDecision:
    """Return the decision: one line that is worse fails the gate, whatever the others show; to pass, all have to."""
    if any(line_outcome in FAILS for line_outcome in line_outcomes):
        return "fails"
    return "passes" if line_outcomes and all(line_outcome in PASSES for line_outcome in line_outcomes) else "open"


def _judge_line(
    gate: Gate, part: ScenarioTrials, metric: GateMetric, significance: float, faulty: Collection[tuple[str, str]]
) -> GatedMetric:
    figures = collect_metric(part.ranked, metric)
    before, after = (figures.get(name, {}) for name in (gate.before, gate.after))
    pairs = stats.pair(after, before)
    interval = looks.GATE.hold(pairs, significance)
    margin = gate.margins[metric]
    shared = stats.counted(before.keys() & after.keys())
    judged = _judge_faults(gate, part, metric, faulty) or decide_outcome(interval, margin, METRICS[metric].better)
    blamed = {"faulty": gate.after, "unsound": gate.before}.get(judged)
    return GatedMetric(
        scenario=part.scenario.name,
        metric=metric,
        margin=margin,
        outcome=judged,
        blocks=len({block for block, _ in shared}),
        before=_geometric_mean(before, shared),
        after=_geometric_mean(after, shared),
        ratio=math.exp(stats.log_ratio(pairs)) if len(pairs) else math.nan,
        interval=interval and Interval(math.exp(interval.low), math.exp(interval.high)),
        faults=_find_faults(part, blamed) if blamed else (),
    )


def _find_faults(part: ScenarioTrials, name: str) -> tuple[Fault, ...]:
    faulty = (find_unproven(part.trials) | find_faulty(part.trials)).get(name)
    return faulty.faults if faulty else ()


def _judge_faults(
    gate: Gate, part: ScenarioTrials, metric: GateMetric, faulty: Collection[tuple[str, str]]
) -> GateOutcome | None:
    """Return an outcome that needs no figure. A generator at its limit hides the speed of either server."""
    if (part.scenario.name, gate.before) in faulty:
        return "unsound"
    if (part.scenario.name, gate.after) in faulty:
        return "faulty"
    return "bound" if part.saturated and (metric in RATES or METRICS[metric].latency) else None


def _find_faulty(gate: Gate, parts: Sequence[ScenarioTrials], significance: float) -> set[tuple[str, str]]:
    """Return scenario and name of the servers with a fault that is theirs: one that no busy machine can cause, or one
    that they have so much more often than the other, over all scenarios, that luck is no explanation. Trials and blocks
    are counted, each with half of the significance: trials show soonest what is everywhere, and blocks what is in one
    scenario."""
    sides = (gate.before, gate.after), (gate.after, gate.before)
    counted = _list_events(gate, parts, _locate), _list_events(gate, parts, lambda trial: (trial.block, "", ""))
    proven = {
        name
        for name, rival in sides
        if any(looks.is_more_often(events[name], events[rival], significance / len(counted)) for events in counted)
        or _has_never_answered(parts, name, rival)
    }
    return {
        (part.scenario.name, name)
        for part in parts
        for name, rival in sides
        if any(map(_is_wrong, _list_faulty(part, name))) or (name in proven and _is_blamed(gate, part, name, rival))
    }


Place = tuple[int, str, str]


def _locate(trial: Trial) -> Place:
    return trial.block, trial.scenario, level_key(trial.levels)


def _list_events(
    gate: Gate, parts: Sequence[ScenarioTrials], place_of: Callable[[Trial], Place]
) -> dict[str, list[bool]]:
    """Return for both servers whether there was a fault, at each place at which both were tried, in order."""
    places: dict[Place, dict[str, bool]] = {}
    for trial in (trial for part in parts for trial in part.trials):
        if _is_faulty(trial) or trial.status not in ("skipped", "failed"):
            at_place = places.setdefault(place_of(trial), {})
            at_place[trial.contestant] = at_place.get(trial.contestant, False) or _is_faulty(trial)
    names = (gate.before, gate.after)
    shared = [places[place] for place in sorted(places) if places[place].keys() >= set(names)]
    return {name: [at_place[name] for at_place in shared] for name in names}


def _is_blamed(gate: Gate, part: ScenarioTrials, name: str, rival: str) -> bool:
    """Return whether proven faults of a server matter in a scenario. Those of the old one do where it has no figure."""
    is_missing = name == gate.after or not any(trial.contestant == name for trial, _ in part.ranked)
    return is_missing and len(_list_faulty_blocks(part, name)) > len(_list_faulty_blocks(part, rival))


def _is_wrong(trial: Trial) -> bool:
    """Return whether replies were wrong, or there was none at all though the server had its core, which no busy machine
    can cause. A server that is not ready in time counts as dead, and a busy machine can cause that."""
    return any(audit.name != "died" for audit in outcomes.certain_faults(trial))


def _has_never_answered(parts: Sequence[ScenarioTrials], name: str, rival: str) -> bool:
    """Return whether a server answered nothing in several trials, and in none something, while the other was answered.
    Trials that the machine disturbed show neither."""
    undisturbed = [trial for part in parts for trial in part.trials if trial.load and not outcomes.disturbances(trial)]
    trials, of_rival = ([trial for trial in undisturbed if trial.contestant == tried] for tried in (name, rival))
    return (
        len(trials) >= SEVERAL_TRIALS
        and all(map(_is_silent, trials))
        and any(trial.status in outcomes.RANKED for trial in of_rival)
        and not any(map(_is_silent, of_rival))
    )


def _is_silent(trial: Trial) -> bool:
    """Return whether neither the load nor the closing check was answered, on a machine that no audit saw disturbed."""
    faults = (*outcomes.failed(trial, "server"), *outcomes.unproven_faults(trial))
    answers_at_end = not any(fault.name == "server_alive" for fault in faults)
    is_answered = answers_at_end or (trial.load is not None and trial.load.messages.received > 0)
    return not is_answered and not outcomes.disturbances(trial)


def _count_faults(gate: Gate, part: ScenarioTrials) -> Faults:
    before, after = (len(_list_faulty_blocks(part, name)) for name in (gate.before, gate.after))
    exchanges = [trial.load.first_exchange for trial in part.trials if trial.load and trial.load.first_exchange]
    return Faults(part.scenario.name, before, after, part.blocks, exchanges[0] if exchanges else None)


def _list_faulty_blocks(part: ScenarioTrials, name: str) -> set[int]:
    return {trial.block for trial in _list_faulty(part, name)}


def _list_faulty(part: ScenarioTrials, name: str) -> list[Trial]:
    return [trial for trial in part.trials if trial.contestant == name and _is_faulty(trial)]


def _is_faulty(trial: Trial) -> bool:
    """Whether a trial has a fault, be it proven to be the server's or not: the gate has a test of its own."""
    return trial.status == "faulty" or bool(outcomes.unproven_faults(trial))


def decide_outcome(interval: Interval | None, margin: float, better: Better) -> GateOutcome:
    """Return the outcome for the interval of a log ratio, after by before."""
    if interval is None:
        return "open"
    if better == "higher":
        low, high, limit = -interval.high, -interval.low, -math.log1p(-margin)
    else:
        low, high, limit = interval.low, interval.high, math.log1p(margin)
    if low > limit:
        return "worse"
    if high < 0:
        return "better"
    return "within" if high <= limit else "open"


def _geometric_mean(samples: Samples, cells: Sequence[stats.BlockLevel]) -> float:
    return math.exp(statistics.fmean(math.log(samples[cell]) for cell in cells)) if cells else math.nan

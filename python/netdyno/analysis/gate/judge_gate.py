"""A gate's lines, from a run. Pure functions.

The interval of a line holds together with those of all other lines and at all looks (statistics/looks.py), so that a
gate may end as soon as it has decided. docs/adr/gate.md has the rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from netdyno.analysis.found.exclusions import Fault
from netdyno.analysis.found.gate import METRIC_NAMES, Decision, Faults, GatedMetric, GateFindings, Metric, Outcome
from netdyno.analysis.ranking import axes
from netdyno.analysis.ranking.samples import collect_metric
from netdyno.analysis.trials.server_faults import find_faulty, find_unproven
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model import outcomes
from netdyno.model.experiment import Gate, Scenario
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.statistics import looks, stats
from netdyno.statistics.block_counts import GATE_LOOKS
from netdyno.statistics.stats import Better, Interval, Samples

PASSES: tuple[Outcome, ...] = ("better", "within")
FAILS: tuple[Outcome, ...] = ("worse", "faulty")
RATES = ("throughput", "kept")


def select_metrics(gate: Gate, scenario: Scenario) -> tuple[Metric, ...]:
    """Return the metrics of a scenario that have a margin: in a closed loop no latency but the scenario's own, for a
    client that waits for its answer offers a slow server less."""
    return tuple(
        name
        for name in METRIC_NAMES
        if name in gate.margins and name in axes.list_names(scenario) and not _is_uninformative(name, scenario)
    )


def _is_uninformative(metric: Metric, scenario: Scenario) -> bool:
    return METRICS[metric].latency and scenario.arrivals == "closed" and metric != scenario.metric


def judge(gate: Gate, parts: Sequence[ScenarioTrials], level: float = stats.LEVEL) -> GateFindings:
    """Judge all scenarios of a run that was judged by outcomes.judged."""
    among = sum(1 + len(select_metrics(gate, part.scenario)) for part in parts)
    lines = tuple(
        _judge_line(gate, part, metric, level / among)
        for part in parts
        for metric in select_metrics(gate, part.scenario)
    )
    decided = decide_gate([line.outcome for line in lines])
    were_tried = all(_was_tried(part, name) for part in parts for name in (gate.before, gate.after))
    return GateFindings(
        gate,
        lines,
        tuple(faults for part in parts if (faults := _count_faults(gate, part)).before or faults.after),
        decided,
        decided == "open" and were_tried and any(map(_may_close, lines)),
    )


def _was_tried(part: ScenarioTrials, name: str) -> bool:
    return any(trial.contestant == name and trial.status not in ("skipped", "failed") for trial in part.trials)


def decide_gate(line_outcomes: Sequence[Outcome]) -> Decision:
    """Return the decision: one line that is worse fails the gate, whatever the others show; to pass, all have to."""
    if any(line_outcome in FAILS for line_outcome in line_outcomes):
        return "fails"
    return "passes" if line_outcomes and all(line_outcome in PASSES for line_outcome in line_outcomes) else "open"


def _may_close(line: GatedMetric) -> bool:
    return line.outcome == "open" and line.blocks < GATE_LOOKS[-1]


def _judge_line(gate: Gate, part: ScenarioTrials, metric: Metric, level: float) -> GatedMetric:
    figures = collect_metric(part.ranked, metric)
    before, after = (figures.get(name, {}) for name in (gate.before, gate.after))
    pairs = stats.pair(after, before)
    interval = looks.held(pairs, level)
    margin = gate.margins[metric]
    shared = stats.counted(before.keys() & after.keys())
    judged = _judge_faults(gate, part, metric, level) or decide_outcome(interval, margin, METRICS[metric].better)
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
        faults=_list_faults_behind(gate, part, judged),
    )


def _list_faults_behind(gate: Gate, part: ScenarioTrials, judged: Outcome) -> tuple[Fault, ...]:
    """Return the faults that an outcome comes from."""
    if judged not in ("faulty", "unsound"):
        return ()
    faulty = find_unproven(part.trials) | find_faulty(part.trials)
    return faulty[gate.after if judged == "faulty" else gate.before].faults


def _judge_faults(gate: Gate, part: ScenarioTrials, metric: Metric, level: float) -> Outcome | None:
    """Return an outcome that needs no figure. A fault that a busy machine can cause counts only where it met one of the
    two far more often. A generator at its limit hides the speed of either server."""
    if any(map(_is_wrong, _list_faulty(part, gate.before))):
        return "unsound"
    before, after = _list_faulty_blocks(part, gate.before), _list_faulty_blocks(part, gate.after)
    certain = any(map(_is_wrong, _list_faulty(part, gate.after)))
    if certain or looks.more_often(len(after - before), len(before - after), level):
        return "faulty"
    return "bound" if part.saturated and (metric in RATES or METRICS[metric].latency) else None


def _count_faults(gate: Gate, part: ScenarioTrials) -> Faults:
    before, after = (len(_list_faulty_blocks(part, name)) for name in (gate.before, gate.after))
    return Faults(part.scenario.name, before, after, part.blocks)


def _is_wrong(trial: Trial) -> bool:
    """Return whether replies were wrong, or there was none at all, which no busy machine can cause. A server that is
    not ready in time counts as dead, and a busy machine can cause that."""
    return any(audit.name != "died" for audit in outcomes.certain_faults(trial))


def _list_faulty_blocks(part: ScenarioTrials, name: str) -> set[int]:
    return {trial.block for trial in _list_faulty(part, name)}


def _list_faulty(part: ScenarioTrials, name: str) -> list[Trial]:
    """List the trials with a fault, whether it is proven to be the server's or not."""
    own = [trial for trial in part.trials if trial.contestant == name]
    return [trial for trial in own if trial.status == "faulty" or outcomes.unproven_faults(trial)]


def decide_outcome(interval: Interval | None, margin: float, better: Better) -> Outcome:
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


def _geometric_mean(samples: Samples, cells: Sequence[stats.Cell]) -> float:
    return math.exp(statistics.fmean(math.log(samples[cell]) for cell in cells)) if cells else math.nan

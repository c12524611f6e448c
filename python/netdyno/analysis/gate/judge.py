"""A gate's lines, from a run. Pure functions.

The interval of a line holds together with those of all other lines and at all looks (statistics/looks.py), so that a
gate may end as soon as it has decided. docs/adr/gate.md has the rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from netdyno.analysis import axes
from netdyno.analysis.gate.found import METRIC_NAMES, Decision, Faults, Found, Line, Metric, Outcome
from netdyno.analysis.samples import of_metric
from netdyno.analysis.server_faults import Fault, find_faulty
from netdyno.analysis.split import Part
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


def metrics_of(gate: Gate, scenario: Scenario) -> tuple[Metric, ...]:
    """What a scenario is asked of those that have a margin: in a closed loop no latency, for who waits for an answer
    offers a slow server less, but where it is what the scenario is about."""
    return tuple(
        name
        for name in METRIC_NAMES
        if name in gate.margins and name in axes.names(scenario) and not _says_little(name, scenario)
    )


def _says_little(metric: Metric, scenario: Scenario) -> bool:
    return METRICS[metric].latency and scenario.arrivals == "closed" and metric != scenario.metric


def judge(gate: Gate, parts: Sequence[Part], level: float = stats.LEVEL) -> Found:
    """Of all scenarios of a run whose consequences are drawn (outcomes.judged)."""
    among = sum(1 + len(metrics_of(gate, part.scenario)) for part in parts)
    lines = tuple(
        _line(gate, part, metric, level / among) for part in parts for metric in metrics_of(gate, part.scenario)
    )
    decided = decision([line.outcome for line in lines])
    were_tried = all(_was_tried(part, name) for part in parts for name in (gate.before, gate.after))
    return Found(
        gate,
        lines,
        tuple(found for part in parts if (found := _faults(gate, part)).before or found.after),
        decided,
        decided == "open" and were_tried and any(map(_may_close, lines)),
    )


def _was_tried(part: Part, name: str) -> bool:
    return any(trial.contestant == name and trial.status not in ("skipped", "failed") for trial in part.trials)


def decision(of_lines: Sequence[Outcome]) -> Decision:
    """One line that is worse fails the gate, for there the others say nothing against it; all have to pass."""
    if any(one in FAILS for one in of_lines):
        return "fails"
    return "passes" if of_lines and all(one in PASSES for one in of_lines) else "open"


def _may_close(line: Line) -> bool:
    return line.outcome == "open" and line.blocks < GATE_LOOKS[-1]


def _line(gate: Gate, part: Part, metric: Metric, level: float) -> Line:
    figures = of_metric(part.ranked, metric)
    before, after = (figures.get(name, {}) for name in (gate.before, gate.after))
    pairs = stats.pair(after, before)
    interval = looks.held(pairs, level)
    margin = gate.margins[metric]
    shared = stats.counted(before.keys() & after.keys())
    judged = _of_servers(gate, part, metric, level) or outcome(interval, margin, METRICS[metric].better)
    return Line(
        scenario=part.scenario.name,
        metric=metric,
        margin=margin,
        outcome=judged,
        blocks=len({block for block, _ in shared}),
        before=_mean(before, shared),
        after=_mean(after, shared),
        ratio=math.exp(stats.log_ratio(pairs)) if len(pairs) else math.nan,
        interval=interval and Interval(math.exp(interval.low), math.exp(interval.high)),
        faults=_faults_behind(gate, part, judged),
    )


def _faults_behind(gate: Gate, part: Part, judged: Outcome) -> tuple[Fault, ...]:
    """The faults that an outcome comes from."""
    if judged not in ("faulty", "unsound"):
        return ()
    return find_faulty(part.trials)[gate.after if judged == "faulty" else gate.before].faults


def _of_servers(gate: Gate, part: Part, metric: Metric, level: float) -> Outcome | None:
    """What needs no figure. A fault that a busy machine can cause is none before it has met one of the two far more
    often. A generator at its limit hides what either server could do."""
    if any(map(_is_wrong, _faulty(part, gate.before))):
        return "unsound"
    before, after = _faulty_blocks(part, gate.before), _faulty_blocks(part, gate.after)
    certain = any(map(_is_wrong, _faulty(part, gate.after)))
    if certain or looks.more_often(len(after - before), len(before - after), level):
        return "faulty"
    return "bound" if part.saturated and (metric in RATES or METRICS[metric].latency) else None


def _faults(gate: Gate, part: Part) -> Faults:
    before, after = (len(_faulty_blocks(part, name)) for name in (gate.before, gate.after))
    return Faults(part.scenario.name, before, after, part.blocks)


def _is_wrong(trial: Trial) -> bool:
    """Whether replies were wrong, or there was none at all, which no busy machine can cause. Who is not ready in time
    counts as dead, and a busy machine can do that."""
    return any(audit.name != "died" for audit in outcomes.certain_faults(trial))


def _faulty_blocks(part: Part, name: str) -> set[int]:
    return {trial.block for trial in _faulty(part, name)}


def _faulty(part: Part, name: str) -> list[Trial]:
    return [trial for trial in part.trials if trial.contestant == name and trial.status == "faulty"]


def outcome(interval: Interval | None, margin: float, better: Better) -> Outcome:
    """Of the interval of a log ratio, after by before."""
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


def _mean(samples: Samples, cells: Sequence[stats.Cell]) -> float:
    return math.exp(statistics.fmean(math.log(samples[cell]) for cell in cells)) if cells else math.nan

"""The words of a claim's comparisons. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from netdyno.analysis.claims.steps import Step, apart
from netdyno.base import quantities
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.levels import level_words
from netdyno.model.metrics import METRICS, Counted, Metric
from netdyno.model.run import Run
from netdyno.statistics.stats import Interval

Speak = Callable[[float], str]


SCENARIO = "scenario"
"""What may be left out like a coordinate."""


def cells(selection: Cells, run: Run, leave_out: Collection[str] = ()) -> str:
    """The cells as people say them: "folly-async at threads 1, 100 connections"."""
    names = quantities.listed([str(name) for name in selection.at.get(CONTESTANT, ())])
    factors = {name: values for name, values in selection.at.items() if name not in {CONTESTANT, *leave_out}}
    where = [_levels(name, values) for name, values in factors.items()]
    if len(run.experiment.scenarios) > 1 and SCENARIO not in leave_out:
        where.insert(0, f"in {_short(selection.scenario, run)}")
    if CONTESTANT not in selection.at or CONTESTANT in leave_out:
        return ", ".join(where) or "all cells"
    return f"{names}, {', '.join(where)}" if where else names


def _short(scenario: str, run: Run) -> str:
    """A scenario without the name of its study, which the claim is one of."""
    study, found, name = scenario.partition(": ")
    return name if found and study in run.experiment.parts else scenario


def shared(selections: Collection[Cells]) -> set[str]:
    """What all of these selections have in common, and need not be said of each; of one alone, nothing."""
    first, *others = selections
    if not others:
        return set()
    same = {name for name, values in first.at.items() if all(one.at.get(name) == values for one in others)}
    return same | ({SCENARIO} if all(one.scenario == first.scenario for one in others) else set())


def _levels(name: str, values: tuple[type_level, ...]) -> str:
    """One level, or several with the factor said once."""
    plain = [str(value) for value in values]
    first, last = level_words(name, values[0]), level_words(name, values[-1])
    if first.endswith(plain[0]):  # "backlog 10 or 42", and else "10 or 42 connections"
        return " or ".join([first, *plain[1:]])
    return " or ".join([*plain[:-1], last])


def what(step: Step, run: Run) -> str:
    """The comparison without its outcome."""
    title = METRICS[step.metric].title
    metric = f"{title} of" if CONTESTANT in step.a.at else title  # "throughput in rpc", of whomever
    if step.b is None:
        return f"{metric} {cells(step.a, run)}"
    shared = {name for name in step.a.at if name not in apart(step.a, step.b, run)}
    if step.a.scenario != step.b.scenario or not shared:
        return f"{metric} {cells(step.a, run)} against {cells(step.b, run)}"
    return f"{metric} {cells(step.a, run)} against {_difference(step.b, shared)}"


def _difference(one: Cells, shared: Collection[str]) -> str:
    names = [str(name) for name in one.at.get(CONTESTANT, ()) if CONTESTANT not in shared]
    levels = [_levels(name, values) for name, values in one.at.items() if name not in {CONTESTANT, *shared}]
    return ", ".join([*([quantities.listed(names)] if names else []), *levels])


def claimed(step: Step) -> str:
    """What the effect was to be."""
    if step.b is None:
        return f"{step.side} {METRICS[step.metric].speak(step.threshold)}"
    if METRICS[step.metric].scale == "ratio":
        return f"{step.side} {quantities.TIMES}{step.threshold:.3g}"
    return f"{step.side} {100 * step.threshold:.3g} points"


def shown(step: Step, effect: float, interval: Interval | None) -> str:
    """The effect with its interval."""
    speak = METRICS[step.metric].speak if step.b is None else _speak(step)
    if interval is None:
        return speak(effect)
    return f"{speak(effect)} [{speak(interval.low)}, {speak(interval.high)}]"


def why(metric: Metric, sides: Sequence[tuple[str, Sequence[Counted]]]) -> str:
    """What was counted on each side, by its name; a side without trials is left out. Empty where there is none. That
    one is the cause of the other is for the reader to judge."""
    found = [(metric.over(trials), side) for side, trials in sides if trials]
    each = [f"{'not recorded' if figure is None else metric.speak(figure)} {side}" for figure, side in found]
    return f"{metric.title[0].upper()}{metric.title[1:]}: {', '.join(each)}." if each else ""


def _speak(step: Step) -> Speak:
    return _times if METRICS[step.metric].scale == "ratio" else _points


def _times(ratio: float) -> str:
    return f"{quantities.TIMES}{quantities.three_digits(ratio)}"


def _points(difference: float) -> str:
    """A difference of shares, in points of a percent."""
    return f"{quantities.three_digits(100 * difference)} points"

"""What goes along with a difference in rank: the counters that tell two contestants apart beyond chance, in words.

The counters are compared as the metric is: within blocks, and corrected over all counters of all paragraphs of a
scenario, for they are one answer. What passes is associated with the result; its cause
it need not be (docs/adr/equal-work.md). Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from netdyno.analysis import answers, measured
from netdyno.analysis.findings import Difference, Standing, Why, Work
from netdyno.base import quantities
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.metrics import COUNTERS, METRICS, Metric
from netdyno.model.run import Run
from netdyno.present.prose.associations import SAYS
from netdyno.statistics import stats
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import Comparison, Samples

SHOWN_IN_SHORT = 2
"""Differences that the line in the terminal has room for; the report has all."""
CALLS_WORTH_TELLING = 0.05
"""Of one system call, per message: two traces of the same server differ by less."""
SMALL_RATIO = 0.5
SYSTEM = "cpu-system"
"""The CPU time in the kernel, which is told with the whole and not tested by itself."""

Figures = Mapping[str, Mapping[str, Samples]]
"""By counter and contestant."""


class _Pair(NamedTuple):
    """The lower in rank, the higher, and the comparison of their metrics, the first divided by the second."""

    worse: str
    better: str
    result: Comparison


class _Tested(NamedTuple):
    """One counter of one pair. `relative`: the effect is a ratio; else a difference, for some value is 0."""

    pair: _Pair
    counter: str
    relative: bool
    worse: float
    better: float
    comparison: Comparison


def whys(
    run: Run,
    scenario: Scenario,
    standings: Sequence[Standing],
    family: Sequence[Comparison],
    work: Sequence[Work] = (),
    level: float = stats.LEVEL,
) -> tuple[Why, ...]:
    """A paragraph for each contestant that is proven to differ from the first of its kind, then for each that is from
    the one right above it. `family` are the comparisons of the metric."""
    figures = _figures(run, scenario)
    pairs = _pairs(standings, family)
    raw = [one for pair in pairs for name in COUNTERS if (one := _test(pair, name, figures[name])) is not None]
    judged = stats.corrected([one.comparison for one in raw], level)
    tested = [one._replace(comparison=comparison) for one, comparison in zip(raw, judged, strict=True)]
    return tuple(_why(scenario, pair, [one for one in tested if one.pair == pair], figures, work) for pair in pairs)


# --- who is compared, and by what --------------------------------------------------------------------------------


def _pairs(standings: Sequence[Standing], family: Sequence[Comparison]) -> list[_Pair]:
    """Each once; those that are ranked apart among themselves."""
    found: dict[tuple[str, str], _Pair] = {}
    for kind in sorted({one.kind for one in standings}):
        names = [one.contestant for one in standings if one.kind == kind]
        to_first = [(name, names[0]) for name in names[1:]]
        for worse, better in [*to_first, *((lower, upper) for upper, lower in pairwise(names))]:
            one = answers.against(worse, better, family)
            if one is not None and one.different:
                found.setdefault((worse, better), _Pair(worse, better, one))
    return list(found.values())


def _figures(run: Run, scenario: Scenario) -> Figures:
    wanted = (*COUNTERS, SYSTEM)
    found: dict[str, dict[str, dict[stats.Cell, float]]] = {name: {} for name in wanted}
    for trial, load in measured.valid(run, scenario):
        for name in wanted:
            figure = METRICS[name].of(trial, load)
            if figure is not None:
                found[name].setdefault(trial.contestant, {})[trial.block, level_key(trial.levels)] = figure
    return found


def _test(pair: _Pair, name: str, figures: Mapping[str, Samples]) -> _Tested | None:
    """None where the counter was not read in any cell that both share, or counted nothing: it is no hypothesis then.
    Whether ratios or differences are tested does not depend on which of the two is which."""
    mine, theirs = figures.get(pair.worse, {}), figures.get(pair.better, {})
    shared = stats.counted(mine.keys() & theirs.keys())
    if not any(mine[cell] or theirs[cell] for cell in shared):
        return None
    relative = all(mine[cell] > 0 and theirs[cell] > 0 for cell in shared)
    pairs = stats.pairs_of(
        {cell: math.log(mine[cell] / theirs[cell]) if relative else mine[cell] - theirs[cell] for cell in shared}
    )
    comparison = stats.comparison(pair.worse, pair.better, pairs, ratios=relative, axis=name)
    worse, better = (_mean([values[cell] for cell in shared], relative) for values in (mine, theirs))
    return _Tested(pair, name, relative, worse, better, comparison)


def _mean(values: Sequence[float], relative: bool) -> float:
    """Geometric where the effect is a ratio, so that one mean divided by the other is just it."""
    return statistics.geometric_mean(values) if relative else statistics.fmean(values)


# --- in words ----------------------------------------------------------------------------------------------------


def _why(scenario: Scenario, pair: _Pair, tested: Sequence[_Tested], figures: Figures, work: Sequence[Work]) -> Why:
    passed = [one for one in tested if one.comparison.different]
    clauses = [_clause(one, figures) for one in passed]
    change = quantities.percent_change(pair.result.ratio)
    head = f"{pair.worse} against {pair.better} ({METRICS[scenario.metric].title} {change})"
    return Why(
        worse=pair.worse,
        better=pair.better,
        result=pair.result,
        differences=tuple(
            Difference(one.counter, one.worse, one.better, one.relative, one.comparison) for one in passed
        ),
        considered=tuple(one.counter for one in tested),
        text=f"{head}. {_beside(pair, tested, figures)}{_traced(pair, work)}".rstrip(),
        short=f"{head}{_told(clauses[:SHOWN_IN_SHORT], tested)}",
    )


def _told(clauses: Sequence[str], tested: Sequence[_Tested]) -> str:
    return f": it {'; it '.join(clauses)}." if clauses else f". {_nothing(tested)}"


def _beside(pair: _Pair, tested: Sequence[_Tested], figures: Figures) -> str:
    """What a table of the counters does not show: why it is empty, or whose the CPU time is."""
    passed = [one.counter for one in tested if one.comparison.different]
    if not passed:
        return _nothing(tested)
    return f"Of its CPU time {_in_kernel(pair, figures)}." if "cpu" in passed else ""


def _nothing(tested: Sequence[_Tested]) -> str:
    """Why no counter is named."""
    if not tested:
        return "Nothing was counted by which the two could be compared."
    if any(one.comparison.decidable for one in tested):
        return "Nothing that was counted explains it."
    blocks = max(one.comparison.blocks for one in tested)
    return (
        f"{quantities.plural(blocks, 'block')} {'is' if blocks == 1 else 'are'} too few to tell what was counted from "
        f"chance: it takes {FEWEST_BLOCKS}."
    )


def _clause(one: _Tested, figures: Figures) -> str:
    """What the one does more or less than the other, with the effect and its interval."""
    speak = METRICS[one.counter].speak
    says = SAYS[one.counter].format(speak(one.worse), speak(one.better))
    kernel = f"; of it {_in_kernel(one.pair, figures)}" if one.counter == "cpu" else ""
    return f"{says} ({_effect(one)}{kernel})"


def _effect(one: _Tested) -> str:
    interval = effect_interval(one.counter, one.comparison, relative=one.relative)
    change = effect(one.counter, one.comparison.ratio, relative=one.relative)
    return f"{change} [{interval}]" if interval else change


def effect(counter: str, value: float, *, relative: bool) -> str:
    """How far one is from the other in a counter: "+12%", "×2.4", or a difference with its unit. Below a half it is
    what is left, for "−100%" would be nothing at all."""
    if not relative:
        return _signed(value, METRICS[counter])
    return (
        quantities.percent_change(value)
        if value >= SMALL_RATIO
        else f"{quantities.TIMES}{quantities.three_digits(value)}"
    )


def effect_interval(counter: str, comparison: Comparison, *, relative: bool) -> str:
    """ "+8% to +15%"; nothing where there is none."""
    if comparison.interval is None:
        return ""
    low, high = (effect(counter, end, relative=relative) for end in (comparison.interval.low, comparison.interval.high))
    return f"{low} to {high}"


def _signed(value: float, counter: Metric) -> str:
    sign = "+" if value > 0 else quantities.MINUS if value < 0 else ""
    return f"{sign}{counter.speak(abs(value))}"


def _in_kernel(pair: _Pair, figures: Figures) -> str:
    """How much of the CPU time was the kernel's, over all trials of each."""

    def share(name: str) -> str:
        whole, kernel = (sum(figures[counter].get(name, {}).values()) for counter in ("cpu", SYSTEM))
        return quantities.share(kernel / whole) if whole else quantities.DASH

    return f"{share(pair.worse)} was in the kernel against {share(pair.better)}"


def _traced(pair: _Pair, work: Sequence[Work]) -> str:
    """What the traces of both say. They are one trial each, so nothing is tested."""
    traced = {one.contestant: one for one in work if one.calls}
    if pair.worse not in traced or pair.better not in traced:
        return ""
    mine, theirs = traced[pair.worse].calls, traced[pair.better].calls
    text = (
        f" Traced at {traced[pair.worse].label}, once each and so not tested: "
        f"{_against(sum(mine.values()), sum(theirs.values()), ' system calls a message')}"
    )
    apart = {name: mine.get(name, 0.0) - theirs.get(name, 0.0) for name in (*mine, *theirs)}
    most = max(apart, key=lambda name: abs(apart[name]))
    if abs(apart[most]) < CALLS_WORTH_TELLING:
        return f"{text}."
    return f"{text}; most of the difference is {most}, {_against(mine.get(most, 0.0), theirs.get(most, 0.0))}."


def _against(mine: float, theirs: float, unit: str = "") -> str:
    return f"{quantities.three_digits(mine)}{unit} against {quantities.three_digits(theirs)}"

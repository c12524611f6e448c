"""From a test to its comparisons, each of one selection of cells with another. Pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from netdyno.analysis.claims.evidence import Evidence, read_coordinates
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Bound, Cells, Flat, Order, Ratio, Test, ThresholdSide, Trend
from netdyno.model.metrics import METRICS
from netdyno.model.verdicts import ClaimComparison


def list_steps(test: Test, evidence: Evidence) -> tuple[ClaimComparison, ...]:
    """Return all comparisons of a test."""
    planned = _plan(test, evidence)
    return tuple(replace(step, needed=False) for step in planned) if test.only_refutes else planned


def _plan(test: Test, evidence: Evidence) -> tuple[ClaimComparison, ...]:
    """Return the comparisons of a test by its kind."""
    match test:
        case Ratio():
            step = ClaimComparison(
                test.metric,
                test.a,
                test.b,
                test.side,
                test.threshold,
                over=test.over,
                least_published=test.least_published,
            )
            return tuple(_split_by_cell(step, evidence)) if test.every else (step,)
        case Bound():
            step = ClaimComparison(test.metric, test.cells, None, test.side, test.threshold)
            return tuple(_split_by_cell(step, evidence)) if test.every else (step,)
        case Order():
            return tuple(_plan_order(test))
        case Trend():
            return tuple(_plan_trend(test, evidence))
        case Flat():
            return tuple(_plan_flat(test, evidence))


def narrow_cells(cells: Cells, name: str, value: type_level) -> Cells:
    """Return the part of a selection at one value of a coordinate."""
    return msgspec.structs.replace(cells, at=cells.at | {name: (value,)})


def find_unpaired(step: ClaimComparison, evidence: Evidence) -> set[str]:
    """Return the coordinates by which no two figures of a comparison are paired."""
    names = find_differing_coordinates(step.a, step.b, evidence)
    for cells, base in zip(step.cells, step.over or (), strict=False):
        names |= find_differing_coordinates(cells, base, evidence)
    return names


def find_differing_coordinates(first: Cells, second: Cells | None, evidence: Evidence) -> set[str]:
    """Return the coordinates by which two selections are not paired: those in which they differ, and those of one
    alone."""
    if second is None:
        return set()
    first_factors, second_factors = (set(evidence.parts[cells.scenario].scenario.factors) for cells in (first, second))
    unshared = first_factors ^ second_factors
    return unshared | {name for name in first.at.keys() | second.at.keys() if first.at.get(name) != second.at.get(name)}


def find_neutral(metric: str) -> float:
    """Return the threshold of "no difference"."""
    return 1.0 if METRICS[metric].scale == "ratio" else 0.0


def _plan_order(test: Order) -> Iterator[ClaimComparison]:
    side: ThresholdSide = "above" if test.direction == "rising" else "below"
    base, subtracts = test.over or test.minus, test.minus is not None
    threshold = 0.0 if subtracts else find_neutral(test.metric)
    for first, second in itertools.pairwise(test.groups):
        for low, high in itertools.product(first, second):
            upper, lower = narrow_cells(test.cells, test.along, high), narrow_cells(test.cells, test.along, low)
            over = None if base is None else (narrow_cells(base, test.along, high), narrow_cells(base, test.along, low))
            yield ClaimComparison(test.metric, upper, lower, side, threshold, over=over, subtracts=subtracts)


def _plan_trend(test: Trend, evidence: Evidence) -> Iterator[ClaimComparison]:
    """Compare the first level with the last, which is the claim; then level by level: none may go the other way."""
    side: ThresholdSide = "above" if test.direction == "rises" else "below"
    levels = list_levels(test.cells, test.along, evidence)
    if len(levels) < 2:
        return
    whole = ClaimComparison(test.metric, test.cells, test.cells, side, find_neutral(test.metric))
    ends = [(levels[0], levels[-1])]
    for first, last in ends + (list(itertools.pairwise(levels)) if len(levels) > 2 else []):
        later, earlier = narrow_cells(test.cells, test.along, last), narrow_cells(test.cells, test.along, first)
        yield replace(whole, a=later, b=earlier, needed=(first, last) == ends[0])


def _plan_flat(test: Flat, evidence: Evidence) -> Iterator[ClaimComparison]:
    """Compare every level with the first, in both directions."""
    first, *later = list_levels(test.cells, test.along, evidence) or ("",)
    most = test.within
    least = 1 / most if METRICS[test.metric].scale == "ratio" else -most
    for level in later:
        later_cells, first_cells = (
            narrow_cells(test.cells, test.along, level),
            narrow_cells(test.cells, test.along, first),
        )
        yield ClaimComparison(test.metric, later_cells, first_cells, "below", most)
        yield ClaimComparison(test.metric, later_cells, first_cells, "above", least)


def list_levels(cells: Cells, along: str, evidence: Evidence) -> tuple[type_level, ...]:
    """Return the levels of a coordinate in their order in the file."""
    scenario = evidence.parts[cells.scenario].scenario
    named = cells.at.get(along)
    if along not in scenario.factors or along == "client":
        return named or ()
    return tuple(level for level in scenario.factors[along] if named is None or level in named)


def _split_by_cell(step: ClaimComparison, evidence: Evidence) -> Iterator[ClaimComparison]:
    """Split a comparison into one for each cell, in the order of the levels; without any trial, return it as it is."""
    free = find_differing_coordinates(step.a, step.b, evidence)
    found_cells = dict.fromkeys(
        tuple((name, value) for name, value in read_coordinates(trial).items() if name not in free)
        for trial in evidence.trials(*step.cells)
    )
    for cell in sorted(found_cells, key=lambda cell: _rank_cell(step.a, cell, evidence)):
        first, second = step.a, step.b
        for name, value in cell:
            first, second = narrow_cells(first, name, value), second and narrow_cells(second, name, value)
        yield replace(step, a=first, b=second)
    if not found_cells:
        yield step


def _rank_cell(cells: Cells, cell: Sequence[tuple[str, type_level]], evidence: Evidence) -> tuple[tuple[int, str], ...]:
    """Return the place of a cell in the plan: by its level in each factor, contestants by name."""

    def place(name: str, value: type_level) -> tuple[int, str]:
        levels = () if name == CONTESTANT else list_levels(cells, name, evidence)
        return (levels.index(value) if value in levels else 0), str(value)

    return tuple(place(name, value) for name, value in cell)

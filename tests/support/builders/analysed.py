"""The findings and the report of a run that a builder keeps, computed once in each process for all tests."""

from __future__ import annotations

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.model.run import Run
from netdyno.present.export.collect import collect
from netdyno.present.export.entries import Export

_KEPT: dict[int, tuple[Run, Analysis]] = {}
_EXPORTED: dict[int, tuple[Run, Export]] = {}


def analysed(run: Run) -> Analysis:
    """Return what `analyse` finds in this object, which is kept with it: ask it of runs that are made once."""
    if id(run) not in _KEPT:
        _KEPT[id(run)] = run, analyse(run)
    return _KEPT[id(run)][1]


def findings_of(analysis: Analysis, name: str) -> ScenarioFindings:
    """Return the findings of the scenario of that name."""
    return next(findings for findings in analysis.scenarios if findings.scenario.name == name)


def exported(run: Run) -> Export:
    """Return the export of this run, kept as `analysed` does."""
    if id(run) not in _EXPORTED:
        _EXPORTED[id(run)] = run, collect(analysed(run))
    return _EXPORTED[id(run)][1]

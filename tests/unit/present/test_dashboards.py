"""The figures for services that draw them over commits, held against the schemas that these publish."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present.export import dashboards
from netdyno.present.export.entries import Export, FigureEntry
from tests.support.builders.analysed import exported
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_run import made_run, messages_run

RUNS = {"made": made_run, "messages": messages_run, "capacity": experiment_run}


class BencherMetric(msgspec.Struct, forbid_unknown_fields=True):
    """As the schema of the Bencher Metric Format has it, draft 07 of JSON Schema."""

    value: float
    lower_value: float | msgspec.UnsetType = msgspec.UNSET
    upper_value: float | msgspec.UnsetType = msgspec.UNSET


class GithubEntry(msgspec.Struct, forbid_unknown_fields=True):
    """As the page of github-action-benchmark has it, "Examples", "Custom benchmarks"."""

    name: str
    unit: str
    value: float
    range: str | msgspec.UnsetType = msgspec.UNSET
    extra: str | msgspec.UnsetType = msgspec.UNSET


def with_intervals(run: Run) -> Export:
    """Return the export of a run as if it had had blocks for intervals, open at the top."""
    export = exported(run)
    cells = [
        replace(
            cell,
            figures={
                name: FigureEntry(value=figure.value, low=figure.value / 2) for name, figure in cell.figures.items()
            },
        )
        for cell in export.cells
    ]
    return replace(export, cells=tuple(cells))


@pytest.mark.parametrize("name", RUNS)
def test_bencher_gets_each_figure_of_an_axis_with_its_interval(name: str) -> None:
    export = with_intervals(RUNS[name]())
    written = msgspec.json.decode(dashboards.format_bencher(export), type=dict[str, dict[str, BencherMetric]])
    question = export.findings.scenarios[0]
    metrics = {axis.metric for axis in question.axes}
    assert {measure for measures in written.values() for measure in measures} == {
        axis.metric for question in export.findings.scenarios for axis in question.axes
    }
    for cell in export.cells:
        level = f" ({cell.level})" if cell.level else ""
        for metric in metrics & cell.figures.keys() if cell.question == question.name else ():
            value = cell.figures[metric].value
            assert written[f"{cell.question}/{cell.contestant}{level}"][metric] == BencherMetric(value, value / 2)
    assert all(len(benchmark) <= 1024 for benchmark in written)


@pytest.mark.parametrize("name", RUNS)
def test_a_file_of_the_action_has_one_direction_and_both_have_all(name: str) -> None:
    export = exported(RUNS[name]())
    files = {
        "higher": msgspec.json.decode(dashboards.format_github(export, "higher"), type=list[GithubEntry]),
        "lower": msgspec.json.decode(dashboards.format_github(export, "lower"), type=list[GithubEntry]),
    }
    for better, entries in files.items():
        assert {METRICS[entry.name.rpartition(" ")[2]].better for entry in entries} <= {better}
    measures: dict[str, dict[str, Any]] = json.loads(dashboards.format_bencher(export))
    everything = {f"{benchmark} {measure}" for benchmark, figures in measures.items() for measure in figures}
    assert {entry.name for entries in files.values() for entry in entries} == everything
    assert files["higher"]

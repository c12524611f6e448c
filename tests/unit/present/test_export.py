"""An export is read back: it holds the findings and figures, in documented types. And the findings for programs."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.kit.escape import harmless
from netdyno.kit.paths import ROOT
from netdyno.model import outcomes
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present.export import entries, tables
from netdyno.present.export.collect import collect
from netdyno.present.export.entries import Export, Findings, Note, QuestionEntry
from netdyno.present.findings_json import make_document
from netdyno.present.plain import derive_type
from netdyno.present.prose.verdict import answer
from tests.support.builders.analysed import analysed, exported
from tests.support.builders.hostile_run import hostile
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_charts import charts_run
from tests.support.builders.made_run import late_run, made_run, messages_run, paired_run, unsafe_run
from tests.support.builders.stored import stored

pytestmark = pytest.mark.xdist_group("runs that are exported")  # they are analysed once for all
RUNS: dict[str, Callable[[], Run]] = {
    "made": made_run,
    "messages": messages_run,
    "pairs": paired_run,
    "capacity": experiment_run,
    "late": late_run,
    "charts": charts_run,
    "unsafe": unsafe_run,
}
NOT_OF_RUN = {"typed", "links", "blocks_planned", "windows_s", "significance", "requested", "pinning", "example"}
"""What was asked for, and how it was done; none of it was found."""
OTHER_NAMES = {"about": "contestants", "blocks_measured": "blocks"}
NOT_OF_QUESTION = {"scenario", "better", "comparisons", "cells", "flips"}
"""Its first fields, its axes, a part of the export, and a part of the findings."""
OF_CELL = {name for name, metric in METRICS.items() if metric.of_cells}
NOT_OF_CELL = {"contestant", "level", "trials", "values", "loss", "curve", "series"}
"""Its name, its figures, what trials say too, and two drawings, as protocol/export.md says."""
MADE_WITHOUT = (
    "receive-lag-p50",
    "receive-lag-p99",
    "receive-lag-max",
    "handshake",
    "throttled",
    "unanswered",
    "burst-goodput",
    "recovery",
    "connection-spread",
    "connection-memory",
    *("chunk-lag-p50", "chunk-lag-p99", "chunk-cpu"),
    *("ready", "first-answer", "ready-cpu", "ready-memory", "warm-up"),
)
"""The figures that made loads do not have."""
PAGE = (ROOT / "protocol" / "export.md").read_text()


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tables.format_csv(exported(run)), newline="")))


def first_question(run: Run) -> dict[str, Any]:
    question: dict[str, Any] = make_document(analysed(run))["questions"][0]
    return question


@pytest.mark.parametrize("name", RUNS)
def test_a_cell_has_the_levels_of_its_trials(name: str) -> None:
    export = exported(RUNS[name]())
    of_trials = {(trial.question, trial.level): trial.levels for trial in export.trials}
    assert export.cells
    assert all(cell.levels == of_trials[cell.question, cell.level] for cell in export.cells)


def test_the_query_of_the_page_gives_the_figures_of_the_report(tmp_path: Path) -> None:
    (query,) = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    run = made_run()
    with closing(sqlite3.connect(stored(run, tmp_path) / "run.sqlite")) as store:
        computed = {(question, name, levels): rate for question, name, levels, _, rate in store.execute(query)}
    reported = {}
    for cell in exported(run).cells:
        levels = json.dumps(cell.levels, separators=(",", ":"))
        reported[cell.question, cell.contestant, levels] = cell.figures["throughput"].value
    assert computed == pytest.approx(reported)


@pytest.mark.parametrize("name", RUNS)
def test_it_is_read_back_as_it_was(name: str) -> None:
    text = tables.format_json(exported(RUNS[name]()))
    read_back = msgspec.json.decode(text, type=derive_type(Export))
    strict = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert json.loads(msgspec.json.encode(read_back)) == strict


def test_it_has_the_findings_and_every_trial() -> None:
    run = made_run()
    analysis, export = analysed(run), exported(run)
    assert json.loads(tables.format_json(export))["findings"] == make_document(analysis)
    judged = outcomes.judge_run(run).all_trials
    assert [
        (exported_trial.block, exported_trial.position, exported_trial.attempt, exported_trial.status)
        for exported_trial in export.trials
    ] == [(trial.block, trial.position, trial.attempt, trial.status) for trial in judged]
    assert any(exported_trial.status != "valid" and exported_trial.reason for exported_trial in export.trials)
    for exported_trial, trial in zip(export.trials, judged, strict=True):
        assert set(exported_trial.failed) == {audit.name for audit in trial.audits if not audit.passed}
        if trial.load is not None:
            assert exported_trial.figures["throughput"] == METRICS["throughput"].value(trial, trial.load)


def test_a_cell_has_the_figures_of_the_ranking_in_the_units_of_their_metrics() -> None:
    run = made_run()
    export = exported(run)
    cells = {(cell.question, cell.contestant, cell.level): cell for cell in export.cells}
    compared = 0
    for question in export.findings.scenarios:
        for axis in question.axes:
            assert export.metrics[axis.metric].unit == axis.unit
            for score in axis.scores:
                if score.value is not None:
                    cell = cells[question.name, score.contestant, question.figures_at or ""]
                    figure = cell.figures[axis.metric]
                    assert (figure.value, cell.trials) == (score.value, score.trials)
                    ends = (None, None) if score.interval is None else (score.interval.low, score.interval.high)
                    assert (figure.low, figure.high) == ends
                    compared += 1
    assert compared > 20


def test_nothing_that_was_found_is_left_out_but_what_is_named_here() -> None:
    written = set(Findings.__struct_fields__) | set(Export.__struct_fields__)
    assert {OTHER_NAMES.get(name, name) for name in Analysis.__struct_fields__} - written == NOT_OF_RUN
    assert set(ScenarioFindings.__struct_fields__) - set(QuestionEntry.__struct_fields__) == NOT_OF_QUESTION
    assert set(CellFigures.__struct_fields__) == NOT_OF_CELL
    exports = {name: exported(make()) for name, make in RUNS.items()}
    cells = [cell for export in [*exports.values(), collect(with_all_cells())] for cell in export.cells]
    assert {name for cell in cells for name in cell.figures} == OF_CELL


def with_all_cells() -> Analysis:
    """Return an analysis with the figures that made loads do not have."""
    analysis = analysed(messages_run())
    first = analysis.scenarios[0]
    cells = tuple(
        replace(cell, values={**cell.values, **dict.fromkeys(MADE_WITHOUT, cell.values["throughput"])})
        for cell in first.cells
    )
    return replace(analysis, scenarios=(replace(first, cells=cells),))


def test_what_stands_behind_a_ranking_is_there_in_full() -> None:
    capacity = analysed(experiment_run()).scenarios[0].capacity
    assert capacity is not None
    written = first_question(experiment_run())["capacity"]
    assert [curve["knee_hz"] for curve in written["curves"]] == [curve.knee_hz for curve in capacity.curves]
    assert [len(curve["points"]) for curve in written["curves"]] == [len(curve.points) for curve in capacity.curves]
    assert written["curves"][0]["points"][0]["p99_ns"] == capacity.curves[0].points[0].p99_ns
    pairs = analysed(paired_run()).scenarios[0].pairs
    assert [(pair["contestant"], pair["client"], pair["figure"]) for pair in first_question(paired_run())["pairs"]] == [
        (pair.contestant, pair.client, pair.figure) for pair in pairs
    ]
    chart = analysed(charts_run()).charts[0]
    spots = make_document(analysed(charts_run()))["charts"][0]["panels"][0]["spots"]
    assert [spot["contestant"] for spot in spots] == [spot.contestant for spot in chart.panels[0].spots]
    work = first_question(made_run())["work"]
    assert [row["contestant"] for row in work] == [row.contestant for row in analysed(made_run()).scenarios[0].work]
    unsafe = first_question(unsafe_run())["unsafe"]
    assert [row["lost"] for row in unsafe] == [row.lost for row in analysed(unsafe_run()).scenarios[0].unsafe] != []


def test_a_capacity_beyond_the_rates_is_a_bound_for_programs_too() -> None:
    run = experiment_run(("strong", "fast", "weak"))
    ranking = [row for row in rows(run) if row["table"] == "ranking"]
    bounds = [("strong", "at least"), ("fast", ""), ("weak", "at most")]
    assert [(row["contestant"], row["status"]) for row in ranking] == bounds
    (axis,) = first_question(run)["axes"]
    assert [(score["contestant"], score["bound"] or "") for score in axis["scores"]] == bounds
    page = tables.format_markdown(exported(run))
    assert "| strong | ≥24.4k/s, rank 1 |" in page
    assert "| weak | ≤8.00k/s, rank 3 |" in page


def test_its_schema_is_that_of_its_types() -> None:
    text = tables.format_schema()
    document = json.loads(tables.format_json(exported(made_run())))
    assert set(json.loads(text)["$defs"]["Export"]["required"]) == set(document)
    assert "\\n  " not in text, "a description keeps the indentation of its docstring"


def test_the_page_names_every_part_every_table_and_every_column() -> None:
    named = set(re.findall(r"`([a-z]+)`", PAGE))
    assert set(Export.__struct_fields__) - {"version"} <= named
    assert set(tables.COLUMNS) <= named
    assert f"version {entries.VERSION}" in PAGE
    used = {row["table"] for name in RUNS for row in rows(RUNS[name]())}
    assert {"verdict", "ranking", "comparison", "cell", "trial", "note"} <= used <= named


@pytest.mark.parametrize("name", RUNS)
def test_the_table_holds_every_figure_once(name: str) -> None:
    run = RUNS[name]()
    export, table = exported(run), rows(run)
    assert all(tuple(row) == tables.COLUMNS for row in table)
    figures = [row for row in table if row["table"] == "trial" and row["metric"]]
    assert len(figures) == sum(len(trial.figures) for trial in export.trials)
    assert sum(float(row["value"]) for row in figures) == pytest.approx(
        sum(value for trial in export.trials for value in trial.figures.values())
    )
    cells = [row for row in table if row["table"] == "cell"]
    assert len(cells) == sum(len(cell.figures) for cell in export.cells)
    scores = [score for question in export.findings.scenarios for axis in question.axes for score in axis.scores]
    ranked = [row for row in table if row["table"] == "ranking"]
    assert [row["rank"] for row in ranked] == ["" if score.rank is None else str(score.rank) for score in scores]


def test_no_text_is_taken_for_a_formula_or_for_a_line_of_the_table() -> None:
    evil = '=1+1,"\n|<b>'
    run = hostile(made_run(), evil)
    csv_rows = list(csv.reader(io.StringIO(tables.format_csv(exported(run)), newline="")))
    assert {len(row) for row in csv_rows} == {len(tables.COLUMNS)}
    formulas = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1+1")
    notes = tuple(Note(kind="caveat", question=None, text=text) for text in formulas)
    with_notes = msgspec.structs.replace(exported(run), notes=notes)
    ends = [line.rpartition(",")[2] for line in tables.format_csv(with_notes).splitlines()[-len(formulas) :]]
    assert ends == [f" {harmless(text)}" for text in formulas]
    page = tables.format_markdown(exported(run))
    assert "<b>" not in page
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_the_page_of_markdown_says_what_the_table_says() -> None:
    run = made_run()
    page = tables.format_markdown(exported(run))
    for findings in analysed(run).scenarios:
        assert answer(findings).sentence in page
        for standing in findings.standings:
            assert standing.contestant in page
    assert "| throughput of | ratio | interval | different |" in page
    assert "## About the run" in page


# --- the findings alone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_findings_are_json_with_the_keys_of_their_types(name: str) -> None:
    text = json.dumps(make_document(analysed(RUNS[name]())), allow_nan=False)
    msgspec.json.decode(text, type=derive_type(Findings))


def test_the_schema_explains_every_object() -> None:
    _, definitions = msgspec.json.schema_components([derive_type(Findings)])
    assert [name for name, definition in definitions.items() if not definition.get("description")] == []


def test_findings_say_what_the_table_says() -> None:
    analysis = analysed(made_run())
    written = json.loads(json.dumps(make_document(analysis)))
    for findings, question in zip(analysis.scenarios, written["questions"], strict=True):
        assert question["sentence"] == answer(findings).sentence
        assert [standing["name"] for standing in question["contestants"]] == [
            standing.contestant for standing in findings.standings
        ]
        assert [axis["metric"] for axis in question["axes"]] == [axis.metric for axis in findings.axes]
        for axis, written_axis in zip(findings.axes, question["axes"], strict=True):
            assert [score["rank"] for score in written_axis["scores"]] == [score.rank for score in axis.scores]
    assert written["questions"][0]["axes"][0]["unit"] == "messages/s"


def test_the_keys_of_findings_are_those_of_version_1() -> None:
    """The fields have names of their own by now, which the other tests take from the types."""
    written = make_document(analysed(charts_run()))
    assert {"made_again", "set_aside"} < set(written)
    assert {"made_again", "struck_out"} < set(written["trials"])
    assert "set_aside" in written["charts"][0]["panels"][0]["spots"][0]

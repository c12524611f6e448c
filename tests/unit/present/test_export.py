"""An export is read back: it holds what was found and measured, in types that are documented."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.base.paths import ROOT
from netdyno.model import outcomes
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present import findings_json
from netdyno.present.export import schema, tables
from netdyno.present.export.collect import collect
from netdyno.present.export.schema import Export, Note
from netdyno.present.prose.verdict import answer
from tests.support.builders.hostile_run import hostile
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_run import late_run, made_run, messages_run, paired_run

RUNS: dict[str, Callable[[], Run]] = {
    "made": made_run,
    "messages": messages_run,
    "pairs": paired_run,
    "capacity": experiment_run,
    "late": late_run,
}
SCHEMA = ROOT / "protocol" / "export.schema.json"
PAGE = (ROOT / "protocol" / "export.md").read_text()


def exported(run: Run) -> Export:
    return collect(analyse(run))


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tables.as_csv(exported(run)), newline="")))


@pytest.mark.parametrize("name", RUNS)
def test_it_is_read_back_as_it_was(name: str) -> None:
    export = exported(RUNS[name]())
    text = msgspec.json.encode(export)
    assert msgspec.json.decode(text, type=Export) == export
    json.loads(text, parse_constant=lambda found: pytest.fail(f"{found} is no JSON"))


def test_it_has_the_findings_and_every_trial() -> None:
    run = made_run()
    analysis, export = analyse(run), exported(run)
    assert export.findings == findings_json.document(analysis)
    judged = outcomes.judged(run).all_trials
    assert [(one.block, one.position, one.attempt, one.status) for one in export.trials] == [
        (one.block, one.position, one.attempt, one.status) for one in judged
    ]
    assert any(one.status != "valid" and one.reason for one in export.trials)
    for one, trial in zip(export.trials, judged, strict=True):
        assert set(one.failed) == {audit.name for audit in trial.audits if not audit.passed}
        if trial.load is not None:
            assert one.figures["throughput"] == METRICS["throughput"].of(trial, trial.load)


def test_a_cell_has_the_figures_of_the_ranking_in_the_units_of_their_metrics() -> None:
    run = made_run()
    export = exported(run)
    cells = {(cell.question, cell.contestant, cell.level): cell for cell in export.cells}
    seen = 0
    for question in export.findings["questions"]:
        for axis in question["axes"]:
            assert export.metrics[axis["metric"]].unit == axis["unit"]
            for score in axis["scores"]:
                if score["value"] is not None:
                    cell = cells[question["name"], score["contestant"], question["figures_at"]]
                    figure = cell.figures[axis["metric"]]
                    assert (figure.value, cell.trials) == (score["value"], score["trials"])
                    assert [figure.low, figure.high] == (score["interval"] or [None, None])
                    seen += 1
    assert seen > 20


def test_a_capacity_beyond_the_rates_is_a_bound_for_programs_too() -> None:
    run = experiment_run(("strong", "fast", "weak"))
    found = [row for row in rows(run) if row["table"] == "ranking"]
    bounds = [("strong", "at least"), ("fast", ""), ("weak", "at most")]
    assert [(row["contestant"], row["status"]) for row in found] == bounds
    (axis,) = findings_json.document(analyse(run))["questions"][0]["axes"]  # type: ignore[index]
    assert [(one["contestant"], one["bound"] or "") for one in axis["scores"]] == bounds
    page = tables.as_markdown(exported(run))
    assert "| strong | ≥24.4k/s, rank 1 |" in page
    assert "| weak | ≤8.00k/s, rank 3 |" in page


def test_its_schema_is_that_of_its_types() -> None:
    """To write it anew: the text that this test wants."""
    wanted = json.dumps(msgspec.json.schema(Export), indent=1) + "\n"
    assert SCHEMA.read_text() == wanted


def test_the_page_names_every_part_every_table_and_every_column() -> None:
    named = set(re.findall(r"`([a-z]+)`", PAGE))
    assert set(Export.__struct_fields__) - {"version"} <= named
    assert set(tables.COLUMNS) <= named
    assert f"version {schema.VERSION}" in PAGE
    used = {row["table"] for name in RUNS for row in rows(RUNS[name]())}
    assert {"verdict", "ranking", "comparison", "cell", "trial", "note"} <= used <= named


@pytest.mark.parametrize("name", RUNS)
def test_the_table_holds_every_figure_once(name: str) -> None:
    run = RUNS[name]()
    export, found = exported(run), rows(run)
    assert all(tuple(row) == tables.COLUMNS for row in found)
    figures = [row for row in found if row["table"] == "trial" and row["metric"]]
    assert len(figures) == sum(len(one.figures) for one in export.trials)
    assert sum(float(row["value"]) for row in figures) == pytest.approx(
        sum(value for one in export.trials for value in one.figures.values())
    )
    cells = [row for row in found if row["table"] == "cell"]
    assert len(cells) == sum(len(one.figures) for one in export.cells)
    scores = [score for one in export.findings["questions"] for axis in one["axes"] for score in axis["scores"]]
    ranked = [row for row in found if row["table"] == "ranking"]
    assert [row["rank"] for row in ranked] == ["" if one["rank"] is None else str(one["rank"]) for one in scores]


def test_no_text_is_taken_for_a_formula_or_for_a_line_of_the_table() -> None:
    evil = '=1+1,"\n|<b>'
    run = hostile(made_run(), evil)
    found = list(csv.reader(io.StringIO(tables.as_csv(exported(run)), newline="")))
    assert {len(row) for row in found} == {len(tables.COLUMNS)}
    formulas = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1+1")
    notes = tuple(Note(kind="caveat", question=None, text=text) for text in formulas)
    with_notes = msgspec.structs.replace(exported(run), notes=notes)
    ends = [line.rpartition(",")[2] for line in tables.as_csv(with_notes).splitlines()[-len(formulas) :]]
    assert ends == [f" {text}" for text in formulas]
    page = tables.as_markdown(exported(run))
    assert "<b>" not in page
    for block in page.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_the_page_of_markdown_says_what_the_table_says() -> None:
    run = made_run()
    page = tables.as_markdown(exported(run))
    for one in analyse(run).scenarios:
        assert answer(one).sentence in page
        for standing in one.standings:
            assert standing.contestant in page
    assert "| throughput of | ratio | interval | different |" in page
    assert "## About the run" in page

"""Figures that were measured beside a neighbour are marked everywhere."""

from __future__ import annotations

import io
from functools import cache

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.notices import Company
from netdyno.analysis.found.run import Analysis
from netdyno.measure.audits.neighbour import make_quota
from netdyno.model.observation import Neighbour, ProgramShare
from netdyno.present import findings_json, gate
from netdyno.present.export import tables
from netdyno.present.export.collect import collect
from netdyno.present.prose import caveats, company, verdict
from netdyno.present.prose.gate import list_notes
from netdyno.present.report import scoreboard
from netdyno.present.terminal.console import Console
from netdyno.present.terminal.table import render
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run
from tests.unit.present.test_gate import FOUND

NEIGHBOUR = Neighbour(
    cores=2,
    foreign_cores=1.8,
    steal_cores=0.0,
    most_cores=1.9,
    programs=(ProgramShare(name="<b>clang++", cores=1.8),),
)
LABEL = "beside 1.8 cores of <b>clang++"


@cache
def analyse_beside(from_block: int = 1) -> Analysis:
    """Return the analysis of the made run, with the neighbour from this block on."""
    run = made_run()
    trials = (
        msgspec.structs.replace(trial, neighbour=NEIGHBOUR if trial.block >= from_block else None)
        for trial in run.trials
    )
    return analyse(msgspec.structs.replace(run, trials=tuple(trials)))


def test_the_terminal_has_it_at_each_answer_and_behind_each_figure() -> None:
    stream = io.StringIO()
    Console(file=stream, width=80).print(render(analyse_beside()))
    text = " ".join(stream.getvalue().split())
    assert text.count(f"{company.MARK} Measured {LABEL}") == len(analyse_beside().scenarios)
    assert "k/s†" in text
    plain = io.StringIO()
    Console(file=plain, width=80).print(render(analysed(made_run())))
    assert company.MARK not in plain.getvalue()


def test_it_says_how_many_of_the_trials_where_it_came_later() -> None:
    (echo,) = (findings for findings in analyse_beside(from_block=4).scenarios if findings.scenario.name == "echo")
    assert echo.company is not None
    assert 0 < echo.company.trials < echo.company.total
    (sentence,) = company.list_caveats(echo.company)
    assert f"({echo.company.trials} of {echo.company.total} trials)" in sentence


def test_under_a_quota_one_that_used_more_was_stopped_for_longer() -> None:
    (sentence,) = company.list_caveats(Company(4, 4, (make_quota(0.5, cores=2),)))
    assert "beside 0.5 cores that a CPU quota withheld (4 trials)" in sentence
    assert "A contestant that used more CPU was stopped for longer." in sentence


def test_an_answer_says_beside_what_it_holds() -> None:
    """Beside a compiler another server was best in p99 than at rest, minutes apart: both proven."""
    for findings in analyse_beside().scenarios:
        assert f", {LABEL})" in verdict.answer(findings).sentence
    assert "may differ on an idle machine." in company.list_caveats(analyse_beside().scenarios[0].company)[0]


def test_cards_and_rankings_of_the_report_have_it() -> None:
    board = scoreboard.make_view(analyse_beside().scenarios[0])
    assert board is not None
    assert LABEL not in board.note, "the answer and its caveats say it"
    figures = [cell.figure for group in board.groups for row in group.rows for cell in row.cells]
    assert figures
    assert all(figure.endswith(company.MARK) for figure in figures)
    assert company.list_caveats(analyse_beside().scenarios[0].company)[0] in caveats.list_caveats(
        analyse_beside().scenarios[0]
    )


def test_programs_read_it() -> None:
    document = findings_json.make_document(analyse_beside())
    questions = document["questions"]
    assert isinstance(questions, list)
    assert {question["company"]["label"] for question in questions} == {LABEL}
    assert questions[0]["company"]["neighbours"][0]["programs"] == [{"name": "<b>clang++", "cores": 1.8}]
    alone = findings_json.make_document(analysed(made_run()))["questions"]
    assert isinstance(alone, list)
    assert {question["company"] for question in alone} == {None}
    assert f"k/s{company.MARK}" in tables.format_markdown(collect(analyse_beside()))


@pytest.mark.parametrize(
    "written",
    [
        lambda notes: gate.format_text(FOUND, notes),
        lambda notes: gate.format_markdown(FOUND, "1", notes),
        lambda notes: gate.format_junit(FOUND, "1", notes),
    ],
)
def test_a_gate_has_it(written: object) -> None:
    assert callable(written)
    assert "beside 1.8 cores of" in written(
        list_notes(msgspec.structs.replace(FOUND, faults=()), analyse_beside().scenarios)
    )
    assert "beside" not in written(())

"""A flip that an experiment asks for: the same answer in terminal, report, findings and tables, and no ranking over
levels that were chosen."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.model.experiment import Flip
from netdyno.present.export import tables
from netdyno.present.export.collect import collect
from netdyno.present.export.entries import Findings
from netdyno.present.findings_json import make_document
from netdyno.present.plain import derive_type
from netdyno.present.prose import flips as prose
from netdyno.present.report import flips
from tests.support.builders.made_run import EPOLL, LOCK
from tests.support.printed import print_table
from tests.support.undrawn import page_without_panels
from tests.unit.analysis.test_flips import crossing_run

FLIP = Flip(
    scenario="echo",
    first=LOCK,
    second=EPOLL,
    members={LOCK: (LOCK,), EPOLL: (EPOLL,)},
    along="connections",
    low=10,
    high=1000,
    metric="throughput",
    within=1.5,
)


def analysis(root: float = 40.0) -> Analysis:
    run = crossing_run(root)
    trials = (*run.trials, *(replace(trial, block=trial.block + 6) for trial in run.trials))
    return analyse(
        replace(run, trials=trials, experiment=replace(run.experiment, flips=(FLIP,), claims=(), figures=()))
    )


@pytest.fixture(scope="module")
def crossing_analysis() -> Analysis:
    return analysis()


def test_the_interval_is_the_bracket_of_the_levels_that_tell(crossing_analysis: Analysis) -> None:
    (flip,) = crossing_analysis.flips
    place = prose.format_place(flip, flip.flips.crossings[0].place)
    assert prose.describe_flip(flip) == (
        f"Throughput: the winner changes from {LOCK} to {EPOLL} between 10 and 100 connections (95% interval), "
        f"at about {place}; the interval is wider than the requested ratio of 1.5, because the run ended before"
    )


def test_the_terminal_says_it_and_ranks_none(crossing_analysis: Analysis) -> None:
    text = print_table(crossing_analysis, 200)
    assert "echo  The winner changes" in text
    assert f"{prose.describe_flip(crossing_analysis.flips[0])}." in " ".join(text.split())
    assert "ranks over" not in text
    assert {standing.rank for standing in crossing_analysis.scenarios[0].standings} == {None}


def test_the_report_draws_it_with_its_interval_as_a_band(crossing_analysis: Analysis) -> None:
    page = page_without_panels(crossing_analysis)
    (section,) = re.findall(r'<section id="flip1".*?</section>', page, re.DOTALL)
    assert f"{prose.describe_flip(crossing_analysis.flips[0])}." in section
    assert f"↑ {LOCK} is better" in section
    assert "opacity: 0.2" in section  # the band
    assert section.count("<tr>") == 1 + len(crossing_analysis.flips[0].flips.points)
    assert 'aria-label="Ranking of echo"' not in page
    assert '<article class="card' not in page


def test_without_a_crossing_there_is_no_band() -> None:
    page = page_without_panels(analysis(root=2.0))
    (section,) = re.findall(r'<section id="flip1".*?</section>', page, re.DOTALL)
    assert "opacity: 0.2" not in section
    assert "Undecided" in section


def test_a_level_without_a_valid_trial_is_reported() -> None:
    run = crossing_run(40.0)
    trials = tuple(trial for trial in run.trials if trial.levels["connections"] != 1000 or trial.contestant != LOCK)
    partial = analyse(replace(run, trials=trials, experiment=replace(run.experiment, flips=(FLIP,), claims=())))
    assert prose.describe_flip(partial.flips[0]).endswith("; at 1,000 no block has a valid trial of both")
    assert 'id="flip1"' in page_without_panels(partial)


@pytest.mark.parametrize(("reach", "ticks"), [(0.07, 4), (0.6, 4), (1.5, 4), (6.0, 2), (30.0, 4), (300.0, 3)])
def test_however_much_better_one_is_ticks_are_few(reach: float, ticks: int) -> None:
    assert len(flips._list_ticks(reach)) == ticks


def test_programs_read_the_same(crossing_analysis: Analysis) -> None:
    written = json.loads(json.dumps(make_document(crossing_analysis), allow_nan=False))
    msgspec.convert(written, derive_type(Findings))
    (flip,) = written["flips"]
    assert (flip["verdict"], flip["first"], flip["asked_within"], flip["narrow"]) == ("flip", LOCK, 1.5, False)
    (crossing,) = flip["crossings"]
    assert (crossing["below"], crossing["above"], crossing["interval"]) == (LOCK, EPOLL, [10, 100])
    assert [level["better"] for level in flip["levels"]] == [LOCK, EPOLL, EPOLL]
    assert written["questions"][0]["verdict"] == "flip"
    assert written["questions"][0]["sentence"] == f"{flip['sentence']}."


def test_a_table_has_a_row_for_the_crossing_and_one_for_each_level(crossing_analysis: Analysis) -> None:
    rows = [row for row in tables.list_rows(collect(crossing_analysis)) if str(row["table"]).startswith("flip")]
    assert [row["table"] for row in rows] == ["flip", "flip level", "flip level", "flip level"]
    assert (rows[0]["low"], rows[0]["high"], rows[0]["status"]) == (10, 100, "flip")
    assert rows[1]["level"] == "connections=10"


def test_a_run_that_was_stored_before_there_were_flips_has_none() -> None:
    stored = msgspec.to_builtins(crossing_run(40.0).experiment)
    del stored["flips"]
    assert msgspec.convert(stored, type(crossing_run(40.0).experiment)).flips == ()

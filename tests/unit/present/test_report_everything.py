"""The table of every figure in a report, and how large a page of many trials is."""

from __future__ import annotations

import html
import json
import re

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.model.run import Run
from netdyno.present import report
from netdyno.present.prose.verdict import WHAT_HOLDS
from netdyno.present.report import everything
from netdyno.present.report.everything import Source
from tests.support.builders.analysed import analysed, exported
from tests.support.builders.made_run import EPOLL, made_run, with_only
from tests.support.undrawn import page_without_panels

MANY = 3_000
MOST_OF_PANELS = 150_000
"""Bytes of the figures of a scenario."""


def again(run: Run, trials: int) -> Run:
    """Return a run that repeats its blocks until it has this many trials."""
    blocks = max(trial.block for trial in run.trials)
    times = -(-trials // len(run.trials))
    return replace(
        run,
        trials=tuple(
            replace(trial, block=trial.block + time * blocks) for time in range(times) for trial in run.trials
        ),
    )


@pytest.fixture(scope="module")
def long() -> Analysis:
    """The findings of a single scenario, with more trials than its page has room for."""
    return analyse(again(with_only(made_run(), "echo"), 1_200))


@pytest.fixture(scope="module")
def least(long: Analysis) -> int:
    """The bytes of the page without anything that may be left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "MOST_OF_PAGE", 0)
        return len(page_without_panels(long).encode())


def test_a_report_of_three_thousand_trials_is_a_file_below_four_megabytes_and_has_each() -> None:
    """The figures of its scenarios may take four times the limit of one; their own test is below."""
    large = replace(analysed(made_run()), trials=again(made_run(), MANY).trials)
    assert len(large.trials) >= MANY
    page = page_without_panels(large)
    assert len(page.encode()) + 4 * MOST_OF_PANELS < 4 * 2**20
    script = re.search(r'<script id="all-figures" type="application/json">(.*?)</script>', page)
    assert script is not None
    assert len(json.loads(script[1])["sheets"]["trials"]["rows"]) == len(large.trials)


def test_the_figures_of_many_blocks_stay_small(long: Analysis) -> None:
    assert len(report.render_html(long)) - len(page_without_panels(long)) < MOST_OF_PANELS


def test_how_to_read_the_statistics_stands_once_after_all_answers() -> None:
    page = html.unescape(page_without_panels(analysed(made_run())))
    for text in (WHAT_HOLDS, "plus the number of contestants proven better", "hold together with 95%"):
        assert page.count(text) == 1, text
        assert page.index(text) > page.index('id="reading"'), text


def test_a_report_of_one_contestant_has_no_empty_sentence() -> None:
    run = with_only(made_run(), "echo", "rpc-open", "chat")
    alone = replace(run, trials=tuple(trial for trial in run.trials if trial.contestant == EPOLL))
    captions = re.findall("<caption>(.*?)</caption>", page_without_panels(analyse(alone)))
    assert "Median response time." in captions
    assert not any(caption.startswith("Against the first") for caption in captions)
    assert [caption for caption in captions if re.search(r"\.\s*\.", caption)] == []


def test_what_was_not_measured_is_left_out_and_the_run_stands_there_where_there_are_several() -> None:
    export = exported(made_run())
    single = everything.make_sheets([Source("a", export, {"echo": "echo"}, {("echo", "connections=10"): "ten"})])
    assert single["trials"].columns[:4] == ("question", "workload", "contestant", "level")
    assert single["trials"].rows[0][:2] == (export.trials[0].question, "echo")
    failed = next(number for number, trial in enumerate(export.trials) if not trial.figures)
    assert set(single["trials"].rows[failed][8:]) == {None}
    assert any(row[3] == "ten" for row in single["blocks"].rows)
    both = everything.make_sheets([Source("a", export, {}, {}), Source("b", export, {}, {})])
    assert both["trials"].columns[0] == "run"
    assert [row[0] for row in both["blocks"].rows] == ["a"] * len(export.cells) + ["b"] * len(export.cells)


@pytest.mark.parametrize("room", [250_000, 0])
def test_what_has_no_room_is_left_out_and_the_page_says_so(
    room: int, long: Analysis, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trials get the room that a page's other content leaves."""
    monkeypatch.setattr(report, "MOST_OF_PAGE", most := least + room)
    page = page_without_panels(long)
    assert most - 10_000 < len(page.encode()) <= most
    assert "\0" not in page
    script = re.search(r'<script id="all-figures" type="application/json">(.*?)</script>', page)
    assert script is not None
    sheet = json.loads(script[1])["sheets"]["trials"]
    assert (len(sheet["rows"]) > 0) == (room > 0)
    extent = f"(the first {len(sheet['rows'])} of {len(long.trials)}; report --export csv has all)"
    assert sheet["title"] == f"each trial {extent}"

"""What is printed and drawn of the machine over a run."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.canary import MachineOverTime
from netdyno.analysis.notices import canary
from netdyno.model.run import Run
from netdyno.present.prose.canary import describe_drift, summarise_drift
from netdyno.present.report import machine
from tests.support.builders.analysed import analysed
from tests.support.builders.made_canary import drifting_run, judge_canary, of_speeds, run_of, trial
from tests.support.builders.made_run import made_run, with_only
from tests.support.printed import print_in_one_line
from tests.support.undrawn import page_without_panels

LARGEST = 40_000
"""Characters of the section, in a page that may have two million."""


def read_canary(run: Run) -> MachineOverTime:
    over_time = canary.summarise_run(run)
    assert over_time is not None
    return over_time


def of_blocks(*speeds: list[float]) -> MachineOverTime:
    return read_canary(run_of(judge_canary(of_speeds(speeds))))


# --- what is found -----------------------------------------------------------------------------------------------


def test_a_run_without_a_canary_says_nothing() -> None:
    analysis = analysed(made_run())
    assert analysis.canary is None
    assert summarise_drift(None) == ""
    assert 'id="machine"' not in page_without_panels(analysed(made_run()))


def test_the_range_is_that_of_all_readings_and_the_drift_that_of_the_blocks() -> None:
    over_time = of_blocks([1.0] * 6, [0.5, 0.5, 0.5, 0.5, 0.5, 0.2], [0.8] * 6)
    first = over_time.ranges[0]
    assert first.name == "round trips"
    assert (first.least, first.most) == (20_000 * 0.2, 20_000 * 1.0)
    assert first.drift == pytest.approx(2.0)  # 1 against 0.5: one slow trial is no block
    assert over_time.drift.drift == pytest.approx(2.0)


def test_a_trial_stands_at_its_time_with_the_mean_of_its_readings() -> None:
    over_time = read_canary(
        run_of(judge_canary([trial(1, 0, 1.0, 0.81), *(trial(1, number) for number in range(1, 6))]))
    )
    assert over_time.trials[0].speeds == pytest.approx((20_000 * 0.9, 900e6 * 0.9, 900e6 * 0.9))
    times = [point.at_s for point in of_blocks([1.0] * 3, [1.0] * 3).trials]
    assert times == pytest.approx([0, 2.7, 5.4, 8.1, 10.8, 13.5])


def test_what_was_invalid_and_what_could_not_be_judged_is_counted() -> None:
    judged = judge_canary(of_speeds([[1.0] * 3 + [0.4] + [1.0] * 3]))
    cut_short = of_speeds([[1.0] * 2])
    over_time = read_canary(run_of([*judged, *(replace(attempt, block=2) for attempt in cut_short)]))
    assert (over_time.invalid, over_time.unjudged, over_time.unread) == (2, 2, 0)
    printed = " ".join(describe_drift(over_time))
    assert (
        "2 trials were retried, because the machine was faster or slower there than in the rest of the block."
        in printed
    )
    assert "2 trials of an unfinished block could not be judged." in printed


def test_one_that_could_not_be_read_is_not_called_another_machine() -> None:
    trials = [trial(1, number) for number in range(6)]
    readings = trials[3].canary
    assert readings is not None
    trials[3] = replace(trials[3], canary=replace(readings, after=None, unread="no such file"))
    over_time = read_canary(run_of(judge_canary(trials)))
    assert (over_time.invalid, over_time.unread) == (0, 1)
    assert "The canary could not be read in 1 trial." in describe_drift(over_time)


# --- what is printed ---------------------------------------------------------------------------------------------


def test_a_machine_that_drifted_is_stated_in_one_line() -> None:
    assert summarise_drift(of_blocks([1.0] * 6, [0.5] * 6)) == (
        "The machine drifted: by the canary (round trips), the fastest block was 2.00 times as fast as the "
        "slowest, from 10.0k/s to 20.0k/s over the run. 1 trial was retried, because the machine was faster or "
        "slower there than in the rest of the block."
    )
    assert summarise_drift(of_blocks([1.0] * 6, [0.9] * 6)) == ""
    assert summarise_drift(of_blocks([1.0] * 6, [0.9] * 3 + [0.3] + [0.9] * 3)) == (
        "2 trials were retried, because the machine was faster or slower there than in the rest of the block."
    )


def test_the_table_has_that_line() -> None:
    text = print_in_one_line(analyse(drifting_run()))
    assert "The machine drifted: by the canary (round trips), the fastest block was 2.00 times as fast" in text


def test_the_report_states_range_drift_and_what_was_invalid() -> None:
    printed = describe_drift(of_blocks([1.0] * 6, [0.8] * 6))
    assert printed[0] == (
        "Over the run: round trips 16.0k/s to 20.0k/s, median 16.0k/s; server's core 720M/s to 900M/s, median 720M/s; "
        "generator's core 720M/s to 900M/s, median 720M/s."
    )
    assert printed[1].startswith("From block to block the machine drifted by a factor of 1.25 (round trips:")
    assert printed[2] == "No trial was further than a factor of 1.5 from the median of its block."


def test_where_it_was_only_counted_the_report_says_so() -> None:
    judged = judge_canary(of_speeds([[1.0] * 3 + [0.4] + [1.0] * 3]), "count")
    over_time = read_canary(replace(run_of(judged), environment={"foreign_load": "count"}))
    printed = describe_drift(over_time)
    assert (
        "The distance of each trial from its block was only counted, as requested: no trial is invalid for it."
        in printed
    )
    assert not any("further than" in text for text in printed)


# --- what is drawn -----------------------------------------------------------------------------------------------


def section(run: Run) -> str:
    page = page_without_panels(analyse(run))
    match = re.search(r'<section id="machine".*?</section>', page, re.DOTALL)
    assert match is not None
    return match[0]


def test_the_section_has_a_panel_for_each_figure_and_the_same_in_words() -> None:
    text = section(with_only(drifting_run(), "echo"))
    for name in ("Round trips", "Server&#39;s core", "Generator&#39;s core"):
        assert f"<figcaption>{name}</figcaption>" in text
    assert text.count("<svg") == 3
    assert "The canary's round trips over the run, " in text
    assert "Crosses: invalid trials" in text
    rows = re.findall(r"<tr><th scope=\"row\">(\S+)</th>", text)
    assert [row for row in rows if row.isdigit()] == ["1", "2", "3", "4", "5", "6"]


def test_every_trial_of_a_short_run_is_a_point() -> None:
    over_time = of_blocks([1.0, 0.9, 1.1, 1.0, 1.0, 0.95])
    assert [point.median for point in machine.list_points(over_time, 0)] == [
        point.speeds[0] for point in over_time.trials
    ]


def test_a_long_run_keeps_its_extremes_and_what_was_invalid_and_stays_small() -> None:
    blocks = [[1.0 - 0.4 * (block / 500) + 0.01 * (trial % 5) for trial in range(10)] for block in range(500)]
    blocks[123][4] = 0.2
    blocks[321][7] = 2.6
    over_time = of_blocks(*blocks)
    assert len(over_time.trials) == 5000
    assert over_time.invalid == 4
    for number in range(3):
        drawn = machine.list_points(over_time, number)
        assert len(drawn) <= machine.MOST_POINTS
        assert min(point.least for point in drawn) == min(point.least[number] for point in over_time.trials)
        assert max(point.most for point in drawn) == max(point.most[number] for point in over_time.trials)
        assert 1 <= sum(point.invalid for point in drawn) <= 4
    view = machine.make_view(over_time)
    assert view is not None
    assert "A point is the median of 63 trials" in view.note
    assert "where one block in 25 begins" in view.note
    assert len(view.table.rows) <= machine.MOST_BLOCKS
    assert view.table.rows[0][:2] == ("1\u201325", "250")
    assert sum(int(row[-1]) for row in view.table.rows) == 4
    assert sum(int(row[1]) for row in view.table.rows) == 5000


def test_the_section_of_a_run_of_thousands_of_trials_stays_small() -> None:
    """The worst of them: no two trials are alike, and many are invalid."""
    blocks = [[1.0 + 0.3 * ((block * 7 + trial * 13) % 17) / 17 for trial in range(8)] for block in range(1000)]
    for block in range(0, 1000, 9):
        blocks[block][3] = 0.3 + 0.1 * (block % 3)
    text = section(run_of(judge_canary(of_speeds(blocks))))
    assert len(text) < LARGEST

"""What a server left running, and who else it served, stands in the table and in the report and excludes no trial."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.measure.audits.of_trial import left_behind, strangers
from netdyno.model.load_result import Audit
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import notices
from tests.support.builders.made_load import TOTALS, load
from tests.support.builders.made_run import EPOLL, echo_at_ten
from tests.support.printed import assert_in_table_and_report

LEFT = left_behind(["sleep"])
VISITED, _ = strangers(TOTALS | {"connections": TOTALS["connections"] + 2}, [load()], [])


def run_with(*audits: Audit) -> Run:
    """A run of `echo` at 10 connections in which one contestant has these failed notes in each trial."""

    def note(trial: Trial) -> Trial:
        return replace(trial, audits=(*trial.audits, *audits)) if trial.contestant == EPOLL else trial

    return echo_at_ten(note)


def test_it_is_reported_in_the_table_and_in_the_report() -> None:
    run = run_with(LEFT, VISITED)
    analysis = analyse(run)
    (findings,) = analysis.scenarios
    left, visited = notices.describe_noted(findings)
    trials = sum(trial.contestant == EPOLL and trial.status == "valid" for trial in run.trials)
    assert left == f"{EPOLL} left programs running in {trials} of {trials} trials: {LEFT.detail}."
    assert visited == f"{EPOLL} served other programs than netdyno in {trials} of {trials} trials: {VISITED.detail}."
    assert_in_table_and_report(analysis, left, visited)


def test_it_is_no_movement_within_a_window() -> None:
    (findings,) = analyse(run_with(LEFT, VISITED)).scenarios
    assert findings.unsteady == ()
    (undisturbed,) = analyse(run_with()).scenarios
    assert undisturbed.noted == ()

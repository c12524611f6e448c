"""A server that a CPU quota stopped is named with the share of the quota's periods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.observation import QuotaUse
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import notices
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.made_run import EPOLL, LOCK, made_run
from tests.support.undrawn import page_without_panels

PERIODS = {EPOLL: 1, LOCK: 4}


def limit(trial: Trial) -> Trial:
    """Return the trial with a quota of twenty periods, where its server has one here."""
    if trial.server is None or trial.contestant not in PERIODS:
        return trial
    use = QuotaUse(periods=20, throttled_periods=PERIODS[trial.contestant], throttled_s=0.1)
    return replace(trial, server=replace(trial.server, quota_use=use))


def made_limited() -> Run:
    run = made_run()
    return replace(run, trials=tuple(limit(trial) for trial in run.trials))


def test_each_server_is_named_with_its_share() -> None:
    findings = analyse(made_limited()).scenarios[0]
    first, *_ = notices.describe_throttling(findings)
    assert f"{EPOLL} in 5%" in first
    assert f"{LOCK} in 20%" in first
    assert first.startswith("The CPU quota stopped ")
    assert first.endswith(f" of its periods of 100 ms ({findings.levels[0].label}).")
    assert first in list_caveats(findings)


def test_a_quota_that_stopped_none_is_not_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PERIODS, EPOLL, 0)
    monkeypatch.setitem(PERIODS, LOCK, 0)
    assert not any(map(notices.describe_throttling, analyse(made_limited()).scenarios))


def test_without_a_quota_there_is_no_sentence() -> None:
    assert not any(map(notices.describe_throttling, analyse(made_run()).scenarios))


def test_the_report_has_a_column_of_it_where_there_was_a_quota() -> None:
    assert ["throttled" in page_without_panels(analyse(run)) for run in (made_limited(), made_run())] == [True, False]

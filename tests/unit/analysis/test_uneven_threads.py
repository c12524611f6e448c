"""Only a trial in which one thread had much more than its share of the connections is reported."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.run import Run
from netdyno.model.trial import Trial, Warmup
from netdyno.present.prose import notices
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.made_run import EPOLL, echo_at_ten
from tests.support.printed import assert_in_table_and_report

CHECKED = 1
"""A connection of the closing check, which the server counts as well."""


def run_with(*shares: tuple[int, ...]) -> Run:
    """A run of `echo` at 10 connections in which the threads of one contestant got such shares, from block 1 on."""

    def share_out(trial: Trial) -> Trial:
        if trial.contestant != EPOLL or trial.server is None or trial.block > len(shares):
            return trial
        return replace(trial, server=replace(trial.server, connections_per_thread=shares[trial.block - 1]))

    return echo_at_ten(share_out)


def sentences(run: Run) -> tuple[str, ...]:
    (findings,) = analyse(run).scenarios
    printed = notices.describe_uneven_threads(findings)
    assert set(printed) <= set(list_caveats(findings))
    return printed


def test_it_is_reported_with_the_worst_trial_in_the_table_and_in_the_report() -> None:
    run = run_with((9, 2), (6, 5), (8, 3), (5, 6))
    (text,) = sentences(run)
    assert text.startswith(
        f"In 1 of 4 trials one thread of {EPOLL} had more than 1.5 times its even share of the connections (at "
        f"worst 8 of 10 on 2 threads, at 10 connections). "
    )
    assert_in_table_and_report(analyse(run), text)


@pytest.mark.parametrize(
    ("why", "shares"),
    [
        ("nobody told", ()),
        ("one thread has all there are", (10 + CHECKED,)),
        ("one of the busiest thread's may be the closing check's", (8, 2 + CHECKED)),
        ("7 of 10 are within one and a half times the share", (7 + CHECKED, 3)),
        ("10 on 7 threads cannot be spread more evenly than two on one", (3 + CHECKED, 2, 1, 1, 1, 1, 1)),
    ],
)
def test_it_is_silent_where(why: str, shares: tuple[int, ...]) -> None:
    assert sentences(run_with(shares, shares)) == (), why


def test_it_is_silent_where_others_had_connected_before_the_load() -> None:
    run = run_with((9, 2), (9, 2))
    assert sentences(run)
    warmup = Warmup(seconds=2.0, measured_s=1.0, steady=True, closed=True)
    assert sentences(replace(run, trials=tuple(replace(trial, warmup=warmup) for trial in run.trials))) == ()

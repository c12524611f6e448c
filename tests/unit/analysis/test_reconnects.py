"""A contestant that closed connections after its replies is named, with how many replies each brought."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose import notices
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.made_run import EPOLL, echo_at_ten


def run_with(*closed: int) -> Run:
    """A run of `echo` in which a contestant closed so many connections, from block 1 on."""

    def close(trial: Trial) -> Trial:
        if trial.contestant != EPOLL or trial.load is None or trial.block > len(closed):
            return trial
        connections = replace(trial.load.connections, closed_after_reply=closed[trial.block - 1])
        messages = replace(trial.load.messages, received=1000)
        return replace(trial, load=replace(trial.load, connections=connections, messages=messages))

    return echo_at_ten(close)


def test_it_is_named_with_the_replies_of_a_connection() -> None:
    (findings,) = analyse(run_with(15, 0, 5, 20, 0, 0)).scenarios
    (text,) = notices.describe_reconnects(findings)
    assert text.startswith(f"{EPOLL} closed 40 connections after a reply, one in 150 replies, in 3 of 6 trials; ")
    assert text in list_caveats(findings)


def test_a_server_that_keeps_no_connection_is_named_as_such() -> None:
    (findings,) = analyse(run_with(*[1000] * 6)).scenarios
    (text,) = notices.describe_reconnects(findings)
    assert text.startswith(f"{EPOLL} closed each of 6000 connections after one reply, in 6 of 6 trials; ")


def test_nothing_is_stated_of_connections_that_stay() -> None:
    (findings,) = analyse(run_with(0, 0)).scenarios
    assert findings.reconnected == ()

"""The load programs of others keep what is left of the contract (protocol/client.md, "Load programs of others"). One
that is not installed is a stated skip; tests/programs/test_client_tcpkali.py has what can be tested without it."""

from __future__ import annotations

import pytest

from netdyno.measure.audits.plausible import accounts
from netdyno.model.contestant import Contestant
from tests.support.fake_server import bound
from tests.support.running_client import running
from tests.support.server import run, serving

LOAD = ("--workload", "echo", "-c", "10", "--connect-rate", "10", "--rate", "100/conn")
WINDOW = ("--warmup", "0", "--duration", "2s")


def test_its_figures_are_a_result(instrument: Contestant, server: Contestant) -> None:
    with serving(server.command, "--workload", "echo") as serves:
        url = f"tcp://{serves.address[0]}:{serves.address[1]}"
        with running(instrument.command, url, *LOAD, *WINDOW) as runs:
            done = runs.wait()
        totals = serves.stop()
    result = done.result
    assert (done.code, done.stderr, done.failed_audits) == (0, "", [])
    assert (result.instrument, result.client, result.errors) == (instrument.name, None, {})
    assert [event["event"] for event in runs.events] == ["connected", "window_start", "window_end"]
    assert totals["connections"] >= result.connections.established == 10  # and one more, to find its own address
    assert 0 < result.messages.received * 31 <= totals["bytes_out"]
    assert result.requests.completed == pytest.approx(2000, rel=0.2)  # its own word
    assert 0 < result.latency.response_ns.p50 < 2e9
    assert result.generator.cpu_user_s + result.generator.cpu_system_s > 0
    assert [bound.what for bound in accounts(result) if bound.broken] == []


def test_a_signal_ends_it_early_with_its_figures(instrument: Contestant, server: Contestant) -> None:
    with serving(server.command, "--workload", "echo") as serves:
        url = f"tcp://{serves.address[0]}:{serves.address[1]}"
        with running(instrument.command, url, *LOAD, "--warmup", "0", "--duration", "10m") as runs:
            runs.wait_event("window_start")
            done = runs.stop()
    assert (done.code, done.failed_audits) == (0, ["window"])
    assert done.result.plan.duration_s < 600


def test_where_nothing_listens_it_says_so_and_has_no_result(instrument: Contestant) -> None:
    with bound() as unanswered:
        done = run(instrument.command, unanswered.url, *LOAD, *WINDOW)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_what_it_cannot_do_is_refused(instrument: Contestant) -> None:
    url = "tcp://127.0.0.1:9"
    for wrong in (
        ("--workload", "rpc"),
        ("--size", "32"),
        ("--write-mode", "split"),
        ("--connect-rate", "burst"),
        ("--rate", "fast"),
        ("--depth", "2"),
        ("--duration", "1us"),
    ):
        done = run(instrument.command, url, *LOAD, *WINDOW, *wrong)
        assert (done.code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert wrong[0] in done.stderr or "--connect-rate" in done.stderr

"""The command line, the result and the end of a client, against a server that does what it should."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import discover
from tests.contract.clients.bad_values import BAD_URLS, BAD_VALUES, NOT_FOR_CLIENTS
from tests.contract.golden import wire
from tests.support.fake_server import AcceptedConnection, bound, fake_server, honest
from tests.support.patience import eventually
from tests.support.running_client import ENDLESS, ClientOutcome, RunningClient, running
from tests.support.server import expect_refused, run, serving

pytestmark = pytest.mark.quick

ANYWHERE = "tcp://127.0.0.1:9"
MistakeWords = TypeVar("MistakeWords")


def test_every_folder_is_a_client() -> None:
    folders = [entry for entry in (ROOT / "clients").iterdir() if entry.is_dir() and entry.name[0] not in "._"]
    assert {contestant.name for contestant in discover(kind="client")} == {folder.name for folder in folders}
    assert [folder.name for folder in folders if not (folder / "README.md").is_file()] == []


@pytest.mark.once_a_language
def test_a_bad_value_is_refused(client: Contestant) -> None:
    mistakes = [(option, value) for option, values in BAD_VALUES.items() for value in values]
    for option, value in started_for(client, mistakes):
        expect_refused(run(client.command, ANYWHERE, option, value), option.lstrip("-"))


@pytest.mark.once_a_language
def test_an_option_that_clients_do_not_have_is_refused(client: Contestant) -> None:
    for option in started_for(client, NOT_FOR_CLIENTS):
        expect_refused(run(client.command, ANYWHERE, option, "2"), option.lstrip("-"))


@pytest.mark.once_a_language
def test_a_bad_url_is_refused(client: Contestant) -> None:
    for url in started_for(client, BAD_URLS):
        expect_refused(run(client.command, url), "")


def started_for(client: Contestant, mistakes: Sequence[MistakeWords]) -> Sequence[MistakeWords]:
    """All of them for a program in C++. An interpreter starts for the last one: tests/unit/netdyno_client has the rest
    without a start."""
    return mistakes if client.manifest.kind == "cmake" else mistakes[-1:]


def test_without_a_url_it_is_refused(client: Contestant) -> None:
    expect_refused(run(client.command), "")


class Measured(NamedTuple):
    url: str
    runs: RunningClient
    done: ClientOutcome
    totals: dict[str, int]


def _measure(client: Contestant, server: Contestant) -> Measured:
    with serving(server.command, "--workload", "rpc") as serves:
        url = f"tcp://{serves.address[0]}:{serves.address[1]}"
        options = ("-c", "4", "--size", "64", "--warmup", "100ms", "--duration", "1100ms", "--seed", "7")
        with running(client.command, url, *options) as runs:
            done = runs.wait()
        return Measured(url, runs, done, serves.stop())


@pytest.mark.quiet
def test_a_run_is_measured_and_believed(client: Contestant, server: Contestant) -> None:
    # A client that stood without a core between an answer and its next request did not keep four under way, and its
    # audit says so. On a machine with several times more to do than it can, that is one run in a hundred.
    url, runs, done, totals = _measure(client, server)
    for _ in range(2):
        if done.failed_audits == ["little"]:
            url, runs, done, totals = _measure(client, server)
    result = done.result
    assert (done.code, done.stderr, done.failures, done.client.recovered) == (0, "", {}, 0)
    assert done.failed_audits == []
    assert {audit.name for audit in result.audits} >= {"verification", "bytes", "connections", "little", "window"}
    plan = result.plan
    assert (plan.url, plan.workload, plan.arrivals, plan.depth, plan.rate_hz) == (url, "rpc", "closed", 1, None)
    assert (plan.connections, plan.size, plan.threads, plan.seed, plan.timeout_s) == (4, 64, 1, 7, 5)
    assert (plan.warmup_s, plan.duration_s) == (0.1, 1.1)
    assert result.messages.sent == result.messages.expected == result.messages.received == totals["requests"]
    assert result.bytes.sent == totals["bytes_in"]
    assert result.bytes.received == result.bytes.expected == totals["bytes_out"]
    assert result.connections.attempted == result.connections.established == result.connect_ns.count == 4
    assert 0 < result.requests.completed <= result.messages.received
    assert result.requests.sent == result.latency.response_ns.count == result.latency.service_ns.count
    series = result.timeseries
    assert 1.1 <= series.interval_ns * len(series.completed) / 1e9 < 1.1 + series.interval_ns / 1e9
    assert sum(series.completed) == result.requests.completed
    assert result.generator.cpu_user_s + result.generator.cpu_system_s > 0
    assert result.generator.max_rss_bytes > 1 << 20
    assert len(result.generator.threads) == 1
    assert [event["event"] for event in runs.events] == [
        *("connected", "window_start", "progress", "progress", "window_end")
    ]
    assert runs.events[0]["established"] == 4
    assert [event["seconds"] for event in runs.events[2:4]] == [0.5, 1.0]
    # From its start to its end the application's loop had a tick every 10 ms.
    assert done.client.tick_lag_ns.count >= 120


def test_none_has_two_requests_under_way(client: Contestant) -> None:
    def look(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        if peer.requests == 1:
            time.sleep(0.05)  # long enough for a second request to come, were there one
            assert peer.unread() == b"", "a request before the answer to the one before it"
        return honest(peer, request)

    with fake_server(look) as fake, running(client.command, fake.url, "-c", "5", *ENDLESS) as runs:
        eventually(lambda: len(fake.requests) == 5 and min(fake.requests.values()) > 5, "not all five send")
        done = runs.stop()
    assert done.failures == {}
    assert done.result.messages.sent == fake.requests.total()
    assert set(fake.requests) == set(range(5))


@pytest.mark.quiet
def test_a_chat_is_measured_where_the_manifest_names_it(client: Contestant, server: Contestant) -> None:
    options = ("--workload", "chat", "-c", "5", "--size", "64", "--warmup", "100ms", "--duration", "300ms")
    if "chat" not in client.manifest.workloads:
        assert run(client.command, ANYWHERE, *options).code == 2
        return
    with serving(server.command, "--workload", "chat") as serves:
        with running(client.command, f"tcp://{serves.address[0]}:{serves.address[1]}", *options) as runs:
            done = runs.wait()
        totals = serves.stop()
    result = done.result
    assert (done.code, done.stderr, done.failures, set(done.failed_audits) - {"little"}) == (0, "", {}, set())
    assert (result.plan.workload, result.plan.audience) == ("chat", "others")
    assert result.messages.sent > 5, "everybody speaks once and nobody again"
    assert result.messages.expected == result.messages.received == 4 * result.messages.sent
    assert result.bytes.sent == totals["bytes_in"]
    assert result.bytes.received == result.bytes.expected == totals["bytes_out"]


def test_the_result_goes_to_stdout_when_requested(client: Contestant) -> None:
    with fake_server() as fake:
        done = run(client.command, fake.url, "--warmup", "0", "--duration", "100ms", "--json", "-")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith('{"version":1,"plan":{')
    assert done.stdout.count("\n") == 1


def test_a_summary_for_people_is_clean_on_a_pipe(client: Contestant) -> None:
    with fake_server() as fake:
        done = run(client.command, fake.url, "--warmup", "0", "--duration", "100ms")
    assert (done.code, done.stderr) == (0, "")
    assert fake.url in done.stdout
    assert not {"\r", "\x1b"} & set(done.stdout)


def _answer_later(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    """Answer late, else a client sends tens of thousands of requests until its next progress."""
    time.sleep(0.002)
    return honest(peer, request)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_early_with_its_result(client: Contestant, how: signal.Signals) -> None:
    with fake_server(_answer_later) as fake, running(client.command, fake.url, "-c", "2", *ENDLESS) as runs:
        runs.wait_completed(1)
        done = runs.stop(how)
    assert (done.code, done.stderr, done.failures) == (0, "", {})
    assert done.result.messages.lost == 0
    assert "window" in done.failed_audits
    assert "verification" not in done.failed_audits


def test_without_a_single_answer_it_says_so_and_writes_its_result(client: Contestant) -> None:
    options = ("--warmup", "0", "--duration", "300ms", "-c", "3")
    with bound() as unanswered, running(client.command, unanswered.url, *options) as runs:
        done = runs.wait()
    assert done.code == 1
    assert done.stderr.count("\n") == 1
    assert unanswered.url in done.stderr
    assert set(done.failures) == {"connect_refused"}
    assert {"verification", "connections"} <= set(done.failed_audits)

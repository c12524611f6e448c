"""One trial with programs that keep the contract, and with every way of breaking it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from netdyno.measure.audits import of_trial
from netdyno.measure.machine import cpu_share, process, server_processes, trial_log
from netdyno.measure.machine.links import network
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.measure.trial import load
from netdyno.measure.trial import trial as trials
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import CLOSING_S, await_closes, run_trial
from netdyno.measure.trial.window import Watch
from netdyno.model import outcomes, transports
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.observation import MachineObservation
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell

CELL = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={"connections": 2})


SCENARIO = Scenario(name="echo", workload="echo", factors={"connections": (1, 2)}, duration_s=0.1, timeout_s=1.0)


def run(contestant: Contestant, context: TrialContext, cell: Cell = CELL, scenario: Scenario = SCENARIO) -> Trial:
    return run_trial(cell, scenario, contestant, context)


def test_a_server_that_still_closes_what_the_load_has_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes two at a time, in a made-up time of its own, and keeps one. What it closes one after the other is
    waited for; what it keeps, not for long."""
    now_s, first, left, kept = [1000.0], 7, 10, 1

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def descriptors() -> int:
        closed = 2 * int((now_s[0] - 1000) / (CLOSING_S / 3))
        return first + kept + max(0, left - closed)

    monkeypatch.setattr(trials, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=sleep))
    await_closes(descriptors, first + kept)
    assert descriptors() == first + kept
    assert now_s[0] - 1000 == pytest.approx(5 * CLOSING_S / 3, abs=0.02)
    began_s = now_s[0]
    await_closes(descriptors, first)
    assert now_s[0] - began_s == pytest.approx(CLOSING_S, abs=0.02)


def test_a_good_trial_is_valid_and_carries_everything(contestant: Contestant, context: TrialContext) -> None:
    seen: list[tuple[int, float]] = []
    trial = run(contestant, msgspec.structs.replace(context, progress=lambda *progress: seen.append(progress)))
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.load is not None
    assert trial.load.plan.connections == 2
    assert trial.load.requests.completed == 6
    assert trial.server is not None
    assert trial.server.totals["connections"] == 3  # two, and that of the closing check
    assert trial.server.connections_per_thread == (3, 0)
    assert trial.server.tick_lag_ns is None
    assert trial.server.totals["bytes_in"] == 31 * (6 + 3)
    assert trial.server.rss_peak_bytes >= trial.server.rss_ready_bytes > 1 << 20
    assert trial.server.threads == 1
    assert trial.server.window_s > 0
    assert "ListenOverflows" in trial.kernel
    assert "setup.ListenOverflows" in trial.kernel
    assert {audit.name for audit in trial.audits} >= {
        "verification",
        "server_alive",
        "server_totals",
        "harness_quiet",
        "observation",
        "stationary",
        "plausible",
    }
    assert trial.pinning == context.pinning
    assert trial.seconds > 0
    assert seen == [(6, 0.5)]


def test_a_start_is_measured_where_the_scenario_asks_for_it(contestant: Contestant, context: TrialContext) -> None:
    """The fake takes 1 us for each connect and each answer. Its first client is one of those that its totals count."""
    trial = run(contestant, context, scenario=msgspec.structs.replace(SCENARIO, metric="ready"))
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.starting is not None
    assert trial.server is not None
    assert trial.starting.cpu_s > 0
    assert 0 < trial.starting.ready_s < trial.seconds
    assert trial.starting.first_answer_s - trial.starting.ready_s == pytest.approx(2e-6, rel=0.01)
    assert trial.server.totals["connections"] == 4
    assert run(contestant, context).starting is None


def test_what_starting_the_program_took_is_none_of_its_cpu(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_processes, "read_cpu", lambda _: {1: server_processes.ProcessCpu(100.0)})
    trial = run(contestant, context, scenario=msgspec.structs.replace(SCENARIO, metric="ready-cpu"))
    assert trial.starting is not None, trial.reason
    assert 90 < trial.starting.cpu_s < 100


def test_a_server_that_does_not_answer_its_first_client_has_no_start(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "check_fails")
    trial = run(contestant, context, scenario=msgspec.structs.replace(SCENARIO, then_by=("first-answer",)))
    assert trial.status == "failed"
    assert trial.reason.startswith("the server did not answer its first request: ")
    assert [audit.passed for audit in trial.audits] == [False]  # its own fault


def test_what_the_harness_adds_to_the_server_is_kept_with_the_trial(
    contestant: Contestant, context: TrialContext
) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, threads="any", clients="limited-by-threads")
    trial = run(msgspec.structs.replace(contestant, manifest=manifest), context)
    assert (trial.status, trial.added) == ("valid", {"threads": 2})
    assert "--threads 2" in (context.folder / trial.log).read_text(encoding="utf-8")
    assert run(contestant, context).added == {}


def test_a_generator_that_is_gone_before_it_announced_the_end_is_observed_to_its_end(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "ends_early")
    trial = run(contestant, context)
    assert trial.status == "valid", trial.reason
    assert trial.server is not None
    assert trial.server.window_s > 0


def test_a_server_on_all_addresses_is_loaded_where_it_had_to_listen(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "names_all_addresses")
    trial = run(contestant, context)
    assert trial.load is not None
    assert trial.load.plan.url.startswith("tcp://127.0.0.1:")


def test_what_a_generator_does_not_believe_is_judged_by_its_audits(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "not_believed")
    trial = run(contestant, context)
    assert trial.status == "valid", trial.reason
    assert trial.load is not None


def test_a_generator_to_which_nothing_was_answered_has_a_result(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "nothing_right")
    trial = run(contestant, context)
    assert trial.status == "struck_out"
    assert "completed: 0 messages were answered within the window" in trial.reason
    assert trial.load is not None


def test_a_window_that_has_lost_its_cores_is_ended_early(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load would hang for ever: the trial ends by what the cores say alone."""
    monkeypatch.setenv("FAKE_LOAD", "hangs")
    monkeypatch.setattr(of_trial, "is_lost", lambda *_, **__: True)
    stolen = MachineObservation(cores=2, window_s=0.1, steal_s=0.2, own_s=0.0, foreign_s=0.0, switches=0)
    monkeypatch.setattr(cpu_share, "compute_observation", lambda *_: stolen)
    trial = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"))
    assert (trial.status, trial.load, trial.machine) == ("struck_out", None, stolen)
    assert outcomes.is_disturbed(trial)
    assert "ended early: steal" in (context.folder / trial.log).read_text()


def test_the_log_says_what_was_run(contestant: Contestant, context: TrialContext) -> None:
    trial = run(contestant, context)
    log = (context.folder / trial.log).read_text()
    assert "--listen tcp://127.0.0.1:0 --workload echo" in log
    assert " -c 2 " in log
    assert [path.name for path in (context.folder / "logs").iterdir()] == [Path(trial.log).name]


@pytest.mark.parametrize("mode", ["", "dies_under_load"])
def test_nothing_is_reaped_at_real_time_priority(
    mode: str, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it spins in the kernel, no process of a lower priority could end that (pinning.keep_punctual)."""
    monkeypatch.setenv("FAKE_SERVER", mode)
    now, reaped = [False], []

    @contextmanager
    def watched(*_: object, **__: object) -> Iterator[None]:
        now[0] = True
        try:
            yield
        finally:
            now[0] = False

    def wait(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        reaped.append(now[0])
        return reap(process, timeout)

    reap = subprocess.Popen.wait
    monkeypatch.setattr(load, "keep_punctual", watched)
    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    run(contestant, context)
    assert reaped
    assert not any(reaped)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("dies_at_start", "the server ended with exit code 3 before it was ready"),
        ("port_in_use", "before it was ready: cannot listen on"),
        ("never_ready", "no ready line from the server within 0.2 s"),
        ("babbles", "the server's first line is not a ready line: 'Listening, I think'"),
        ("dies_under_load", "the server ended with signal SIGKILL under load: out of luck"),
        ("ends_by_realtime_signal", "the server ended with signal SIGRTMIN+6 under load"),
        ("drips", "no ready line from the server within 0.2 s"),
        ("endless_ready", "the server printed a line of more than 64 KiB"),
        ("endless_totals", "the server printed a line of more than 64 KiB"),
        ("nested_ready", 'the server\'s first line is not a ready line: \'{"ready": true, "and": [[[['),
        ("names_no_endpoint", "the server's ready line names no endpoint: '--help'"),
        (
            "names_another_host",
            "the server's ready line names 'tcp://192.0.2.1:",
        ),
        ("is_somebody_else", "the server's ready line names process 1, which is not the server's"),
        ("floods", "the server wrote more than 1 MiB to its log"),
        ("floods_under_load", "the server wrote more than 1 MiB to its log"),
    ],
)
def test_a_server_that_fails_is_a_stored_failure_with_its_reason(
    mode: str, reason: str, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", mode)
    monkeypatch.setattr(process, "MOST_LOG", 1 << 20)
    trial = run(
        contestant,
        msgspec.structs.replace(context, ready_timeout_s=0.2) if mode in ("never_ready", "drips") else context,
    )
    assert trial.status == "failed"
    assert reason in trial.reason
    assert trial.load is None
    assert 0 < (context.folder / trial.log).stat().st_size < 3 * trial_log.KEPT


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("fails", "the generator ended with exit code 1: netdyno-load: something is wrong here"),
        ("no_ports", "the generator ended with exit code 1: netdyno-load: nothing was measured"),
        ("no_result", "the generator ended without a result"),
        ("unreadable", "the generator's result cannot be read"),
        ("no_events", "the load program did not announce its window"),
        ("hangs", "the generator did not finish within 0.2 s"),
    ],
)
def test_a_generator_that_fails_is_a_stored_failure_with_its_reason(
    mode: str, reason: str, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", mode)
    trial = run(contestant, msgspec.structs.replace(context, slack_s=-5.9) if mode == "hangs" else context)
    assert trial.status == "failed"
    assert reason in trial.reason


@pytest.mark.parametrize(
    ("variable", "mode", "reason"),
    [
        ("FAKE_LOAD", "corrupt", "verification: 1 of 6 answers corrupt"),
        (
            "FAKE_LOAD",
            "impossible",
            "plausible: a round trip through the kernel (ns), of the shortest service time: 1000",
        ),
        ("FAKE_LOAD", "check_fails", "server_alive: the closing check failed: the generator ended with exit code 1"),
        ("FAKE_SERVER", "miscounts", "server_totals: bytes_in: server 280, expected 279"),
        ("FAKE_SERVER", "crashes_at_end", "server_totals: it ended with signal SIGSEGV"),
        ("FAKE_SERVER", "nested_totals", "server_totals: no line of totals after SIGTERM"),
    ],
)
def test_an_audit_that_fails_makes_the_trial_invalid(
    variable: str,
    mode: str,
    reason: str,
    contestant: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, mode)
    trial = run(contestant, context)
    assert trial.status == "struck_out"
    assert reason in trial.reason
    assert trial.load is not None


@pytest.mark.parametrize("mode", ["serves_as_orphan", "serves_as_sibling"])
def test_charged_is_the_process_that_serves_and_not_the_one_that_was_started(
    mode: str, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", mode)
    monkeypatch.setenv("FAKE_LOAD", "steady")  # a busy machine reads the server some messages after the window began
    trial = run(contestant, context, scenario=msgspec.structs.replace(SCENARIO, duration_s=0.3))
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.load is not None
    assert trial.server is not None
    assert trial.server.cpu_s > 0.5 * 0.0005 * trial.load.requests.completed
    assert trial.server.threads == 2


def test_a_strangers_connection_is_reported_and_is_no_fault(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "visited")
    trial = run(contestant, context, scenario=msgspec.structs.replace(SCENARIO, connections=20))
    audits = {audit.name: audit for audit in trial.audits}
    assert audits["server_totals"].passed
    assert not audits["strangers"].passed
    assert audits["strangers"].detail == "1 connection that netdyno did not make reached the server"


def test_what_a_server_leaves_behind_is_ended_and_reported(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server leaves a child and an orphan, each in a session of its own."""
    monkeypatch.setenv("FAKE_SERVER", "leaves_children")
    before = children()
    trial = run(contestant, context)
    assert children() <= before
    (detail,) = [audit.detail for audit in trial.audits if audit.name == "left_behind"]
    assert detail == "2 programs outlived the server and had to be ended: python"
    assert f"== {detail}\n" in (context.folder / trial.log).read_text()
    assert trial.status == "valid"
    monkeypatch.setenv("FAKE_LOAD", "fails")
    trial = run(contestant, context)
    assert children() <= before
    assert trial.status == "failed"
    assert f"== {detail}\n" in (context.folder / trial.log).read_text()


def test_a_folder_of_logs_that_is_taken_away_costs_the_trial_at_most(
    contestant: Contestant, context: TrialContext
) -> None:
    trial = run(
        contestant, msgspec.structs.replace(context, progress=lambda *_: shutil.rmtree(context.folder / "logs"))
    )
    assert trial.reason.startswith("the generator ended with exit code 1")
    assert "== failed: the generator ended" in (context.folder / trial.log).read_text()
    assert run(contestant, context).status == "valid"


@pytest.mark.parametrize("mode", ["ignores_sigterm", "drips_totals"])
def test_a_server_that_ignores_sigterm_is_killed_and_its_trial_invalid(
    mode: str, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", mode)
    trial = run(contestant, msgspec.structs.replace(context, shutdown_timeout_s=0.2))
    assert trial.status == "struck_out"
    assert "server_totals: it ended with nothing within 0.2 s of SIGTERM" in trial.reason


def test_a_program_that_is_missing_is_a_failure(contestant: Contestant, context: TrialContext) -> None:
    missing = msgspec.structs.replace(contestant, command=("/nowhere/server",))
    assert "/nowhere/server cannot be started: No such file or directory" in run(missing, context).reason


def test_what_a_contestant_cannot_have_is_skipped_without_starting_it(
    contestant: Contestant, context: TrialContext
) -> None:
    cell = msgspec.structs.replace(CELL, levels={"threads": 2})
    trial = run(contestant, context, cell)
    assert trial.status == "skipped"
    assert "runs on exactly one thread" in trial.reason
    assert list(context.folder.iterdir()) == []


WITH_CLIENT = msgspec.structs.replace(CELL, levels={"connections": 2, "client": "fake-client"})


def run_client(contestant: Contestant, client: Contestant, context: TrialContext) -> Trial:
    return run(contestant, msgspec.structs.replace(context, clients={client.name: client}), WITH_CLIENT)


def test_a_client_contestant_takes_the_generators_place(
    contestant: Contestant, client: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "corrupt")  # of the generator's window, which is not wanted; its check goes on
    trial = run_client(contestant, client, context)
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.load is not None
    assert trial.load.client is not None
    assert trial.load.client.tick_lag_ns.count == 6
    assert trial.load.generator.cpu_system_s > 0
    assert trial.server is not None
    assert trial.server.totals["connections"] == 3
    log = (context.folder / trial.log).read_text()
    (command,) = [line for line in log.splitlines() if line.startswith("== client fake-client: ")]
    assert "--linger 50ms" in command, "a server with a thread for each connection is read while they are all there"
    assert "== generator: " not in log


def test_a_client_contestant_may_use_all_it_can_get_and_a_generator_may_not(
    contestant: Contestant, client: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "saturated")
    trial = run_client(contestant, client, context)
    assert trial.status == "valid"
    (about,) = [audit.detail for audit in trial.audits if audit.name == "generator"]
    assert about == "not judged, because the client is what is compared: 1.00 of 1 cores"
    monkeypatch.setenv("FAKE_LOAD", "saturated")
    assert run(contestant, context).reason == "generator: 1.00 of 1 cores"


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        ("corrupt", "struck_out", "verification: 1 of 6 answers corrupt"),
        ("fails", "failed", "the client fake-client ended with exit code 1: client: something is wrong here"),
        ("no_result", "failed", "the client fake-client ended without a result"),
    ],
)
def test_a_client_contestant_is_held_to_everything_else(
    mode: str,
    status: str,
    reason: str,
    contestant: Contestant,
    client: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_CLIENT", mode)
    trial = run_client(contestant, client, context)
    assert (trial.status, trial.reason) == (status, reason)


def test_a_client_that_is_missing_is_a_stated_skip(
    contestant: Contestant, client: Contestant, context: TrialContext
) -> None:
    missing = msgspec.structs.replace(client, available=False, why_not="Qt 6 not found")
    trial = run_client(contestant, missing, context)
    assert (trial.status, trial.reason) == ("skipped", "client fake-client: Qt 6 not found")
    assert list(context.folder.iterdir()) == []


def test_both_programs_are_bound_to_their_cores(contestant: Contestant, context: TrialContext, tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    seen = tmp_path / "seen"
    script = 'taskset -cp $$ | sed "s/.*: //" > "$0"; exec "$@"'
    spied = msgspec.structs.replace(contestant, command=("/bin/sh", "-c", script, str(seen), *contestant.command))
    trial = run(
        spied, msgspec.structs.replace(context, pinning=msgspec.structs.replace(context.pinning, server=(core,)))
    )
    assert trial.status == "valid"
    assert seen.read_text().strip() == str(core)


def test_the_harness_waits_on_its_own_core_and_sees_what_becomes_of_all(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = os.sched_getaffinity(0), max(os.sched_getaffinity(0))
    at_end = []
    window_end = Watch.window_end

    def watched_end(watch: Watch) -> None:
        at_end.append(os.sched_getaffinity(0))
        window_end(watch)

    monkeypatch.setattr(Watch, "window_end", watched_end)
    trial = run(
        contestant, msgspec.structs.replace(context, pinning=msgspec.structs.replace(context.pinning, harness=(own,)))
    )
    assert (trial.status, trial.machine is not None and trial.machine.cores) == ("valid", len(before))
    assert at_end == [{own}]
    assert os.sched_getaffinity(0) == before


def test_a_trial_that_had_not_the_machine_for_itself_is_invalid(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = MachineObservation(cores=2, window_s=0.1, steal_s=0.0, own_s=0.05, foreign_s=0.1, switches=0)
    monkeypatch.setattr(Watch, "machine", lambda _self: busy)
    monkeypatch.setattr(of_trial, "is_lost", lambda *_, **__: False)  # the real machine does not count here
    why = "foreign_load: other programs used 100 ms of the 200 ms of 2 cores (limit 30 ms)"
    trial = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"))
    assert (trial.status, trial.reason, trial.machine) == ("struck_out", why, busy)
    trial = run(contestant, context)
    assert (trial.status, trial.reason, trial.machine) == ("valid", "", busy)


def test_the_programs_of_a_trial_are_no_foreign_load(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "steady")  # all through the window, or all of it may fall between two readings
    trial = run(contestant, context)
    assert trial.server is not None
    assert trial.machine is not None
    used = trial.server.cpu_user_s + trial.server.cpu_system_s
    assert trial.machine.own_s >= used
    assert trial.machine.cores == len(os.sched_getaffinity(0))
    assert 0 <= trial.machine.foreign_s <= trial.machine.cores * trial.machine.window_s


# --- transports that carry messages ------------------------------------------------------------------------------


def test_a_lossless_trial_over_datagrams_carries_the_counters_that_would_explain_a_loss(
    datagram_contestant: Contestant, context: TrialContext
) -> None:
    trial = run(datagram_contestant, context)
    assert (trial.status, trial.reason) == ("valid", "")
    assert trial.load is not None
    assert trial.load.plan.url.startswith("udp://")
    assert trial.load.messages.lost == 0
    for name in ("UdpServerDrops", "UdpRcvbufErrors", "UdpSndbufErrors", "UdpInErrors"):
        for when in ("setup.", "", "drain."):
            assert trial.kernel[when + name] >= 0
    assert trial.server is not None
    assert trial.server.totals["connections"] == 3


def test_a_lossy_trial_is_valid_and_carries_its_loss(
    datagram_contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "lossy")
    trial = run(datagram_contestant, context)
    assert trial.load is not None
    assert (trial.load.messages.expected, trial.load.messages.lost) == (6, 2)
    (totals,) = [audit for audit in trial.audits if audit.name == "server_totals"]
    assert (
        totals.detail == "server and generator agree: protocol_errors 0, connections 3"
    )  # no bytes of what is not a stream
    assert totals.passed


def test_a_stream_has_no_counters_of_datagram_sockets(contestant: Contestant, context: TrialContext) -> None:
    assert "UdpServerDrops" not in run(contestant, context).kernel


def spying(contestant: Contestant, seen: Path, **changes: object) -> Contestant:
    """Return the contestant, which first writes down in which network namespace it runs."""
    script = 'readlink /proc/self/ns/net > "$0"; exec "$@"'
    manifest = msgspec.structs.replace(contestant.manifest, **changes)
    command = ("/bin/sh", "-c", script, str(seen), *contestant.command)
    return msgspec.structs.replace(contestant, manifest=manifest, command=command)


def test_a_transport_that_must_not_leave_runs_in_a_network_of_its_own(
    datagram_contestant: Contestant, context: TrialContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = {
        name: msgspec.structs.replace(transport, private=name == "udp")
        for name, transport in transports.TRANSPORTS.items()
    }
    monkeypatch.setattr(transports, "TRANSPORTS", private)
    seen = tmp_path / "seen"

    def make_noise_outside(_completed: int, _seconds: float) -> None:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed,
            socket.socket(closed.family, closed.type) as sender,
        ):
            closed.bind(("127.0.0.1", 0))
            unused_address = closed.getsockname()
            closed.close()
            sender.sendto(b"is anybody there?", unused_address)

    trial = run(spying(datagram_contestant, seen), msgspec.structs.replace(context, progress=make_noise_outside))
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert trial.status == "valid", trial.reason
    assert seen.read_text().strip() != str(Path("/proc/self/ns/net").readlink())
    assert trial.kernel["UdpNoPorts"] == 0  # the counters are those of that network: the noise was made outside


def test_where_no_private_network_can_be_had_such_a_trial_is_a_stated_skip(
    datagram_contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def forbidden() -> Iterator[None]:
        raise NotAllowedError("unshare: Operation not permitted")
        yield

    monkeypatch.setattr(network, "make_namespace", forbidden)
    manifest = msgspec.structs.replace(datagram_contestant.manifest, transports=("multicast",))
    trial = run(msgspec.structs.replace(datagram_contestant, manifest=manifest), context)
    assert (trial.status, trial.load) == ("skipped", None)
    assert trial.reason == (
        "multicast is measured in a private network namespace only, and none can be made here: "
        "unshare: Operation not permitted"
    )


def children() -> set[str]:
    """Return the ids of this process's children, zombies included (proc(5), /proc/pid/task/tid/children)."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.parametrize("name", ["x" * 300, "a/../../b", "\x1b[2J\n漢", "..", ""])
def test_a_log_has_its_place_whatever_the_names_are(name: str, contestant: Contestant, context: TrialContext) -> None:
    scenario = msgspec.structs.replace(SCENARIO, name=name)
    cell = msgspec.structs.replace(CELL, scenario=name, contestant=name, attempt=2)
    trial = run(msgspec.structs.replace(contestant, name=name), context, cell, scenario)
    assert (trial.status, trial.reason) == ("valid", "")
    assert [path.relative_to(context.folder) for path in context.folder.rglob("*.log")] == [Path(trial.log)]
    assert trial.log.isprintable()
    assert trial.log.endswith("-2.log")


def test_an_interruption_leaves_no_process_behind(contestant: Contestant, context: TrialContext) -> None:
    def interrupt(_completed: int, _seconds: float) -> None:
        signal.raise_signal(signal.SIGINT)

    before = children()
    # A shell starts its background jobs with SIGINT ignored, and these tests may be one.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(contestant, msgspec.structs.replace(context, progress=interrupt))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert children() <= before, "what was there, such as another test's browser, may end at any time"

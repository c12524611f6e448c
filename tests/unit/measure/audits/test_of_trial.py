"""Each audit makes invalid what it should and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from netdyno.measure.audits.of_trial import (
    died,
    foreign_load,
    harness_quiet,
    is_lost,
    link,
    observation,
    on_shared_cores,
    server_alive,
    server_totals,
    strangers,
    with_earlier,
    with_failed_connects,
)
from netdyno.model.load_result import Audit, ClientReport, GeneratorThread, LoadResult
from netdyno.model.observation import MachineObservation, RelayTotals, ServerObservation
from netdyno.model.outcomes import verdict
from tests.support.builders import made_load
from tests.support.builders.made_load import changed, load, machine, named, relay

LOAD = load((10,), connections=2, duration_s=1.0, audits=[Audit(name="verification", passed=True, detail="all true")])
TOTALS = {"requests": 10, "bytes_in": 310, "bytes_out": 310, "connections": 2, "protocol_errors": 0}


def test_a_server_that_answers_is_alive() -> None:
    audit = server_alive(LOAD, "")
    assert (audit.passed, audit.detail) == (True, "a fresh connection got 10 correct answers")


def test_a_server_that_is_gone_is_not_alive() -> None:
    audit = died("signal SIGSEGV")
    assert (audit.name, audit.passed, audit.detail) == ("died", False, "signal SIGSEGV")


def test_a_check_that_failed_is_not_alive() -> None:
    audit = server_alive(None, "no answer within 3 s")
    assert (audit.passed, audit.detail) == (False, "the closing check failed: no answer within 3 s")


def test_a_false_or_missing_answer_is_not_alive() -> None:
    false = msgspec.structs.replace(LOAD, audits=(Audit(name="verification", passed=False, detail="1 corrupt"),))
    assert (server_alive(false, "").passed, server_alive(false, "").detail) == (False, "1 corrupt")
    silent = msgspec.structs.replace(LOAD, messages=msgspec.structs.replace(LOAD.messages, received=0))
    assert server_alive(silent, "").detail == "a fresh connection got no answer"
    assert not server_alive(silent, "").passed


def test_speed_says_nothing_about_being_alive() -> None:
    slow = msgspec.structs.replace(LOAD, audits=(Audit(name="little", passed=False, detail="N is not X*R"),))
    assert server_alive(slow, "").passed


def test_wrong_replies_before_the_load_are_the_servers_too() -> None:
    corrupt = Audit(name="verification", passed=False, detail="1 corrupt")
    earlier = msgspec.structs.replace(LOAD, audits=(corrupt, Audit(name="little", passed=False, detail="N is not X*R")))
    (judged,) = with_earlier(LOAD.audits, [earlier])
    assert (judged.name, judged.passed, judged.detail) == ("verification", False, "before its load: 1 corrupt")
    worse = (msgspec.structs.replace(corrupt, detail="9 corrupt"),)
    assert with_earlier(worse, [earlier]) == worse
    assert with_earlier(LOAD.audits, [LOAD]) == LOAD.audits


@pytest.mark.parametrize("name", ["bytes_in", "bytes_out", "protocol_errors"])
def test_a_total_that_differs_makes_a_trial_invalid(name: str) -> None:
    audit = server_totals(TOTALS | {name: TOTALS[name] + 1}, [LOAD], "")
    assert not audit.passed
    assert audit.detail == f"{name}: server {TOTALS[name] + 1}, expected {TOTALS[name]}"


def test_a_strangers_connection_is_not_the_servers_fault() -> None:
    """Nor are the bytes and the malformed message that came over it. A missing one is, and what came over none."""
    visited = TOTALS | {"connections": TOTALS["connections"] + 1, "bytes_in": TOTALS["bytes_in"] + 7}
    assert server_totals(visited, [LOAD], "").passed
    assert server_totals(visited | {"protocol_errors": 1}, [LOAD], "").passed
    assert not server_totals(visited | {"protocol_errors": 2}, [LOAD], "").passed
    for name in ("connections", "bytes_in", "bytes_out"):
        assert not server_totals(visited | {name: TOTALS[name] - 1}, [LOAD], "").passed


def test_strangers_are_reported_and_disturb_a_trial_where_they_ask_for_much() -> None:
    def judge(more: int, size: int = 0, connected: Sequence[str] = ()) -> list[bool]:
        totals = TOTALS | {"connections": TOTALS["connections"] + more, "bytes_in": TOTALS["bytes_in"] + size}
        return [audit.passed for audit in strangers(totals, [busy], connected)]

    busy = msgspec.structs.replace(LOAD, messages=msgspec.structs.replace(LOAD.messages, received=100))
    size = LOAD.bytes.sent + LOAD.bytes.received
    assert judge(0) == [True, True]
    assert judge(5, size // 20) == [False, True]
    assert judge(6) == [False, False]
    assert judge(1, size // 20 + 2) == [False, False]
    assert judge(0, connected=["curl"]) == [False, True]
    noted, _ = strangers(TOTALS | {"connections": TOTALS["connections"] + 1}, [LOAD], ["curl"])
    assert noted.detail == "1 connection that netdyno did not make reached the server; still connected: curl"
    assert strangers(TOTALS | {"connections": 99}, [LOAD], [], failed_connects=True)[0].passed


def test_the_closing_check_counts_too() -> None:
    totals = {**TOTALS, "bytes_in": 620, "bytes_out": 620, "connections": 4}
    assert server_totals(totals, [LOAD, LOAD], "").passed
    assert not server_totals(TOTALS, [LOAD, LOAD], "").passed


def test_connections_that_a_client_reconnected_are_counted() -> None:
    none = dict.fromkeys((field.name for field in msgspec.structs.fields(ClientReport)), 0)
    report = msgspec.convert(none | {"recovered": 2, "tick_lag_ns": LOAD.send_lag_ns}, ClientReport)
    again = msgspec.structs.replace(LOAD, client=report)
    assert server_totals(TOTALS | {"connections": TOTALS["connections"] + 2}, [again], "").passed
    assert not server_totals(TOTALS, [again], "").passed


def test_bytes_that_the_load_program_of_others_counts_are_not_held_against_it() -> None:
    own = msgspec.structs.replace(LOAD, instrument="tcpkali")
    assert server_totals(TOTALS | {"bytes_in": TOTALS["bytes_in"] + 1}, [own], "").passed
    assert server_totals(TOTALS | {"connections": TOTALS["connections"] + 1}, [own], "").passed, "it makes one more"
    assert not server_totals(TOTALS | {"connections": TOTALS["connections"] - 1}, [own], "").passed


def test_bytes_under_way_at_a_close_are_not_held_against_it() -> None:
    lost = msgspec.structs.replace(LOAD, messages=msgspec.structs.replace(LOAD.messages, lost=1), errors={"timeout": 1})
    assert server_totals(TOTALS | {"bytes_out": 400}, [lost], "").passed
    assert not server_totals(TOTALS | {"connections": 1}, [lost], "").passed


def test_what_slow_readers_hear_is_not_held_against_the_server() -> None:
    slow = msgspec.structs.replace(LOAD, plan=msgspec.structs.replace(LOAD.plan, slow_readers=1))
    assert server_totals(TOTALS | {"bytes_out": 40_000}, [slow], "").passed
    assert not server_totals(TOTALS | {"bytes_in": 9}, [slow], "").passed


def test_what_a_group_gets_is_not_held_against_what_was_sent_to_it() -> None:
    url = "multicast://239.255.0.1:7000?interface=lo&server=127.0.0.1"
    group = msgspec.structs.replace(LOAD, plan=msgspec.structs.replace(LOAD.plan, url=url))
    assert server_totals(TOTALS | {"bytes_out": 31}, [group], "").passed
    assert not server_totals(TOTALS | {"connections": 3}, [group], "").passed
    assert not server_totals(TOTALS | {"protocol_errors": 1}, [group], "").passed


def test_failed_connects_that_are_counted_make_no_trial_invalid() -> None:
    failed = Audit(name="connections", passed=False, detail="established 3 of 9")
    bytes_audit = Audit(name="bytes", passed=False, detail="received 1, expected 2")

    def crowd(established: int, **errors: int) -> LoadResult:
        connections = msgspec.structs.replace(LOAD.connections, attempted=9, established=established)
        return msgspec.structs.replace(LOAD, connections=connections, errors={**LOAD.errors, **errors})

    judged = with_failed_connects([failed, bytes_audit], crowd(3))
    assert [audit.passed for audit in judged] == [True, False]
    assert judged[0].detail == "not judged, because failed connects are counted: established 3 of 9"
    for crowded in (crowd(1), crowd(0), crowd(3, closed_by_server=1), crowd(3, reset=1)):
        assert with_failed_connects([failed], crowded) == (failed,)


def test_a_server_may_have_accepted_what_the_client_had_given_up() -> None:
    more, fewer = (TOTALS | {"connections": TOTALS["connections"] + step} for step in (1, -1))
    assert server_totals(more, [LOAD], "", failed_connects=True).passed
    assert not server_totals(fewer, [LOAD], "", failed_connects=True).passed


def test_no_totals_or_a_bad_end_makes_a_trial_invalid() -> None:
    assert server_totals({}, [LOAD], "").detail == "no line of totals after SIGTERM"
    assert server_totals(TOTALS, [LOAD], "exit code 1").detail == "it ended with exit code 1"
    assert not server_totals(TOTALS, [LOAD], "exit code 1").passed


def observed(harness_cpu_s: float, window_s: float) -> ServerObservation:
    return made_load.observed(harness_cpu_s=harness_cpu_s, window_s=window_s)


def test_a_loud_harness_makes_a_trial_invalid() -> None:
    assert harness_quiet(observed(0.019, 1.0)).passed
    assert not harness_quiet(observed(0.021, 1.0)).passed
    assert harness_quiet(observed(0.009, 0.1)).passed  # two readings are not held against a short window
    assert not harness_quiet(observed(0.011, 0.1)).passed


def test_the_verdict_gives_every_reason() -> None:
    good, bad = Audit(name="a", passed=True, detail="fine"), Audit(name="b", passed=False, detail="1 of 2")
    worse = Audit(name="c", passed=False, detail="gone")
    assert verdict([good]) == ("valid", "")
    assert verdict([good, bad, worse]) == ("struck_out", "b: 1 of 2; c: gone")


def test_a_thread_that_none_read_makes_the_trial_invalid() -> None:
    assert observation(observed(0.0, 1.0), 1.0).passed
    judged = observation(msgspec.structs.replace(observed(0.0, 1.0), threads_unread=2), 1.0)
    assert not judged.passed
    assert "2 of the server's threads" in judged.detail
    assert observation(msgspec.structs.replace(observed(0.0, 1.0), threads_unread=2), 1.0, threads_end=True).passed
    assert not observation(observed(0.0, 0.5), 1.0, threads_end=True).passed


@pytest.mark.parametrize(
    ("read_s", "asked_s", "passed"),
    [(1.09, 1.0, True), (0.91, 1.0, True), (1.11, 1.0, False), (0.001, 0.25, False), (0.218, 0.2, True)],
)
def test_a_server_that_was_not_read_over_the_window_makes_a_trial_invalid(
    read_s: float, asked_s: float, passed: bool
) -> None:
    judged = observation(observed(0.0, read_s), asked_s)
    assert judged.passed is passed
    assert passed or f"{read_s:.3f} s apart, and the window is {asked_s:g} s" in judged.detail


def test_a_link_that_kept_its_promise() -> None:
    """The requested loss and rate drop frames, which is no failure; nor is one stall of 90 ms among so many frames."""
    audit = link(relay(), delay_s=0.02)
    assert (audit.passed, audit.detail) == (True, "99.9% of 1800 frames left within 200 µs of their time")
    assert link(relay(p999_ns=1_900_000), delay_s=0.02).passed  # a tenth of the delay
    assert link(relay(p999_ns=900_000), delay_s=0.0).passed  # a millisecond


@pytest.mark.parametrize(
    ("totals", "detail"),
    [
        (relay(p999_ns=2_100_000), "one frame in a thousand left 2.10 ms or more after it was due"),
        (relay(overflowed=3), "3 frames dropped by the full link"),
        (relay(unread=1), "1 frame dropped before the relay had read them"),
        (relay(refused=2), "2 frames refused at the other end"),
    ],
)
def test_a_link_that_was_late_or_dropped_unasked_makes_a_trial_invalid(totals: RelayTotals, detail: str) -> None:
    audit = link(totals, delay_s=0.02)
    assert not audit.passed
    assert audit.detail == f"{detail} (allowed: 2.00 ms, none dropped)"


def failed(measured: MachineObservation) -> list[str]:
    audits = foreign_load(measured, "strike-out")
    assert [audit.name for audit in audits] == ["steal", "foreign_load"]
    return [audit.name for audit in audits if not audit.passed]


def test_stolen_time_makes_a_trial_invalid() -> None:
    assert failed(machine(steal_s=0.04)) == []
    assert failed(machine(steal_s=0.041)) == ["steal"]
    assert failed(machine(steal_s=0.02, window_s=0.2)) == []  # two ticks say nothing in a short window
    assert failed(machine(steal_s=0.03, window_s=0.2)) == ["steal"]


def test_what_a_quota_held_back_makes_a_trial_invalid_however_short_the_window() -> None:
    def judged(throttled_s: float, window_s: float = 1.0) -> Audit:
        measured = machine(throttled_s=throttled_s, throttled_periods=4, window_s=window_s)
        return named(foreign_load(measured, "strike-out"), "throttled")

    assert judged(0.04).passed
    assert not judged(0.041).passed
    assert not judged(0.009, window_s=0.2).passed
    assert judged(0.4).detail == (
        "the CPU quota of a control group stopped programs in 4 periods, "
        "for 400 ms of the 2000 ms of 2 cores (limit 40 ms)"
    )
    assert is_lost(machine(throttled_s=0.1), 1.0, "strike-out", paced=False)
    assert not is_lost(machine(throttled_s=0.0), 1.0, "strike-out", paced=False)


def test_foreign_load_makes_a_trial_invalid() -> None:
    assert failed(machine(foreign_s=0.06)) == []
    assert failed(machine(foreign_s=0.061)) == ["foreign_load"]
    assert failed(machine(foreign_s=0.03, window_s=0.2)) == []
    assert failed(machine(foreign_s=0.031, window_s=0.2)) == ["foreign_load"]


def test_what_the_kernel_does_at_context_switches_is_not_held_against_anybody() -> None:
    assert failed(machine(foreign_s=0.15, switches=50_000)) == []
    assert failed(machine(foreign_s=0.17, switches=50_000)) == ["foreign_load"]


def test_where_the_kernel_paces_the_link_only_steal_is_judged() -> None:
    steal, foreign = foreign_load(machine(foreign_s=0.6, steal_s=0.1), "strike-out", paced=True)
    assert (steal.passed, foreign.passed) == (False, True)
    assert foreign.detail.startswith(
        "not judged, because it includes the kernel's work of pacing the link: other programs"
    )


def test_a_process_that_never_rests_makes_a_trial_invalid_on_a_machine_of_any_size() -> None:
    assert failed(machine(foreign_s=1.0, cores=64)) == ["foreign_load"]
    assert failed(machine(foreign_s=0.4, cores=64)) == []


def test_the_figures_are_reported() -> None:
    (_, foreign) = foreign_load(machine(foreign_s=0.75), "strike-out")
    assert foreign.detail == "other programs used 750 ms of the 2000 ms of 2 cores (limit 60 ms)"
    (steal, _) = foreign_load(machine(steal_s=0.1, cores=1), "strike-out")
    assert steal.detail == "the hypervisor took 100 ms of the 1000 ms of the only core (limit 25 ms)"


def test_where_it_is_only_counted_nothing_is_invalid_and_the_figures_stand() -> None:
    for audit in foreign_load(machine(steal_s=1.0, foreign_s=1.0), "count"):
        assert audit.passed
        assert audit.detail.startswith("not judged, because it is only counted: ")
        assert "1000 ms of the 2000 ms" in audit.detail


def test_a_kernel_that_does_not_tell_is_not_judged() -> None:
    assert foreign_load(None, "strike-out") == ()


def test_on_shared_cores_the_lag_of_a_generator_is_reported_and_its_limit_judged() -> None:
    late = Audit(name="generator", passed=False, detail="own send lag p50 900.0 us")
    wrong = Audit(name="verification", passed=False, detail="1 corrupt")
    (lag, unchanged) = on_shared_cores([late, wrong], LOAD)
    assert (lag.passed, unchanged) == (True, wrong)
    assert lag.detail == "lags not judged, because server and generator share cores: own send lag p50 900.0 us"
    thread = GeneratorThread(cpu_user_s=0.9, cpu_system_s=0.0, spun_s=0.0)
    one_thread = changed(LOAD, "generator.threads", (thread,))
    all_cores = changed(changed(LOAD, "generator.cores", 2), "generator.cores_used", 1.8)
    for at_limit in (one_thread, all_cores):
        assert on_shared_cores([late], at_limit) == (late,)

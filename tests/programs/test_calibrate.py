"""The card's mathematics on made-up results: a right generator passes, each kind of wrong one fails where it must."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from rich.console import Console

from netdyno.kit.errors import UserError
from netdyno.kit.statistics.histogram import Histogram
from netdyno.measure.machine import pinning
from netdyno.measure.machine.process import REALTIME_PRIORITY
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, Distribution, LoadResult
from netdyno.model.observation import Pinning
from netdyno.question.contestants import contestants
from netdyno.verbs import calibrate, cli
from netdyno.verbs.instruments.calibrate import card, cases, others, running, truths
from netdyno.verbs.instruments.calibrate.cases import CASES, CalibrationCase
from netdyno.verbs.instruments.calibrate.done import Pause, ServerTotals, StallDone
from netdyno.verbs.instruments.calibrate.running import Attempt, CalibrationPrograms, CaseResult
from netdyno.verbs.instruments.calibrate.scores import CalibrationScore, score_count, score_time
from netdyno_client import recorder
from tests.support.builders import made_run
from tests.support.server import serving

RECORDED = Path(__file__).with_name("recorded")
MS = 10**6
SECOND = 10**9


def distribution(values: Iterable[float]) -> Distribution:
    histogram = Histogram()
    for value in values:
        histogram.record(round(value))
    return recorder.distribution(histogram)


def loaded(response: Iterable[float], service: Iterable[float] | None = None, **plan: object) -> LoadResult:
    """A result with these times in ns, of a plan of 4 s and one connection."""
    scenario = Scenario(name="made", workload="lines", factors={"connections": (1,)}, arrivals="constant", rate=1000)
    made = made_run.load_result(scenario, {"connections": 1}, 1000, 1e6, 0.1, np.random.default_rng(1))
    times = list(response)
    read = distribution(times)
    latency = msgspec.structs.replace(
        made.latency, response_ns=read, service_ns=read if service is None else distribution(service)
    )
    whole = msgspec.structs.replace(made.plan, **{"duration_s": 4.0, "rate_hz": 1000.0, **plan})
    requests = msgspec.structs.replace(made.requests, sent=len(times))
    return msgspec.structs.replace(made, latency=latency, plan=whole, requests=requests)


def done(**changes: object) -> ServerTotals:
    nothing = distribution([])
    base = ServerTotals(
        arrived=0,
        arrivals_span_ns=0,
        arrivals_ns=(),
        lost=0,
        duplicated=0,
        corrupted=0,
        held_for_order=0,
        delay_programmed_ns=nothing,
        delay_actual_ns=nothing,
        stalls=(),
    )
    return msgspec.structs.replace(base, **changes)


def one_stall(seconds: float = 1.0) -> ServerTotals:
    length = round(seconds * SECOND)
    return done(stalls=(StallDone(programmed_ns=length, actual_ns=length, began_ns=2 * SECOND, connection=None),))


def verdicts(scores: Iterable[CalibrationScore]) -> dict[str, bool]:
    return {score.name: score.passed for score in scores}


# --- stalls -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stalled:
    """A load of 1000 messages a second over 4 s; the server answers within 0.1 ms but in the second after 2 s."""

    rate_hz: int = 1000
    window_ns: int = 4 * SECOND
    begin_ns: int = 2 * SECOND
    end_ns: int = 3 * SECOND
    usual_ns: int = 100_000

    def _answer(self, sent: int) -> int:
        return (self.end_ns if self.begin_ns <= sent < self.end_ns else sent) + self.usual_ns

    def open_loop(self) -> list[int]:
        """Response times from the intended send time."""
        gap = SECOND // self.rate_hz
        return [self._answer(due) - due for due in range(0, self.window_ns, gap)]

    def omitting(self) -> list[int]:
        """Coordinated omission: one connection that sends when it has its answer and skips what it could not send."""
        gap = SECOND // self.rate_hz
        times, now = [], 0
        while now < self.window_ns:
            times.append(self._answer(now) - now)
            now = max(now + gap, self._answer(now))
        return times


def test_a_right_generator_reads_the_formula() -> None:
    scores = cases.score_stall(loaded(Stalled().open_loop()), one_stall())
    assert verdicts(scores) == {"p90": True, "p99": True, "p99.9": True}
    assert [round(score.truth / MS) for score in scores] == [600, 960, 996]


def test_coordinated_omission_fails_the_stall() -> None:
    scores = cases.score_stall(loaded(Stalled().omitting()), one_stall())
    assert verdicts(scores) == {"p90": False, "p99": False, "p99.9": False}
    assert all(score.measured < 1 * MS for score in scores)


def test_a_clock_that_starts_at_the_actual_send_fails_the_stall_and_is_shown_beside_it() -> None:
    stalled = Stalled()
    scores = cases.score_stall(loaded(stalled.omitting(), service=stalled.omitting()), one_stall())
    assert not any(score.passed for score in scores)
    right = cases.score_stall(loaded(stalled.open_loop(), service=stalled.omitting()), one_stall())
    assert all(score.passed and score.service is not None and score.service < MS for score in right)


@pytest.mark.parametrize(("wrong_by", "passes"), [(1.015, True), (0.985, True), (1.025, False), (0.975, False)])
def test_two_per_cent_are_the_bound(wrong_by: float, passes: bool) -> None:
    scores = cases.score_stall(loaded(time * wrong_by for time in Stalled().open_loop()), one_stall())
    assert set(verdicts(scores).values()) == {passes}


def test_the_stall_is_as_long_as_it_was_and_not_as_it_was_meant() -> None:
    stalled = one_stall()
    longer = msgspec.structs.replace(stalled.stalls[0], actual_ns=1100 * MS)
    scores = cases.score_stall(loaded(Stalled().open_loop()), msgspec.structs.replace(stalled, stalls=(longer,)))
    assert not any(verdicts(scores).values())


def test_a_stall_of_one_connection_is_in_its_share_of_the_messages() -> None:
    quick = [100_000] * 4000
    times = Stalled(rate_hz=100).open_loop() + quick[:3600]
    scores = cases.score_connection_stall(loaded(times, connections=10), one_stall())
    assert [round(score.truth / MS) for score in scores] == [600, 960]
    assert set(verdicts(scores).values()) == {True}
    assert not any(verdicts(cases.score_connection_stall(loaded(quick, connections=10), one_stall())).values())


def test_without_a_stall_the_case_fails() -> None:
    assert verdicts(cases.score_stall(loaded([1, 2, 3]), done())) == {"stalls carried out": False}


@pytest.mark.parametrize(
    ("stall_s", "window_s", "quantile", "share", "expected"),
    [(1, 10, 0.99, 1, 0.9), (1, 8, 0.9, 1, 0.2), (1, 10, 0.5, 1, 0), (1, 4, 0.99, 0.1, 0.6)],
)
def test_the_formula(stall_s: float, window_s: float, quantile: float, share: float, expected: float) -> None:
    assert truths.stall_percentile(stall_s, window_s, quantile, share) == pytest.approx(expected)


# --- delays -------------------------------------------------------------------------------------------------------


def test_response_times_are_held_against_what_the_server_did() -> None:
    delays = np.random.default_rng(1).exponential(20 * MS, 4000)
    did = done(delay_programmed_ns=distribution(delays), delay_actual_ns=distribution(delays))
    assert set(verdicts(cases.score_response_times(loaded(delays + 100_000), did)).values()) == {True}
    slow = verdicts(cases.score_response_times(loaded(delays + 5 * MS), did))
    assert [slow[name] for name in ("server kept its programme, p99", "p50", "p99")] == [True, False, False]


def test_a_server_that_did_not_keep_its_programme_is_no_truth() -> None:
    late = done(delay_programmed_ns=distribution([20 * MS] * 100), delay_actual_ns=distribution([30 * MS] * 100))
    passed = verdicts(cases.score_response_times(loaded([30 * MS] * 100), late))
    assert passed == {"server kept its programme, p99": False, "p50": True, "p99": True, "p99.9": True}


def test_no_answers_at_all_fail() -> None:
    assert set(verdicts(cases.score_response_times(loaded([]), done())).values()) == {False}


# --- short delays -------------------------------------------------------------------------------------------------

US = 1000
DELAY, SEND, WAKE_UP, WAY, RECEIVE = 50 * US, 5 * US, 20 * US, 12 * US, 15 * US
REST = "- the rest, the kernel's"


def short(read: int = DELAY + SEND + WAKE_UP + WAY + RECEIVE, receive: int = RECEIVE) -> tuple[CalibrationScore, ...]:
    """A delay of 50 us as a generator with such readings tells it."""
    lags = {"send_lag_ns": distribution([SEND] * 999), "receive_lag_ns": distribution([receive] * 1000)}
    delays, waits = distribution([DELAY] * 1001), distribution([WAKE_UP] * 998)
    did = done(delay_programmed_ns=delays, delay_actual_ns=delays, read_lag_ns=waits)
    return cases.score_delay(msgspec.structs.replace(loaded([read] * 1000), **lags), did)


def test_times_that_the_kernel_ended_hold_no_receive_lag() -> None:
    delays, waits = distribution([DELAY] * 1001), distribution([WAKE_UP] * 998)
    did = done(delay_programmed_ns=delays, delay_actual_ns=delays, read_lag_ns=waits)
    load = loaded([DELAY + SEND + WAKE_UP + WAY] * 1000)
    kernel = msgspec.structs.replace(load.latency, clock="kernel")
    lags = {"send_lag_ns": distribution([SEND] * 999), "receive_lag_ns": distribution([])}
    scores = {
        score.name: score for score in cases.score_delay(msgspec.structs.replace(load, latency=kernel, **lags), did)
    }
    assert scores["- send and receive lag"].measured == pytest.approx(SEND, rel=0.02)
    assert scores[REST].measured == pytest.approx(WAY, rel=0.02)
    assert all(score.passed for score in scores.values())


def test_what_is_read_above_a_short_delay_is_parted() -> None:
    scores = {score.name: score for score in short()}
    assert all(score.passed for score in scores.values())
    assert [score.name for score in scores.values() if score.has_bound] == ["server kept its programme, p50", REST]
    parts = [scores[name].measured for name in ("- send and receive lag", "- the server's wake-up", REST)]
    assert parts == pytest.approx([SEND + RECEIVE, WAKE_UP, WAY], rel=0.02)
    assert scores["p50"].error == pytest.approx(52 / 50, rel=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"read": DELAY + SEND + WAKE_UP + WAY + RECEIVE + 50 * US},  # late, and no lag says so
        {"read": DELAY + SEND + RECEIVE},  # sooner than the answer was there
        {"receive": RECEIVE + 50 * US},  # more lag than there was
    ],
    ids=["hides", "reads too little", "claims"],
)
def test_a_reading_that_its_lags_do_not_explain_fails(wrong: dict[str, int]) -> None:
    assert [score.name for score in short(**wrong) if not score.passed] == [REST]


def test_where_the_kernel_tells_no_arrivals_nothing_is_parted() -> None:
    delays = distribution([DELAY] * 1000)
    scores = cases.score_delay(
        loaded([DELAY * 2] * 1000), done(delay_programmed_ns=delays, delay_actual_ns=delays, read_lag_ns=None)
    )
    assert verdicts(scores) == {"server kept its programme, p50": True, "p50": True}
    assert not any(verdicts(cases.score_delay(loaded([]), done())).values())


def test_the_card_states_the_error_of_a_short_delay_and_its_parts() -> None:
    result = CaseResult(case="constant 50 µs", about="", attempts=(Attempt(scores=short()),))
    text = " ".join(shown([result], width=110).split())
    assert "p50 50.0 µs 102 µs +104.0%, 52.0 µs" in text
    assert "- send and receive lag 20.0 µs 40.0% - the server's wake-up 20.0 µs 40.0%" in text
    assert f"{REST} 0 to 40.0 µs 12.0 µs 23.9% ok" in text


# --- pauses of the machine ------------------------------------------------------------------------------------------

EVERY, LONG = 333 * MS, 5 * MS
"""The machine lets nothing run for this long, this often: as seen on a virtual machine that others used."""


def pauses(core: str) -> tuple[Pause, ...]:
    return tuple(Pause(core=core, began_ns=began_ns, ns=LONG) for began_ns in range(0, 5 * SECOND, EVERY))


def after_pause(due_ns: int) -> int:
    """The moment at which what is due then can happen."""
    into = due_ns % EVERY
    return due_ns - into + LONG if into < LONG else due_ns


def read_on_that_machine(delay: int) -> list[int]:
    """The times that a right generator reads over 4 s on a core with those pauses: it sends late, and reads late."""
    return [after_pause(after_pause(due) + delay) + 100_000 - due for due in range(0, 4 * SECOND, MS)]


def constant_delay(*machine: Pause) -> ServerTotals:
    delays = distribution([200 * MS] * 4000)
    return done(delay_programmed_ns=delays, delay_actual_ns=delays, pauses=machine, look_ns=MS // 2)


def test_what_is_due_in_a_pause_happens_at_its_end() -> None:
    due = np.array([5.0, 10.0, 15.0, 20.0, 25.0, 31.0])
    assert truths.shift_past_pauses(due, [(30, 40), (10, 20)]).tolist() == [5, 20, 20, 20, 25, 40]
    assert truths.shift_past_pauses(due, []).tolist() == due.tolist()


def test_a_pause_may_have_begun_right_after_the_wake_up_before_it() -> None:
    summary = constant_delay(Pause(core="generator", began_ns=10 * MS, ns=2 * MS))
    assert summary.list_pauses("generator") == ((9.5 * MS, 12 * MS),)
    assert summary.list_pauses("server") == ()


def test_a_pause_of_the_machine_is_in_the_truth() -> None:
    """Without the pause, a right generator would be 2.5% off at p99.9: the calibration once failed by that."""
    load = loaded(read_on_that_machine(200 * MS), warmup_s=0.0)
    assert not verdicts(cases.score_response_times(load, constant_delay()))["p99.9"]
    scores = cases.score_response_times(load, constant_delay(*pauses("generator")))
    assert set(verdicts(scores).values()) == {True}
    assert scores[-1].truth > 204 * MS
    assert scores[1].truth == pytest.approx(200 * MS, rel=0.001)  # p50 is as it was


def test_a_pause_of_the_servers_core_delays_what_it_reads() -> None:
    load = loaded((after_pause(due) + 200 * MS - due for due in range(0, 4 * SECOND, MS)), warmup_s=0.0)
    assert not verdicts(cases.score_response_times(load, constant_delay()))["p99.9"]
    assert set(verdicts(cases.score_response_times(load, constant_delay(*pauses("server")))).values()) == {True}


def test_a_server_that_was_paused_kept_its_programme_as_well_as_it_could() -> None:
    """It stands still for 10 ms in every 100 ms: answers that are due then leave at the end of it."""
    machine = tuple(Pause(core="server", began_ns=began_ns, ns=10 * MS) for began_ns in range(0, 5 * SECOND, 100 * MS))
    late = [max(10 * MS - due % (100 * MS), 0) for due in range(0, 4 * SECOND, MS)]
    actual = distribution(200 * MS + time for time in late)
    name = "server kept its programme, p99"

    def judged(summary: ServerTotals) -> bool:
        return verdicts(cases.score_response_times(loaded([200 * MS] * 4000, warmup_s=0.0), summary))[name]

    assert judged(msgspec.structs.replace(constant_delay(*machine), delay_actual_ns=actual))
    assert not judged(msgspec.structs.replace(constant_delay(), delay_actual_ns=actual))
    worse = distribution([220 * MS] * 4000)
    assert not judged(msgspec.structs.replace(constant_delay(*machine), delay_actual_ns=worse))


def test_pauses_excuse_no_more_than_they_took() -> None:
    """A generator that is 10 ms late with every fiftieth message fails beside pauses of 5 ms."""
    slow = [time + 10 * MS * (number % 50 == 0) for number, time in enumerate(read_on_that_machine(200 * MS))]
    passed = verdicts(cases.score_response_times(loaded(slow, warmup_s=0.0), constant_delay(*pauses("generator"))))
    assert (passed["p50"], passed["p99"], passed["p99.9"]) == (True, False, False)


def test_witnesses_watch_both_cores_where_they_cannot_be_held_up_by_the_generator() -> None:
    cores = Pinning(server=(0,), generator=(1,), note="", realtime=True)
    assert running._format_witnesses(cores) == ("--witness", "generator=1", "--witness", "server=0")
    assert running._format_witnesses(msgspec.structs.replace(cores, realtime=False)) == ()


def test_each_side_has_one_core() -> None:
    many = Pinning(server=(0, 1), generator=(2, 3), note="pinned")
    narrowed = pinning.narrow(many)
    assert (narrowed.server, narrowed.generator) == ((0,), (2,))
    assert "only the first core" in narrowed.note
    assert pinning.narrow(narrowed) == narrowed


# --- counts -------------------------------------------------------------------------------------------------------


def with_messages(counts: dict[str, int] | None = None, invalid: bool = True) -> LoadResult:
    load = loaded([1.0])
    messages = {"sent": 100, "expected": 100, "lost": 5, "duplicated": 3, "corrupt": 2, **(counts or {})}
    audit = Audit(name="verification", passed=not invalid, detail="")
    return msgspec.structs.replace(load, messages=msgspec.structs.replace(load.messages, **messages), audits=(audit,))


def test_counts_are_exact() -> None:
    faults = done(arrived=100, lost=3, corrupted=2, duplicated=3)
    assert set(verdicts(cases.score_messages(with_messages(), faults)).values()) == {True}
    for counts, fails in (
        ({"lost": 4}, "lost (with corrupted)"),
        ({"duplicated": 4}, "duplicated"),
        ({"corrupt": 0}, "corrupted"),
        ({"sent": 99}, "sent"),
    ):
        passed_by_name = verdicts(cases.score_messages(with_messages(counts), faults))
        assert [name for name, passed in passed_by_name.items() if not passed] == [fails]


def test_a_trial_with_faults_must_be_invalid() -> None:
    passed = verdicts(
        cases.score_messages(with_messages(invalid=False), done(arrived=100, lost=3, corrupted=2, duplicated=3))
    )
    assert not passed["the trial is invalid"]


# --- arrivals -----------------------------------------------------------------------------------------------------


def poisson(rate_hz: float, count: int = 1000, seed: int = 1) -> tuple[int, ...]:
    gaps = np.random.default_rng(seed).exponential(SECOND / rate_hz, count)
    return tuple(int(arrival) for arrival in np.cumsum(gaps))


def grid(rate_hz: float, count: int = 400, jitter_ns: float = 0) -> tuple[int, ...]:
    jitter = np.random.default_rng(1).uniform(0, 1, count) * jitter_ns
    return tuple(int(number * SECOND / rate_hz + late) for number, late in enumerate(jitter))


def test_anderson_darling_agrees_with_the_published_distribution() -> None:
    """Case 0: 5% of samples are above 2.492 and 1% above 3.857 (D'Agostino & Stephens 1986)."""
    random = np.random.default_rng(7)
    statistics = np.array([truths.anderson_darling(random.uniform(size=200)) for _ in range(4000)])
    assert np.mean(statistics > 2.492) == pytest.approx(0.05, abs=0.012)
    assert np.mean(statistics > truths.AD_CRITICAL) == pytest.approx(0.01, abs=0.006)


def test_poisson_arrivals_pass_and_others_do_not() -> None:
    def judged(arrivals: tuple[int, ...]) -> bool:
        return all(
            verdicts(cases.score_poisson_gaps(loaded([1.0], rate_hz=250.0), done(arrivals_ns=arrivals))).values()
        )

    assert judged(poisson(250))
    assert not judged(poisson(325))  # the right form, the wrong rate
    assert not judged(grid(250))
    halves = np.random.default_rng(1).uniform(0, 2 * SECOND / 250, 1000)  # the right mean, the wrong form
    assert not judged(tuple(int(arrival) for arrival in np.cumsum(halves)))
    bursts = tuple(arrival for arrival in poisson(125, 500) for _ in range(2))  # two at a time
    assert not judged(bursts)


def test_constant_arrivals_pass_and_others_do_not() -> None:
    def judged(arrivals: tuple[int, ...]) -> dict[str, bool]:
        return verdicts(cases.score_equal_gaps(loaded([1.0], rate_hz=100.0), done(arrivals_ns=arrivals)))

    assert set(judged(grid(100, jitter_ns=1 * MS)).values()) == {True}
    assert not judged(grid(100, jitter_ns=6 * MS))["off the grid, p99, in gaps"]
    assert not judged(grid(99.9))["off the grid, p99, in gaps"]  # a drift
    assert not any(judged(poisson(100)).values())


def test_a_pause_of_the_machine_is_no_fault_of_constant_arrivals() -> None:
    """8 ms of every 100 hold up one arrival of ten, by 8 ms: the core that sends, or the one that reads."""
    stood = range(0, 5 * SECOND, 100 * MS)
    late = tuple(arrival + 8 * MS * (number % 10 == 0) for number, arrival in enumerate(grid(100)))

    def off(arrivals: tuple[int, ...], *machine: Pause) -> bool:
        summary = done(arrivals_ns=arrivals, pauses=machine)
        return verdicts(cases.score_equal_gaps(loaded([1.0], rate_hz=100.0), summary))["off the grid, p99, in gaps"]

    assert not off(late)
    for core in ("generator", "server"):
        assert off(late, *(Pause(core=core, began_ns=began_ns, ns=8 * MS) for began_ns in stood))
        assert not off(late, *(Pause(core=core, began_ns=began_ns, ns=4 * MS) for began_ns in stood))


def test_the_achieved_rate_is_that_of_arrivals() -> None:
    def judged(arrived: int, sent: int) -> dict[str, bool]:
        span = done(arrived=arrived, arrivals_span_ns=4 * SECOND)
        return verdicts(cases.score_rates(loaded([1.0] * sent), span))

    assert judged(4001, 4000) == {"arrived": True, "said to be sent": True}
    assert judged(3601, 4000) == {"arrived": False, "said to be sent": False}  # says what it was asked for
    assert judged(3601, 3600) == {"arrived": False, "said to be sent": True}  # says what it did


# --- running ------------------------------------------------------------------------------------------------------


def attempts(*passed: bool) -> Callable[[CalibrationCase], Attempt]:
    rest = list(passed)
    return lambda _: Attempt(scores=(score_count("count", 1, int(rest.pop(0))),))


def test_a_case_that_fails_is_tried_again_and_every_attempt_is_kept() -> None:
    case = CASES[0]
    lines: list[str] = []
    (once,) = running.run_all([case], attempts(True), lines.append)
    (thrice,) = running.run_all([case], attempts(False, False, True), lines.append)
    (never,) = running.run_all([case], attempts(False, False, False, True), lines.append)
    assert [len(result.attempts) for result in (once, thrice, never)] == [1, 3, 3]
    assert [result.passed for result in (once, thrice, never)] == [True, True, False]
    assert len(lines) == 7


def test_a_program_that_cannot_be_started_is_a_failure_with_its_reason() -> None:
    programs = CalibrationPrograms(
        {"calibration": ("/nowhere/server",)}, ("/nowhere/load",), Pinning(server=(), generator=(), note="")
    )
    attempt = running.attempt(CASES[0], programs)
    assert not attempt.passed
    assert "/nowhere/server cannot be started" in attempt.failure


PROGRAMMED = """
import json, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print(json.dumps({"ready": True, "endpoint": "tcp://127.0.0.1:1", "pid": 1}), flush=True)
signal.sigwait({signal.SIGTERM})
print(sys.argv[1], flush=True)
print("a leak", file=sys.stderr)
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(("code", "failure"), [(0, ""), (3, "the calibration server ended with exit code 3: a leak")])
def test_a_server_that_ends_badly_is_no_truth(monkeypatch: pytest.MonkeyPatch, code: int, failure: str) -> None:
    totals = json.dumps({"calibration": msgspec.to_builtins(done())})
    monkeypatch.setattr(running, "_load", lambda *_: loaded([0.1 * MS]))
    server = (sys.executable, "-c", PROGRAMMED, totals, str(code))
    programs = CalibrationPrograms({"calibration": server}, (), Pinning(server=(), generator=(), note="not pinned"))
    assert running.attempt(CASES[0], programs).failure == failure


def test_the_names_of_cases_and_of_their_scores_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


# --- the card -----------------------------------------------------------------------------------------------------

STALL = CaseResult(
    case="stall",
    about="a stall",
    attempts=(
        Attempt(scores=(score_time("p90", 600e6, 5e6, service=1e6),)),
        Attempt(scores=(score_time("p90", 600e6, 606e6, service=2e6),)),
    ),
)
FAULTS = CaseResult(case="faults", about="faults", attempts=(Attempt(scores=(score_count("lost", 5, 4),)),))
BROKEN = CaseResult(case="rate", about="rate", attempts=(Attempt(scores=(), failure="the generator ended"),))


def shown(results: list[CaseResult], beside: list[others.Other] | None = None, width: int = 80) -> str:
    console = Console(width=width, file=None, record=True, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(card.render(results, beside or [], "not pinned"))
    return captured.get()


def test_the_card_shows_truth_reading_error_and_verdict() -> None:
    text = shown([STALL, FAULTS, BROKEN])
    assert [line.split() for line in text.splitlines() if line.startswith("  p90")] == [
        ["p90", "600", "ms", "606", "ms", "+1.00%", "2.00", "ms", "ok"]
    ]
    assert "stall, try 1 of 2: p90 5.00 ms for 600 ms" in text
    assert "FAILS" in next(line for line in text.splitlines() if line.startswith("  lost"))
    assert "the generator ended" in text
    assert "2 cases of 3 failed: faults and rate" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_the_card_says_when_it_needed_a_second_attempt() -> None:
    assert "all 1 cases passed, 1 of them not at the first try" in shown([STALL])


def test_the_card_says_when_the_machine_stood_still() -> None:
    stood = (
        *pauses("generator")[:2],
        Pause(core="server", began_ns=5, ns=7 * MS),
        Pause(core="server", began_ns=9, ns=5),
    )
    whole = CaseResult(
        case="rate", about="rate", attempts=(Attempt(scores=(score_count("count", 1, 1),), pauses=stood),)
    )
    text = " ".join(shown([whole]).split())
    assert "2 times on the core of the generator, for up to 5.00 ms and 1 time on the core of the server" in text
    assert "let nothing run" not in shown([FAULTS])
    printed = json.loads(json.dumps(card.as_json([whole], [], "")))
    assert printed["cases"][0]["attempts"][0]["pauses"][2] == {"core": "server", "began_ns": 5, "ns": 7 * MS}


def test_the_card_of_a_program_holds_every_attempt() -> None:
    printed = json.loads(json.dumps(card.as_json([STALL, BROKEN], [], "not pinned")))
    assert printed["passed"] is False
    first, second = printed["cases"][0]["attempts"]
    assert [attempt["scores"][0]["passed"] for attempt in (first, second)] == [False, True]
    assert second["scores"][0]["error"] == pytest.approx(0.01)
    assert printed["cases"][1]["attempts"][0]["failure"] == "the generator ended"


# --- other generators ---------------------------------------------------------------------------------------------

WRK = """Running 4s test @ http://127.0.0.1:40213/x
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   100.02ms  238.23ms   1.00s    86.78%
    Req/Sec   205.12k    54.59k  232.08k    93.75%
  Latency Distribution
     50%   38.00us
     75%   55.00us
     90%  499.93ms
     99%  951.33ms
  650868 requests in 4.00s, 40.97MB read
Requests/sec: 162591.93
Transfer/sec:     10.23MB
"""
WRK_WINDOW_S = 650868 / 162591.93  # what it prints as 4.00s
WRK2 = """Running 4s test @ http://127.0.0.1:40213/x
  1 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   126.43ms  270.19ms   1.00s    84.11%
    Req/Sec        nan       nan   0.00      0.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.20ms
 75.000%    1.92ms
 90.000%  601.60ms
 99.000%  961.02ms
 99.900%  996.86ms
 99.990%    1.00s
 99.999%    1.00s
100.000%    1.00s

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.093     0.000000            1         1.00
     601.599     0.900000         3301        10.00
#[Mean    =      126.430, StdDeviation   =      270.190]
#[Max     =     1001.472, Total count    =         3670]
----------------------------------------------------------
  3672 requests in 4.00s, 476.92KB read
Requests/sec:    918.02
Transfer/sec:    119.23KB
"""


def test_wrk_fails_the_stall_at_p90() -> None:
    """The output of wrk 4.1.0 over the stall of the card: it adds some of the times that its closed loop left out."""
    figures = others.parse(WRK, "FILE")
    assert figures.window_s == pytest.approx(WRK_WINDOW_S)
    assert figures.rate_hz == 162591.93
    assert figures.mean_ns == pytest.approx(100_020_000)
    assert figures.percentiles_ns == pytest.approx({"p50": 38_000, "p90": 499_930_000, "p99": 951_330_000})
    scored = others.score("wrk", figures, 1.0, None)
    assert verdicts(scored.scores) == {"stall: p90": False, "stall: p99": True}


WRK2_SCORES = ("stall: p90", "stall: p99", "stall: p99.9", "rate: arrived")


def test_wrk2_passes_the_stall_and_fails_the_rate() -> None:
    scored = others.score("wrk2", others.parse(WRK2.replace("1.00s\n", "1.00s \n"), "FILE"), 1.0, 1000)
    assert verdicts(scored.scores) == {
        "stall: p90": True,
        "stall: p99": True,
        "stall: p99.9": True,
        "rate: arrived": False,
    }


def test_wrk2_is_read_as_it_prints() -> None:
    """Recorded as docs/calibration.md says (of the spectrum, only the lines below it are kept)."""
    figures = others.parse((RECORDED / "wrk2.txt").read_text(), "FILE")
    assert figures.window_s == pytest.approx(4.0, rel=2e-3)
    assert figures.mean_ns == pytest.approx(128 * MS)
    assert figures.percentiles_ns == pytest.approx(
        {"p50": 1.13 * MS, "p90": 608.26 * MS, "p99": 962.05 * MS, "p99.9": 1000 * MS}
    )
    scored = others.read(f"wrk2={RECORDED / 'wrk2.txt'},rate=1000")
    assert verdicts(scored.scores) == dict.fromkeys(WRK2_SCORES, True)


def test_wrk2_is_scored_over_what_it_kept_and_by_its_corrected_times() -> None:
    """Recorded over 14 s with -U, and the stall at 11 s: wrk2 has forgotten its first 10 s. Over all 14 s the truth at
    p90 would be nothing, and uncorrected the p90 is 77 us."""
    figures = others.parse((RECORDED / "wrk2-uncorrected.txt").read_text(), "FILE")
    assert figures.window_s == pytest.approx(13.981 * 3950 / 13981, rel=2e-3)
    assert figures.percentiles_ns["p90"] == pytest.approx(610.82 * MS)
    scored = others.read(f"wrk2={RECORDED / 'wrk2-uncorrected.txt'},rate=1000")
    assert verdicts(scored.scores) == dict.fromkeys(WRK2_SCORES, True)


def test_wrk2_that_forgot_all_is_refused() -> None:
    """wrk2 prints this where the run ends together with its own calibration."""
    nothing = (
        (RECORDED / "wrk2.txt").read_text().replace("        3980]", "           0]").replace("128.00ms", "  -nanus")
    )
    with pytest.raises(UserError, match="percentiles are of no request"):
        others.parse(nothing, "FILE")


def test_wrk2_with_unknown_gaps_is_refused() -> None:
    whole = (RECORDED / "wrk2-uncorrected.txt").read_text()
    without = "\n".join(line for line in whole.splitlines() if not line.startswith("#"))
    with pytest.raises(UserError, match="Total count"):
        others.parse(without, "FILE")


@pytest.mark.parametrize(
    "line", ["Socket errors: connect 0, read 7, write 0, timeout 0", "Non-2xx or 3xx responses: 3981"]
)
@pytest.mark.parametrize("text", [WRK, WRK2], ids=["wrk", "wrk2"])
def test_requests_that_failed_are_no_answers_after_a_stall(text: str, line: str) -> None:
    with pytest.raises(UserError, match=line):
        others.parse(text.replace("Requests/sec", f"  {line}\nRequests/sec"), "FILE")


def test_a_timeout_is_an_answer_that_was_waited_for() -> None:
    """wrk2 counts it when an answer takes longer than 2 s, and its percentiles hold it all the same."""
    late = "  Socket errors: connect 0, read 0, write 0, timeout 20\nRequests/sec"
    assert others.parse(WRK2.replace("Requests/sec", late), "FILE") == others.parse(WRK2, "FILE")


def test_a_percentile_that_the_stall_does_not_reach_has_no_score() -> None:
    figures = others.parse(WRK2, "FILE")
    scored = others.score("wrk2", figures, 0.1, None)
    assert list(verdicts(scored.scores)) == ["stall: p99", "stall: p99.9"]
    with pytest.raises(UserError, match=r"no percentile shows a stall of 0.001 s in 4 s"):
        others.score("wrk2", figures, 0.001, 1000)


def test_wrk_fails_a_stall_that_is_longer_than_its_timeout() -> None:
    """Recorded over a stall of 5 s: what took longer than 2 s is in no percentile, and nothing else shows it."""
    scored = others.read(f"wrk={RECORDED / 'wrk-timeouts.txt'},stall=5s")
    assert verdicts(scored.scores) == {"stall: p90": False, "stall: p99": False}
    assert scored.scores[0].measured == pytest.approx(0.104 * MS)


def test_others_stand_beside_the_same_properties(tmp_path: Path) -> None:
    file = tmp_path / "wrk.txt"
    file.write_text(WRK)
    text = shown([STALL], [others.read(f"wrk={file}")], width=100)
    line = next(line for line in text.splitlines() if line.startswith("  p90"))
    assert line.rstrip().endswith("500 ms (-16.64%)")
    longer = others.read(f"wrk={file},stall=2s")
    assert longer.scores[0].truth == pytest.approx(2e9 - 0.1e9 * WRK_WINDOW_S)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_however_narrow_the_card_holds_what_others_read(width: int) -> None:
    """Each of their cells ends with a bracket, which is folded where there is no room, and never cut off."""
    first, second = (others.read(f"wrk2={RECORDED / name},rate=1000") for name in ("wrk2.txt", "wrk2-uncorrected.txt"))
    text = shown([STALL, FAULTS], [first, second], width=width)
    assert text.count("%") == shown([STALL, FAULTS], [first, second], width=300).count("%")
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("wrk", "want e.g. wrk=FILE"),
        ("wrkk=FILE", "did you mean 'wrk'"),
        ("wrk=/nowhere/at/all", "/nowhere/at/all"),
        ("wrk=FILE,rat=1", "unknown key 'rat'"),
        ("wrk=FILE,rate=fast", "fast"),
        ("wrk=FILE,stall=1", "is not a duration"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(option: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        others.read(option)


def test_text_without_the_figures_is_refused() -> None:
    with pytest.raises(UserError, match="not the output of wrk"):
        others.parse("hello", "FILE")
    without = "\n".join(line for line in WRK.splitlines() if "%" not in line)
    with pytest.raises(UserError, match="--latency"):
        others.parse(without, "FILE")
    unsaid = "\n".join(line for line in WRK.splitlines() if not line.startswith("    Latency"))
    with pytest.raises(UserError, match="mean latency"):
        others.parse(unsaid, "FILE")


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """The command without programs: every case passes, or none."""

    def prepare(passes: bool) -> None:
        programs = CalibrationPrograms({}, (), Pinning(server=(), generator=(), note="not pinned"))
        monkeypatch.setattr(calibrate, "_find_programs", lambda: programs)
        monkeypatch.setattr(
            calibrate, "attempt", lambda case, _: Attempt(scores=(score_count("count", 1, int(passes)),))
        )

    return prepare


def test_the_exit_code_says_whether_all_passed(
    quick: Callable[[bool], None], capsys: pytest.CaptureFixture[str]
) -> None:
    quick(True)
    assert cli.main(["calibrate"]) == 0
    assert f"all {len(CASES)} cases passed" in capsys.readouterr().out
    quick(False)
    assert cli.main(["calibrate", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["passed"] is False
    assert "up to three minutes" in captured.err


def test_a_mistake_of_the_user_is_one_line(quick: Callable[[bool], None], capsys: pytest.CaptureFixture[str]) -> None:
    quick(True)
    assert cli.main(["calibrate", "--other", "ab=FILE"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(("allowed", "priority"), [(True, running.ABOVE_OTHER_RUNS), (False, REALTIME_PRIORITY)])
def test_it_runs_above_other_runs_where_it_may(monkeypatch: pytest.MonkeyPatch, allowed: bool, priority: int) -> None:
    monkeypatch.setattr(pinning, "may_run_realtime", lambda level=REALTIME_PRIORITY: allowed or level < 10)
    monkeypatch.setattr(contestants, "find_by_name", lambda _, name: SimpleNamespace(available=True, command=(name,)))
    monkeypatch.setattr(calibrate, "generator_path", lambda _: Path(__file__))
    assert calibrate._find_programs().priority == priority


@pytest.mark.needs_build
@pytest.mark.parametrize("name", ["faults", "faults, UDP"])
def test_exact_counts_with_the_programs_that_were_built(name: str) -> None:
    """The cases that no busy machine can change."""
    case = next(case for case in CASES if case.name == name)
    (result,) = running.run_all(
        [case], lambda chosen: running.attempt(chosen, calibrate._find_programs()), lambda _: None
    )
    assert result.passed, result


@pytest.mark.calm
@pytest.mark.needs_build
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (packages/debian.txt)")
def test_what_wrk_says_is_read() -> None:
    """wrk itself, over a stall of 0.3 s in at least 1 s: figures that a busy machine can only raise."""
    server = calibrate._find_programs().servers["calibration"]
    with serving(server, "--workload", "http", "--stall", "at=200ms,for=300ms") as stalled:
        url = f"http://127.0.0.1:{stalled.address[1]}/x"
        output = subprocess.run(
            ["wrk", "-t1", "-c10", "-d1s", "--latency", url], check=True, capture_output=True, text=True, timeout=60
        )
    figures = others.parse(output.stdout, "wrk")
    assert set(figures.percentiles_ns) == {"p50", "p90", "p99"}
    assert figures.window_s >= 1
    assert figures.rate_hz > 0
    assert figures.mean_ns > 0
    assert figures.percentiles_ns["p99"] > 0

"""The outcome of a failed audit: a fault, a bound, another try, or a note."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.model import outcomes
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.load_result import Audit, GeneratorThread, LoadResult, Replies
from netdyno.model.observation import MachineObservation, Neighbour
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.verdict import answer
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_run import EPOLL, LOCK, paired_run

ECHO = Scenario(name="echo", workload="echo", contestants=(EPOLL, LOCK))
LEVEL = {"connections": 10}


def trial(
    *failed: str,
    name: str = EPOLL,
    block: int = 1,
    rate: float = 1000.0,
    status: Status = "struck_out",
    attempt: int = 1,
) -> Trial:
    sound = made_trial(ECHO, block, name, LEVEL, {"throughput": rate})
    audits = tuple(Audit(name=audit, passed=False, detail=f"{audit} it was") for audit in failed)
    return replace(sound, status=status if failed else "valid", audits=audits, attempt=attempt)


def with_corrupt(faulty: Trial) -> Trial:
    assert faulty.load is not None
    return replace(faulty, load=replace(faulty.load, messages=replace(faulty.load.messages, corrupt=1)))


def run_of(trials: Sequence[Trial], **fields: object) -> Run:
    """Return a run with each trial at its own place; tries of a contestant in one block share theirs."""
    places: dict[tuple[int, str], int] = {}
    placed = [
        replace(trial, position=places.setdefault((trial.block, trial.contestant), len(places))) for trial in trials
    ]
    experiment = Experiment(name="made", question="?", scenarios=(replace(ECHO, **fields),))
    return replace(paired_run(), experiment=experiment, trials=tuple(placed), about=())


def busy(trial: Trial, share: float) -> Trial:
    assert trial.load is not None
    seconds = share * trial.load.plan.duration_s
    thread = GeneratorThread(cpu_user_s=seconds, cpu_system_s=0.0, spun_s=0.0)
    return replace(trial, load=replace(trial.load, generator=replace(trial.load.generator, threads=(thread,))))


def statuses(run: Run) -> list[Status]:
    return [trial.status for trial in outcomes.judge_run(run).trials]


def findings(run: Run) -> ScenarioFindings:
    (scenario,) = analyse(run).scenarios
    return scenario


def test_what_the_server_did_is_a_fault_and_named() -> None:
    trials = [trial(name=name, block=block) for block in range(1, 7) for name in (EPOLL, LOCK)]
    wrong = with_corrupt(trial("verification", name=LOCK, block=4, rate=5000.0))
    faulty = [trial("died", name=LOCK, block=2, rate=5000.0), wrong]
    kept = [kept_trial for kept_trial in trials if kept_trial.contestant == EPOLL or kept_trial.block not in (2, 4)]
    scenario = findings(run_of([*kept, *faulty]))
    assert [(standing.contestant, standing.kind) for standing in scenario.standings] == [(EPOLL, 0), (LOCK, 2)]
    assert [(fault.kind, fault.trials, fault.total) for fault in scenario.standings[1].faults] == [
        ("died", 1, 6),
        ("verification", 1, 6),
    ]
    assert f"{LOCK} ended by itself in 1 of 6 trials: died it was" in answer(scenario).sentence


@pytest.mark.parametrize(
    ("of_lock", "of_epoll", "is_own"),
    [(1, 0, False), (1, 1, False), (4, 4, True), (3, 3, False), (2, 1, False), (3, 0, False), (5, 0, True)],
)
def test_a_stall_is_the_servers_if_others_have_proven_fewer_or_it_stalls_mostly(
    of_lock: int, of_epoll: int, is_own: bool
) -> None:
    stalls = {LOCK: of_lock, EPOLL: of_epoll}
    trials = [
        trial(*(["stalled"] if block <= stalls[name] else []), name=name, block=block)
        for block in range(1, 7)
        for name in (EPOLL, LOCK)
    ]
    run = run_of(trials)
    of_lock_alone = [
        status for entry, status in zip(run.trials, statuses(run), strict=True) if entry.contestant == LOCK
    ]
    assert of_lock_alone.count("faulty") == (of_lock if is_own else 0)
    assert of_lock_alone.count("valid") == 6 - of_lock_alone.count("faulty")
    paused = [outcomes.failed(entry, "note") for entry in outcomes.judge_run(run).trials if entry.contestant == LOCK]
    assert [bool(notes) for notes in paused].count(True) == (0 if is_own else of_lock)


def test_three_stalls_among_many_still_contestants_are_the_servers() -> None:
    stalled = {LOCK: 3}
    trials = [
        trial(*(["stalled"] if block <= stalled.get(name, 0) else []), name=name, block=block)
        for block in range(1, 7)
        for name in (EPOLL, LOCK, "asio-callbacks", "libuv", "libevent")
    ]
    assert statuses(run_of(trials)).count("faulty") == 3


POSSIBLE = sorted({name for name, kind in outcomes.KINDS.items() if kind == "server"} - {"died", "backend"})
NEIGHBOUR = Neighbour(cores=2, foreign_cores=1.7, steal_cores=0.0, most_cores=1.8)
COUNTED = {"ready", "stalled", "server_alive", "server_totals", "work"}


def make_three_servers(fault: str, events: int, *, block_of_first: int = 7, beside: Neighbour | None = None) -> Run:
    """Return a run of 18 blocks of three servers; one of them has a fault in some."""
    faulty = range(block_of_first, block_of_first + events)
    trials = [
        trial(*([fault] if name == LOCK and block in faulty else []), name=name, block=block)
        for block in range(1, 19)
        for name in (EPOLL, LOCK, "libuv")
    ]
    return run_of([replace(entry, neighbour=beside) for entry in trials])


@pytest.mark.parametrize("fault", POSSIBLE)
def test_no_fault_that_a_machine_can_cause_is_proven_by_one_event(fault: str) -> None:
    """1 of 18 beside 0 of 36 has a chance of a third; 5 of 18 one of 0.3%."""
    run = make_three_servers(fault, 1)
    assert statuses(run).count("faulty") == 0
    assert statuses(run).count("struck_out") == (fault not in COUNTED)
    (scenario,) = analyse(run).scenarios
    assert [standing.kind for standing in scenario.standings] == [0, 0, 0]
    assert [(faulty.contestant, faulty.faults[0].kind, faulty.faults[0].trials) for faulty in scenario.unproven] == [
        (LOCK, fault, 1)
    ]
    assert any(f"Not proven to be the server's own: {LOCK}" in text for text in list_caveats(scenario))
    proven = make_three_servers(fault, 5)
    assert statuses(proven).count("faulty") == 5
    assert not findings(proven).unproven


def test_one_event_in_the_only_block_proves_nothing() -> None:
    assert statuses(run_of([trial("stalled", name=LOCK), trial()])) == ["valid", "valid"]
    assert statuses(run_of([trial("verification", name=LOCK), trial()])) == ["struck_out", "valid"]


def test_what_all_show_in_most_trials_is_theirs_on_a_quiet_machine_only() -> None:
    busy_machine = machine_with(1.2)
    every = [trial("stalled", name=name, block=block) for block in range(1, 7) for name in (EPOLL, LOCK)]
    crowded = [replace(entry, machine=busy_machine) for entry in every]
    beside = [replace(entry, neighbour=NEIGHBOUR) for entry in every]
    assert statuses(run_of(every)).count("faulty") == 12
    assert statuses(run_of(crowded)) == statuses(run_of(beside)) == ["valid"] * 12
    idle = [replace(entry, machine=busy_machine) for block in range(1, 7) for entry in [trial("work", block=block)]]
    assert statuses(run_of(idle)).count("faulty") == 6, "no machine computes less, as its waits are counted"


@pytest.mark.parametrize(
    ("blocks", "beside_lock", "beside_epoll", "expected"),
    [
        pytest.param(6, [1.0], [0.02], "struck_out", id="beside one of two"),
        pytest.param(6, [1.0], [1.1], "valid", id="beside both"),
        pytest.param(6, [0.2], [0.0], "valid", id="too little to matter"),
        pytest.param(6, [1.0, 0.0], [0.0, 1.0], "valid", id="in turn"),
        pytest.param(4, [1.0], [0.0], "valid", id="by chance"),
    ],
)
def test_no_trial_counts_where_others_ran_beside_one_contestant_alone(
    blocks: int, beside_lock: Sequence[float], beside_epoll: Sequence[float], expected: Status
) -> None:
    """As a server does that leaves programs behind, which work while others are measured."""
    others = {LOCK: beside_lock, EPOLL: beside_epoll}
    trials = [
        replace(trial(name=name, block=block), machine=machine_with(others[name][block % len(others[name])]))
        for block in range(1, blocks + 1)
        for name in (EPOLL, LOCK)
    ]
    assert statuses(run_of(trials)) == [expected] * 2 * blocks
    if expected == "struck_out":
        reasons = {note.cause.reason for note in analyse(run_of(trials)).excluded}
        assert reasons == {f"other programs used 1 cores beside {LOCK}, and 0.02 beside {EPOLL} (medians; p = 0.0011)"}


def machine_with(foreign_s: float) -> MachineObservation:
    return MachineObservation(cores=2, window_s=1.0, steal_s=0.0, own_s=0.5, foreign_s=foreign_s, switches=0)


def test_the_exact_test_decides_on_a_busy_machine_too() -> None:
    run = make_three_servers("stalled", 18, block_of_first=1, beside=NEIGHBOUR)
    assert statuses(run).count("faulty") == 18


def test_a_fault_at_one_level_of_many_is_proven_there() -> None:
    """5 of 5 beside 0 of 5 is proven at the level (0.4%), and not over four levels (2.4%)."""
    trials = [
        replace(trial(*(["connections"] if name == LOCK and count == 4 else []), name=name, block=block), levels=level)
        for block in range(1, 6)
        for name in (EPOLL, LOCK)
        for count in range(1, 5)
        for level in [{"connections": count}]
    ]
    crowded = [replace(entry, neighbour=NEIGHBOUR) for entry in trials]
    placed = [replace(entry, position=number) for number, entry in enumerate(crowded)]
    assert statuses(replace(run_of([]), trials=tuple(placed))).count("faulty") == 5


def test_a_server_that_never_gave_a_figure_is_named_too() -> None:
    dead = [replace(trial("died", name=LOCK, block=block, status="failed"), load=None) for block in range(1, 7)]
    scenario = findings(run_of([*(trial(block=block) for block in range(1, 7)), *dead]))
    assert [standing.contestant for standing in scenario.standings] == [EPOLL]
    assert f"Ranked separately, for their faults: {LOCK} ended by itself in 6 of 6 trials" in answer(scenario).sentence


@pytest.mark.parametrize("cause", [name for name, kind in outcomes.KINDS.items() if kind == "machine"])
def test_what_the_machine_did_is_retried(cause: str) -> None:
    assert outcomes.is_disturbed(trial(cause))
    assert outcomes.is_disturbed(trial(cause, "stalled", "completed", "connections", "generator"))
    assert not outcomes.is_disturbed(trial(cause, "died"))
    assert statuses(run_of([trial(cause), trial(attempt=2)])) == ["made_again", "valid"]
    assert statuses(run_of([trial(cause), trial(cause, attempt=2)])) == ["made_again", "struck_out"]


def test_in_an_overload_littles_law_is_no_disturbance() -> None:
    """The queue grows as long as the load lasts; a retry would end the same way."""
    late = trial("little")
    assert late.load is not None
    rate = late.load.requests.completed / late.load.plan.duration_s
    offered = {share: replace(late.load, plan=replace(late.load.plan, rate_hz=rate / share)) for share in (0.5, 1.0)}
    assert not outcomes.is_disturbed(replace(late, load=offered[0.5]))
    assert outcomes.is_disturbed(replace(late, load=offered[1.0]))
    assert statuses(run_of([replace(late, load=offered[0.5])])) == ["valid"]


def test_a_wrong_reply_is_a_fault_on_any_machine_and_a_late_one_is_not() -> None:
    disturbed = trial("verification", "steal")
    assert disturbed.load is not None
    assert not outcomes.faults(disturbed)
    corrupt = replace(disturbed, load=replace(disturbed.load, messages=replace(disturbed.load.messages, corrupt=1)))
    assert [fault.name for fault in outcomes.faults(corrupt)] == ["verification"]
    assert not outcomes.is_disturbed(corrupt)


@pytest.mark.parametrize(
    ("reset", "closed_after_reply", "established", "is_lost"),
    [
        *(
            (0, 0, 10, False),
            (9, 0, 10, False),
            (10, 0, 10, True),
            (4, 6, 10, True),
            (4, 5, 10, False),
            (0, 0, 0, True),
        ),
        (0, 500, 500, False),  # it connected again after each reply
        (500, 0, 500, True),
    ],
)
def test_all_connections_are_lost_where_each_ended_also_after_a_reply(
    reset: int, closed_after_reply: int, established: int, is_lost: bool
) -> None:
    steady = trial().load
    assert steady is not None
    ended = {"closed_after_reply": closed_after_reply, "established": established}
    ended_early = replace(steady, connections=replace(steady.connections, **ended), errors={"reset": reset})
    assert outcomes.has_lost_all_connections(ended_early) == is_lost


def test_no_right_reply_and_some_that_are_wrong_are_a_fault_on_any_machine() -> None:
    disturbed = trial("verification", "steal")
    assert disturbed.load is not None
    replies = Replies(unexpected=7, resent=0, statuses={"404": 7}, faults=(), other_faults=0)
    some_right = replace(disturbed.load, replies=replies)
    assert not outcomes.faults(replace(disturbed, load=some_right))
    none_right = replace(some_right, messages=replace(some_right.messages, received=0))
    assert [fault.name for fault in outcomes.faults(replace(disturbed, load=none_right))] == ["verification"]


@pytest.mark.parametrize(("transport", "faults"), [("tcp", ["verification"]), ("udp", [])])
def test_a_copy_is_a_wrong_reply_unless_the_transport_may_make_copies(transport: str, faults: Sequence[str]) -> None:
    disturbed = trial("verification", "steal")
    assert disturbed.load is not None
    plan = replace(disturbed.load.plan, url=f"{transport}://127.0.0.1:1")
    copied = replace(disturbed.load.messages, duplicated=1)
    load = replace(disturbed.load, plan=plan, messages=copied)
    assert [fault.name for fault in outcomes.faults(replace(disturbed, load=load))] == faults


def test_beside_a_client_contestant_none_is_blamed() -> None:
    run = run_of([trial("verification"), trial(name=LOCK)], client="asyncio")
    assert statuses(run) == ["struck_out", "valid"]
    assert not findings(run).faulty


def test_a_note_takes_nothing_away() -> None:
    assert outcomes.verdict((Audit(name="stationary", passed=False, detail="a step"),)) == ("valid", "")
    assert statuses(run_of([trial("stationary"), trial(name=LOCK)])) == ["valid", "valid"]


def test_one_saturated_trial_of_many_counts_and_a_cell_of_them_is_a_bound_for_all() -> None:
    few = [busy(trial("generator", block=1), 0.9), *(busy(trial(block=block), 0.8) for block in range(2, 7))]
    slow = [busy(trial(name=LOCK, block=block, rate=500.0), 0.4) for block in range(1, 7)]
    assert statuses(run_of([*few, *slow])) == ["valid"] * 12
    many = [busy(trial("generator", block=block), 0.9) for block in range(1, 7)]
    run = run_of([*many, *slow])
    assert statuses(run) == ["censored"] * 12
    scenario = findings(run)
    assert [cell.contestant for cell in scenario.censored] == [EPOLL]
    assert scenario.censored[0].share == pytest.approx(0.9)
    assert scenario.standings[0].contestant == EPOLL  # the fast one does not disappear
    assert {axis.metric: axis.bound for axis in scenario.axes} | {"cpu": "", "memory": ""} == {
        "throughput": "at least",
        "p50": "at most",
        "p99": "at most",
        "cpu": "",
        "memory": "",
    }
    assert "at least" in answer(scenario).sentence
    assert any("the generator was at its limit" in text for text in list_caveats(scenario))


def test_a_cell_of_which_half_saturates_the_generator_is_no_bound() -> None:
    half = [busy(trial(*["generator"] * (block < 4), block=block), 0.9) for block in range(1, 7)]
    assert not outcomes.saturated(run_of(half))
    more = [busy(trial(*["generator"] * (block < 5), block=block), 0.9) for block in range(1, 7)]
    assert [saturated.contestant for saturated in outcomes.saturated(run_of(more))] == [EPOLL]


def test_a_lag_alone_saturates_nothing() -> None:
    run = run_of([busy(trial("generator", block=block), 0.2) for block in range(1, 7)])
    assert statuses(run) == ["valid"] * 6


def with_response(trial: Trial, ns: int, lag_ns: int) -> Trial:
    assert trial.load is not None
    load: LoadResult = trial.load
    response = replace(load.latency.response_ns, p50=ns, p99=ns)
    lag = replace(load.send_lag_ns, p50=lag_ns, p99=lag_ns)
    return replace(trial, load=replace(load, latency=replace(load.latency, response_ns=response), receive_lag_ns=lag))


def test_the_generators_own_part_is_held_against_the_shortest_of_all() -> None:
    """So a slow server does not keep what a fast one loses."""
    fast = [with_response(trial(block=block), 30_000, 10_000) for block in range(1, 7)]
    slow = [with_response(trial(name=LOCK, block=block), 300_000, 10_000) for block in range(1, 7)]
    scenario = findings(run_of([*fast, *slow]))
    assert {(bar.percentile, bar.receive_ns, bar.shortest_ns) for bar in scenario.error_bars} == {
        ("p50", 10_000, 30_000),
        ("p99", 10_000, 30_000),
    }
    assert {axis.bound for axis in scenario.axes if axis.metric in ("p50", "p99")} == {"at most"}
    assert not findings(run_of(slow)).error_bars


def test_times_that_the_kernel_ended_hold_nothing_of_the_generators_reading() -> None:
    def by_kernel(trial: Trial) -> Trial:
        assert trial.load is not None
        return replace(trial, load=replace(trial.load, latency=replace(trial.load.latency, clock="kernel")))

    trials = [with_response(trial(block=block), 30_000, 10_000) for block in range(1, 7)]
    assert findings(run_of(trials)).error_bars
    assert not findings(run_of([by_kernel(measured) for measured in trials])).error_bars


def silent(wait_s: float = 0.0, sent: int = 100, received: int = 0, alive: bool = False, **connections: int) -> Trial:
    """Return a trial of a server that answered nothing, on a disturbed machine."""
    quiet = trial("steal", "verification", "completed", *([] if alive else ["server_alive"]))
    assert quiet.load is not None
    assert quiet.server is not None
    load = replace(
        quiet.load,
        messages=replace(quiet.load.messages, sent=sent, received=received),
        connections=replace(quiet.load.connections, **connections),
    )
    return replace(quiet, load=load, server=replace(quiet.server, run_queue_wait_s=wait_s))


def test_a_server_that_answers_nothing_though_it_has_its_core_is_at_fault_on_any_machine() -> None:
    assert [fault.name for fault in outcomes.faults(silent())] == ["completed"]
    assert not outcomes.is_disturbed(silent())
    window_s = trial().server.window_s  # type: ignore[union-attr]
    assert not outcomes.faults(silent(wait_s=0.6 * window_s)), "it waited for a core"
    assert not outcomes.faults(silent(received=1)), "it answered once"
    assert not outcomes.faults(silent(alive=True)), "it answered at the end"
    assert not outcomes.faults(replace(silent(), server=None)), "nothing is known of its core"


def test_a_server_that_refuses_every_connection_is_at_fault_and_no_generator() -> None:
    refused = silent(sent=0, established=0, refused=20)
    assert outcomes.faults(replace(refused, server=None))
    assert not outcomes.faults(silent(sent=0, established=0, timed_out=20)), "a busy machine may be too late for that"
    load = refused.load
    assert load is not None
    paced = replace(load, plan=replace(load.plan, rate_hz=100.0))
    behind = Audit(name="achieved_rate", passed=False, detail="it sent nothing")
    assert not outcomes.is_beyond(replace(refused, load=paced, audits=(*refused.audits, behind)))


def test_a_server_that_lets_no_client_stay_is_reported_on_any_machine() -> None:
    """The missing answers follow from that and are no fault of their own."""

    def name_faults(trial: Trial) -> list[str]:
        dropped = Audit(name="connections", passed=False, detail="20 of 20 refused")
        return [fault.name for fault in outcomes.faults(replace(trial, audits=(*trial.audits, dropped)))]

    assert name_faults(silent(sent=0, established=0, refused=20)) == ["connections", "completed"]
    assert name_faults(silent(sent=0, established=0, timed_out=20)) == []
    assert name_faults(silent()) == ["completed"], "the connections that it has are not all gone"


def test_what_was_not_answered_at_all_is_no_bound() -> None:
    """A generator that is behind its schedule is not why nothing was answered."""
    behind = trial("completed", "achieved_rate")
    assert behind.load is not None
    load = replace(behind.load, plan=replace(behind.load.plan, rate_hz=1000.0))
    beyond = replace(behind, load=load, status="struck_out")
    assert outcomes.is_beyond(beyond)
    assert statuses(run_of([beyond])) == ["struck_out"]
    assert outcomes.by_itself(beyond) == "struck_out"


def test_the_cause_is_reported_before_what_follows_from_it() -> None:
    def first(faulty: Trial) -> str:
        return outcomes.faults(faulty)[0].name

    dead = trial("verification", "connections", "completed", "died")
    assert first(dead) == "died"
    without = replace(dead, audits=dead.audits[:-1])
    assert first(without) == "connections"
    assert without.load is not None
    wrong = replace(without, load=replace(without.load, messages=replace(without.load.messages, corrupt=1)))
    assert first(wrong) == "verification"

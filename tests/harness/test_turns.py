"""Trials in turns, with fake programs: faults of one contestant and of all, and that no process is left."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from netdyno.analysis.notices import retries
from netdyno.measure.audits import turn_audits
from netdyno.measure.machine import cpu_share, server_proc
from netdyno.measure.machine.foreign_programs import ForeignPrograms, ForeignTime
from netdyno.measure.machine.pinning import may_run_realtime
from netdyno.measure.machine.server_processes import Edges, ProcessCpu, compute_measured_s
from netdyno.measure.run import runner
from netdyno.measure.run.interrupts import Interrupted, raise_on_signals
from netdyno.measure.trial import load as generate
from netdyno.measure.trial import turns
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.prepared import record_skip
from netdyno.measure.trial.turns import (
    PAUSE,
    Contender,
    SliceReading,
    add_observations,
    judge_together,
    read_own_cpu_at,
    run_in_turns,
    stands_a_witness,
)
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad, MachineObservation, Neighbour
from netdyno.model.options import Settings
from netdyno.model.run import Run
from netdyno.model.trial import Slice, Trial
from netdyno.present.prose import retries as retries_words
from netdyno.question import side_by_side
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from tests.support.builders import made_load
from tests.support.builders.made_blocks import Silent
from tests.support.fixtures import FAKES, PYTHON
from tests.support.patience import PATIENCE_S

SCENARIO = Scenario(name="echo", workload="echo", connections=2, warmup_s=0.06, duration_s=0.225, timeout_s=1.0)
NEEDED_TURNS = 5
"""The turns of this window in the shortest slices."""
LONGER = msgspec.structs.replace(SCENARIO, duration_s=0.405)
LONGER_TURNS = 9
"""For the orders of many turns, and for CPU, which a busy machine shifts from one slice to another."""
NAMES = ("a", "b", "c")
NEIGHBOUR = Neighbour(cores=2, foreign_cores=1.0, steal_cores=0.0, most_cores=1.0, programs=())


@pytest.fixture(autouse=True)
def _shortest_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many turns in a short window."""
    monkeypatch.setattr(side_by_side, "LONGEST_S", side_by_side.SHORTEST_S)


def with_mode(contestant: Contestant, name: str, mode: str = "good") -> Contestant:
    """Return a fake server of this name, which misbehaves in this mode."""
    command = ("/usr/bin/env", f"FAKE_SERVER={mode}", *PYTHON, str(FAKES / "server.py"))
    manifest = msgspec.structs.replace(contestant.manifest, run=command)
    return msgspec.structs.replace(contestant, name=name, manifest=manifest, command=command)


def run(contestant: Contestant, context: TrialContext, *modes: str, scenario: Scenario = SCENARIO) -> list[Trial]:
    """Run fake servers in turns, each in its mode."""
    group = [
        (Cell(block=1, position=place, scenario="echo", contestant=name, levels={}), with_mode(contestant, name, mode))
        for place, (name, mode) in enumerate(zip(NAMES, modes, strict=False))
    ]
    return run_in_turns(group, scenario, context)


def statuses(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    return [(trial.status, trial.reason) for trial in trials]


def open_descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def orders(trials: Sequence[Trial]) -> list[str]:
    """Return the order of the contestants in each turn."""
    places = {(part.turn, part.place): trial.contestant for trial in trials for part in trial.slices}
    return [
        "".join(places[turn, place] for place in range(len(trials))) for turn in sorted({turn for turn, _ in places})
    ]


def disturb(monkeypatch: pytest.MonkeyPatch, is_disturbed: Callable[[int], bool]) -> None:
    """Replace the machine's own: in these turns, counted from 0, the hypervisor takes half a core."""
    taken = [0]

    def observe(_: object, __: object, ___: object, *without: object) -> MachineObservation:
        if not without:  # of the whole turn, with its retried slices
            return MachineObservation(cores=2, window_s=0.2, steal_s=0.0, own_s=0.1, foreign_s=0.0, switches=10)
        taken[0] += 1
        steal_s = 0.1 if is_disturbed(taken[0] - 1) else 0.0
        return MachineObservation(cores=2, window_s=0.2, steal_s=steal_s, own_s=0.1, foreign_s=0.0, switches=10)

    monkeypatch.setattr(cpu_share, "compute_observation", observe)
    meet(monkeypatch, [])


def test_all_take_as_many_turns_each_order_and_then_its_reverse(contestant: Contestant, context: TrialContext) -> None:
    before = open_descriptors()
    trials = run(contestant, context, "good", "good", "good", scenario=LONGER)
    assert statuses(trials) == [("valid", "")] * 3
    assert [trial.contestant for trial in trials] == list(NAMES)
    all_orders = orders(trials)
    assert len(all_orders) == LONGER_TURNS
    assert all(sorted(order) == list(NAMES) for order in all_orders)
    assert [order[::-1] for order in all_orders[:-1:2]] == all_orders[1::2]
    assert len(set(all_orders[::2])) > 1
    for trial in trials:
        assert all(part.kept for part in trial.slices)
        assert trial.load is not None
        assert trial.load.requests.sent == sum(part.sent for part in trial.slices) == LONGER_TURNS * 6
        assert trial.load.messages.sent > trial.load.requests.sent  # the warm-up's
    assert open_descriptors() == before
    assert orders(run(contestant, context, "good", "good", "good", scenario=LONGER)) == all_orders
    assert {path.suffix for path in (context.folder / "logs").iterdir()} == {".log"}


@pytest.mark.parametrize(
    ("workload", "arrivals", "stands"),
    [("rpc", "poisson", True), ("rpc", "constant", True), ("rpc", "closed", False), ("chat", "poisson", False)],
)
def test_a_witness_is_only_where_it_changes_nothing(
    workload: str, arrivals: Literal["poisson", "constant", "closed"], stands: bool
) -> None:
    assert stands_a_witness(Settings(workload=workload, arrivals=arrivals)) is stands


def test_the_harness_waits_on_its_own_core_and_sees_what_becomes_of_all(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = os.sched_getaffinity(0), max(os.sched_getaffinity(0))
    in_turns = set()
    take = cpu_share.take

    def watch(processes: Sequence[int]) -> cpu_share.MachineSnapshot:
        in_turns.add(frozenset(os.sched_getaffinity(0)))
        return take(processes)

    monkeypatch.setattr(cpu_share, "take", watch)
    pinning = msgspec.structs.replace(context.pinning, harness=(own,))
    for trial in run(contestant, msgspec.structs.replace(context, pinning=pinning), "good", "good"):
        assert (trial.status, trial.machine is not None and trial.machine.cores) == ("valid", len(before))
    assert frozenset({own}) in in_turns
    assert os.sched_getaffinity(0) == before


def test_a_disturbed_turn_is_dropped_for_all_and_one_more_is_made(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda turn: turn in (0, 3))
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    for trial in trials:
        assert [part.turn for part in trial.slices if not part.kept] == [0, 3]
        assert len(trial.slices) == NEEDED_TURNS + 2
        assert trial.load is not None
        assert trial.load.requests.sent == sum(part.sent for part in trial.slices if part.kept)
        assert trial.machine is not None
        assert trial.machine.steal_s == 0.0
        assert trial.machine.window_s == pytest.approx(NEEDED_TURNS * 0.2)


def meet(monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float]) -> None:
    """Replace the machine's own: a foreign program runs so long in the first slices, and not at all after them. The
    hypervisor takes nothing."""
    left = list(seconds)

    def find(*_: object) -> ForeignTime:
        return ForeignTime("kdamond.0", left.pop(0)) if left else ForeignTime()

    monkeypatch.setattr(ForeignPrograms, "find_longest", find)
    monkeypatch.setattr(cpu_share, "compute_steal_s", lambda *_: 0.0)


SLICE_S = side_by_side.SKIPPED_S + side_by_side.SHORTEST_S
LIMIT_S = turn_audits.FOREIGN_SHARE * SLICE_S * len(os.sched_getaffinity(0))


def test_a_slice_that_a_program_of_others_disturbed_is_retried_at_once(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda _: False)
    meet(monkeypatch, [0.9 * LIMIT_S, 1.1 * LIMIT_S, 1.1 * LIMIT_S, 0.0])
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    first, second = sorted(trials, key=lambda trial: min(part.place for part in trial.slices if part.turn == 0))
    assert [(part.turn, part.kept, part.foreign_program) for part in second.slices[:4]] == [
        (0, False, "kdamond.0"),
        (0, False, "kdamond.0"),
        (0, True, ""),
        (1, True, ""),
    ]
    assert [part.kept for part in first.slices] == [True] * NEEDED_TURNS
    for trial in trials:
        assert len([part for part in trial.slices if part.kept]) == NEEDED_TURNS
        assert trial.load is not None
        assert trial.load.requests.sent == sum(part.sent for part in trial.slices if part.kept) == NEEDED_TURNS * 6
    totals = retries.summarise_retries(trials, 1)
    assert totals.slices_again == {"kdamond.0": 2}
    assert totals.turns_dropped == 0
    assert totals.slices_by_contestant == {
        first.contestant: (0, NEEDED_TURNS),
        second.contestant: (2, NEEDED_TURNS + 2),
    }
    assert f"disturbed 2 of {2 * NEEDED_TURNS + 2} slices, which were retried" in retries_words.describe_retries(totals)


def test_a_slice_of_which_the_hypervisor_took_a_part_is_retried_and_its_turn_is_kept(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet(monkeypatch, [])
    stolen = [0.01, 0.01, 0.0]
    monkeypatch.setattr(cpu_share, "compute_steal_s", lambda *_: stolen.pop(0) if stolen else 0.0)
    observe, left_out = cpu_share.compute_observation, []

    def see(
        before: cpu_share.MachineSnapshot,
        after: cpu_share.MachineSnapshot,
        cores: Collection[int],
        without: Sequence[tuple[cpu_share.MachineSnapshot, cpu_share.MachineSnapshot]] | None = None,
    ) -> MachineObservation | None:
        if without is None:
            return MachineObservation(
                cores=2, window_s=after.at_s - before.at_s, steal_s=0.02, own_s=0.0, foreign_s=0.0, switches=0
            )
        left_out.append(without)
        observed, whole = observe(before, after, cores, without), observe(before, after, cores)
        assert observed is not None
        assert whole is not None
        assert whole.window_s - observed.window_s == pytest.approx(sum(last.at_s - at.at_s for at, last in without))
        return msgspec.structs.replace(observed, foreign_s=0.0, steal_s=0.0)

    monkeypatch.setattr(cpu_share, "compute_observation", see)
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    assert sorted(len(trial.slices) for trial in trials) == [NEEDED_TURNS, NEEDED_TURNS + 2]
    assert [len(spans) for spans in left_out] == [2] + [0] * (NEEDED_TURNS - 1)
    assert retries.summarise_retries(trials, 1).slices_again == {PAUSE: 2}
    assert retries.summarise_retries(trials, 1).turns_dropped == 0


def test_a_turn_of_which_the_hypervisor_took_much_is_dropped_though_its_last_tries_show_none(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet(monkeypatch, [])
    wholes = [0]

    def see(before: cpu_share.MachineSnapshot, after: cpu_share.MachineSnapshot, *rest: object) -> MachineObservation:
        wholes[0] += len(rest) == 1
        steal_s = 0.1 if len(rest) == 1 and wholes[0] == 1 else 0.0
        window_s = after.at_s - before.at_s
        return MachineObservation(cores=2, window_s=window_s, steal_s=steal_s, own_s=0.1, foreign_s=0.0, switches=10)

    monkeypatch.setattr(cpu_share, "compute_observation", see)
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    for trial in trials:
        assert [part.turn for part in trial.slices if not part.kept] == [0]


def pause(monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float]) -> None:
    """Replace the machine's own: pauses of a core in the first slices that are measured, and none after them."""
    left, take_slice = list(seconds), Contender.take_slice

    def take(contender: Contender, turn: int, place: int, rivals: Sequence[Contender]) -> bool:
        taken = take_slice(contender, turn, place, rivals)
        contender.note_foreign(ForeignTime(PAUSE, left.pop(0) if left else 0.0))
        return taken

    monkeypatch.setattr(Contender, "take_slice", take)


def test_a_slice_in_which_the_machine_let_nothing_run_is_retried(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda _: False)
    meet(monkeypatch, [0.1 * LIMIT_S] * 2)
    pause(monkeypatch, [1.1 * LIMIT_S, 0.9 * LIMIT_S])
    measured_s = itertools.chain([1000.0], itertools.repeat(0.02))  # far more than the server uses
    monkeypatch.setattr(turns, "compute_measured_s", lambda *_: next(measured_s))
    strict = msgspec.structs.replace(context, foreign_load="strike-out")
    trials = run(contestant, strict, "good", "good", scenario=LONGER)
    assert statuses(trials) == [("valid", "")] * 2
    first, second = sorted(trials, key=lambda trial: len(trial.slices), reverse=True)
    assert [(part.turn, part.kept, part.foreign_program) for part in first.slices[:2]] == [
        (0, False, PAUSE),
        (0, True, PAUSE),
    ]
    assert [len(first.slices), len(second.slices)] == [LONGER_TURNS + 1, LONGER_TURNS]
    assert retries.summarise_retries(trials, 1).slices_again == {PAUSE: 1}
    assert first.server is not None
    assert first.load is not None
    kept = [part for part in first.slices if part.kept]
    measured = first.load.requests.sent / sum(part.sent for part in kept)
    of_kept_s = sum(part.cpu_s + measured * part.later_cpu_s for part in kept)
    assert [part.cpu_s for part in first.slices if not part.kept] == [1000.0]
    assert of_kept_s <= first.server.cpu_s * 1.000001
    assert first.server.cpu_s < 1.5 * of_kept_s, "nothing else is charged"


@pytest.mark.parametrize(("realtime", "arrivals"), [(True, "constant"), (False, "constant"), (True, "closed")])
def test_cores_are_witnessed_in_an_open_loop_where_a_witness_may_run_before_server_and_generator(
    realtime: bool, arrivals: Literal["constant", "closed"], contestant: Contestant, context: TrialContext
) -> None:
    cores = sorted(os.sched_getaffinity(0))
    pinning = msgspec.structs.replace(
        context.pinning, server=(cores[0],), generator=(cores[-1],), realtime=realtime and may_run_realtime()
    )
    scenario = SCENARIO
    if arrivals != "closed":
        scenario = msgspec.structs.replace(scenario, arrivals=arrivals, rate=200.0)
    (trial,) = run(contestant, msgspec.structs.replace(context, pinning=pinning), "good", scenario=scenario)
    assert trial.status == "valid"
    (log,) = (context.folder / "logs").iterdir()
    witnessed = "--witness" in log.read_text()
    assert witnessed == (pinning.realtime and arrivals == "constant")


def test_a_program_that_never_rests_is_left_to_the_audit_of_the_turn(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda _: False)
    meet(monkeypatch, [2 * LIMIT_S] * 1000)
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    assert sum(len(trial.slices) for trial in trials) == 3 * 2 * NEEDED_TURNS, "twice as many again, and no more"
    assert [part.turn for part in trials[0].slices if part.kept] == list(range(NEEDED_TURNS))


def test_where_no_try_is_left_a_lost_slice_costs_the_turn_for_all(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda _: False)
    spent = [2 * LIMIT_S] * (3 * 2 * NEEDED_TURNS - 2)  # all retries, and all slices but those of the last turn
    lost_s = 1.1 * turn_audits.LOST_SHARE / turn_audits.FOREIGN_SHARE * LIMIT_S
    meet(monkeypatch, [*spent, lost_s])
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    assert statuses(trials) == [("valid", "")] * 2
    for trial in trials:
        assert [part.turn for part in trial.slices if part.kept] == [*range(NEEDED_TURNS - 1), NEEDED_TURNS]
        assert all(part.foreign_s < lost_s for part in trial.slices if part.kept)
    totals = retries.summarise_retries(trials, 1)
    assert totals.turns_dropped == 1
    assert "; 1 turn had to be dropped for all contestants." in retries_words.describe_retries(totals)


@pytest.mark.parametrize(("foreign_load", "neighbour"), [("count", None), ("strike-out", NEIGHBOUR)])
def test_where_foreign_load_is_expected_no_slice_is_retried(
    foreign_load: ForeignLoad,
    neighbour: Neighbour | None,
    contestant: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disturb(monkeypatch, lambda _: False)
    meet(monkeypatch, [2 * LIMIT_S] * 1000)
    trials = run(
        contestant, msgspec.structs.replace(context, foreign_load=foreign_load, neighbour=neighbour), "good", "good"
    )
    assert [len(trial.slices) for trial in trials] == [NEEDED_TURNS] * 2
    assert all(part.foreign_s == 2 * LIMIT_S for trial in trials for part in trial.slices)


@pytest.mark.parametrize("kept", [0, 2])
def test_where_too_many_turns_are_dropped_no_trial_of_the_group_is_valid(
    kept: int, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    disturb(monkeypatch, lambda turn: turn >= kept)
    trials = run(contestant, msgspec.structs.replace(context, foreign_load="strike-out"), "good", "good")
    for trial in trials:
        assert trial.status == "struck_out"
        assert f"turns: {kept} of {NEEDED_TURNS} turns count; netdyno dropped {2 * NEEDED_TURNS + 1}" in trial.reason
        assert outcomes.is_disturbed(trial)
        assert outcomes.had_company(trial)
        assert (trial.load is None) == (kept == 0)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("dies_under_load", "the server ended with signal SIGKILL under load: out of luck"),
        ("dies_at_start", "ended with exit code 3"),
    ],
)
def test_a_server_that_ends_fails_alone(mode: str, reason: str, contestant: Contestant, context: TrialContext) -> None:
    first, failed, last = run(contestant, context, "good", mode, "good")
    assert statuses([first, last]) == [("valid", "")] * 2
    assert failed.status == "failed"
    assert reason in failed.reason


def test_a_server_that_ends_between_its_slices_fails_alone(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed within the slice of another, which used no less CPU for that."""
    make_slice, slices_of_b = Contender._wait_slice_end, [0]
    contenders: dict[str, Contender] = {}

    def kill_and_make(contender: Contender) -> generate.LoadEvent:
        contenders[contender.name] = contender
        slices_of_b[0] += contender.name == "b"
        if contender.name == "b" and slices_of_b[0] == 5:
            server = contenders["a"].server
            os.kill(server.pid, signal.SIGKILL)
            assert server.wait(time.monotonic() + PATIENCE_S)
            server.exit_code()  # reaped, so that its clock is gone
        return make_slice(contender)

    monkeypatch.setattr(Contender, "_wait_slice_end", kill_and_make)
    failed, *survivors = run(contestant, context, "good", "good", "good")
    assert statuses(survivors) == [("valid", "")] * 2
    assert failed.status == "failed"
    assert "ended with signal SIGKILL" in failed.reason
    assert all(part.others_cpu_s >= 0 for trial in survivors for part in trial.slices)


def test_a_generator_that_fails_ends_its_contestant_alone(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_slice = Contender.take_slice

    def kill_and_take(contender: Contender, turn: int, place: int, rivals: Sequence[Contender]) -> bool:
        if (turn, contender.name) == (1, "a"):
            os.kill(contender.load.process.pid, signal.SIGKILL)
        return take_slice(contender, turn, place, rivals)

    monkeypatch.setattr(Contender, "take_slice", kill_and_take)
    failed, survivor = run(contestant, context, "good", "good")
    assert statuses([survivor]) == [("valid", "")]
    assert failed.status == "failed"
    assert "generator ended with signal SIGKILL" in failed.reason
    assert failed.audits == ()  # not the server's fault


def test_what_all_generators_do_wrong_is_the_reason_of_each(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "fails")
    trials = run(contestant, context, "good", "good")
    assert {trial.status for trial in trials} == {"failed"}
    assert all("something is wrong here" in trial.reason for trial in trials)


def test_a_server_that_miscounts_is_reported_by_its_totals_alone(contestant: Contestant, context: TrialContext) -> None:
    good, wrong = run(contestant, context, "good", "miscounts")
    assert good.status == "valid"
    assert wrong.status == "struck_out"
    assert not outcomes.is_disturbed(wrong)


def test_a_server_that_is_busy_beside_others_is_reported_and_its_group_retried(
    contestant: Contestant, context: TrialContext
) -> None:
    calm, busy = run(contestant, context, "good", "never_rests", scenario=LONGER)
    assert busy.status == calm.status == "struck_out"
    assert "side_by_side: b and its load used" in busy.reason
    assert "side_by_side" not in calm.reason
    assert calm.reason == "turns: the trial of b in the same turns was disturbed"


@pytest.mark.parametrize("mode", ["burns_in_orphan", "burns_in_sibling"])
def test_a_program_that_a_server_has_detached_is_watched_in_the_slices_of_others(
    mode: str, contestant: Contestant, context: TrialContext
) -> None:
    calm, busy = run(contestant, context, "good", mode, scenario=LONGER)
    assert "side_by_side: b and its load used" in busy.reason
    assert "side_by_side" not in calm.reason


@pytest.mark.parametrize("mode", ["works", "defers", "serves_as_orphan", "serves_as_sibling"])
def test_the_work_of_a_message_is_charged_to_any_process_at_any_time(
    mode: str, contestant: Contestant, context: TrialContext
) -> None:
    idle, works = run(contestant, context, "good", mode, scenario=LONGER)
    work_s = 0.0005  # MESSAGE_S of the fake server
    assert idle.server is not None
    assert works.server is not None
    assert works.load is not None
    messages = works.load.requests.sent
    assert works.server.cpu_s - idle.server.cpu_s > 0.6 * messages * work_s, "a busy machine shifts a slice or two"
    if mode == "defers":
        assert sum(part.later_cpu_s for part in works.slices) > 0.1 * messages * work_s


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_turn_leaves_no_process(
    number: signal.Signals, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_slice, before = Contender.take_slice, open_descriptors()
    earlier = set(server_proc.find_children(os.getpid()))

    def hit(contender: Contender, turn: int, place: int, rivals: Sequence[Contender]) -> bool:
        if (turn, place) == (1, 1):
            os.kill(os.getpid(), number)
        return take_slice(contender, turn, place, rivals)

    monkeypatch.setattr(Contender, "take_slice", hit)
    with raise_on_signals(), pytest.raises(Interrupted):
        run(contestant, context, "good", "good")
    assert set(server_proc.find_children(os.getpid())) <= earlier
    assert open_descriptors() == before
    assert {path.suffix for path in (context.folder / "logs").iterdir()} == {".log"}


def test_where_one_of_a_group_was_disturbed_all_but_the_failed_are_retried() -> None:
    def trial(name: str, *, busy: bool = False) -> Trial:
        base = record_skip(Cell(block=1, position=0, scenario="s", contestant=name, levels={}), "")
        audits = (turn_audits.turns(8, 8, 0), turn_audits.side_by_side(name, 0.5 if busy else 0.0, 1.0))
        status, reason = outcomes.verdict(audits)
        return msgspec.structs.replace(base, status=status, reason=reason, audits=audits)

    calm, busy = trial("calm"), trial("busy", busy=True)
    failed = msgspec.structs.replace(calm, status="failed", reason="it ended")
    assert judge_together([]) == []
    assert judge_together([calm, failed]) == [calm, failed]
    again, unchanged, still_failed = judge_together([calm, busy, failed])
    assert (unchanged, still_failed) == (busy, failed)
    assert again.status == "struck_out"
    assert outcomes.is_disturbed(again)
    assert [audit.name for audit in again.audits] == ["side_by_side", "turns"]


def test_what_was_seen_in_two_turns_is_added() -> None:
    observation = MachineObservation(
        cores=2, window_s=0.2, steal_s=0.01, own_s=0.1, foreign_s=0.02, switches=10, softirq_s={0: 0.1}, throttled_s=0.5
    )
    assert add_observations(None, observation) == add_observations(observation, None) == observation
    assert add_observations(None, None) is None
    both = add_observations(observation, observation)
    assert both is not None
    assert (both.cores, both.window_s, both.steal_s, both.switches) == (2, 0.4, 0.02, 20)
    assert (both.own_s, both.foreign_s, both.softirq_s, both.throttled_s) == (0.2, 0.04, {0: 0.2}, 1.0)
    unknown = add_observations(observation, msgspec.structs.replace(observation, throttled_s=None))
    assert unknown is not None
    assert unknown.throttled_s is None


def test_a_generator_that_hangs_ends_its_contestant(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "hangs")
    trials = run(contestant, msgspec.structs.replace(context, slack_s=0.2), "good", "good")
    assert {trial.status for trial in trials} == {"failed"}
    assert all("the generator reported nothing within" in trial.reason for trial in trials)


ASKED = Experiment(name="tiny", question="Does it work?", scenarios=(SCENARIO,)).with_each(
    contestants=NAMES[:2], blocks=3
)


def carry_out(servers: Sequence[Contestant], tmp_path: Path, build: Path, **fields: object) -> Run:
    """Run fake servers through a whole run."""
    experiment = ASKED.with_each(contestants=tuple(server.name for server in servers), **fields)
    outcome = runner.execute(
        experiment,
        servers,
        results=tmp_path / "results",
        build=build,
        argv=["netdyno", "run"],
        display=Silent(),
        foreign_load="count",
        trace="never",
    )
    return read.load(outcome.folder / schema.FILE_NAME)


def test_a_server_that_is_busy_beside_others_is_alone_from_then_on(
    contestant: Contestant, tmp_path: Path, fake_build: Path
) -> None:
    modes = ("good", "never_rests", "good")
    servers = [with_mode(contestant, name, mode) for name, mode in zip(NAMES, modes, strict=True)]
    run = carry_out(servers, tmp_path, fake_build, blocks=2)
    first = [trial for trial in run.trials if (trial.block, trial.attempt) == (1, 1)]
    assert {trial.status for trial in first} == {"struck_out"}
    later = [trial for trial in run.trials if trial not in first]
    assert {trial.status for trial in later} == {"valid"}
    assert sorted((trial.block, trial.contestant) for trial in later) == [
        (block, name) for block in (1, 2) for name in NAMES
    ]
    assert {trial.contestant for trial in later if not trial.slices} == {"b"}
    assert {trial.contestant for trial in later if trial.slices} == {"a", "c"}
    # This holds in a resumed run, too, which knows only the stored trials.
    assert side_by_side.find_busy(run.trials, "echo") == {"b"}


def test_where_one_does_not_keep_up_with_the_rate_all_are_alone_from_then_on(
    contestant: Contestant, tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_slice = Contender._wait_slice_end

    def make_late(contender: Contender) -> generate.LoadEvent:
        event = make_slice(contender)
        if contender.name == "b" and contender.prepared.settings.connections == 2:
            time.sleep(0.06)
        return event

    monkeypatch.setattr(Contender, "_wait_slice_end", make_late)
    servers = [with_mode(contestant, name) for name in NAMES[:2]]
    factors = {"connections": (1, 2)}
    run = carry_out(servers, tmp_path, fake_build, arrivals="constant", rate=1000, factors=factors, blocks=2)
    late = [trial for trial in run.trials if trial.levels["connections"] == 2]
    first = [trial for trial in late if (trial.block, trial.attempt) == (1, 1)]
    assert (
        "backlog: the last answers of a slice of 70 ms came" in {trial.contestant: trial.reason for trial in first}["b"]
    )
    assert all(trial.slices and outcomes.is_disturbed(trial) for trial in first)
    alone = [trial for trial in late if trial not in first]
    assert {(trial.block, trial.contestant) for trial in alone} == {(1, "a"), (1, "b"), (2, "a"), (2, "b")}
    assert {(trial.slices, trial.alone) for trial in alone} == {((), side_by_side.BEHIND)}
    assert all(trial.slices for trial in run.trials if trial.levels["connections"] == 1)


@pytest.mark.parametrize(("arrivals", "is_alone"), [("closed", True), ("constant", False)])
def test_where_threads_need_longer_than_a_slice_all_are_alone_from_then_on(
    arrivals: str,
    is_alone: bool,
    contestant: Contestant,
    tmp_path: Path,
    fake_build: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a closed loop: an open one leaves the cores of the server idle."""
    monkeypatch.setattr(turn_audits, "THREAD_SLICE_S", 1.0)
    rate = None if arrivals == "closed" else 1000
    servers = [with_mode(contestant, name) for name in NAMES[:2]]
    run = carry_out(servers, tmp_path, fake_build, arrivals=arrivals, rate=rate, blocks=2)
    in_turns = [trial for trial in run.trials if trial.slices]
    if not is_alone:
        assert len(in_turns) == len(run.trials)
        return
    assert {(trial.block, trial.attempt) for trial in in_turns} == {(1, 1)}
    assert all("rotation: 1 threads on " in trial.reason for trial in in_turns)
    alone = [trial for trial in run.trials if trial not in in_turns]
    assert {(trial.block, trial.contestant) for trial in alone} == {(1, "a"), (1, "b"), (2, "a"), (2, "b")}
    assert {trial.alone for trial in alone} == {side_by_side.ROTATING}


def test_the_cpu_of_a_slice_is_read_at_the_edges_of_its_measured_part(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_s, read_s = list[float](), list[float]()
    announce, read_own_at = Contender._announce_slice, read_own_cpu_at

    def note_beginning(contender: Contender) -> float:
        begun_s.append(announce(contender))
        read_s.clear()
        return begun_s[-1]

    def note_reading(moment_s: float, pids: Sequence[int]) -> dict[int, float]:
        read = read_own_at(moment_s, pids)
        read_s.append(time.monotonic())
        return read

    def wait_end(contender: Contender) -> generate.LoadEvent:
        assert len(read_s) in (0, 2), "none in the warm-up, and both before the wait for the last answers"
        for moment_s, after_s in zip(read_s, (side_by_side.SKIPPED_S, SLICE_S), strict=False):
            assert moment_s >= begun_s[-1] + after_s
        return wait_slice_end(contender)

    wait_slice_end = Contender._wait_slice_end
    monkeypatch.setattr(Contender, "_announce_slice", note_beginning)
    monkeypatch.setattr("netdyno.measure.trial.turns.read_own_cpu_at", note_reading)
    monkeypatch.setattr(Contender, "_wait_slice_end", wait_end)
    monkeypatch.setattr("netdyno.measure.trial.turns.compute_measured_s", lambda *_: 0.001)
    for trial in run(contestant, context, "good", "good"):
        assert trial.server is not None
        assert trial.server.cpu_s == pytest.approx(0.001 * NEEDED_TURNS)


def test_neither_the_beginning_of_a_slice_costs_cpu_nor_the_wait_for_its_last_answers() -> None:
    """Of processes that were forked within the slice, or ended in it, the measured part's share counts: of a process
    for each connection all of it did, 17% too much, which is more than there was time for."""
    before = {1: ProcessCpu(1.0), 2: ProcessCpu(5.0)}
    after = {1: ProcessCpu(2.0, reaped_s=5.25), 3: ProcessCpu(0.125)}
    edges = Edges({1: 1.25, 2: 5.0}, {1: 1.75})
    assert compute_measured_s(before, edges, after, 0.75) == 0.5 + 0.75 * (0.25 + 0.125)
    ended = Edges({1: 1.25, 2: 5.5}, {1: 1.75, 2: 6.0})
    assert compute_measured_s(before, ended, {1: ProcessCpu(2.0)}, 0.75) == 0.5, (
        "that of a process which is never reaped is unknown"
    )


def test_what_the_kernel_counts_in_a_slice_is_charged_by_the_share_of_its_measured_messages() -> None:
    """Over whole slices an echo had 2.4 segments per message. The softirqs were those of all contestants together."""
    contender = Contender.__new__(Contender)
    contender.slices = [
        Slice(turn=0, place=0, kept=kept, sent=sent, cpu_s=0.1, others_cpu_s=0.0)
        for kept, sent in ((True, 200), (False, 1000))
    ]
    contender._readings = [
        SliceReading(0.0, 0.0, _stat(100), _stat(100 + ticks), _kernel(10, 0), _kernel(10 + segments, timeouts))
        for ticks, segments, timeouts in ((40, 400, 1), (90, 9000, 9))
    ]
    contender._kernel_ready = contender._kernel_warm = _kernel(0, 0)
    load = made_load.changed(made_load.load(), "requests.sent", 150)
    counted = contender._count_kernel(load)
    assert (counted["OutSegs"], counted["TCPTimeouts"], counted["InSegs"]) == (300, 1, 0)
    of_all = MachineObservation(
        cores=1, window_s=1.0, steal_s=0.0, own_s=0.5, foreign_s=0.0, switches=0, softirq_s={0: 5.0}
    )
    selected = contender._replace_softirqs(load, of_all)
    assert selected == msgspec.structs.replace(of_all, softirq_s={0: pytest.approx(0.75 * 0.4)})


def _stat(softirq_ticks: int) -> str:
    return f"cpu  0 0 0 0 0 0 0 0\ncpu0 7 0 7 7 0 0 {softirq_ticks} 0\nintr 1\n"


def _kernel(segments: int, timeouts: int) -> server_proc.Kernel:
    text = f"TcpExt: TCPTimeouts\nTcpExt: {timeouts}\nTcp: InSegs OutSegs\nTcp: 5 {segments}\n"
    return server_proc.Kernel(text, None)


def test_where_turns_are_off_each_is_alone(contestant: Contestant, tmp_path: Path, fake_build: Path) -> None:
    run = carry_out([with_mode(contestant, name) for name in NAMES], tmp_path, fake_build, turns="off", blocks=1)
    assert [(trial.status, trial.slices) for trial in run.trials] == [("valid", ())] * 3


def test_a_server_that_is_skipped_leaves_the_turns_to_the_others(
    contestant: Contestant, tmp_path: Path, fake_build: Path
) -> None:
    absent = msgspec.structs.replace(with_mode(contestant, "c"), available=False, why_not="Folly not found")
    servers = [with_mode(contestant, "a"), with_mode(contestant, "b"), absent]
    run = carry_out(servers, tmp_path, fake_build, blocks=1)
    by_name = {trial.contestant: trial for trial in run.trials}
    assert (by_name["c"].status, by_name["c"].reason) == ("skipped", "Folly not found")
    assert all(by_name[name].status == "valid" and by_name[name].slices for name in "ab")

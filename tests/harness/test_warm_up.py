"""A server with a JIT is warmed up for as long as it was measured to need; no other server is probed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from netdyno.measure.machine import control_group, cpu_share, jit
from netdyno.measure.machine.control_group import ControlGroup, Limits, NoControlGroupError
from netdyno.measure.machine.links.network import Network, NoNetworkError
from netdyno.measure.run import interrupts, resume
from netdyno.measure.trial import warm_up
from netdyno.measure.trial.context import TrialContext, key
from netdyno.measure.trial.trial import run_trial
from netdyno.measure.trial.turns import run_in_turns
from netdyno.measure.trial.window import Watch
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.options import Settings, settings
from netdyno.model.trial import Trial, Warmup
from netdyno.present.prose.progress import describe_warmups
from netdyno.question.contestants import contestants
from netdyno.question.plan import Cell, CellKind
from netdyno.store import read, schema
from tests.support.builders.made_blocks import Silent, permit
from tests.support.builders.made_load import load
from tests.support.edit_store import edit_store
from tests.support.fixtures import FakeRun

ECHO = Scenario(
    name="echo", workload="echo", contestants=("fake",), connections=1, duration_s=0.1, timeout_s=1.0, blocks=5
)
KIND = CellKind("echo", "fake", {})


@pytest.fixture(autouse=True)
def _talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the load report its progress ten times a second."""
    monkeypatch.setenv("FAKE_LOAD", "steady")
    monkeypatch.setattr(warm_up, "SLICE_S", 0.1)
    monkeypatch.setattr(warm_up, "REST_S", 0.5)
    monkeypatch.setattr(warm_up, "LIMIT_S", 60.0)
    monkeypatch.setattr(cpu_share, "compute_observation", lambda *_: None)


def measured(contestant: Contestant, context: TrialContext, kinds: Iterable[CellKind] = (KIND,)) -> list[Warmup]:
    return [warmup for _, warmup in warm_up.measure(kinds, {"echo": ECHO}, {"fake": contestant}, context)]


def test_it_lasts_until_a_message_costs_what_it_costs_from_then_on(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "jit")
    (warmup,) = measured(contestant, context)
    assert warmup.steady
    assert warmup.measured_s > 0.25  # forty messages that take 0.24 s of CPU, and a pause after each
    assert warmup.seconds == pytest.approx(warm_up.MARGIN * warmup.measured_s + warm_up.SLICE_S)
    (log,) = (context.folder / "logs").iterdir()
    assert log.name == "warm-up-echo-fake.log"


def test_a_limited_server_is_observed_within_its_limits(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Limits] = []

    @contextmanager
    def refuse(limits: Limits) -> Iterator[ControlGroup]:
        seen.append(limits)
        raise NoControlGroupError("not here")
        yield

    monkeypatch.setattr(control_group, "make_group", refuse)
    limited = msgspec.structs.replace(ECHO, cpu_quota=0.5)
    assert list(warm_up.measure((KIND,), {"echo": limited}, {"fake": contestant}, context)) == []
    assert seen == [Limits(cpu_quota=0.5)]


def test_a_burst_is_no_part_of_the_warm_up(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float | None] = []

    @contextmanager
    def refuse(_: object, load_settings: Settings, *__: object, **___: object) -> Iterator[None]:
        seen.append(load_settings.burst_rate)
        raise NoNetworkError("not here")
        yield

    monkeypatch.setattr(warm_up, "make_network", refuse)
    bursting = msgspec.structs.replace(ECHO, arrivals="poisson", rate=600, burst_rate=2000)
    assert list(warm_up.measure((KIND,), {"echo": bursting}, {"fake": contestant}, context)) == []
    assert seen == [None]


OPEN = msgspec.structs.replace(ECHO, arrivals="poisson", rate=600)


def read_arrivals(log: Path) -> list[str]:
    """Return the arrivals of each load of a trial, in their order."""
    return re.findall(r"--arrivals (\w+)", log.read_text())


def test_before_an_open_loop_it_is_a_closed_one(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a rate, a JIT sees too few messages to compile anything."""
    monkeypatch.setenv("FAKE_SERVER", "jit")
    ((_, warmup),) = warm_up.measure((KIND,), {"echo": OPEN}, {"fake": contestant}, context)
    assert warmup.closed
    assert read_arrivals(context.folder / "logs" / "warm-up-echo-fake.log") == ["closed"]
    assert "of a closed loop before its load (its memory includes that) in echo, measured" in describe_warmups(
        "fake", "echo", [warmup]
    )


@pytest.mark.parametrize("in_turns", [False, True], ids=["alone", "in turns"])
def test_the_closed_loop_comes_before_the_load_and_the_server_may_count_it(
    in_turns: bool, contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netdyno.model.trial.AFTER_CLOSED_S", 0.4)
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    warmup = Warmup(seconds=0.3, measured_s=0.2, steady=True, closed=True)
    context = msgspec.structs.replace(context, warmups={key(cell): warmup})
    if in_turns:
        (trial,) = run_in_turns([(cell, contestant)], OPEN, context)
    else:
        trial = run_trial(cell, OPEN, contestant, context)
    log = context.folder / trial.log
    arrivals = read_arrivals(log)  # one of a closed loop is the closing check; in turns the load's are logged last
    assert arrivals == (["closed", "closed", "poisson"] if in_turns else ["closed", "poisson", "closed"])
    assert "--duration 300ms" in log.read_text()
    assert in_turns or "--warmup 400ms" in log.read_text()
    assert {audit.name: audit.passed for audit in trial.audits}["server_totals"]
    assert warm_up.estimate_added_s([cell], {"echo": OPEN}, context.warmups) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("program", "mode", "reason"),
    [
        ("FAKE_LOAD", "check_fails", "the closed loop before its load failed: "),
        ("FAKE_SERVER", "dies_under_load", "the server ended with "),
    ],
)
def test_what_fails_in_the_closed_loop_fails_the_trial(
    program: str,
    mode: str,
    reason: str,
    contestant: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(program, mode)
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    warmup = Warmup(seconds=0.3, measured_s=0.2, steady=True, closed=True)
    trial = run_trial(cell, OPEN, contestant, msgspec.structs.replace(context, warmups={key(cell): warmup}))
    assert trial.status == "failed"
    assert trial.reason.startswith(reason)


def test_a_closed_loop_without_a_right_reply_fails_the_trial(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = load((10,))
    silent = msgspec.structs.replace(result, messages=msgspec.structs.replace(result.messages, received=0))
    monkeypatch.setattr("netdyno.measure.trial.load.check", lambda *_, **__: (silent, ""))
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    warmup = Warmup(seconds=0.3, measured_s=0.2, steady=True, closed=True)
    trial = run_trial(cell, OPEN, contestant, msgspec.structs.replace(context, warmups={key(cell): warmup}))
    assert (trial.status, trial.reason) == ("failed", "the closed loop before its load failed: no right reply")


def test_in_turns_the_sockets_are_scanned_when_ready_in_the_warm_up_and_at_the_end(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[Watch] = []
    monkeypatch.setattr(Watch, "scan", lambda watched: scans.append(watched))
    monkeypatch.setattr(Watch, "_add_late_holders", lambda watched: scans.append(watched))
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    run_in_turns([(cell, contestant)], ECHO, context)
    assert len(scans) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"arrivals": "closed", "rate": None},
        {"workload": "chat"},
        {"client": "another"},
        {"workload": "web", "chunks": 3},
        {"metric": "memory"},
        {"then_by": ("memory",)},
        {"connect_rate": "when-due"},
        {"requests_per_connection": 1},
        {"workload": "http", "path": ("/",), "method": "POST"},
        {"workload": "http", "path": ("/",), "data": "x"},
        {"link": "wan", "link_delay_s": 0.02},
        {"service_time_s": 0.002},
    ],
)
def test_other_loads_have_none_before_them(
    changed: dict[str, object], contestant: Contestant, context: TrialContext
) -> None:
    def needs(scenario: Scenario, place: TrialContext = context) -> bool:
        return warm_up.needs_closed_loop(scenario, settings(scenario, {}), contestant, place)

    assert needs(OPEN)
    assert needs(msgspec.structs.replace(OPEN, workload="http", path=("/",), method="GET"))
    assert not needs(msgspec.structs.replace(OPEN, **changed))
    assert not needs(OPEN, msgspec.structs.replace(context, network=Network((), (), Path("/proc/net"))))


def test_a_server_whose_cost_never_settles_has_all_that_there_is_and_it_is_stated(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "compiles_on")
    monkeypatch.setattr(warm_up, "LIMIT_S", 1.5)
    (warmup,) = measured(contestant, context)
    assert warmup == Warmup(seconds=1.5, measured_s=1.5, steady=False)
    assert "the cost of a message had not settled after 1.5 s, so its JIT is part of its figures" in describe_warmups(
        "fake", "echo", [warmup]
    )


def test_a_server_without_one_is_started_once_and_loaded_never(contestant: Contestant, context: TrialContext) -> None:
    assert measured(contestant, context, [KIND, KIND._replace(levels={"connections": 2})]) == []
    (log,) = (context.folder / "logs").iterdir()
    assert "generator" not in log.read_text()


def test_one_that_fails_has_no_warm_up_of_its_own(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "dies_at_start")
    assert measured(contestant, context) == []


def test_what_is_compiled_before_it_starts_and_what_is_skipped_is_not_even_started(contestant: Contestant) -> None:
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    for kind, looked_at in (("command", 1), ("java", 1), ("cmake", 0), ("cargo", 0), ("erlang", 0), ("go", 0)):
        manifest = msgspec.structs.replace(contestant.manifest, kind=kind)
        servers = {"fake": msgspec.structs.replace(contestant, manifest=manifest)}
        assert len(warm_up.select_kinds([cell, cell], {"echo": ECHO}, servers, {}, ())) == looked_at, kind
        assert warm_up.select_kinds([cell], {"echo": ECHO}, servers, {}, {key(cell)}) == ()
    for count, looked_at in ((4, 0), (5, 1)):  # fewer blocks are in no ranking
        echo = msgspec.structs.replace(ECHO, blocks=count)
        assert len(warm_up.select_kinds([cell], {"echo": echo}, {"fake": contestant}, {}, ())) == looked_at, count
    absent = msgspec.structs.replace(contestant, available=False, why_not="gone")
    assert warm_up.select_kinds([cell], {"echo": ECHO}, {"fake": absent}, {}, ()) == ()


def test_the_trial_has_the_longer_one_of_the_two(contestant: Contestant, context: TrialContext) -> None:
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    warmup = Warmup(seconds=0.3, measured_s=0.2, steady=True)
    context = msgspec.structs.replace(context, warmups={key(cell): warmup})
    trial = run_trial(cell, ECHO, contestant, context)
    assert trial.warmup == warmup
    assert "--warmup 300ms" in (context.folder / trial.log).read_text()
    assert settings(msgspec.structs.replace(ECHO, warmup_s=0.5), {}, warmup.seconds).warmup_s == 0.5
    assert warm_up.estimate_added_s([cell, cell], {"echo": ECHO}, context.warmups) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("server", "warmup", "expected"),
    [
        ("jit", None, "--warmup 1s"),
        ("jit", Warmup(seconds=0.3, measured_s=0.2, steady=True), "--warmup 300ms"),
        ("good", None, "--warmup 0"),
    ],
    ids=["not measured", "measured", "without a JIT"],
)
def test_in_a_run_of_few_blocks_a_server_with_a_jit_is_not_cold_for_its_whole_window(
    server: str,
    warmup: Warmup | None,
    expected: str,
    contestant: Contestant,
    context: TrialContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There it is not measured how long it needs."""
    monkeypatch.setenv("FAKE_SERVER", server)
    cell = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
    warmups = {} if warmup is None else {key(cell): warmup}
    trial = run_trial(cell, ECHO, contestant, msgspec.structs.replace(context, warmups=warmups))
    assert expected in (context.folder / trial.log).read_text()


@pytest.fixture
def run_with_jit(experiment: Experiment, execute: FakeRun) -> Callable[..., Path]:
    requested = msgspec.structs.replace(experiment, scenarios=(ECHO,)).with_each(blocks=5)
    return lambda display=None: execute(requested, display).folder / schema.FILE_NAME


def used(trials: Iterable[Trial]) -> set[Warmup | None]:
    return {trial.warmup for trial in trials}


def test_a_run_measures_it_before_the_first_block_stores_it_and_says_so(
    run_with_jit: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "jit")
    recorder = Silent()
    run = read.load(run_with_jit(recorder))
    (warmup,) = used(run.trials)
    assert warmup is not None
    assert [trial.status for trial in run.trials] == ["valid"] * 5
    assert recorder.notes[0] == f"warm-up of fake: {warmup.seconds:.1f} s in echo, measured"
    assert re.match(r"With these warm-ups the trials take about \d:\d\d, ", recorder.notes[1])


def test_a_run_that_is_gone_on_with_keeps_it(
    run_with_jit: Callable[..., Path], contestant: Contestant, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run_with_jit()
    first = read.load(path).trials[0]
    known = Warmup(seconds=0.2, measured_s=0.1, steady=True)
    with edit_store(path) as connection:
        text = msgspec.json.encode(msgspec.structs.replace(first, warmup=known)).decode()
        connection.execute("DELETE FROM trial WHERE block > 1")
        connection.execute("UPDATE trial SET trial = ?", (text,))
        connection.execute("UPDATE run SET finished_at = NULL")
    monkeypatch.setenv("FAKE_SERVER", "jit")
    monkeypatch.setattr(contestants, "discover", lambda **_: (contestant,))
    recorder = Silent()
    resume.resume(path, build=fake_build, display=recorder, anyway=True, permit=permit)
    run = read.load(path)
    assert len(run.trials) == 5
    assert used(run.trials) == {known}
    assert not any("warm-up" in note for note in recorder.notes)


def test_an_interruption_ends_the_probe_and_the_run(
    run_with_jit: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise interrupts.Interrupted(2)

    monkeypatch.setattr(warm_up, "measure", interrupted)
    recorder = Silent()
    path = run_with_jit(recorder)
    run = read.load(path)
    assert (run.trials, run.finished_at, recorder.closed) == ((), None, 1)


def slices_until_settled(taken: float) -> int:
    """Count the slices of a server whose cost is constant, where others take this share of the cores."""
    now = iter(range(100))
    foreign = iter(taken * number * 0.5 for number in range(100))
    costs = warm_up.Costs(lambda: float(next(now)), lambda: next(foreign))
    costs.window_start()
    for number in range(1, 20):
        try:
            costs.progress(100 * number, 0.5 * number)
        except warm_up.SettledError:
            return number
    return 20


def test_what_others_took_of_the_cores_is_no_time_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # its slices are as long as those of a run
    assert slices_until_settled(0.0) == 6
    assert slices_until_settled(0.6) == 10
    assert slices_until_settled(0.9) == 20


# --- JIT detection -----------------------------------------------------------------------------------------------

OF_C = """\
55d0c0a00000-55d0c0a20000 r-xp 00002000 fe:00 1234                       /usr/bin/server
7f10c0000000-7f10c0021000 rw-p 00000000 00:00 0
7f10c4000000-7f10c4010000 r-xp 00001000 fe:00 1235                       /usr/lib/a library.so (deleted)
7ffd1a9e0000-7ffd1aa01000 rw-p 00000000 00:00 0                          [stack]
7ffd1aa20000-7ffd1aa22000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


@pytest.mark.parametrize(
    "line",
    [
        "7fd931fc3000-7fd931fff000 rwxp 00000000 00:00 0",
        "7f0d2c000000-7f0d2c270000 r-xp 00000000 00:00 0                          [anon:v8]",
        "7f0d2c000000-7f0d2c270000 r-xs 00010000 00:01 77                         /memfd:doublemapper (deleted)",
    ],
)
def test_executable_memory_that_no_file_holds_tells_a_jit(line: str) -> None:
    assert not jit.has_made_code(OF_C)
    assert jit.has_made_code(f"{OF_C}{line}\n")


def test_of_a_process_that_has_ended_or_may_not_be_looked_into_nothing_is_known() -> None:
    assert not jit.compiles(2**22 + 1)

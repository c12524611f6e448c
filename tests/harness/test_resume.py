"""Going on with a run: only where it began, only one at a time, and not beyond its end.

That it ends as if it had never been interrupted is tested in test_blocks.py and test_cli.py."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from netdyno.analysis.compare import differences
from netdyno.kit.errors import UserError
from netdyno.measure.machine import digests
from netdyno.measure.run import changes, next_cells, resume, runner
from netdyno.measure.trial import canary, traced
from netdyno.measure.trial.context import TrialContext
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Scenario
from netdyno.model.trial import Traced, Trial
from netdyno.question import side_by_side
from netdyno.question.plan import Cell
from netdyno.store import read, schema, write
from netdyno.verbs import cli
from tests.support.builders.made_blocks import NAMES, Silent, asked, execute, permit, trials_with
from tests.support.builders.made_canary import SteadyCanary
from tests.support.edit_store import edit_store
from tests.support.fixtures import make_fake_build

pytestmark = pytest.mark.usefixtures("trial_by_trial")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run without its last block."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_by_side, "explain_alone", lambda *_: side_by_side.ONLY)
        patch.setattr(runner, "Canary", SteadyCanary)
        patch.setattr(runner, "run_trial", trials_with({"echo": 0.1}))
        build = make_fake_build(folder / "build")
        made: Path = execute(asked("echo").with_each(precision=None), folder / "results", build).folder
    with edit_store(made / schema.FILE_NAME) as connection:
        connection.execute("DELETE FROM trial WHERE block = 6")
        connection.execute("UPDATE run SET finished_at = NULL")
    return made


@pytest.fixture
def cut(kept: Path, tmp_path: Path, fake_build: Path, steady_canary: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a run whose last block is missing, as if this build had made it; its trials start no programs."""
    monkeypatch.setattr(runner, "run_trial", trials_with({"echo": 0.1}))
    path = shutil.copytree(kept, tmp_path / "results" / kept.name) / schema.FILE_NAME
    pretend(path, "build", str(fake_build))
    return path


def pretend(path: Path, key: str, value: object) -> None:
    """Let the run have begun in another environment."""
    with edit_store(path) as connection:
        (text,) = connection.execute("SELECT environment FROM run").fetchone()
        connection.execute("UPDATE run SET environment = ?", (json.dumps(json.loads(text) | {key: value}),))


def go_on(path: Path, build: Path, *, anyway: bool = False) -> None:
    resume.resume(path, build=build, display=Silent(), anyway=anyway, permit=permit)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("git_commit", "0c374d8", "git_commit was 0c374d8 and is "),
        ("kernel", "2.6.32", "kernel was 2.6.32 and is "),
        ("compiler", "tcc 0.9", "compiler was tcc 0.9 and is nothing"),
        ("build_type", "Debug", "build_type was Debug and is nothing"),
        ("sysctl.net.core.somaxconn", "1", "sysctl.net.core.somaxconn was 1 and is "),
    ],
)
def test_what_decides_on_speed_and_changed_is_refused_with_both_values(
    key: str, value: str, message: str, cut: Path, fake_build: Path
) -> None:
    pretend(cut, key, value)
    before = read.load(cut)
    with pytest.raises(UserError, match="cannot be resumed, because something has changed: ") as refused:
        go_on(cut, fake_build)
    assert message in str(refused.value)
    assert "--anyway" in str(refused.value)
    assert read.load(cut) == before


def test_a_program_that_was_built_again_is_refused_by_its_name(cut: Path, fake_build: Path) -> None:
    name = read.load(cut).experiment.scenarios[0].contestants[0]
    with (fake_build / "servers" / name).open("a") as program:
        program.write("# another one\n")
    with pytest.raises(UserError, match=rf"programs had {name} \w+ and has {name} \w+ \("):
        go_on(cut, fake_build)


def test_anyway_goes_on_and_the_run_says_so(cut: Path, fake_build: Path) -> None:
    pretend(cut, "kernel", "2.6.32")
    go_on(cut, fake_build, anyway=True)
    run = read.load(cut)
    assert len(run.trials) == 12
    assert run.finished_at is not None
    assert run.environment["kernel"] == "2.6.32"
    lines = run.environment[resume.RESUMED]
    assert isinstance(lines, list)
    assert " after 10 trials, though kernel was 2.6.32 and is " in lines[0]
    assert json.loads((cut.parent / "environment.json").read_text()) == run.environment


def test_what_differs_every_time_is_no_difference(cut: Path, fake_build: Path) -> None:
    pretend(cut, "load_average_1min", 99.0)
    pretend(cut, "link.wan", ["measured 18 ms"])
    go_on(cut, fake_build)
    assert read.load(cut).finished_at is not None


def test_a_run_that_came_to_its_end_is_refused(cut: Path, fake_build: Path) -> None:
    go_on(cut, fake_build)
    with pytest.raises(UserError, match=r"finished at .*; nothing is left to do"):
        go_on(cut, fake_build)


def test_a_run_that_is_still_being_made_is_refused(cut: Path, fake_build: Path) -> None:
    with write.Store.reopen(cut), pytest.raises(UserError, match="is still being made"):
        go_on(cut, fake_build)
    go_on(cut, fake_build)  # and is free again


def test_a_run_of_an_older_netdyno_is_refused(cut: Path, fake_build: Path) -> None:
    with edit_store(cut) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(UserError, match=r"made by an older netdyno \(schema 7, this one reads \d+\): run it again"):
        go_on(cut, fake_build)


def test_the_load_that_other_programs_may_be_stays_as_it_began(cut: Path, fake_build: Path) -> None:
    assert resume._read_foreign_load(read.load(cut)) == "count"
    pretend(cut, "foreign_load", "nonsense")
    assert resume._read_foreign_load(read.load(cut)) == "strike-out"


def test_a_block_that_was_cut_short_is_judged_again_and_counted_and_reported_as_what_changed(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two of its six trials stand out, and the other four once the machine is as fast again."""
    measure = trials_with({"echo": 0.1})

    def interrupted(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
        if cell.position == 6:
            signal.raise_signal(signal.SIGINT)
        return measure(cell, scenario, contestant, context)

    speeds = tmp_path / "speeds"
    speeds.write_text("1 1  1 0.5")
    monkeypatch.setenv("FAKE_CANARY", f"speeds:{speeds}")
    monkeypatch.setattr(canary, "FRESH_S", 1e9)  # however long this machine holds a test up
    monkeypatch.setattr(canary, "MOST_TAKES", 2)
    monkeypatch.setattr(next_cells, "MOST_TRIES", 1)  # retries are another test's
    monkeypatch.setattr(runner, "run_trial", interrupted)
    one_block = asked("echo", factors={"connections": (1, 2, 3, 4, 5)}).with_each(precision=None, blocks=1)
    path = execute(one_block, tmp_path / "results", fake_build, foreign_load="strike-out").folder / schema.FILE_NAME
    assert statuses(path) == ["struck_out"] * 2 + ["valid"] * 4

    speeds.write_text("1")
    monkeypatch.setattr(runner, "run_trial", measure)
    display = Silent()
    resume.resume(path, build=fake_build, display=display, anyway=False, permit=permit)
    assert statuses(path) == ["valid"] + ["struck_out"] * 5 + ["valid"] * 4
    assert dict(display.progress.counts) == {"valid": 5, "struck_out": 5}
    assert [trial.position for trial in display.trials] == [6, 7, 8, 9, 2, 3, 4, 5]
    assert [trial.status for trial in display.trials] == ["valid"] * 4 + ["struck_out"] * 4


def statuses(path: Path) -> list[str]:
    return [trial.status for trial in read.load(path).trials]


# --- what is traced beside the trials ----------------------------------------------------------------------------


def made_trace(task: traced.TraceTask, *_: object) -> Traced:
    """Return a trace without starting programs."""
    reason = task.reason or "made"
    return Traced(scenario=task.scenario.name, contestant=task.contestant, levels=task.levels, reason=reason)


def reasons(path: Path) -> list[tuple[str, str]]:
    return [(result.contestant, result.reason.partition(" of a run's time")[0]) for result in read.load(path).traced]


def test_what_was_not_traced_before_the_interruption_is_traced_after_it_and_nothing_twice(
    tmp_path: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(task: traced.TraceTask, *_: object) -> Traced:
        if task.contestant == NAMES[1]:
            signal.raise_signal(signal.SIGINT)
        return made_trace(task)

    monkeypatch.setattr(runner, "run_trial", trials_with({"echo": 0.1}))
    monkeypatch.setattr(traced, "trace_task", interrupted)
    outcome = execute(asked("echo").with_each(precision=None), tmp_path / "results", fake_build, trace="always")
    path = outcome.folder / schema.FILE_NAME
    assert (outcome.interrupted, reasons(path)) == (130, [(NAMES[0], "made")])
    monkeypatch.setattr(traced, "trace_task", made_trace)
    go_on(path, fake_build)
    assert reasons(path) == [(name, "made") for name in NAMES]
    assert read.load(path).finished_at is not None


TOO_LONG = "tracing may take 10%"


@pytest.mark.parametrize(
    ("wish", "expected"),
    [("always", ["made"] * 2), ("never", []), ("auto", [TOO_LONG] * 2), ("", [TOO_LONG] * 2)],
)
def test_whether_system_calls_are_traced_stays_as_it_began(
    wish: str, expected: list[str], cut: Path, fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that were stored before this was recorded have no such request."""
    with edit_store(cut) as connection:
        connection.execute("DELETE FROM traced")
        connection.execute("UPDATE run SET environment = json_remove(environment, '$.trace')")
    if wish:
        pretend(cut, "trace", wish)
    monkeypatch.setattr(traced, "trace_task", made_trace)
    go_on(cut, fake_build)
    assert [reason for _, reason in reasons(cut)] == expected


# --- what differs ------------------------------------------------------------------------------------------------


def test_differences_name_the_key_and_both_values() -> None:
    before = {"kernel": "6.1", "git_dirty": False, "smt": "on", "mitigations": ["a", "b"], "load_average_1min": 1.0}
    now = {"kernel": "6.2", "git_dirty": True, "mitigations": ["a", "c", "d", "e", "f"], "load_average_1min": 2.0}
    assert [changes.format_change(change) for change in differences.list_decisive(before, now)] == [
        "kernel was 6.1 and is 6.2",
        "git_dirty was no and is yes",
        "smt was on and is nothing",
        "mitigations had b and has c, d, e and 1 more",
    ]
    assert differences.list_decisive(before, before) == []


def test_what_is_new_of_a_host_of_the_load_is_reported() -> None:
    """Values that are not recorded of it equalled those of the server's host."""
    before = {"cluster.client": "lab-8 at 10.0.0.3", "cluster.client.doctor": ["bad"], "cluster.client-2.smt": "on"}
    now = {"cluster.client": "lab-8 at 10.0.0.4", "cluster.client.doctor": [], "cluster.client.kernel": "6.2"}
    assert [changes.format_change(change) for change in differences.list_decisive(before, now)] == [
        "cluster.client-2.smt was on and is nothing",
        "cluster.client.kernel was nothing and is 6.2",
    ]


def test_a_digest_is_of_every_file_that_a_command_names(contestant: Contestant, tmp_path: Path) -> None:
    generator, server = tmp_path / "load", tmp_path / "server.py"
    generator.write_text("load")
    server.write_text("one")
    made = Contestant(name="made", manifest=contestant.manifest, command=("/bin/sh", str(server)), available=True)
    missing = Contestant(name="missing", manifest=contestant.manifest, command=("x",), available=False)
    there = msgspec.structs.replace(made, name="there", own=Own(command="", workload="echo", address="tcp://[::1]:1"))
    before = digests.digest_programs(generator, [made, missing, there])
    assert [line.split()[0] for line in before] == ["made", "netdyno-load"]
    assert digests.digest_programs(generator, [made, missing]) == before
    server.write_text("two")
    after = digests.digest_programs(generator, [made, missing])
    assert (after[0] == before[0], after[1] == before[1]) == (False, True)


# --- what a stored run would start -------------------------------------------------------------------------------

MINE = "sh -c 'touch mine' {port}"


def has_own(path: Path, command: str = "", address: str = "") -> None:
    """Let the first contestant of the run be a user's own server, as its file says."""
    mine = json.dumps({"command": command, "workload": "echo", "address": address})
    with edit_store(path) as connection:
        row = "WHERE json_extract(about, '$.kind') = 'server' AND json_extract(about, '$.name') = ?"
        changed = connection.execute(
            f"UPDATE about SET about = json_set(about, '$.own', json(?)) {row}", (mine, NAMES[0])
        )
        assert changed.rowcount == 1


@pytest.fixture
def asked_of(cut: Path, fake_build: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`resume` of the run, with more words."""
    monkeypatch.setenv("NETDYNO_BUILD", str(fake_build))
    return lambda *more: cli.main(["resume", cut.parent.name, "--results", str(cut.parent.parent), "--anyway", *more])


def test_a_command_line_of_the_file_is_not_run_where_no_person_can_agree(
    cut: Path, asked_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    has_own(cut, MINE)
    assert asked_of() == 2
    again = shlex.split(capsys.readouterr().err.rpartition("allow that, run: ")[2])
    words = ["resume", cut.parent.name, "--anyway", "--results", str(cut.parent.parent), "--server", MINE]
    assert again == ["./netdyno", *words]
    assert len(read.load(cut).trials) == 10
    assert cli.main(again[1:]) == 0
    assert len(read.load(cut).trials) == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--server", "my-server {port}"], f"not named: --server {shlex.quote(MINE)}"),
        (["--server", MINE, "--server", "x {port}"], "--server 'x {port}': the run has no such server"),
        (["--server", MINE, "--address", "tcp://127.0.0.1:9"], "--address 'tcp://127.0.0.1:9': the run has no such"),
        (["--address", "tcp://192.0.2.1:9"], "is not on the loopback"),
    ],
)
def test_what_is_given_again_is_just_what_the_run_has(
    given: list[str], message: str, cut: Path, asked_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    has_own(cut, MINE)
    assert asked_of(*given) == 2
    assert message in capsys.readouterr().err
    assert len(read.load(cut).trials) == 10


def test_a_server_is_not_given_for_a_run_that_has_none(
    asked_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked_of("--server", MINE) == 2
    assert "the run has no such server" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "code", "trials"), [("y", 0, 12), ("n", 2, 10), ("", 2, 10)])
def test_on_a_terminal_what_would_run_is_shown_and_requested(
    answer: str,
    code: int,
    trials: int,
    cut: Path,
    asked_of: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_own(cut, MINE.replace("mine", "\x1b[8mmine"))
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", 0) as screen, os.fdopen(theirs) as keys, os.fdopen(os.dup(theirs), "w") as shows:
        screen.write(f"{answer}\n".encode())
        monkeypatch.setattr(sys, "stdin", keys)
        monkeypatch.setattr(sys, "stderr", shows)
        assert asked_of() == code
        shows.flush()
        shown = ""
        while "Do you want that? [y/N]" not in shown:
            shown += screen.read(1 << 16).decode()
        monkeypatch.undo()
    assert f"{NAMES[0]}: --server " in shown
    assert "touch \\x1b[8mmine" in shown
    assert len(read.load(cut).trials) == trials


def test_an_address_of_the_file_is_not_even_connected_to(cut: Path, asked_of: Callable[..., int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        has_own(cut, address=f"tcp://127.0.0.1:{server.getsockname()[1]}")
        assert asked_of() == 2
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("command", "address"),
    [
        ("it's {port}", ""),
        ("", "tcp://nowhere:1"),
        ("", "tcp://127.0.0.1:99999"),
        ("", "x"),
        ("", "udp://127.0.0.1:1"),
        ("", "tcp://127.0.0.1"),
    ],
)
def test_a_server_that_none_can_have_been_given_is_damage(command: str, address: str, cut: Path) -> None:
    has_own(cut, command, address)
    with pytest.raises(UserError, match="is damaged: "):
        read.load(cut)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].server.listen', 'tcp://0.0.0.0:1')",
            "'listen'",
        ),
        ("UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].where_possible.x', 1)", "no option 'x'"),
        ("UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].server.backlog', '1 --x')", "key 'backlog'"),
        ("UPDATE run SET experiment = json_set(experiment, '$.scenarios[0].link_rate', 'x')", "key 'link-rate'"),
        ("UPDATE cell SET contestant = 'cat' WHERE block = 6", "the stored plan has 'cat' in 'echo'"),
        ("UPDATE cell SET scenario = 'other' WHERE block = 6", "in 'other', but the experiment does not"),
        ('UPDATE cell SET levels = \'{"listen": "x"}\' WHERE block = 6', "'listen' is no factor"),
        ('UPDATE cell SET levels = \'{"backlog": "x"}\' WHERE block = 6', "key 'backlog'"),
    ],
)
def test_what_no_experiment_could_have_requested_becomes_no_word_of_a_command(
    change: str, message: str, cut: Path, fake_build: Path
) -> None:
    with edit_store(cut) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(change)
    with pytest.raises(UserError, match=re.escape(message)):
        go_on(cut, fake_build)

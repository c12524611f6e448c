"""The command line: what it prints, its exit codes, and that a mistake is one line without a traceback."""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.kit.paths import ROOT
from netdyno.model.run import Run
from netdyno.present.export.entries import Export
from netdyno.present.plain import derive_type
from netdyno.present.terminal.console import Console
from netdyno.store import read, schema
from netdyno.verbs import checks, cli, listing
from netdyno.verbs.cli import main
from tests.support.builders.made_run import made_run
from tests.support.builders.stored import stored
from tests.support.chosen import discover_once
from tests.support.edit_store import edit_store
from tests.support.fakes import unhurried
from tests.support.patience import eventually
from tests.support.terminal import in_terminal

TINY = """
question = "Does it work?"
contestants = ["*"]
blocks = 1
warmup = "0ms"
duration = "100ms"
[[scenario]]
name = "echo"
workload = "echo"
[scenario.factors]
connections = [1, 2]
"""

NETDYNO = (sys.executable, unhurried.__file__)
SERVER = next(contestant.name for contestant in discover_once() if "echo" in contestant.manifest.workloads)
UNSAFE = next(contestant for contestant in discover_once() if contestant.manifest.unsafe)


@pytest.fixture
def toml(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture(autouse=True)
def _build(fake_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", str(fake_build))


def netdyno(*arguments: str, limit: tuple[int, int] | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [*NETDYNO, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
        check=False,
    )


class CommandResult(NamedTuple):
    """The exit code and the output of a command, as from a process of its own."""

    returncode: int
    stdout: str
    stderr: str


class RunCommand(Protocol):
    """A command line run in this process: a process of its own spends most of its time loading the libraries."""

    def __call__(self, *arguments: str) -> CommandResult: ...


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run command lines in this process."""

    def run(*arguments: str) -> CommandResult:
        capsys.readouterr()
        return CommandResult(main(arguments), *capsys.readouterr())

    return run


def run_tiny(toml: str, results: Path, *more: str) -> list[str]:
    # A trial that a busy machine disturbs would be retried, and these tests count trials.
    return ["run", toml, "--contestant", SERVER, "--results", str(results), "--foreign-load", "count", *more]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "quik"], "unknown experiment 'quik' (did you mean 'quick'?)"),
        (["run", "nowhere/x.toml"], "no such experiment file: nowhere/x.toml"),
        (["run", "--blok", "2"], "No such option: --blok (Possible options: --blocks"),
        (["run", "--blocks", "0"], "--blocks"),
        (["run", "--blocks", "many"], "--blocks"),
        (["run", "--foreign-load", "ignore"], "--foreign-load"),
        (["run", "--duration", "5"], "--duration: '5' is not a duration"),
        (["run", "--duration", "0s"], "--duration: '0s' is not above 0"),
        (
            ["run", "--precision", "wide"],
            "--precision: 'wide' is no precision: write a share above 0, such as 0.05 or '5%'",
        ),
        (["run", "--precision", "0"], "--precision: '0' is no precision"),
        (["run", "smoke", "--most-blocks", "20"], "--most-blocks: is for a run with --precision"),
        (["run", "--precision", "5%", "--most-blocks", "2"], "key 'most-blocks': 2 is less than blocks = "),
        (["run", "--precision", "5%", "--time-budget", "5"], "--time-budget: '5' is not a duration"),
        (["resume", "yesterday"], "no such run 'yesterday'"),
        (["compare", "yesterday", "today"], "no such run 'yesterday'"),
        (
            ["run", "--contestant", SERVER + "x"],
            f"no server is called '{SERVER}x' (did you mean '{SERVER}'? see: ./netdyno list servers)",
        ),
        (["run", "--results", "/proc/results"], "the results folder /proc/results cannot be written"),
        (["list", "rnus"], "cannot list 'rnus' (did you mean 'runs'?)"),
        (["list"], "Missing argument 'what'. (see: ./netdyno list --help)"),
        (["serve", SERVER + "x"], f"unknown server '{SERVER}x' (did you mean '{SERVER}'? see: ./netdyno list servers)"),
        (["client", "nobody"], "unknown client 'nobody'"),
        (["check", SERVER + "x"], f"unknown server '{SERVER}x' (did you mean '{SERVER}'? see: ./netdyno list servers)"),
        (["report", "yesterday"], "no such run 'yesterday'"),
        (["report"], "name a run (see: list runs), or --export schema"),
        (["report", "yesterday", "--export", "schema"], "--export schema takes no run"),
        (["report", "yesterday", "today", "--json"], "--json and --export take one run"),
        (["new", "server", "A B", "--from", SERVER], "cannot be a server's name"),
        (["rnu"], "No such command 'rnu'"),
        (["frobnicate"], "No such command 'frobnicate'. (see: ./netdyno --help)"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_2(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("netdyno: ")
    assert message in err
    assert err.count("\n") == 1


def test_broken_toml_is_one_line_and_no_traceback(tmp_path: Path, command: RunCommand) -> None:
    (tmp_path / "broken.toml").write_text("blocks = = 3")
    done = command("run", str(tmp_path / "broken.toml"))
    assert done.returncode == 2
    assert done.stderr.startswith(f"netdyno: {tmp_path}/broken.toml: not valid TOML")
    assert done.stderr.count("\n") == 1


def test_too_few_descriptors_are_stated_with_the_fix(tmp_path: Path) -> None:
    many = tmp_path / "many.toml"
    many.write_text(TINY.replace("[1, 2]", "[1000]").replace('["*"]', f'["{SERVER}"]'))
    done = netdyno("run", str(many), "--results", str(tmp_path), limit=(100, 100))
    assert done.returncode == 2
    assert "too few file descriptors: experiment 'many' needs 1064 per program and the limit is 100" in done.stderr
    assert "ulimit -n 1064" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_generator_that_is_not_built_is_stated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, toml: str, command: RunCommand
) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", str(tmp_path / "nothing"))
    done = command("run", toml)
    assert (done.returncode, done.stdout) == (2, "")
    assert "netdyno: the load generator is not built" in done.stderr


@pytest.mark.usefixtures("undrawn")
def test_contestants_of_the_command_line_take_the_place_of_the_experiments(tmp_path: Path, command: RunCommand) -> None:
    first, second, *_ = (contestant.name for contestant in discover_once())
    named = tmp_path / "named.toml"
    named.write_text(TINY.replace('["*"]', f'["{first}"]'))
    done = command("run", str(named), "--contestant", second, "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stderr
    assert f"connections=1 {second}" in done.stdout
    assert f"connections=1 {first}" not in done.stdout


def test_an_unknown_client_in_an_experiment_names_file_and_key(toml: str, tmp_path: Path, command: RunCommand) -> None:
    path = Path(toml)
    path.write_text(TINY.replace("connections = [1, 2]", 'client = ["netdyno-lod"]'))
    done = command(*run_tiny(toml, tmp_path / "results"))
    assert done.returncode == 2
    assert f"{toml}: scenario 1 ('echo'): factors: key 'client': unknown client 'netdyno-lod'" in done.stderr
    assert "(did you mean 'netdyno-load'?)" in done.stderr


@pytest.mark.usefixtures("undrawn")
def test_json_ends_with_one_line_that_says_what_came_of_it(toml: str, tmp_path: Path, command: RunCommand) -> None:
    results = tmp_path / "results"
    done = command(*run_tiny(toml, results, "--json", "--blocks", "2"))
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    answer = json.loads(line)
    zeros = dict.fromkeys(("struck_out", "faulty", "failed", "skipped", "made_again"), 0)
    assert answer["trials"] == {"valid": 4, **zeros}
    assert Path(answer["report"]) == results / answer["run_id"] / "report.html"
    assert Path(answer["report"]).is_file()
    listed = json.loads(command("list", "runs", "--json", "--results", str(results)).stdout)
    assert [(row["id"], row["trials"]) for row in listed] == [(answer["run_id"], answer["trials"])]


@pytest.mark.usefixtures("undrawn")
def test_a_damaged_histogram_is_one_line_and_exit_2(toml: str, tmp_path: Path, command: RunCommand) -> None:
    results = tmp_path / "results"
    answer = json.loads(command(*run_tiny(toml, results, "--json")).stdout)
    file = results / answer["run_id"] / "run.sqlite"
    with edit_store(file) as stored:
        stored.execute("""UPDATE trial SET trial = replace(trial, '"histogram":"', '"histogram":"x')""")
    done = command("report", answer["run_id"], "--results", str(results))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("netdyno: a stored run is damaged: not an HDR V2 histogram: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("undrawn")
def test_a_run_without_a_valid_trial_ends_with_1(
    toml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: RunCommand
) -> None:
    monkeypatch.setenv("FAKE_SERVER", "dies_at_start")
    done = command(*run_tiny(toml, tmp_path / "results", "--json"))
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["trials"]["faulty"] == 2


def interrupt(command: Sequence[str], trials: int, **environment: str) -> tuple[int, str, str]:
    """Ctrl-C after so many trials: exit code, what it printed from then on, and all its errors."""
    more, pipe = {"PYTHONPATH": str(ROOT / "python")} | environment, subprocess.PIPE
    with subprocess.Popen([*NETDYNO, *command], stdout=pipe, stderr=pipe, env=os.environ | more, text=True) as run:
        assert run.stdout is not None
        while trials and (line := run.stdout.readline()):
            trials -= line.startswith("block ")
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
    return run.returncode, out, err


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_keeps_what_is_there_writes_the_report_and_ends_with_130_and_the_run_is_resumed_to_its_end(
    toml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: RunCommand
) -> None:
    results, windows = tmp_path / "results", tmp_path / "windows"
    windows.write_text("2")  # the load hangs in the third trial
    arguments = run_tiny(toml, results, "--blocks", "2")
    monkeypatch.setenv("FAKE_LOAD", f"hangs_after:{windows}")
    code, out, err = interrupt(arguments, 2)
    assert code == 130, err
    assert "interrupted: " in err
    assert "Traceback" not in err
    assert re.search(r"^report: .*report.html$", out, re.MULTILINE)
    (run_id,) = (path.name for path in results.iterdir())
    assert f"(to go on: ./netdyno resume {run_id})" in err
    done = command("resume", run_id, "--results", str(results), "--json")
    assert done.returncode == 0, done.stderr
    assert "Resuming after 2 trials of 4" in done.stderr
    assert "block 2/2 trial 4/4 (0:00 left)" in done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["run_id"], sum(answer["trials"].values())) == (run_id, 4)  # valid or not, for a machine may be busy
    assert Path(answer["report"]).is_file()
    again = command("resume", run_id, "--results", str(results))
    assert again.returncode == 2
    assert "; nothing is left to do\n" in again.stderr
    for name in ("report.html", "findings.json"):  # as after a kill between the last trial and the report
        (results / run_id / name).unlink()
        done = command("resume", run_id, "--results", str(results))
        assert done.returncode == 0, done.stderr
        assert (results / run_id / name).is_file()
        assert "Resuming" not in done.stdout


@pytest.mark.usefixtures("undrawn")
def test_a_precision_of_the_command_line_is_stored_with_the_run(toml: str, tmp_path: Path, command: RunCommand) -> None:
    results = tmp_path / "results"
    more = ("--precision", "5%", "--most-blocks", "2", "--time-budget", "10m", "--json")
    done = command(*run_tiny(toml, results, *more))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    stored = read.load(results / answer["run_id"] / schema.FILE_NAME).experiment
    assert [(scenario.precision, scenario.most_blocks) for scenario in stored.scenarios] == [(0.05, 2)]
    assert stored.time_budget_s == 600
    assert "nothing to compare, so ended after 1 block" in re.sub(r"\s+", " ", done.stderr)


def test_a_run_prints_a_table_and_says_where_its_report_is_which_is_written_again_or_exported(
    toml: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: RunCommand
) -> None:
    results = tmp_path / "results"
    done = command(*run_tiny(toml, results))
    assert done.returncode == 0, done.stderr
    assert "block 1/1 trial 2/2 (0:00 left) echo connections=" in done.stdout
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    where = re.search(r"^report: (.*)$", done.stdout, re.MULTILINE)
    assert where is not None
    report = Path(where[1])
    assert SERVER in report.read_text()
    run_id = report.parent.name
    report.unlink()
    done = command("report", run_id, "--results", str(results))
    assert (done.returncode, done.stdout) == (0, f"{report}\n")
    assert report.is_file()
    again = ["report", run_id, "--results", str(results), "--export"]
    assert main([*again, "json"]) == 0
    export = msgspec.json.decode(capsys.readouterr().out, type=derive_type(Export))
    assert export.findings.run_id == run_id
    assert len(export.trials) == 2
    assert main([*again, "csv"]) == 0
    assert capsys.readouterr().out.startswith("table,question,")
    assert main([*again, "md"]) == 0
    assert capsys.readouterr().out.startswith("# ")
    assert main(["report", "--export", "schema"]) == 0
    assert '"Export"' in capsys.readouterr().out
    assert main([*again, "csv", "--json"]) == 2
    assert "--json and --export: take one of them" in capsys.readouterr().err
    assert main([*again[:-1], run_id]) == 2
    assert "the same run twice" in capsys.readouterr().err
    shutil.copytree(report.parent, results / "later")
    with edit_store(results / "later" / "run.sqlite") as connection:
        connection.execute("UPDATE run SET run_id = 'later'")
    assert main([*again[:-1], "later"]) == 0
    both = Path(capsys.readouterr().out.strip())
    assert both == report.with_name("report-with-later.html")
    assert "2 runs laid over each other" in both.read_text()
    both.unlink()
    both.mkdir()
    assert main([*again[:-1], "later"]) == 2
    assert capsys.readouterr().err == f"netdyno: {both} cannot be written: Is a directory\n"


def test_where_runs_have_nothing_in_common_page_and_stderr_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_run()

    def narrow_run(name: str, run_id: str) -> Run:
        (scenario,) = (candidate for candidate in run.experiment.scenarios if candidate.name == name)
        trials = tuple(trial for trial in run.trials if (trial.scenario, trial.block) == (name, 1))
        return replace(run, run_id=run_id, experiment=replace(run.experiment, scenarios=(scenario,)), trials=trials)

    first, later, skipped = narrow_run("chat", "first"), narrow_run("http", "later"), narrow_run("chat", "nobody")
    skipped = replace(skipped, trials=tuple(replace(trial, status="skipped", load=None) for trial in skipped.trials))
    for narrowed in (first, later, skipped):
        stored(narrowed, tmp_path)
    assert main(["report", "first", "later", "nobody", "--results", str(tmp_path)]) == 0
    page = (tmp_path / "first" / "report-with-later-nobody.html").read_text()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0].partition(":")[2] for line in lines] == [
        " later and first have no scenario in common",
        " nobody and first have no cell in common",
    ]
    assert all(f"{line.removeprefix('netdyno: ')}." in page for line in lines)
    assert "What changed since the first run" not in page


def test_an_encoding_without_the_signs_damages_no_export_and_stops_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("netdyno.verbs.run.export", lambda *_: "\u2212 3%")
    with monkeypatch.context() as narrow:
        narrow.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
        assert main(["report", "any", "--export", "md"]) == 2
        Console().print("\u2212 4%")
        sys.stdout.flush()
        assert written.getvalue() == b"? 4%\n"
    assert capsys.readouterr().err == "netdyno: the output cannot be written as ascii: set PYTHONUTF8=1\n"


def test_claims_get_their_verdicts_from_what_the_run_stored(tmp_path: Path, command: RunCommand) -> None:
    path, results = tmp_path / "claims.toml", tmp_path / "results"
    path.write_text(
        f'{TINY}[[claim]]\nid = "Z1"\ntext = "It is quick"\n'
        '[claim.test]\nkind = "bound"\nmetric = "p50"\nbelow = "1m"\n'
    )
    done = command(*run_tiny(str(path), results))
    assert done.returncode == 0, done.stderr
    assert "1 claim: 1 undecided" in done.stdout
    assert "too few blocks: 1, and a verdict needs 5" in re.sub(r"\s+", " ", done.stdout)
    (report,) = results.glob("*/report.html")
    assert "It is quick" in report.read_text()


@pytest.mark.parametrize("what", ["servers", "clients", "code", "workloads", "experiments", "claims", "runs"])
def test_every_list_is_an_array_of_named_objects(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", what, "--json", "--results", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list)
    assert all("name" in row or "id" in row for row in rows)
    assert cli.main(["list", what, "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip()


def test_a_contestant_says_what_it_speaks_and_why_it_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", str(tmp_path / "nothing"))
    cli.main(["list", "servers", "--json"])
    row = next(row for row in json.loads(capsys.readouterr().out) if row["name"] == SERVER)
    assert "echo" in row["workloads"]
    assert row["transports"] == ["tcp"]
    assert row["available"] is False
    assert "not built" in row["why_not"]


def test_a_server_that_is_unsafe_is_listed_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["list", "servers", "--json"])
    unsafe = {row["name"]: row["unsafe"] for row in json.loads(capsys.readouterr().out)}
    assert unsafe[UNSAFE.name] == UNSAFE.manifest.unsafe
    assert unsafe[SERVER] == ""
    cli.main(["list", "servers"])
    lines = capsys.readouterr().out.splitlines()
    (row,) = (number for number, line in enumerate(lines) if line.split()[0] == UNSAFE.name)
    notes = " ".join(itertools.takewhile(lambda line: line.startswith("  "), lines[row + 1 :])).split()
    assert f"unsafe: {UNSAFE.manifest.unsafe}" in " ".join(notes)


def test_an_audit_is_listed_with_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["list", "audits"])
    heading, first, *_ = capsys.readouterr().out.splitlines()
    assert heading.split() == ["audit", "kind", "meaning"]
    assert first.split()[:2] == ["died", "server"]


def test_a_list_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for columns in (40, 130):  # the least is 80
        monkeypatch.setenv("COLUMNS", str(columns))
        for what in listing.LISTS:
            cli.main(["list", what])
            wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > max(columns, listing.WIDTH)]
            assert [line for line in wide if len(line.split()) > 1] == [], "only a path goes on"


@pytest.mark.usefixtures("undrawn")
def test_a_server_that_is_unsafe_is_run_only_where_it_is_named(toml: str, tmp_path: Path, command: RunCommand) -> None:
    Path(toml).write_text(TINY.replace("[1, 2]", "[1]"))
    kin = f"{UNSAFE.name.partition('-')[0]}-*"
    safe = next(
        contestant.name
        for contestant in discover_once()
        if contestant.name.startswith(kin[:-1]) and contestant != UNSAFE
    )
    everybody = command("run", toml, "--contestant", kin, "--results", str(tmp_path / "all"))
    assert f"connections=1 {safe}" in everybody.stdout, everybody.stderr
    assert UNSAFE.name not in everybody.stdout
    named = command("run", toml, "--contestant", UNSAFE.name, "--results", str(tmp_path / "named"))
    assert f"connections=1 {UNSAFE.name}" in named.stdout, named.stderr
    assert f"{UNSAFE.name} is UNSAFE and in no ranking" in re.sub(r"\s+", " ", named.stdout)


def test_serve_becomes_the_server_and_warns_of_what_is_unsafe(fake_build: Path) -> None:
    warnings = {name: said_by_serve(name) for name in (SERVER, UNSAFE.name)}
    assert warnings == {SERVER: "", UNSAFE.name: f"netdyno: {UNSAFE.name} is UNSAFE: {UNSAFE.manifest.unsafe}\n"}


@pytest.mark.parametrize(
    ("options", "complete"),
    [
        ([], ["--listen", "tcp://127.0.0.1:0"]),
        (["--threads=2"], ["--listen", "tcp://127.0.0.1:0", "--threads", "2"]),
        (["--listen=tcp://127.0.0.1:8080"], ["--listen", "tcp://127.0.0.1:8080"]),
    ],
)
def test_serve_tells_a_framework_where_to_listen(options: Sequence[str], complete: Sequence[str]) -> None:
    framework = next(contestant for contestant in discover_once() if contestant.manifest.is_framework)
    assert cli.complete_options(framework, options) == complete
    assert cli.complete_options(UNSAFE, options) == options


def said_by_serve(name: str) -> str:
    """Return the stderr of a server that was started by hand, and ended."""
    command = [sys.executable, "-m", "netdyno", "serve", name, "--workload", "echo"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    pipe = subprocess.PIPE
    no_terminal = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=no_terminal, stdout=pipe, stderr=pipe, env=environment, text=True) as server:
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        assert (ready["ready"], ready["pid"]) == (True, server.pid)
        server.send_signal(signal.SIGTERM)
        totals, printed = server.communicate()
    assert json.loads(totals)["protocol_errors"] == 0
    assert server.returncode == 0
    return printed


@pytest.mark.parametrize("is_pressed", [True, False])
def test_enter_ends_a_server_in_a_terminal_as_a_signal_does(fake_build: Path, is_pressed: bool) -> None:
    command = [sys.executable, "-m", "netdyno", "serve", SERVER, "--workload", "echo"]
    with in_terminal(command, os.environ | {"PYTHONPATH": str(ROOT / "python")}) as terminal:
        terminal.wait_for(lambda _: b'"ready"' in terminal.raw, "the ready line")
        if is_pressed:
            terminal.type("\r")
        else:
            terminal.process.terminate()
        assert terminal.wait_ended() == 0
        session = [stat for stat in Path("/proc").glob("[0-9]*/stat") if _read_session(stat) == terminal.process.pid]
        eventually(lambda: not any(stat.exists() for stat in session), "its watcher is still there")
    first, _, *rest = terminal.raw.decode().splitlines()
    assert first == "netdyno: ENTER ends it"
    assert "protocol_errors" in rest[-1]


def _read_session(stat: Path) -> int:
    """Return the session of a process (proc(5)); 0 where it has ended."""
    try:
        return int(stat.read_text().rpartition(")")[2].split()[3])
    except OSError:
        return 0


def end_unread(*arguments: str, stderr: int = subprocess.PIPE) -> tuple[int, str | None]:
    """Run a command whose output no program reads. Return its exit code, and what is on stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as unread:
        environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "PYTHONUNBUFFERED": ""}
        done = subprocess.run(
            [*NETDYNO, *arguments], stdout=unread, stderr=stderr, env=environment, text=True, check=False
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        *("--help", "completion bash", "doctor", "compare RUN RUN", "report RUN --export md"),
        *("list servers", "list servers --json", "--version"),
    ],
)
def test_a_verb_whose_output_is_not_read_ends_quietly(words: str, tmp_path: Path) -> None:
    """One for each way in which a verb writes; all lists are written by one function, and so are all exports."""
    run = str(stored(made_run(), tmp_path / "results")) if "RUN" in words else ""
    assert end_unread(*words.replace("RUN", run).split()) == (128 + signal.SIGPIPE, "")


def test_a_run_whose_output_is_not_read_ends_quietly_and_keeps_its_folder(toml: str, tmp_path: Path) -> None:
    assert end_unread(*run_tiny(toml, tmp_path / "results")) == (128 + signal.SIGPIPE, "")
    assert end_unread("no-such-verb", stderr=subprocess.STDOUT) == (128 + signal.SIGPIPE, None)


def test_a_file_that_is_not_read_is_no_output_that_is_not_read(
    monkeypatch: pytest.MonkeyPatch, command: RunCommand
) -> None:
    """A pipe to a program, or one that was named as a file, has an error to tell."""

    def fail(*_: object) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe", "events.fifo")

    monkeypatch.setattr("netdyno.verbs.listing.as_text", fail)
    done = command("list", "servers")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("netdyno: wrote to a program that has ended: ")
    assert "events.fifo" in done.stderr


def test_check_hands_pytest_everything_from_the_first_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def remember(names: list[str], options: list[str]) -> int:
        seen.extend((names, options))
        return 5

    monkeypatch.setattr(checks, "run_conformance", remember)
    assert cli.main(["check", SERVER, "-q", "-k", "contract"]) == 5
    assert seen == [[SERVER], ["-q", "-k", "contract"]]


@pytest.mark.parametrize("words", [(), ("new",), ("cluster",)])
def test_without_a_verb_it_lists_them_in_whole_sentences(words: tuple[str, ...]) -> None:
    done = netdyno(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Usage: {' '.join(('netdyno', *words))} [OPTIONS] COMMAND [ARGS]...\n\n")
    _, commands = done.stderr.split("Commands:\n")
    assert "..." not in commands
    assert commands.endswith(".\n")


def test_load_hands_every_argument_to_the_generator() -> None:
    done = netdyno("load", "--no-such-option", "-c", "5", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "unrecognized arguments: --no-such-option" in done.stderr
    assert "usage: load.py" in netdyno("load", "--help").stdout


def test_starting_imports_nothing_heavy() -> None:
    code = (
        "import sys; from netdyno.verbs import cli, listing, run; from netdyno.measure.run import runner; "
        "print([name for name in ('numpy', 'scipy', 'matplotlib', 'jinja2') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"


def test_bash_completes_the_netdyno_that_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "netdyno"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m netdyno "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(./netdyno completion bash)"
        complete -p netdyno
        for typed in "./netdyno rep" "./netdyno report --exp" "./netdyno report --export "; do
            IFS=' ' read -ra COMP_WORDS <<<"$typed"
            [ "${typed% }" = "$typed" ] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _netdyno ./netdyno
            echo "${COMPREPLY[*]}"
        done"""
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o default -F _netdyno netdyno",
        "report",
        "--export",
        "json csv md bencher github-bigger github-smaller schema",
    ]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish: apt-get install fish")
def test_fish_completes_the_netdyno_that_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "netdyno"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m netdyno "$@"\n')
    program.chmod(0o755)
    script = """
        ./netdyno completion fish | source
        for typed in "./netdyno rep" "./netdyno report --exp" "./netdyno report --export githu"
            complete --do-complete $typed
        end"""
    command = ["fish", "--no-config", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert offered == ["report", "--export", "github-bigger", "github-smaller"]


def test_zsh_is_answered_and_asks_the_netdyno_that_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "zsh"]) == 0
    assert '_NETDYNO_COMPLETE=complete_zsh "${words[1]}"' in capsys.readouterr().out
    monkeypatch.setenv("_NETDYNO_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "./netdyno flip")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert '"flips":' in capsys.readouterr().out

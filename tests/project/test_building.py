"""What a command builds: the programs that it starts and no others, one build at a time, and how far it is."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from netdyno.kit.errors import UserError
from netdyno.question.contestants import building

ROOT = Path(__file__).resolve().parents[2]

# --- which programs -----------------------------------------------------------------------------------------------

FAKE_CMAKE = """#!/bin/sh
echo "$*" >>"$CALLS"
echo "error: no compiler here"
exit 1
"""
MEASURING = {"netdyno-load", "netdyno-canary"}
QUICK = {"threads-global-lock", "threads-snapshot", "epoll-coroutines", "asio-callbacks", "asio-coroutines"}
OVER_A_WAN = """
question = "?"
contestants = ["epoll-reactor", "node-events", "qt-thread-pool"]
blocks = 1
warmup = "0s"
duration = "1s"
link-delay = "20ms"
[[scenario]]
name = "rpc"
workload = "rpc"
factors = { link = ["loopback", "wan"], client = ["netdyno-load", "qt-*"] }
"""


@dataclass(frozen=True)
class Clone:
    """A copy of the tree that was configured and has no program; its CMake notes its arguments, and fails."""

    root: Path
    bin: Path

    def targets(self, *words: str) -> list[set[str]]:
        """Return the targets of each build that a command starts."""
        calls = self.root / "calls"
        calls.unlink(missing_ok=True)
        done = self.run(*words, CALLS=str(calls))
        builds = [line.split() for line in calls.read_text().splitlines()] if calls.exists() else []
        assert not builds or (done.returncode, "no compiler here" in done.stderr) == (2, True), done.stderr
        build = str(self.root / "build/release")
        assert all(arguments[:3] == ["--build", build, "--target"] for arguments in builds)
        return [set(arguments[3:]) for arguments in builds]

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return self.run_python("-m", "netdyno", *words, **more)

    def run_python(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NETDYNO_")}
        environment |= {"PYTHONPATH": str(self.root / "python"), "PATH": f"{self.bin}:{os.environ['PATH']}", **more}
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    made = Clone(tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("bin"))
    nothing_made = shutil.ignore_patterns("__pycache__", "node_modules")
    for folder in ("python", "servers", "clients", "experiments"):
        shutil.copytree(ROOT / folder, made.root / folder, ignore=nothing_made)
    build = made.root / "build" / "release"
    (build / "skipped/servers").mkdir(parents=True)
    (build / "skipped/servers/folly-async.txt").write_text("Folly not found\n")
    (build / "build.ninja").touch()
    (made.bin / "cmake").write_text(FAKE_CMAKE)
    (made.bin / "cmake").chmod(0o755)
    (made.root / "wan.toml").write_text(OVER_A_WAN)
    return made


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        ("run", MEASURING | QUICK),
        ("run quick --contestant asio-* --contestant udp-reuseport", MEASURING | {
            "asio-callbacks", "asio-context-per-thread", "asio-coroutines", "asio-uring", "udp-reuseport",
        }),
        ("run wan.toml", MEASURING | {
            "netdyno-link", "netdyno-launch", "epoll-reactor", "qt-thread-pool", "client-qt-signals",
        }),
        ("aa --contestant epoll-reactor", MEASURING | {"epoll-reactor"}),
        ("capacity epoll-reactor", MEASURING | {"epoll-reactor"}),
        ("calibrate", {"netdyno-load", "calibration", "calibration-udp"}),
        ("serve udp-reuseport", {"udp-reuseport"}),
        ("run --contestant tokio --contestant go-net", MEASURING | {"netdyno-launch", "tokio", "go-net"}),
        ("serve node-events --help", {"netdyno-launch"}),
        ("client qt-signals tcp://127.0.0.1:1", {"client-qt-signals"}),
        ("load tcp://127.0.0.1:1", {"netdyno-load"}),
        ("link --delay 20ms", {"netdyno-link"}),
        (
            "check asio-callbacks",
            {"netdyno-load", "netdyno-tls", "threads-global-lock", "asio-callbacks", "client-asio-callbacks"},
        ),
        ("check", {"netdyno_programs"}),
        ("test", {"all"}),
    ],
)  # fmt: skip
def test_a_command_builds_what_it_starts_and_nothing_else(clone: Clone, words: str, targets: set[str]) -> None:
    assert clone.targets(*words.split()) == [targets]


WITHOUT_PROGRAMS = {
    "list servers": 0,
    "list experiments": 0,
    "serve no-such-server": 2,
    "run no-such-experiment": 2,
    "run --contestant no-such-server": 2,
    "report no-such-run": 2,
    "compare no-such-run another": 2,
    "--help": 0,
}
"""Command lines with their exit codes."""
IN_TURN = """
import sys
from netdyno.verbs.cli import main
print([main(words.split()) for words in sys.argv[1:]], file=sys.stderr)
"""


def test_what_starts_no_program_of_the_build_builds_none(clone: Clone) -> None:
    """All in one process, which spends most of its time on loading the libraries."""
    calls = clone.root / "calls"
    calls.unlink(missing_ok=True)
    done = clone.run_python("-c", IN_TURN, *WITHOUT_PROGRAMS, CALLS=str(calls))
    assert done.stderr.endswith(f"\n{[*WITHOUT_PROGRAMS.values()]}\n"), done.stderr
    assert not calls.exists(), calls.read_text()


def test_what_can_be_built_can_be_run_and_what_lacks_something_says_so(clone: Clone) -> None:
    listed = clone.run("list", "servers").stdout
    assert re.search(r"^asio-callbacks .*\n(?!    not available)", listed, re.MULTILINE)
    assert re.search(r"^folly-async .*\n    not available: Folly not found", listed, re.MULTILINE)


def test_programs_of_a_build_that_was_named_are_taken_as_they_are(clone: Clone) -> None:
    done = clone.run("serve", "epoll-reactor", NETDYNO_BUILD=str(clone.root / "build/release"), CALLS="/dev/full")
    assert done.returncode == 2
    assert "epoll-reactor cannot be started: not built" in done.stderr


# --- the build ----------------------------------------------------------------------------------------------------

TOY = """
cmake_minimum_required(VERSION 3.25)
project(toy NONE)
foreach(name a b c d)
  add_custom_command(OUTPUT ${name}.out COMMAND sh ${CMAKE_SOURCE_DIR}/${name}.sh VERBATIM)
  add_custom_target(${name} DEPENDS ${name}.out)
endforeach()
"""


@dataclass(frozen=True)
class Toy:
    """A tree whose programs are files: a and b are made, c fails, d waits for a pipe."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "build" / "toy"

    @property
    def made(self) -> set[str]:
        return {path.stem for path in self.build.glob("*.out")}

    def make(self, *targets: str) -> None:
        building.make(targets, self.build, self.root)

    def start(self, *targets: str) -> subprocess.Popen[str]:
        """The same in a process of its own, which can be killed."""
        code = f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'python')!r}); "
        code += "from netdyno.question.contestants import building; "
        code += f"building.make({targets!r}, pathlib.Path({str(self.build)!r}), pathlib.Path({str(self.root)!r}))"
        return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """In a place with a blank in its name."""
    monkeypatch.delenv("NETDYNO_BUILD")
    tmp_path = tmp_path / "a toy"
    tmp_path.mkdir()
    made = Toy(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(TOY)
    for name in ("a", "b"):
        (tmp_path / f"{name}.sh").write_text(f"touch {name}.out\n")
    (tmp_path / "c.sh").write_text("echo missing semicolon; exit 1\n")
    (tmp_path / "d.sh").write_text(f"echo half >'{tmp_path}/reached'; read line <'{tmp_path}/go'; touch d.out\n")
    os.mkfifo(tmp_path / "reached")
    os.mkfifo(tmp_path / "go")
    command = ["cmake", "-G", "Ninja", "-S", str(tmp_path), "-B", str(made.build)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    yield made
    waiting = os.open(tmp_path / "go", os.O_RDWR)  # whatever a test that failed has left
    os.write(waiting, b"go\n")
    os.close(waiting)


def test_only_what_is_requested_is_made_and_only_once_stated(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    toy.make("a")
    assert toy.made == {"a"}
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[0] == "netdyno: building a with CMake and Ninja, 1 step"
    assert f"log: {toy.root}/.netdyno/logs/build-toy.log" in printed.err
    toy.make("a")
    assert capsys.readouterr().err == ""
    toy.make("a", "b", "a")
    assert toy.made == {"a", "b"}


def test_a_build_that_fails_shows_what_failed(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"the toy build failed \(again, with all output: ") as failed:
        toy.make("a", "c")
    again = shlex.split(str(failed.value).partition("all output: ")[2].partition("; the whole")[0])
    assert again[:3] == ["cd", str(toy.root), "&&"], "it can be pasted"
    assert again[-3:] == ["--target", "a", "c"]
    printed = capsys.readouterr().err
    assert re.search(r"FAILED: (\[code=\d+\] )?c\.out", printed)  # Ninja 1.13 gives the code
    assert "missing semicolon" in printed
    (toy.root / "c.sh").write_text("touch c.out\n")
    toy.make("c")
    assert "c" in toy.made


def test_nothing_is_made_where_nothing_is_requested_or_nothing_is_configured(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.make()
    building.make(["a"], toy.root / "build" / "other", toy.root)
    monkeypatch.setenv("NETDYNO_BUILD", str(toy.build))
    toy.make("a")
    assert toy.made == set()


PRESETS = """
{"version": 6, "configurePresets": [
  {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"},
  {"name": "o3", "generator": "Ninja", "binaryDir": "${sourceDir}/build/o3"}
]}
"""


@pytest.mark.parametrize(("level", "preset"), [("debug", "dev"), ("O3", "o3")])
def test_another_build_has_what_is_needed(
    toy: Toy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: str, preset: str
) -> None:
    (toy.root / "CMakePresets.json").write_text(PRESETS)
    configured = f"netdyno: configuring the build of CMake's preset {preset}"
    other = toy.root / "build" / preset

    def make_level(*targets: str) -> tuple[set[str], bool]:
        building.make_level(targets, level, toy.build, toy.root)
        return {path.stem for path in other.glob("*.out")}, configured in capsys.readouterr().err

    assert make_level() == (set(), False)
    assert make_level("a") == ({"a"}, True)
    assert make_level("a", "b") == ({"a", "b"}, False)
    assert toy.made == set()
    cache, second = toy.build / "CMakeCache.txt", other / "build.ninja"
    os.utime(cache, (second.stat().st_mtime + 1, second.stat().st_mtime + 1))
    assert make_level("a") == ({"a", "b"}, True), "what was installed since may be found now"
    shutil.rmtree(other)
    monkeypatch.setenv("NETDYNO_BUILD", str(toy.build))
    assert make_level("a") == (set(), False)


def test_of_two_builds_one_waits_for_the_other(toy: Toy) -> None:
    first = toy.start("d")
    assert (toy.root / "reached").read_text() == "half\n"
    second = toy.start("a")
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    assert toy.made == set()
    (toy.root / "go").write_text("go\n")
    assert [process.wait(timeout=60) for process in (first, second)] == [0, 0]
    assert toy.made == {"a", "d"}
    for process in (first, second):
        process.communicate()


def test_a_killed_build_holds_the_lock_until_its_last_compiler_has_ended_and_is_made_good(toy: Toy) -> None:
    process = toy.start("d")
    assert (toy.root / "reached").read_text() == "half\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    with (toy.root / ".netdyno/lock").open() as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (toy.root / "go").write_text("go\n")
        fcntl.flock(lock, fcntl.LOCK_EX)
    process.communicate()
    (toy.root / "d.sh").write_text("touch d.out\n")
    toy.make("d")
    assert toy.made == {"d"}


# --- what is shown ------------------------------------------------------------------------------------------------


class TtyStream(io.StringIO):
    def isatty(self) -> bool:
        return True


class TerminalStream(io.TextIOWrapper):
    """What a program writes to a terminal; `master` is the person's end."""

    master: int

    def drawn(self) -> str:
        pieces = bytearray()
        with suppress(BlockingIOError):
            while piece := os.read(self.master, 1 << 16):
                pieces += piece
        return pieces.decode()


@contextmanager
def pseudo_terminal(columns: int) -> Iterator[TerminalStream]:
    master, program = pty.openpty()
    os.set_blocking(master, False)
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(program, "wb", buffering=0) as raw:  # noqa: PTH123 - a descriptor
        stream = TerminalStream(raw, write_through=True)
        stream.master = master
        yield stream
        os.close(master)


def shown(stream: IO[str], at_s: list[float], lines: list[str | None]) -> list[str]:
    """What comes of Ninja's lines at these times; None is a second in which it said nothing."""
    times = iter([0.0, *at_s])
    now = [next(times)]
    screen = building.BuildProgress(stream, ["a", "b"], Path("log"), lambda: now[0])
    for line in lines:
        now[0] = next(times)
        if line is None:
            screen.tick()
        else:
            screen.line(line)
    screen.done()
    return stream.getvalue().splitlines() if isinstance(stream, io.StringIO) else []


def test_on_a_pipe_a_build_says_how_far_it_is_after_ten_seconds_with_every_tenth_and_twice_a_minute() -> None:
    lines = shown(
        io.StringIO(),
        [0, 1, 9, 11, 12, 15, 20, 49, 50],
        ["[0/2] Re-checking globbed directories...", "[1/50] x", "[2/50] x", "[3/50] x", "[4/50] x", "[7/50] x",
         "[8/50] x", None, None],
    )  # fmt: skip
    assert lines == [
        "netdyno: building a and b with CMake and Ninja, 50 steps",
        "netdyno: building [3/50], 6% in 0:11",
        "netdyno: building [8/50], 16% in 0:20",
        "netdyno: building [8/50], 16% in 0:50",
        "netdyno: built in 0:50 (log: log)",
    ]


def test_on_a_terminal_a_build_draws_its_last_step_in_place() -> None:
    stream = TtyStream()
    shown(stream, [0, 1, 2], ["[1/2] first", "[2/2] second", None])
    drawn = "\r\033[K  [1/2] first\r\033[K  [2/2] second\r\033[K  [2/2] second\r\033[K"
    assert drawn in stream.getvalue()


def test_a_step_that_is_wider_than_the_terminal_begins_no_new_line() -> None:
    with pseudo_terminal(columns=40) as stream:
        shown(stream, [0, 1], ["[1/2] " + "long " * 30, None])
        drawn = stream.drawn()
    steps = [piece for piece in re.split(r"\r|\n", drawn.replace("\x1b[K", "")) if piece.startswith("  [")]
    assert [len(step) for step in steps] == [39, 39]


def test_the_entry_draws_its_progress_within_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("word " * 60)
    entry = (ROOT / "netdyno").read_text().replace('\nmain "$@"\n', "\n")
    script = tmp_path / "watched"
    script.write_text(f"{entry}\nsleep() {{ [ $passed = 0 ]; }}\nwatch what {log} >&2\n")
    with pseudo_terminal(columns=40) as stream:
        subprocess.run(["sh", str(script)], stderr=stream, check=False)
        drawn = stream.drawn()
    assert drawn == f"\r\x1b[K{'  ' + 'word ' * 60:.39}"


def test_with_nothing_to_do_nothing_is_stated() -> None:
    checks = ["[0/2] Re-checking globbed directories...", "ninja: no work to do."]
    assert shown(io.StringIO(), [0, 60], [*checks]) == []


def test_many_programs_are_counted_and_few_are_named() -> None:
    assert building.describe_targets(["a", "b", "c"]) == "a, b and c"
    assert building.describe_targets([str(number) for number in range(20)]) == "20 programs"
    assert (building.describe_targets(["all"]), building.describe_targets(["netdyno_programs"])) == (
        "everything",
        "all programs",
    )

"""Children are bound to the harness: waited for with a deadline, ended with their group, dead when it dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.measure.machine import process as machine_process
from netdyno.measure.machine.process import LONGEST_LINE, LineReader, Process, ServerError, TrialError, describe_exit
from netdyno.measure.machine.program_settings import ProgramSettings

SOON_S = 30.0  # a limit for a stuck test, never waited for in one that passes

PARENT = """
import sys, signal
from netdyno.measure.machine.process import Process
with open("/dev/null", "wb") as output, Process(["sleep", "1000"], [], output) as child:
    print(child.pid, flush=True)
    signal.pause()
"""


@pytest.mark.quiet
def test_kill_9_of_the_harness_takes_its_children_along() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        ready, _, _ = select.select([child], [], [], SOON_S)
        os.close(child)
    assert ready, "the child outlived the harness"


def test_the_whole_group_ends_with_the_process(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        with Process(["sh", "-c", "sleep 1000 & echo $!; wait"], [], output, talks=True) as process:
            line = process.lines().wait_line(time.monotonic() + SOON_S)
            assert line is not None
            grandchild = os.pidfd_open(int(line))
        ready, _, _ = select.select([grandchild], [], [], SOON_S)
        os.close(grandchild)
    assert ready


def test_a_signal_between_fork_and_exec_ends_the_child_and_raises_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child has our handlers until then, and Ctrl-C reaches it as long as it is in our group."""

    def interrupt_child(given: ProgramSettings) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgramSettings, "apply", interrupt_child)
    with (tmp_path / "out").open("wb") as output, Process(["sleep", "1000"], [], output) as process:
        assert process.wait(time.monotonic() + SOON_S)
        assert describe_exit(process.exit_code()) == "signal SIGINT"


def test_a_signal_that_comes_while_it_is_started_is_handled_when_it_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def open_and_interrupt(pid: int, flags: int = 0) -> int:
        started.append(pid)
        # To this thread, as if it were the only one, which it is in the harness: a test worker has more.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return real_open(pid, flags)

    real_open = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", open_and_interrupt)
    with (tmp_path / "out").open("wb") as output, pytest.raises(KeyboardInterrupt):
        Process(["sleep", "1000"], [], output)
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_it_leads_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output, Process(["sleep", "1000"], [], output) as process:
        assert os.getsid(process.pid) == process.pid


def test_a_wait_ends_at_its_deadline_or_with_the_process(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output:
        with Process(["sleep", "1000"], [], output) as process:
            assert not process.wait(time.monotonic() + 0.01)
            assert not process.has_ended()
        with Process(["sh", "-c", "echo sorry; exit 7"], [], output) as process:
            assert process.wait(time.monotonic() + SOON_S)
            assert process.exit_code() == 7
            assert process.read_reason() == ": sorry"


def test_a_program_that_is_not_there_is_a_trial_error(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        pytest.raises(TrialError, match="/nowhere/x cannot be started: No such"),
    ):
        Process(["/nowhere/x"], [], output)


def test_lines_come_whole_however_they_are_written() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        lines = LineReader(reading)
        assert lines.wait_line(time.monotonic()) is None
        os.write(writing, b"one\ntw")
        assert lines.read_lines() == ["one"]
        os.write(writing, b"o\nthree")
        assert lines.wait_line(time.monotonic()) == "two"
        os.close(writing)
        assert lines.wait_line(time.monotonic() + SOON_S) == "three"
        assert lines.wait_line(time.monotonic() + SOON_S) is None
        assert lines.at_end


def test_a_line_without_end_is_an_error_and_keeps_no_reader(tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as output,
        Process(["cat", "/dev/zero"], [], output, talks=True) as process,
        pytest.raises(ServerError, match="the server printed a line of more than 64 KiB"),
    ):
        process.lines().wait_line(time.monotonic() + SOON_S)


def test_a_line_may_be_as_long_as_stated() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"):
        lines = LineReader(reading, "relay")
        for size in (LONGEST_LINE, LONGEST_LINE + 1):
            os.write(writing, (size - 1000) * b"x")
            assert lines.read_lines() == []
            os.write(writing, 1000 * b"x" + b"\n")
            if size == LONGEST_LINE:
                assert lines.read_lines() == [size * "x"]
        with pytest.raises(TrialError, match="the relay printed a line of more than 64 KiB"):
            lines.read_lines()
        os.close(writing)


def test_the_deadline_holds_for_a_line_that_never_ends(tmp_path: Path) -> None:
    drips = ["sh", "-c", "while :; do printf x; sleep 0.001; done"]
    with (tmp_path / "out").open("wb") as output, Process(drips, [], output, talks=True) as process:
        began_s = time.monotonic()
        assert process.lines().wait_line(began_s + 0.1) is None
        assert time.monotonic() - began_s < SOON_S


def test_lines_without_end_keep_no_reader(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output, Process(["yes"], [], output, talks=True) as process:
        lines = process.lines()
        for _ in range(3):
            assert lines.wait_line(time.monotonic() + SOON_S) == "y"


def test_a_program_that_writes_too_much_into_a_log_ends_every_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_process, "MOST_LOG", 1 << 20)
    with (tmp_path / "flood").open("wb") as flood, (tmp_path / "out").open("wb") as output:
        with (
            Process(["cat", "/dev/zero"], [], flood, name="client x"),
            Process(["sleep", "1000"], [], output) as sleeper,
        ):
            with pytest.raises(TrialError, match="the client x wrote more than 1 MiB to its log") as raised:
                sleeper.wait(time.monotonic() + SOON_S)
            assert not isinstance(raised.value, ServerError)
        with Process(["sleep", "1000"], [], output) as sleeper:
            assert not sleeper.wait(time.monotonic() + 0.01)


def test_last_words_are_found_at_the_end_of_a_long_log(tmp_path: Path) -> None:
    """The log is a sparse file: too large for memory, but not for this disk."""
    with (tmp_path / "out").open("wb", buffering=0) as output, Process(["sleep", "1000"], [], output) as process:
        output.seek(1 << 42)
        output.write(b"and then\nit was over\n")
        (tmp_path / "out").unlink()
        assert process.read_reason() == ": it was over"


NODE = """/app.js:1
const b = (function(){})(),JSON.stringify(1);
                               ^^^^

SyntaxError: Missing initializer in const declaration
    at wrapSafe (node:internal/modules/cjs/loader:1464:18)

Node.js v20.20.2
"""
NODE_IN_USE = """      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use 127.0.0.1:45551
    at listenInCluster (node:net:1965:12)
Emitted 'error' event on Server instance at:
    at emitErrorNT (node:net:1944:8) {
  code: 'EADDRINUSE',
  port: 45551
}

Node.js v20.20.2
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: no port
\tat X.main(X.java:1)
Caused by: java.io.IOException: in use
\tat X.main(X.java:1)
"""
GO = """panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47a743]

goroutine 1 [running]:
main.f(...)
github.com/go-chi/chi/v5.(*Mux).ServeHTTP(0xc000123, {0x7f, 0xc0})
\t/app/main.go:2
exit status 2
"""
RUST = """thread 'main' (28343) panicked at /app/x.rs:1:73:
called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (NODE, "SyntaxError: Missing initializer in const declaration"),
        (NODE_IN_USE, "Error: listen EADDRINUSE: address already in use 127.0.0.1:45551"),
        (JAVA, "Caused by: java.io.IOException: in use"),
        (GO, "panic: runtime error: invalid memory address or nil pointer dereference"),
        (RUST, "called `Result::unwrap()` on an `Err` value: ParseIntError { kind: InvalidDigit }"),
        ("terminate called after throwing an instance of 'E'\n  what():  bind: in use\n", "what():  bind: in use"),
        (
            "Error: no server\n\nCaused by:\n    Address already in use (os error 98)\n",
            "Address already in use (os error 98)",
        ),
        ("cannot listen (98)\n", "cannot listen (98)"),
        ("bind(127.0.0.1:80): Permission denied (13)\n", "bind(127.0.0.1:80): Permission denied (13)"),
        ("    only a frame\n", "only a frame"),
    ],
)
def test_the_reason_for_an_end_stands_before_the_trace_of_the_stack(tmp_path: Path, output: str, reason: str) -> None:
    with (tmp_path / "out").open("wb", buffering=0) as file, Process(["true"], [], file) as process:
        file.write(output.encode())
        assert process.read_reason() == f": {reason}"


def test_an_exit_is_stated_in_words() -> None:
    assert (describe_exit(3), describe_exit(-11)) == ("exit code 3", "signal SIGSEGV")
    assert describe_exit(-signal.SIGRTMIN) == "signal SIGRTMIN"
    assert describe_exit(-signal.SIGRTMIN - 6) == "signal SIGRTMIN+6"


def test_a_command_with_a_zero_byte_is_a_trial_error(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as output, pytest.raises(TrialError, match="echo cannot be started: embedded"):
        Process(["echo", "a\0b"], [], output)

"""The output of strace, its attaching to a running process, and its detaching."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.measure.machine import server_proc, strace
from netdyno.measure.machine.process import TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.trial import SystemCall
from tests.support.patience import eventually

TRACE = """\
100   1000.000000 epoll_wait(0x5, 0x7fff, 0x100, 0xffffffff) = 0x1 <0.500000>
100   1000.600000 recvfrom(0x7, 0x55d0, 0x1000, 0, 0, 0) = 0x1f <0.000010>
101   1000.650000 futex(0x7f96, 0x80, 0x2, 0, 0, 0 <unfinished ...>
100   1000.700000 recvfrom(0x7, 0x55d0, 0x1000, 0, 0, 0) = -1 EAGAIN (Resource temporarily unavailable) <0.000007>
102   1000.710000 restart_syscall( <unfinished ...>
100   1000.800000 poll(0x7fff, 0x1, 0x64)   = 0 (Timeout) <0.100000>
101   1001.000000 <... futex resumed>)      = 0 <0.350000>
101   1001.100000 futex(0x7f96, 0x81, 0x1, 0, 0xca, 0x56) = -1 ETIMEDOUT (Connection timed out) <0.000002>
102   1001.200000 <... restart_syscall resumed>) = ? ERESTART_RESTARTBLOCK (Interrupted by signal) <0.490000>
102   1001.300000 exit(0)                   = ?
102   1001.300001 +++ exited with 0 +++
100   1001.400000 --- SIGTERM {si_signo=SIGTERM} ---
100   1001.500000 epoll_wait(0x5, 0x7fff, 0x100, 0xffffffff <detached ...>
"""


def test_whole_calls_and_those_in_two_lines_are_read_with_the_time_of_their_return() -> None:
    seen = list(strace.parse_calls(TRACE.splitlines(keepends=True)))
    assert [(call.thread, call.name, call.error) for call in seen] == [
        (100, "epoll_wait", ""),
        (100, "recvfrom", ""),
        (100, "recvfrom", "EAGAIN"),
        (100, "poll", ""),
        (101, "futex", ""),
        (101, "futex", "ETIMEDOUT"),
        (102, "restart_syscall", "ERESTART_RESTARTBLOCK"),
        (102, "exit", ""),
    ]
    assert seen[0].ended_at_s == pytest.approx(1000.5)
    assert seen[4].ended_at_s == pytest.approx(1001.0)
    assert [call.took_s for call in seen][3:6] == pytest.approx([0.1, 0.35, 0.000002])


def test_what_returned_within_the_window_counts_and_what_was_in_vain_stands_apart() -> None:
    counted, threads = strace.count(strace.parse_calls(TRACE.splitlines()), 1000.55, 1001.15)
    assert [(total.name, total.calls, total.again, total.failed) for total in counted] == [
        ("futex", 2, 0, 1),
        ("recvfrom", 2, 1, 0),
        ("poll", 1, 0, 0),
    ]
    assert [total.time_s for total in counted] == pytest.approx([0.350002, 0.000017, 0.1])
    assert threads == 2


def test_the_time_of_a_call_is_that_within_the_window() -> None:
    ((futex,), _) = strace.count(strace.parse_calls(TRACE.splitlines()), 1000.95, 1001.05)
    assert (futex.name, futex.calls) == ("futex", 1)
    assert futex.time_s == pytest.approx(0.05)


@pytest.mark.parametrize("line", ["strace: what is this", "100   1000.0 recvfrom(0x7", "recvfrom(0x7) = 1"])
def test_a_line_that_is_not_understood_is_no_line_to_leave_out(line: str) -> None:
    with pytest.raises(strace.UnreadableTraceError, match="not understood"):
        list(strace.parse_calls([line]))


def test_the_tracer_of_a_thread_is_found() -> None:
    assert strace.parse_tracer("Name:\tx\nTracerPid:\t17\nUid:\t0\n") == 17
    assert strace.parse_tracer("Name:\tx\n") is None


@pytest.fixture
def asking() -> Iterator[int]:
    """A process with two threads, each of which asks for its parent without end."""
    program = """
import os, threading, time
def ask():
    while True:
        os.getppid()
        time.sleep(0.001)
threading.Thread(target=ask, daemon=True).start()
os.write(1, b"ready")
ask()
"""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(5) == b"ready"
        yield child.pid
        child.kill()


def test_it_is_attached_to_all_threads_and_lets_go_of_them(asking: int, strace_program: str, tmp_path: Path) -> None:
    log, trace = TrialLog(tmp_path / "log"), tmp_path / "trace"
    with strace.attach_tracer(strace_program, asking, (), trace, log) as tracer:
        start_s = time.time()

        def since() -> tuple[tuple[SystemCall, ...], int]:
            whole_lines = trace.read_text().rpartition("\n")[0].splitlines()
            return strace.count(strace.parse_calls(whole_lines), start_s, time.time())

        def both_have_asked() -> bool:
            counted, threads = since()
            return threads == 2 and any(total.name == "getppid" and total.calls > 50 for total in counted)

        eventually(both_have_asked, lambda: f"not both threads are seen to ask: {since()}")
        tracer.terminate()
        strace.let_go(tracer)
    statuses = Path(f"/proc/{asking}/task").glob("*/status")
    assert [strace.parse_tracer(status.read_text()) for status in statuses] == [0, 0]
    assert "== strace: " in log.path.read_text()


def test_it_is_attached_to_all_processes_also_later_ones(strace_program: str, tmp_path: Path) -> None:
    """Each asks for another thing: the parent, a child from before, and one of after."""
    program = """
import os, sys, time
def ask(question):
    while True:
        question()
        time.sleep(0.001)
def fork(question):
    if os.fork() == 0:
        ask(question)
fork(os.getppid)
os.write(1, b"ready")
sys.stdin.read(1)
fork(os.getuid)
ask(os.getgid)
"""
    command, trace = [sys.executable, "-I", "-S", "-c", program], tmp_path / "trace"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.read(5) == b"ready"
        with strace.attach_tracer(strace_program, parent.pid, (), trace, TrialLog(tmp_path / "log")) as tracer:
            start_s = time.time()
            parent.stdin.write(b"x")
            parent.stdin.flush()

            def all_have_asked() -> bool:
                whole_lines = trace.read_text().rpartition("\n")[0].splitlines()
                counted, _ = strace.count(strace.parse_calls(whole_lines), start_s, time.time())
                return {"getppid", "getuid", "getgid"} <= {total.name for total in counted if total.calls > 20}

            eventually(all_have_asked, "not all processes are seen to ask")
            tracer.terminate()
            strace.let_go(tracer)
        os.killpg(parent.pid, signal.SIGKILL)


def test_a_process_that_was_forked_while_its_parent_was_looked_at_is_not_overlooked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The parent is traced when its state is read; it has forked after the list of processes was."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as parent, subprocess.Popen(["cat"], stdin=-1) as child:
        lists = iter([(parent.pid,)])
        monkeypatch.setattr(server_proc, "find_family", lambda _: next(lists, (parent.pid, child.pid)))
        monkeypatch.setattr(strace, "_read_tracer", lambda _, thread: 7 * (thread == str(parent.pid)))
        assert strace._find_untraced(parent.pid, tracer=7) == {child.pid}


def test_a_tracer_that_may_not_trace_says_why(tmp_path: Path) -> None:
    refused = tmp_path / "refused"
    refused.write_text("#!/bin/sh\necho 'strace: attach: Operation not permitted' >&2\nexit 1\n")
    refused.chmod(0o755)
    log = TrialLog(tmp_path / "log")
    with (
        pytest.raises(TrialError, match=r"strace may not trace here: strace: attach: Operation not permitted"),
        strace.attach_tracer(str(refused), os.getpid(), (), tmp_path / "trace", log),
    ):
        pass


def test_a_process_that_is_gone_is_reported(strace_program: str, tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    with (
        pytest.raises(TrialError, match="the server had ended before strace could attach"),
        strace.attach_tracer(strace_program, child.pid, (), tmp_path / "trace", TrialLog(tmp_path / "log")),
    ):
        pass

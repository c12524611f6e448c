"""What the harness gives every program before its exec, read back from the kernel: proc(5), of every thread."""

from __future__ import annotations

import itertools
import os
import re
import resource
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from netdyno.measure.machine import program_settings
from netdyno.measure.machine.links.namespace_child import MARK
from netdyno.measure.machine.process import Process
from netdyno.model.contestant import behind_launcher
from tests.support.server import Server

CORE = min(os.sched_getaffinity(0))
"""Where the programs of these tests are pinned."""

TUNED = {
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    "LD_BIND_NOW": "1",
    "NODE_OPTIONS": "--max-old-space-size=4096",
    "UV_THREADPOOL_SIZE": "9",
    "QT_LOGGING_RULES": "*.debug=false",
    "GOMAXPROCS": "1",
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C",
    "TZ": "UTC",
}
"""What a user may have set, and no program of a trial gets."""

_OF_WORKERS = frozenset({"NODE_UNIQUE_ID", "NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE"})
"""Variables that Node.js gives to the processes that a server starts as its workers."""
_OTHER_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "libhoard", "libc_malloc_debug")
_KERNEL_NAMES = {
    "Max cpu time": "CPU",
    "Max file size": "FSIZE",
    "Max data size": "DATA",
    "Max stack size": "STACK",
    "Max core file size": "CORE",
    "Max resident set": "RSS",
    "Max processes": "NPROC",
    "Max open files": "NOFILE",
    "Max locked memory": "MEMLOCK",
    "Max address space": "AS",
    "Max pending signals": "SIGPENDING",
    "Max msgqueue size": "MSGQUEUE",
    "Max nice priority": "NICE",
    "Max realtime priority": "RTPRIO",
    "Max realtime timeout": "RTTIME",
}
_NOT_IN_PYTHON = "Max file locks"  # RLIMIT_LOCKS, which Linux has not had since 2.4.25


@contextmanager
def by_the_harness(command: Sequence[str], *arguments: str) -> Iterator[Server]:
    """A server as a trial starts it, from a shell in which a user has tuned this and that. Gone when the block ends."""
    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as errors:
        for name, value in TUNED.items():
            patch.setenv(name, value)
        with Process([*command, *arguments], (CORE,), errors, talks=True) as process:
            server = Server(process._popen, errors)
            server.wait_ready()
            yield server


def expect_level(pid: int, command: Sequence[str]) -> None:
    """The process has what every program has, and so has each of its threads; only `env` in its command gives it
    variables of its own. A stated skip where the kernel does not show the timer slack of others (CAP_SYS_NICE), once
    all else is found to be right."""
    slack_shown = True
    for name, expected, actual in _of_process(pid, _variables(command)):
        assert actual == expected, f"{name}: {actual!r} where every other program has {expected!r}"
    threads = sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())
    assert threads
    for thread in threads:
        comm = Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
        for name, expected, actual in _of_thread(pid, thread):
            assert actual == expected, f"{name} of thread {comm}: {actual!r} where every other program has {expected!r}"
        try:
            slack = int(Path(f"/proc/{thread}/timerslack_ns").read_text())
        except PermissionError:
            slack_shown = False
        else:
            assert slack == 1, f"timer slack of thread {comm}: {slack} ns where every other program has 1"
    if not slack_shown:
        pytest.skip("all but the timer slack: the kernel shows that of other programs with CAP_SYS_NICE only")


def _variables(command: Sequence[str]) -> dict[str, str]:
    """What a manifest's `run`, or the script that its kind makes, gives a program of its own: env(1) and NAME=value."""
    program = list(behind_launcher(command))
    path = Path(program[0])
    if path.is_file() and (text := path.read_bytes()).startswith(b"#!"):
        lines = (line for line in text.decode().splitlines() if line.startswith("exec env "))
        program = shlex.split(next(lines, ""))[1:] or program
    if program[0] != "env":
        return {}
    words = itertools.takewhile(lambda word: "=" in word or word in ("-u", "PWD"), program[1:])
    pairs = (word.partition("=") for word in words if "=" in word)
    return {name: value for name, _, value in pairs}


def _of_process(pid: int, variables: Mapping[str, str]) -> Iterator[tuple[str, object, object]]:
    """Yield name, expected and actual value."""
    given = program_settings.choose()
    limits = {
        name: given.limits.get(name) or resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        for name in _KERNEL_NAMES.values()
    }
    yield "limits", limits, parse_limits(Path(f"/proc/{pid}/limits").read_text(encoding="ascii"))
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    environment = dict(entry.split("=", 1) for entry in entries if entry)
    environment = {name: value for name, value in environment.items() if name not in _OF_WORKERS | {MARK}}
    yield "environment", {**given.environment, **variables}, environment
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    yield "allocators beside glibc's", [], [name for name in _OTHER_ALLOCATORS if name in maps]
    if (autogroup := Path(f"/proc/{pid}/autogroup")).exists():  # sched(7): a group and a niceness for each session
        yield "niceness of its autogroup", "0", autogroup.read_text().split()[-1]
    own = Path("/proc/self/oom_score_adj").read_text()
    yield "oom_score_adj", own, Path(f"/proc/{pid}/oom_score_adj").read_text()


def _of_thread(pid: int, thread: int) -> Iterator[tuple[str, object, object]]:
    given = program_settings.choose()
    fields = Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    yield "nice", given.nice, int(fields[16])
    yield "real-time priority", 0, int(fields[37])
    yield "policy", given.policy, int(fields[38])
    yield "cores", {CORE}, os.sched_getaffinity(thread)


def parse_limits(text: str) -> dict[str, tuple[int, int]]:
    """/proc/PID/limits: soft and hard limits by the names of getrlimit(2) without RLIMIT_."""
    limits = {}
    for line in text.splitlines()[1:]:
        title, soft, hard, *_unit = re.split(r"  +", line.strip())
        if title != _NOT_IN_PYTHON:
            limits[_KERNEL_NAMES[title]] = _number(soft), _number(hard)
    return limits


def _number(limit: str) -> int:
    return resource.RLIM_INFINITY if limit == "unlimited" else int(limit)

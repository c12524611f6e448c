"""Every test is in one step of `netdyno test`: those marked quiet in the last, those marked calm in the one before it,
all others in one before that. Where several run at a time, those of one file stay together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import Contestant
from netdyno.question.contestants import codesize
from tests.support import chosen, memory
from tests.support.patience import SLOWER, slowness

pytestmark = pytest.mark.quick

SOME_FILES = (
    "tests/harness/test_process.py",
    "tests/harness/test_pinning.py",
    "tests/unit/kit/test_paths.py",
    "tests/programs/test_load_at_once.py",
)
"""Some tests of the first are marked quiet, all of the second, none of the third; most of the fourth are calm."""

ONE_FILE = "tests/unit/kit/test_units.py"
LONG_FILE = "tests/programs/test_built.py"


@cache
def collected(*options: str, files: Sequence[str] = (*SOME_FILES, ONE_FILE, LONG_FILE)) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *files, *options]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in output.splitlines() if "::" in line]


def test_each_test_is_beside_all_others_or_beside_few_or_alone() -> None:
    whole, beside, calm, alone = collected(), *(collected("--machine", name) for name in ("shared", "calm", "quiet"))
    assert sorted(beside + calm + alone) == sorted(whole)
    assert [name for name in alone if "test_process.py" in name] == [
        "tests/harness/test_process.py::test_kill_9_of_the_harness_takes_its_children_along"
    ]
    assert not [name for name in beside if "test_pinning.py" in name]
    assert [name for name in whole if "test_paths.py" in name] == [name for name in beside if "test_paths.py" in name]
    assert [name.partition("::")[2] for name in alone if "test_load_at_once.py" in name] == [
        "test_a_lock_that_is_held_while_sending_keeps_clients_of_a_burst_out"
    ]
    assert len(calm) > 1


def test_for_a_quiet_machine_only_files_with_the_mark_are_loaded(tmp_path: Path) -> None:
    """And a mark that does not stand in its file is an error, for such a test would be nowhere."""
    (tmp_path / "test_plain.py").write_text("raise SystemExit('it is loaded')")
    (tmp_path / "test_marked.py").write_text("import pytest\n@pytest.mark.quiet\ndef test_it():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"), "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    assert "1 passed" in (done := run("--machine", "quiet")).stdout, done
    (tmp_path / "test_plain.py").write_text(
        "import pytest\npytestmark = getattr(pytest.mark, 'qui' + 'et')\ndef test_it():\n    pass\n"
    )
    assert "must have the words 'mark.quiet'" in (done := run()).stderr, done


def test_a_long_group_is_begun_before_others() -> None:
    files = [name.partition("::")[0] for name in collected()]
    assert [file for file, _ in groupby(files)] == [LONG_FILE, *SOME_FILES, ONE_FILE]


def test_a_named_contestant_of_which_no_test_passes_is_no_success() -> None:
    """nginx has no streams; where it is not installed, nothing passes either."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/contract/web"]
    command += ["--contestant", "nginx", "-k", "stream"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "nginx: nothing was checked" in done.stdout) == (1, True), done.stdout


CONTRACT = "tests/contract/tcp"
ONCE = f"{CONTRACT}/test_bad_input.py::test_one_byte_at_a_time"
ONCE_A_FAMILY = f"{CONTRACT}/test_bad_input.py::test_hundreds_of_connects_and_closes"
OF_LOOPS = f"{CONTRACT}/test_bad_input.py::test_half_close_gets_every_reply_then_the_end"
SHARING = (f"{CONTRACT}/test_bad_input.py", f"{CONTRACT}/test_more_clients.py")
NAMED = ("--contestant", "epoll-reactor")


def targets(test: str, *options: str) -> set[str]:
    """The servers and workloads that a conformance test runs against."""
    files = SHARING if options == NAMED else (ONCE, ONCE_A_FAMILY, OF_LOOPS)
    of_test = (name for name in collected(*options, files=files) if name.startswith(f"{test}["))
    return {target for name in of_test for target in re.findall(r"\[(.+)\]", name)}


def servers_of_streams() -> dict[str, Contestant]:
    return {server.name: server for server in chosen.discovered("server") if "tcp" in server.manifest.transports}


def pair_with_workloads(server: Contestant) -> set[str]:
    return {f"{server.name}-{workload}" for workload in chosen.list_tested_workloads(server)}


def test_what_a_session_decides_is_tested_in_full_against_one_server_of_each_language() -> None:
    servers, tested = servers_of_streams(), targets(ONCE)
    languages = {name: codesize.find_language(codesize.list_sources(ROOT / "servers" / name)) for name in servers}
    in_full = {name for name in servers if f"{name}-chat" in tested}
    assert sorted(languages[name] for name in in_full) == sorted(set(languages.values()))
    assert tested == set().union(*(pair_with_workloads(servers[name]) for name in in_full))


def test_what_the_libraries_of_a_loop_decide_is_tested_against_one_server_of_each_family() -> None:
    servers = servers_of_streams()
    tested = {target.rpartition("-")[0] for target in targets(ONCE_A_FAMILY)}
    families = {
        name: (
            codesize.find_language(codesize.list_sources(ROOT / "servers" / name)),
            server.manifest.needs,
            server.manifest.asynchronous,
        )
        for name, server in servers.items()
    }
    assert {families[name] for name in tested} == set(families.values())
    assert {"epoll-coroutines", "epoll-reactor"} - tested, "a family is met by one of its servers"
    assert {target.rpartition("-")[0] for target in targets(ONCE_A_FAMILY, "--all")} == servers.keys()


def test_what_a_loop_does_is_tested_against_every_server() -> None:
    assert {target.rpartition("-")[0] for target in targets(OF_LOOPS)} == servers_of_streams().keys()


def test_tests_of_one_shared_server_follow_each_other() -> None:
    shared = [
        workload for name in collected(*NAMED, files=SHARING) for workload in re.findall(r"\[epoll-reactor-(\w+)", name)
    ]
    assert len(set(shared)) == 5
    assert len([workload for workload, _ in groupby(shared)]) == 5


@pytest.mark.parametrize(("options", "names"), [(("--all",), ()), (NAMED, NAMED[1:])])
def test_everything_runs_against_all_or_against_those_that_are_named(
    options: tuple[str, ...], names: tuple[str, ...]
) -> None:
    servers = servers_of_streams()
    assert targets(ONCE, *options) == set().union(*(pair_with_workloads(servers[name]) for name in names or servers))


def test_tests_of_one_file_run_in_one_process() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", ONE_FILE]
    options = ["--numprocesses", "2", "--dist", "loadgroup"]
    output = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ran_by = re.findall(r"^\[(gw\d)\].*PASSED", output, re.MULTILINE)
    assert len(ran_by) > 2
    assert len(set(ran_by)) == 1


def test_files_of_the_tests_are_in_memory_where_it_holds_them(tmp_path: Path) -> None:
    if memory.can_hold_files(memory.FOLDER):
        assert tmp_path.is_relative_to(os.environ["PYTEST_DEBUG_TEMPROOT"])


def test_a_folder_without_room_or_in_which_no_program_can_be_started_holds_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, flags = memory.ROOM_BYTES // 4096, os.statvfs(tmp_path).f_flag & ~os.ST_NOEXEC

    def can_hold(blocks: int, more_flags: int = 0) -> bool:
        status = os.statvfs_result((4096, 4096, 2 * blocks, blocks, blocks, 0, 0, 0, flags | more_flags, 255))
        monkeypatch.setattr(os, "statvfs", lambda _: status)
        return memory.can_hold_files(tmp_path)

    assert can_hold(free)
    assert not can_hold(free - 1)
    assert not can_hold(free, os.ST_NOEXEC)
    assert not memory.can_hold_files(tmp_path / "nothing")


LARGE_PAGES = """
import mmap, re
from tests.support import memory
room = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
room.write(bytes(16 << 20))
memory.join_pages()
print(sum(map(int, re.findall("AnonHugePages: +([0-9]+) kB", open("/proc/self/smaps").read()))))
"""


def test_the_memory_of_the_tests_is_in_large_pages_where_the_kernel_joins_them() -> None:
    """A fork copies the table of all pages, and most programs of tests are forked."""
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 1):
        pytest.skip("this kernel joins no pages when it is requested (MADV_COLLAPSE)")
    done = subprocess.run([sys.executable, "-c", LARGE_PAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 14 << 10


WORKS_AND_RESTS = r"""
import subprocess, sys, pytest
BURN = "import time\nwhile time.process_time() < 0.3: pass"

def test_works():
    subprocess.run([sys.executable, "-c", BURN], check=True)

@pytest.mark.costly
def test_may_work():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_rests():
    pass
"""


def test_a_test_that_takes_more_cpu_than_one_may_fails_and_groups_are_reported_by_their_time(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = costly\n")
    (tmp_path / "conftest.py").write_text("from tests.support import time_spent\ntime_spent.MOST_CPU_S = 0.2\n")
    (tmp_path / "test_it.py").write_text(WORKS_AND_RESTS)
    (tmp_path / "test_that.py").write_text("def test_rests():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.time_spent", "-n", "2", str(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert re.search(r"FAILED test_it.py::test_works - Failed: it took \d+ s of CPU", done.stdout), done.stdout
    cpu_s = re.search(r" +[\d.]+ +([\d.]+) +3 tests +test_it.py$", done.stdout, re.MULTILINE)
    assert cpu_s, done.stdout
    assert float(cpu_s[1]) >= 0.6


@pytest.mark.parametrize(("kind", "times"), [("", 1), ("address", SLOWER), ("thread", SLOWER)])
def test_programs_with_a_sanitizer_are_waited_for_longer(kind: str, times: int, tmp_path: Path) -> None:
    assert slowness(tmp_path) == 1
    (tmp_path / "CMakeCache.txt").write_text(f"CMAKE:STRING=x\nNETDYNO_SANITIZE:STRING={kind}\nOTHER:STRING=y\n")
    assert slowness(tmp_path) == times

"""A contestant opens only files that its digest is made of: strace(1) is asked, so that a module missing from the
manifest is found here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import get_args

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.machine import loaded
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import ContestantKind, find_by_name
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support.chosen import discover_once, discovered, startable
from tests.support.patience import PATIENCE_S
from tests.support.server import serving

STRACE = ("strace", "-D", "-f", "-qq", "-z", "-e", "signal=none", "-e", "trace=open,openat,execve")
OPENED = re.compile(r'^(\d+) +(open|openat|execve)\((?:AT_FDCWD, )?"([^"]+)", ([^)]*)', re.MULTILINE)
OWN = (ROOT, build_dir(), Path(sysconfig.get_path("platlib")))
SUFFIXES = (".js", ".py", ".jar", ".node")
LIBRARY = re.compile(r"\.so(\.\d+)*$")
STARTERS = ("env", "dash", "bash", "coreutils")  # what only starts the program
OPTIONAL = ("libsctp.so",)  # Erlang's emulator opens it where it is installed, and serves no SCTP here

pytestmark = [
    pytest.mark.needs_build,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]


def opened(trace: Path) -> set[Path]:
    """The files that may change what the program does; the libraries of what only starts it do not."""
    files = set()
    runs: dict[str, str] = {}
    for process, call, name, how in OPENED.findall(trace.read_text(errors="replace")):
        path = Path(name).resolve()
        if call == "execve":
            runs[process] = path.name
        elif runs.get(process) in STARTERS and LIBRARY.search(path.name):
            continue
        if path.suffix == ".pyc":  # what Python keeps of a module that it has compiled
            path = path.parents[1] / f"{path.name.partition('.')[0]}.py"
        if path.is_file() and "O_WRONLY" not in how and path.suffix != ".jsa":
            files.add(path)
    return files


def is_code(path: Path) -> bool:
    if (
        path.name in STARTERS
        or path.name.startswith(OPTIONAL)
        or path.suffix in (".pth", ".cfg")
        or path.parent.name == "_distutils_hack"
    ):
        return False  # the last: setuptools has it imported whenever this environment's Python starts
    return path.suffix in SUFFIXES or bool(LIBRARY.search(path.name)) or any(map(path.is_relative_to, OWN))


def expect_all_known(contestant: Contestant, trace: Path) -> None:
    loads = {path for path in opened(trace) if is_code(path)}
    assert loads, trace.read_text()[:500]
    assert sorted(loads.difference(loaded.files(contestant))) == []


@pytest.mark.parametrize(
    "name", [contestant.name for contestant in discovered("server") if "tcp" in contestant.manifest.transports]
)
def test_a_server_opens_no_code_but_what_its_digest_is_made_of(name: str, tmp_path: Path) -> None:
    contestant = startable(find_by_name(discover_once(), name), "server")
    trace = tmp_path / "trace"
    command = [*STRACE, "-o", str(trace), *contestant.command]
    workload = "lines" if "lines" in contestant.manifest.workloads else contestant.manifest.workloads[0]
    with serving(command, "--workload", workload) as server:
        with StreamTalk(server, workload) as talk:
            talk.check()
        server.stop()
    expect_all_known(contestant, trace)


@pytest.mark.parametrize(
    "name", [contestant.name for contestant in discover_once("client") if not contestant.manifest.instrument]
)
def test_a_client_opens_no_code_but_what_its_digest_is_made_of(name: str, tmp_path: Path) -> None:
    contestant = startable(find_by_name(discover_once("client"), name, "client"), "client")
    trace = tmp_path / "trace"
    with serving(
        startable(find_by_name(discover_once(), "threads-global-lock"), "server").command, "--workload", "rpc"
    ) as server:
        command = [
            *STRACE,
            "-o",
            str(trace),
            *contestant.command,
            server.endpoint,
            "--warmup",
            "0",
            "--duration",
            "100ms",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    expect_all_known(contestant, trace)


@pytest.mark.parametrize(
    ("kind", "contestant"),
    [(kind, contestant) for kind in get_args(ContestantKind) for contestant in discover_once(kind)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_every_pattern_of_a_manifest_names_files(kind: ContestantKind, contestant: Contestant) -> None:
    startable(contestant, kind)
    assert [pattern for pattern in contestant.loads if not loaded.expand_pattern(pattern)] == []

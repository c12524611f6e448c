"""The wheel: installed outside of the clone it loads, runs, gates and reports, and says what needs the clone.

Its programs are those of the build under test; a person's are of the preset `load`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from netdyno.kit.paths import NEEDS_CLONE, ROOT, build_dir
from netdyno.kit.version import VERSION
from netdyno.verbs.cli import OF_CLONE
from tests.support.patience import slowness

pytestmark = pytest.mark.needs_build

WHEEL = ROOT / "packages" / "wheel"
MOST_BYTES = 5_000_000
PATIENCE_S = 120
SERVER = f"{build_dir()}/servers/threads-global-lock --workload http --listen tcp://127.0.0.1:{{port}}"
QUICK = ("--duration", "100ms", "--foreign-load", "count")
Netdyno = Callable[..., subprocess.CompletedProcess[str]]


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("NETDYNO_", "PYTHON", "VIRTUAL"))}
    return subprocess.run(
        command,
        env={**kept, "UV_CACHE_DIR": str(folder / "cache"), "NETDYNO_BUILD": str(build_dir())},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S * slowness(build_dir()),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside of the clone with an environment that has the wheel; its packages are those of the clone."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = [sys.executable, "-m", "uv", "--offline", "--no-config"]
    python = folder / "environment/bin/python"
    for words in (
        ["build", "--wheel", "--python", sys.executable, "--out-dir", str(folder), str(WHEEL)],
        ["venv", "--python", sys.executable, str(folder / "environment")],
        ["pip", "install", "--python", str(python), "--no-deps", "--find-links", str(folder), "netdyno"],
    ):
        done = run([*uv, *words], folder)
        assert done.returncode == 0, done.stderr
    (packages,) = folder.glob("environment/lib/python*/site-packages")
    (packages / "clone.pth").write_text(sysconfig.get_path("purelib"))
    return folder


@pytest.fixture(scope="module")
def netdyno(home: Path) -> Netdyno:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return run(["env", "--unset=NETDYNO_BUILD", str(home / "environment/bin/netdyno"), *words], home)

    return call


def test_the_wheel_has_the_licences_of_what_is_linked_into_its_programs(home: Path, wheel: ModuleType) -> None:
    (folder,) = home.glob("environment/lib/python*/site-packages/netdyno-*.dist-info/licenses")
    notices = {path.parent.name: path.read_bytes() for path in wheel.list_notices()}
    assert "libssl-dev" in notices, "no notices: not a Debian, or without the packages of packages/debian.txt"
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "LICENSE"} == notices


def test_each_program_has_the_one_version(home: Path, wheel: ModuleType, netdyno: Netdyno) -> None:
    assert netdyno("--version").stdout == f"netdyno {VERSION}\n"
    assert run([str(home / "environment/bin/netdyno-load"), "--version"], home).stdout == f"netdyno-load {VERSION}\n"
    for name in wheel.PROGRAMS:
        (program,) = (home / "environment").glob(f"lib/python*/site-packages/**/{name}")
        assert run([str(program), "--version"], home).stdout == f"{name} {VERSION}\n"
    assert f'"title": "netdyno {VERSION}: report --export json"' in netdyno("report", "--export", "schema").stdout
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
    assert (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].startswith(f"{VERSION}\n")
    assert run([str(ROOT / "netdyno"), "--version"], home).stdout == f"netdyno {VERSION}\n"


@pytest.mark.long
@pytest.mark.costly
def test_it_runs_gates_and_reports_without_the_clone(home: Path, netdyno: Netdyno) -> None:
    done = netdyno("run", "web", "--server", SERVER, "--blocks", "1", *QUICK)
    assert done.returncode in {0, 1}, done.stderr  # a machine that is busy enough spoils every trial
    (stored,) = (home / "netdyno-results").iterdir()
    assert {path.name for path in stored.iterdir()} >= {"run.sqlite", "report.html", "findings.json"}
    assert netdyno("report", stored.name).stdout == f"{stored / 'report.html'}\n"
    assert stored.name in netdyno("list", "runs").stdout
    assert f"{stored.name}: published" in netdyno("publish", stored.name, "site").stdout
    assert netdyno("compare", stored.name, stored.name).returncode == 0
    (home / "gates").write_text('{"decision": "earlier"}\n')
    done = netdyno("gate", "--before", SERVER, "--after", SERVER, "--time-budget", "4s", "--history", "gates", *QUICK)
    assert done.returncode in {0, 2, 3}, done.stderr  # 2: a block of a busy machine may take longer
    decided = [json.loads(line)["decision"] for line in (home / "gates").read_text().splitlines()]
    assert decided == ["earlier", {0: "passes", 2: "unmeasured", 3: "open"}[done.returncode]]
    assert "most, throughput: " in done.stdout or "Nothing was measured." in done.stdout


def test_its_generator_has_a_page_where_man_looks(home: Path) -> None:
    assert "\\-\\-look\\-every" in (home / "environment/share/man/man1/netdyno-load.1").read_text()


def test_its_generator_loads_and_its_doctor_examines(home: Path, netdyno: Netdyno) -> None:
    assert netdyno("load", "http://127.0.0.1:1/", "--duration", "10ms").returncode == 1
    assert netdyno("doctor").stdout.startswith("this machine: ")


def test_what_needs_the_clone_says_so(netdyno: Netdyno) -> None:
    for verb in OF_CLONE:
        assert netdyno(verb, "x").stderr == f"netdyno: {verb}: {NEEDS_CLONE}\n"
    assert " ".join(netdyno("--help").stdout.split()).count("Needs a clone.") == len(OF_CLONE)
    assert f"cannot be started: {NEEDS_CLONE}" in netdyno("serve", "tokio").stderr
    done = netdyno("run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"netdyno: quick: {NEEDS_CLONE}; your own servers: netdyno run web --server ")
    assert netdyno("list", "servers").stdout.count("not available: it needs a clone") > 20


# --- what the wheel is called and holds ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("netdyno_wheel", WHEEL / "netdyno_wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GLIBC = """  NEEDED               libm.so.6
  NEEDED               libc.so.6
  NEEDED               ld-linux-x86-64.so.2
    0x06969194 0x00 10 GLIBC_2.34
    0x0d696919 0x00 03 GLIBC_2.9
"""


@pytest.mark.parametrize(
    ("needed", "here", "platform"),
    [
        (GLIBC, "linux_x86_64", "manylinux_2_34_x86_64"),
        (f"{GLIBC}  NEEDED  libssl.so.3\n", "linux_x86_64", "linux_x86_64"),
        ("  NEEDED  libc.musl-x86_64.so.1\n", "linux_x86_64", "linux_x86_64"),
    ],
)
def test_the_wheel_says_where_its_programs_run(wheel: ModuleType, needed: str, here: str, platform: str) -> None:
    assert wheel.platform_of(needed, here) == platform


def test_its_programs_can_be_executed_and_its_record_has_all(wheel: ModuleType, tmp_path: Path) -> None:
    wheel.write(tmp_path / "a.whl", {"a/netdyno-load": b"program", "a/METADATA": b"about"}, "a/RECORD")
    with zipfile.ZipFile(tmp_path / "a.whl") as archive:
        modes = {entry.filename: stat.filemode(entry.external_attr >> 16) for entry in archive.infolist()}
        record = [line.split(",") for line in archive.read("a/RECORD").decode().splitlines()]
    assert modes == {"a/netdyno-load": "-rwxr-xr-x", "a/METADATA": "-rw-r--r--", "a/RECORD": "-rw-r--r--"}
    assert [(name, size) for name, _, size in record] == [
        ("a/netdyno-load", "7"),
        ("a/METADATA", "5"),
        ("a/RECORD", ""),
    ]


def test_it_is_small_and_asks_for_what_the_clone_asks_for(home: Path) -> None:
    (path,) = home.glob("netdyno-*.whl")
    if slowness(build_dir()) == 1:  # what a sanitizer has been added to is large
        assert path.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(path) as archive:
        metadata = archive.read(f"netdyno-{VERSION}.dist-info/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: ([\w-]+)>=\d", metadata, re.MULTILINE)
    assert needed == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

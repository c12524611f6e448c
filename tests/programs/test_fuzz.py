"""The fuzzer (tests/cpp/fuzz/) for a moment: every target, some thousand inputs each. docs/reliability.md has the
command for hours of it, with sanitizers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from netdyno.base.paths import ROOT, build_dir
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.needs_build

EXECUTIONS = 10_000
FOUND = [
    # A part that is longer than its message, and in it a text: libprotobuf reserved up to 50 MB.
    ("decoder-rpc", "000000000a0affffffff011adddddd"),
    ("session-rpc", "000000000a0affffffff011adddddd"),
    ("protobuf", "000affffffff011adddddd"),
]
TARGET = re.compile(r'^const Target \w+\{"([^"]+)"', re.MULTILINE)


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = build_dir() / "tests" / "netdyno-fuzz"
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


def test_every_target_holds_for_some_thousand_inputs() -> None:
    done = fuzz("--executions", str(EXECUTIONS))
    assert done.returncode == 0, done.stderr[-2000:]
    sources = (ROOT / "tests" / "cpp" / "fuzz").glob("*.cpp")
    declared = [name for source in sources for name in TARGET.findall(source.read_text())]
    *lines, last = done.stdout.splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == sorted(declared)
    assert last == f"all: {len(declared) * EXECUTIONS} inputs"


@pytest.mark.parametrize(("target", "bytes_"), FOUND)
def test_what_it_found_holds(target: str, bytes_: str) -> None:
    done = fuzz("--targets", target, "--input", bytes_, "--cuts", "a5d72efa6f9d85d6")
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_it_found_can_be_tried_again() -> None:
    done = fuzz("--targets", "framing", "--input", "00" + b"\0\0\0\1x".hex(), "--cuts", "7")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all: 1 inputs")


def test_a_target_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert fuzz("--targets", "nobody").returncode == 2

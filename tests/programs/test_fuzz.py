"""The fuzzer (tests/cpp/fuzz/) for a moment: every target, what was kept of it and some thousand inputs more.
docs/measurements/attacks.md has the command for hours of it, with sanitizers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.needs_build

EXECUTIONS = 10_000
CORPUS = ROOT / "tests" / "cpp" / "fuzz" / "corpus"
FOUND = [
    # A part that is longer than its message, and in it a text: libprotobuf reserved up to 50 MB.
    ("decoder-rpc", "000000000a0affffffff011adddddd"),
    ("session-rpc", "000000000a0affffffff011adddddd"),
    ("protobuf", "000affffffff011adddddd"),
    # A reply of each byte: what the target itself kept of them was counted as the decoder's memory.
    pytest.param("decoder-exchange", "00" + 20_000 * "0a", id="decoder-exchange-lines"),
]
TARGET = re.compile(r'^const Target \w+\{"([^"]+)"', re.MULTILINE)


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = build_dir() / "tests" / "netdyno-fuzz"
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


def test_every_target_holds_for_some_thousand_inputs() -> None:
    kept = {path.name: path.read_text() for path in CORPUS.iterdir()}
    done = fuzz("--executions", str(EXECUTIONS), "--corpus", str(CORPUS))
    assert done.returncode == 0, done.stderr[-2000:]
    assert {path.name: path.read_text() for path in CORPUS.iterdir()} == kept
    sources = (ROOT / "tests" / "cpp" / "fuzz").glob("*.cpp")
    declared = [name for source in sources for name in TARGET.findall(source.read_text())]
    *lines, last = done.stdout.splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == sorted(declared)
    assert last == f"all: {len(declared) * EXECUTIONS} inputs"
    assert kept.keys() <= set(declared)


def test_it_begins_with_what_was_kept(tmp_path: Path) -> None:
    (tmp_path / "framing").write_text("000000017800\n\n")
    done = fuzz("--targets", "framing", "--executions", "1", "--corpus", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 of the corpus" in done.stdout
    (tmp_path / "framing").write_text("0g\n")
    assert fuzz("--targets", "framing", "--executions", "1", "--corpus", str(tmp_path)).returncode == 2


@pytest.mark.parametrize(("target", "bytes_"), FOUND)
def test_what_it_found_holds(target: str, bytes_: str) -> None:
    done = fuzz("--targets", target, "--input", bytes_, "--cuts", "a5d72efa6f9d85d6")
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_it_found_can_be_tried_again() -> None:
    done = fuzz("--targets", "framing", "--input", "00" + b"\0\0\0\1x".hex(), "--cuts", "7")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "all: 1 inputs")


def test_a_target_that_is_not_there_is_stated(tmp_path: Path) -> None:
    assert fuzz("--targets", "nobody").returncode == 2

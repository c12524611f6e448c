"""The commands in the documents work: every fenced block marked `sh` is executed, in order, from the repository's root.

A block ends with the first command that fails. `sh slow` marks what takes too long for every run of the tests (a
second build with sanitizers, a whole experiment); it is run by hand. A `text` block is no command, or one that cannot
be repeated.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from netdyno.measure.trial.load import INVALID_LOAD

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
# What a block may call itself. An unknown word is an error, so that no block drops out unseen.
RUN, SLOW = "sh", "sh slow"
OTHER = {"text", "json", "toml", "toml claim", "toml figure", "toml flip", "toml budget", "cpp", "python", ""}
CUT_OUT = {"yaml github", "yaml gitlab", "python http"}
"""Programs and settings that a command of the same page takes from there."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: str
    body: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    collected = []
    for page in PAGES:
        text = page.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            collected.append(Block(page, line, match["info"].strip(), match["body"]))
    return collected


BLOCKS = blocks()


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_says_what_it_is(block: Block) -> None:
    assert block.info in {RUN, SLOW} | OTHER | CUT_OUT


def test_the_documents_have_commands() -> None:
    assert sum(block.info == RUN for block in BLOCKS) >= 5


ALONE = re.compile(r"^\./netdyno (calibrate|new)\b", re.MULTILINE)
"""What ends with a failure where its machine was too busy to be believed, or adds to the tree."""
SHORTER = {
    re.compile(r"(?<=run )(smoke|quick|web|fixed-rate|flip-room-size|trap-[a-z-]+)"): r"$SHORT/\1.toml",
    re.compile(r"(?<=\./netdyno load )(?!.*--messages)"): "--warmup 0 ",
    re.compile(r"(?<=--duration )[12]s\b"): "100ms",
    re.compile(r"\b100\.\.2k/500ms,2k/500ms\b"): "100..2k/200ms,2k/200ms",
    re.compile(
        r"(?<=/trap-write-write-read.toml --blocks 1)$", re.MULTILINE
    ): " --contestant asio-callbacks --duration 100ms --aa-share 0",
    re.compile(r"(?<=/trap-unlocked-snapshot.toml --blocks 1)$", re.MULTILINE): (
        " --contestant threads-snapshot-unlocked --duration 100ms --aa-share 0"
    ),
    re.compile(r"^\./netdyno run \$SHORT/smoke.toml$", re.MULTILINE): (
        "PYTHONPATH= ./netdyno run $SHORT/smoke.toml --contestant epoll-reactor"
    ),
    re.compile(r"(?<=/smoke.toml --contestant epoll-reactor\b)"): " --duration 100ms --aa-share 0",
    re.compile(r"(?<=/quick.toml --blocks 1 )--duration 200ms --contestant 'asio-\*'"): (
        "--duration 100ms --aa-share 0 --contestant 'asio-cor*'"
    ),
    re.compile(r"(?<=/web.toml --server )(.*)--blocks 2$", re.MULTILINE): r"\1--blocks 1 --duration 100ms --aa-share 0",
    re.compile(r"(?<=--budget smoke )--blocks 5\b"): "--blocks 1 --duration 100ms --aa-share 0",
    re.compile(r"(?<=/flip-room-size.toml --budget smoke )"): "--duration 100ms --aa-share 0 ",
    re.compile(r"(?<=--duration )300ms (?=--resolution)"): "100ms --warmup 20ms --needed 1 --most 1000 ",
    re.compile(r"(?<=--time-budget )8s\b"): "4s",
    re.compile(r"(?<=profile epoll-reactor --duration )500ms"): "100ms --warmup 20ms",
}
"""The tests check whether the commands work, not their figures: for that, less of the same time will do, a
block instead of several, and some of the contestants that a pattern names. In $SHORT are experiments of a single cell
that hardly warm up (`single_cell`)."""
COPY_IS_CHECKED = "-k 'test_golden or test_it_listens or test_stdout or test_half_close'"
"""The tests that `check` runs for a copy of a server which the contract suites have judged already: it is found, built
and talked to. Of a page's own -k the last counts."""
UNDRAWN = f"""
import runpy, sys

if {{"run", "capacity", "advise", "publish"}}.intersection(sys.orig_argv):
    runpy.run_path({str(ROOT / "tests" / "support" / "brief.py")!r})
"""
"""Python's sitecustomize (library `site`): the reports of runs are empty files here, as those of the fixture `undrawn`.
A command that is to draw one has no PYTHONPATH."""
NOT_AT_ONCE = f"set -Euo pipefail; trap 'code=$?; [ $code = {INVALID_LOAD} ] || exit $code' ERR"
"""As `set -e`, but for a load that its machine was too busy for: it has worked and says so (docs/load.md)."""
EXECUTED = [
    pytest.param(
        block,
        id=str(block),
        marks=pytest.mark.quiet if ALONE.search(block.body) else pytest.mark.xdist_group(str(block)),
    )
    for block in BLOCKS
    if block.info == RUN
]


def commands(block: Block) -> str:
    """Return the commands of a block, as they are executed here."""
    body = block.body
    for words, shorter in SHORTER.items():
        body = words.sub(shorter, body)
    return body


def single_cell(experiment: str) -> str:
    """Return the text of an experiment with its last scenario only, at the first level of each factor, and a search for
    a flip that has no level in between. tests/unit/question/test_experiment.py loads the shipped experiments whole."""
    settings, *scenarios = experiment.split("[[scenario]]\n")
    text = "[[scenario]]\n".join([settings, *scenarios[-1:]])
    for pattern, replacement in SINGLE_CELL.items():
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


SINGLE_CELL = {
    r"^warmup = .*": 'warmup = "20ms"',
    r"^((?:rate|connections|server\.write-mode) = \[[^],]+),.*\]": r"\1]",
    r"^to = .*": "to = 5",
}


def test_what_is_shortened_stands_in_a_page() -> None:
    page = "".join(block.body for block in BLOCKS if block.info == RUN)
    for words, shorter in SHORTER.items():
        assert words.search(page), words.pattern
        page = words.sub(shorter, page)


def execute(block: Block, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["bash", "-c", f"{NOT_AT_ONCE}\n{commands(block)}"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=570,
            check=False,
        )
    finally:
        if ALONE.search(block.body):
            shutil.rmtree(ROOT / "servers" / "my-server", ignore_errors=True)


@pytest.mark.needs_build
@pytest.mark.costly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", EXECUTED)
def test_the_commands_of_the_documents_work(block: Block, tmp_path: Path) -> None:
    environment = os.environ | {"NETDYNO_RESULTS": str(tmp_path / "results"), "PYTEST_ADDOPTS": COPY_IS_CHECKED}
    environment["SHORT"] = str(tmp_path / "short")
    (tmp_path / "short").mkdir()
    for path in (ROOT / "experiments").glob("*.toml"):
        (tmp_path / "short" / path.name).write_text(single_cell(path.read_text()))
    (tmp_path / "sitecustomize.py").write_text(UNDRAWN)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    environment.pop("NETDYNO_BUILD", None)  # a reader's commands build what they need
    done = execute(block, environment)
    assert done.returncode in {0, INVALID_LOAD}, f"{block}\n{block.body}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr


# --- records of decisions ----------------------------------------------------------------------------------------

RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))
SCREEN_LINES, SCREEN_COLUMNS = 45, 120


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.stem)
def test_a_record_is_one_screen_with_decision_why_and_cost(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert [line for line in lines[1:] if line.startswith("#")] == ["## Decision", "## Why", "## Cost"]
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_COLUMNS

"""A run that is hit by a signal at any moment: what is stored is readable, nothing of it goes on running, and it can be
gone on with to its end."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from random import Random

import pytest

from netdyno.kit.paths import ROOT
from netdyno.store import read, schema
from tests.harness.test_cli import NETDYNO, TINY, run_tiny
from tests.support.patience import PATIENCE_S, eventually

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LONGEST_S = 3.0


@pytest.fixture(autouse=True)
def _build(fake_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETDYNO_BUILD", str(fake_build))


def marked(folder: Path) -> list[str]:
    """Return the programs that run with this folder for temporary files: all are given that variable."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has just ended
    return commands


def test_a_signal_at_any_moment_loses_nothing_and_leaves_no_process(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    toml, results, temporary = tmp_path / "tiny.toml", tmp_path / "results", tmp_path / "temporary"
    toml.write_text(TINY)
    temporary.mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(temporary)}
    hit, after_s = chance.choice(SIGNALS), chance.uniform(0, LONGEST_S)
    command = [*NETDYNO, *run_tiny(str(toml), results, "--blocks", "2")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, text=True) as run:
        try:
            run.wait(after_s)
        except subprocess.TimeoutExpired:
            run.send_signal(hit)
        _, errors = run.communicate(timeout=PATIENCE_S)
    stored = list(results.glob(f"*/{schema.FILE_NAME}"))
    is_starting = not stored and hit is signal.SIGINT  # the wrapper of the fakes is hit, and not netdyno
    assert is_starting or "Traceback" not in errors
    eventually(lambda: not marked(temporary), lambda: f"still running: {marked(temporary)}")
    for path in stored:
        if read.load(path).finished_at is None:
            resume = [*NETDYNO, "resume", path.parent.name, "--results", str(results)]
            done = subprocess.run(resume, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        trials = read.load(path).trials
        assert [trial.status for trial in trials] == ["valid"] * 4
    assert marked(temporary) == []

"""A run beside a program that never rests ends with an answer, and names that program."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.analysis.analysis import analyse
from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.audits import neighbour
from netdyno.measure.machine import cpu_share
from netdyno.measure.machine.pinning import choose
from netdyno.measure.run import runner
from netdyno.model import outcomes
from netdyno.model.trial import Trial
from netdyno.present.prose import company
from netdyno.present.terminal.display import PlainDisplay
from netdyno.question import experiment
from netdyno.question.contestants import contestants
from netdyno.store import read, schema

pytestmark = pytest.mark.needs_build

NAME = "busy-neighbour"
NEVER_RESTS = f"""
import os
os.sched_setaffinity(0, {{{{{{core}}}}}})
os.nice(10)
open("/proc/self/comm", "w").write("{NAME}")
print(flush=True)
while True:
    pass
"""
CONTESTANTS = ("epoll-coroutines",)
TRIES = 4
"""Here so many tries in a row tell a neighbour from a burst; test_neighbour.py of the unit tests has the dozen."""


@pytest.fixture
def _neighbour(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At nice 10 on the core of the servers: it takes what they leave. This process has started it, and does not count
    it as its own."""
    core = min(choose().server or os.sched_getaffinity(0))
    program = [sys.executable, "-I", "-S", "-c", NEVER_RESTS.format(core=core)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            own_processes = cpu_share.find_own_processes
            monkeypatch.setattr(
                cpu_share, "find_own_processes", lambda: tuple(pid for pid in own_processes() if pid != process.pid)
            )
            yield
        finally:
            process.kill()


def is_lost(trial: Trial) -> bool:
    return any(audit.name in neighbour.TAKES_CORES and not audit.passed for audit in trial.audits)


@pytest.mark.usefixtures("_neighbour", "steady_canary")
def test_a_run_beside_a_program_that_never_rests_has_an_answer_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tests may keep the cores busy meanwhile: then they are named as well. A try that meets neither begins the
    row again, so that a second block is there to find it in."""
    monkeypatch.setattr(neighbour, "DOZEN", TRIES)
    printed = io.StringIO()
    outcome = runner.execute(
        experiment.load(ROOT / "experiments" / "smoke.toml").with_each(contestants=CONTESTANTS, blocks=2),
        [contestant for contestant in contestants.discover() if contestant.name in CONTESTANTS],
        results=tmp_path,
        build=build_dir(),
        argv=["netdyno", "run", "smoke"],
        display=PlainDisplay(printed),
    )
    run = outcomes.judge_run(read.load(outcome.folder / schema.FILE_NAME))
    tries = sorted(run.all_trials, key=lambda trial: trial.started_at)
    known_from = next(index for index, trial in enumerate(tries) if trial.neighbour is not None)
    assert all(map(is_lost, tries[known_from - TRIES : known_from])), "a row of them tells a neighbour from a burst"
    lost = [trial for trial in tries[known_from:] if is_lost(trial)]
    assert all(map(neighbour.is_crowded, lost)), "what the neighbour takes strikes nothing out any more"
    first = tries[known_from].neighbour
    assert first is not None
    assert NAME in {program.name for program in first.programs}
    assert sum(program.cores for program in first.programs if program.name == NAME) > 0
    assert "tries in a row were lost" in printed.getvalue()
    for findings in analyse(run).scenarios:
        assert findings.standings
        assert findings.company is not None
        assert findings.company.trials > 0
        assert company.label(findings.company).startswith("beside ")

"""Every program that was built in a run: the whole path, judged by everything but speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT, build_dir
from netdyno.measure.machine.links.namespace import NotAllowedError, make_namespace
from netdyno.measure.run import schedule
from netdyno.model import transports
from netdyno.model.contestant import behind_launcher
from netdyno.model.run import Run
from netdyno.question.contestants import contestants
from netdyno.store import read, schema
from netdyno.verbs.cli import main
from tests.support.fixtures import draw_nothing, use_steady_canary

pytestmark = [pytest.mark.needs_build, pytest.mark.long]

# What a busy machine cannot change. (Little's law, the rate, the generator's share and our own are about time.)
TIMELESS = {"verification", "bytes", "connections", "server_alive", "server_totals"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of all contestants in the cell of smoke.toml that has the harness verify, pace and cost them. That
    each speaks echo, the other cell, is for tests/contract; `./netdyno run smoke` as it stands is for the pages."""
    folder = tmp_path_factory.mktemp("run")
    smoke = (ROOT / "experiments" / "smoke.toml").read_text()
    head, _, rpc = smoke.split("[[scenario]]\n")
    (folder / "rpc.toml").write_text(f"{head}[[scenario]]\n{rpc}")
    with pytest.MonkeyPatch.context() as patch:
        # A trial that is ended early because another program took its cores has no figures to look at.
        patch.setenv("NETDYNO_FOREIGN_LOAD", "count")
        patch.setattr(schedule, "RETRIES_PER_CELL", 0)
        draw_nothing(patch)
        use_steady_canary(patch)
        words = ["--duration", "100ms", "--aa-share", "0", "--trace", "never", "--results", str(folder)]
        assert main(["run", str(folder / "rpc.toml"), *words]) == 0
    (stored,) = folder.glob(f"*/{schema.FILE_NAME}")
    return read.load(stored)


def cannot_run_here() -> set[str]:
    """The names of contestants that are not built, that speak web alone, or that need a private network where there
    is none."""
    everyone = contestants.discover()
    lacking = {
        contestant.name for contestant in everyone if not contestant.available or contestant.manifest.is_framework
    }
    try:
        with make_namespace():
            return lacking
    except NotAllowedError:
        return lacking | {contestant.name for contestant in everyone if transports.find_transport(contestant).private}


def test_every_contestant_that_can_run_completes_its_cell(run: Run) -> None:
    excused = cannot_run_here()
    for trial in run.trials:
        # Of the one that serves a client at a time, three of four would wait.
        expected = {"skipped"} if trial.contestant in {*excused, "iterative"} else {"valid", "struck_out"}
        assert trial.status in expected, trial.reason
    everybody = {
        contestant.name
        for contestant in contestants.discover()
        if not contestant.manifest.apart and "rpc" in contestant.manifest.workloads
    }
    assert {trial.contestant for trial in run.trials} == everybody


def test_every_answer_is_true_and_every_count_agrees(run: Run) -> None:
    for trial in run.trials:
        failed = [f"{audit.name}: {audit.detail}" for audit in trial.audits if not audit.passed]
        assert not [text for text in failed if text.partition(":")[0] in TIMELESS], (trial.contestant, trial.scenario)
        assert trial.status in ("skipped", "struck_out") or {audit.name for audit in trial.audits} >= TIMELESS


def test_what_the_server_cost_was_seen(run: Run) -> None:
    """Only valid trials are judged: a starved server costs nothing."""
    valid = [trial for trial in run.trials if trial.status == "valid"]
    assert valid
    for trial in valid:
        if trial.server is not None:
            assert trial.server.cpu_user_s + trial.server.cpu_system_s > 0
            assert trial.server.voluntary_switches > 0
            assert trial.server.rss_peak_bytes > 0
            assert trial.server.window_s > 0


def test_no_contestant_was_forgotten_by_the_build() -> None:
    """Each is built, or skipped with a stated reason: any other folder was forgotten (a program: Path.is_file)."""
    kinds: tuple[contestants.ContestantKind, ...] = ("server", "client")
    for kind, entry in [(sort, entry) for sort in kinds for entry in contestants.discover(kind=sort)]:
        stated = contestants.skip_file(build_dir(), entry.name, kind).is_file()
        is_found = entry.manifest.kind in ("command", "framework")
        assert entry.available or stated or is_found, f"{entry.name}: {entry.why_not}"
        assert not entry.available or Path(behind_launcher(entry.command)[0]).is_file() or is_found

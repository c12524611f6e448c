"""A server that is faster than the generator can ask: its trials meet the limit of the instrument, and those of a slow
one beside it do not. One run with the built programs."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from netdyno.kit.paths import build_dir
from netdyno.measure.run import next_cells, runner
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.run import Run
from netdyno.present.terminal.display import PlainDisplay
from netdyno.question.contestants import contestants
from netdyno.store import read, schema
from tests.support.fakes import faulty

pytestmark = [pytest.mark.needs_build, pytest.mark.quiet]

FAST, SLOW = "epoll-reactor", "slow"
BLOCKS = 2
BURN_PER_READ_S = 0.0005


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    fast = contestants.find_by_name(contestants.discover(), FAST)
    slow = faulty.slow(tmp_path_factory.mktemp("starts"), BURN_PER_READ_S)
    scenario = Scenario(
        name="echo",
        workload="echo",
        contestants=(FAST, SLOW),
        blocks=BLOCKS,
        warmup_s=0.2,
        duration_s=0.6,
        connections=64,
        depth=1000,
        size=29,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_cells, "MOST_TRIES", 1)  # retries would not lift the limit of the generator
        outcome = runner.execute(
            Experiment(name="saturated", question="Who is faster than can be asked?", scenarios=(scenario,)),
            (fast, slow),
            results=tmp_path_factory.mktemp("results"),
            build=build_dir(),
            argv=["netdyno", "run", "saturated"],
            display=PlainDisplay(io.StringIO()),
            foreign_load="count",
            trace="never",
        )
    return read.load(outcome.folder / schema.FILE_NAME)


def failures(run: Run, audit: str) -> Counter[str]:
    """Count the trials of each contestant that fail it."""
    return Counter(
        trial.contestant for trial in run.trials for entry in trial.audits if entry.name == audit if not entry.passed
    )


def test_the_generator_is_the_limit_of_the_fast_server_alone(run: Run) -> None:
    """The number of trials depends on the machine: all but one beside compilers, fewer where both cores are taken."""
    saturated = failures(run, "generator")
    assert saturated[FAST] > 0
    assert saturated[SLOW] == 0


def test_the_answers_of_both_are_true(run: Run) -> None:
    assert not failures(run, "verification")
    assert not failures(run, "server_alive")

"""Made-up A/A trials on a machine that drifts, with heavy tails and a figure that a test can bend; experiments and
contestants to plan twins of; and what a control could find."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import convert
from msgspec.structs import replace

from netdyno.analysis.aa.control import summarise_control
from netdyno.analysis.found.control import AA, Control
from netdyno.analysis.ranking.samples import collect_samples
from netdyno.analysis.trials.split import split
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import Comparison, Interval
from netdyno.model.contestant import Contestant, Manifest
from netdyno.model.experiment import MOST_AA_SHARE, Experiment, Scenario
from netdyno.model.load_result import LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell, CellKind, plan
from tests.support.builders.made_run import load_result

NAMES = ("a", "b", "c", "d", "e")
SPEED = {name: 1 + 0.02 * number for number, name in enumerate(NAMES)}
SCENARIOS = tuple(Scenario(name=f"load {number}", workload="echo", connections=10) for number in range(8))
BLOCKS = 9
DRIFT, RESTART = 0.25, 0.02
"""Spreads of the logarithm: between blocks, and from a restart (times Student's t of 3 degrees)."""

Bend = Callable[[Cell], float]
"""What a harness with a fault makes of the figure of a cell, as a factor."""


def experiment(seed: int) -> Experiment:
    """Forty A/A comparisons."""
    base = Experiment(name="aa", question="Is it itself?", scenarios=SCENARIOS, seed=seed, aa_share=MOST_AA_SHARE)
    return base.with_each(contestants=NAMES, blocks=BLOCKS)


def everything_twice(requested: Experiment) -> tuple[Cell, ...]:
    return plan(requested, [CellKind(scenario.name, name, {}) for scenario in requested.scenarios for name in NAMES])


def measured(requested: Experiment, cells: Sequence[Cell], bend: Bend = lambda _: 1.0) -> Run:
    """A run of these cells with the noise of a shared machine."""
    random = np.random.default_rng(requested.seed)
    template = load_result(requested.scenarios[0], {}, 1000.0, 1e6, 0.4, random)
    drift = {block: math.exp(random.normal(0, DRIFT)) for block in range(1, requested.blocks + 1)}

    def trial(cell: Cell) -> Trial:
        restart = math.exp(RESTART * random.standard_t(3))
        figure = 1000 * SPEED[cell.contestant] * drift[cell.block] * restart * bend(cell)
        return _of_cell(cell, at_rate(template, figure))

    trials = [trial(cell) for cell in cells]
    return Run(
        run_id="made",
        experiment=requested,
        started_at="2026-01-01T00:00:00Z",
        finished_at="2026-01-01T00:10:00Z",
        environment={},
        trials=tuple(trial for trial in trials if not trial.twin),
        twins=tuple(trial for trial in trials if trial.twin),
    )


def at_rate(load: LoadResult, per_second: float) -> LoadResult:
    return replace(load, requests=replace(load.requests, per_second=per_second))


def _of_cell(cell: Cell, load: LoadResult) -> Trial:
    return Trial(
        block=cell.block,
        position=cell.position,
        scenario=cell.scenario,
        contestant=cell.contestant,
        levels=cell.levels,
        twin=cell.twin,
        status="valid",
        reason="",
        started_at="2026-01-01T00:00:00Z",
        seconds=0.5,
        load=load,
    )


def judged(run: Run) -> Control:
    """Each scenario's ranking is the family, as in the analysis, without the histograms that this has no need of."""
    parts = split(run)
    families = {}
    for part in parts:
        figures = collect_samples(part)
        families[part.scenario.name] = [
            stats.compare(left, right, figures) for left, right in itertools.combinations(figures, 2)
        ]
    return summarise_control(run.experiment, parts, families, finished=run.finished_at is not None)


def contestant(name: str, **more: object) -> Contestant:
    raw = {"kind": "cmake", "model": "m", "summary": "s", "threads": "any", "workloads": ("echo",), **more}
    return Contestant(name=name, manifest=convert(raw, Manifest), command=("x",), available=True)


def servers(names: str = "abcde", **more: object) -> dict[str, Contestant]:
    return {name: contestant(name, **more) for name in names}


def asked(share: float = 0.05, blocks: int = 8, names: str = "abcde") -> Experiment:
    """Forty cells a block of names of five: four scenarios with two loads each."""
    scenarios = tuple(
        Scenario(name=f"s{number}", workload="echo", factors={"connections": (1, 10)}) for number in range(4)
    )
    base = Experiment(name="e", question="?", scenarios=scenarios, aa_share=share)
    return base.with_each(contestants=tuple(names), blocks=blocks)


def made_control(different: int, comparisons: int, pairs: int = 9) -> Control:
    """Make a control of this many comparisons, the first `different` of which came out different, 10% apart."""

    def make_aa(number: int) -> AA:
        proven = number < different
        comparison = Comparison(
            a="a",
            b="a (A/A twin)",
            pairs=pairs,
            blocks=pairs,
            ratio=1.1 if proven else 1.01,
            interval=Interval(1.05, 1.15) if proven else Interval(0.98, 1.03),
            p=0.004 if proven else 0.5,
            p_corrected=0.04 if proven else 1.0,
            decidable=pairs >= FEWEST_BLOCKS,
            different=proven,
        )
        return AA(scenario="echo", level="10 connections", contestant="a", comparison=comparison)

    return Control(0.5, stats.SIGNIFICANCE, tuple(make_aa(number) for number in range(comparisons)), None, 9)

"""The findings of one scenario, from its part of a run. Only trials that are valid, or bounds, enter a figure. The
comparisons of the scenario's own metric are one family, and those of the other axes together another: the chance that
one of them claims any difference that is not there is at most `stats.LEVEL`, each time. Pure functions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from netdyno.analysis import (
    added,
    answers,
    associations,
    axes,
    cells,
    constant_latency,
    excluded,
    languages,
    loss,
    message_cost,
    turns,
    uneven_threads,
    warmups,
)
from netdyno.analysis.capacity import fill as capacity
from netdyno.analysis.company import company
from netdyno.analysis.findings import (
    Axis,
    CellFigures,
    Censored,
    Decision,
    Ending,
    Estimate,
    LevelInfo,
    Pair,
    ScenarioFindings,
    Standing,
    Unranked,
    Unsteady,
)
from netdyno.analysis.flips.found import FlipFound
from netdyno.analysis.peers import ground_of_part, peers
from netdyno.analysis.samples import of_metric, samples
from netdyno.analysis.server_faults import Faulty, find_faulty
from netdyno.analysis.split import Part
from netdyno.experiment.capacity import CAPACITY
from netdyno.model import outcomes, transports
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.metrics import METRICS, Counted
from netdyno.model.options import settings
from netdyno.model.trial import Trial
from netdyno.statistics.stats import Comparison, Samples

LEAST_UNSTEADY, UNSTEADY_SHARE = 3, 0.25


def findings_of(part: Part, ending: Ending | None, level: float, flips: tuple[FlipFound, ...] = ()) -> ScenarioFindings:
    """`flips` are those that the levels follow from. Levels that were chosen by what they say make no ranking: nobody
    is compared over all of them."""
    scenario, names = part.scenario, part.contestants
    ranked = [trial for trial, _ in part.ranked]
    sampled = samples(part)
    levels = _levels(scenario, part.trials)
    figures = _figures(part, levels)
    faulty = find_faulty(part.trials)
    grounds = [[[name for name in group if name in sampled] for group in groups] for groups in peers(part)]
    groups = list(itertools.chain.from_iterable(grounds))
    of_axes: Mapping[str, Mapping[str, Samples]] = {
        axis: of_metric(part.ranked, axis) for axis in axes.names(scenario)
    } or {scenario.metric: sampled}
    families = dict.fromkeys(of_axes, ()) if flips else axes.compared(of_axes, groups, level)
    family = families[scenario.metric]
    alone = scenario.metric == CAPACITY  # it has no other axis, and its search goes to the limit
    censored = () if alone else tuple(Censored(one.level, one.contestant, one.share) for one in part.saturated)
    bars = () if alone else axes.error_bars(scenario, part.ranked)
    scored = () if alone else axes.fill(scenario, families, grounds, figures, levels, bars, censored)
    standings = _standings(part, sampled, grounds, family, figures, faulty, scored)
    absent = tuple(name for name in names if name not in faulty and name not in {one.contestant for one in standings})
    behind = message_cost.rows(part, _first_ranked(standings, names))
    basis = answers.Basis(scenario, standings, family, scored, level, seconds_of_block(part))
    decisions = () if flips else answers.decide_each(basis)
    return ScenarioFindings(
        scenario=scenario,
        decision=decisions[0] if decisions else Decision("flip", names),
        elsewhere=decisions[1:],
        better=answers.better(scenario),
        levels=levels,
        standings=standings,
        comparisons=family,
        cells=figures,
        drift=_drift(sampled),
        pairs=_pairs(part),
        loss_bound=scenario.loss_bound,
        unsafe=excluded.found_wrong(part.unsafe, part.why_unsafe, levels),
        unranked=tuple(Unranked(name, what) for name, what in part.unranked.items()),
        constant=constant_latency.constants(standings, figures, levels, scenario),
        absent=absent,
        ground=ground_of_part(part),
        added_options=added.added_options(scenario, ranked),
        threads_each=added.threads_each(scenario, ranked),
        sampled_threads=added.sampled_threads(ranked),
        ending=ending,
        capacity=capacity.findings(part),
        work=behind,
        whys=associations.whys(part.ranked, standings, families, scenario.metric, behind, level),
        axes=scored,
        faulty=tuple(faulty.values()),
        censored=censored,
        error_bars=bars,
        unsteady=_unsteady(part.ranked),
        within=languages.within(standings, family, answers.better(scenario), part.about),
        uneven_threads=uneven_threads.uneven_threads(scenario, part.ranked),
        warmups=warmups.warmed_up(part.ranked),
        alone=turns.find_measured_alone(part.ranked),
        flips=flips,
        company=company(ranked),
        instruments=tuple(sorted({load.instrument for trial in ranked if (load := trial.load) and load.instrument})),
    )


# --- what is compared --------------------------------------------------------------------------------------------


def _levels(scenario: Scenario, trials: Sequence[Trial]) -> tuple[LevelInfo, ...]:
    """Every planned combination in planned order; then what only trials name."""
    planned = [
        dict(zip(scenario.factors, combination, strict=True))
        for combination in itertools.product(*scenario.factors.values())
    ]
    by_key = {level_key(values): values for values in [*planned, *(trial.levels for trial in trials)]}
    return tuple(LevelInfo(key, level_label(scenario, values), values) for key, values in by_key.items())


def _figures(part: Part, levels: Sequence[LevelInfo]) -> tuple[CellFigures, ...]:
    by_cell: dict[tuple[str, str], list[Counted]] = {}
    for trial, load in sorted(part.ranked, key=lambda one: one[0].block):
        by_cell.setdefault((level_key(trial.levels), trial.contestant), []).append((trial, load))
    return tuple(
        cells.figures(name, level.key, trials, part.seed, loss.of_cell(trials, part.scenario, part.seed))
        for level, name in itertools.product(levels, part.contestants)
        if (trials := by_cell.get((level.key, name)))
    )


def client(scenario: Scenario, levels: Mapping[str, type_level]) -> str:
    """The client of a cell where the client is a factor, else nothing."""
    return settings(scenario, levels).client if "client" in scenario.factors else ""


def _pairs(part: Part) -> tuple[Pair, ...]:
    scenario = part.scenario
    clients = () if scenario.metric == CAPACITY else scenario.factors.get("client", ())
    trials: dict[tuple[str, str], list[Trial]] = {}
    for trial in part.trials:
        trials.setdefault((trial.contestant, client(scenario, trial.levels)), []).append(trial)
    return tuple(
        _pair(scenario, name, str(of), trials.get((name, str(of)), ()))
        for name, of in itertools.product(part.contestants, clients)
    )


def _pair(scenario: Scenario, contestant: str, of: str, trials: Sequence[Trial]) -> Pair:
    trials = [trial for trial in trials if trial.status != "made_again"]
    valid = [(trial, trial.load) for trial in trials if trial.status in outcomes.RANKED and trial.load is not None]
    figures = [figure for each in valid if (figure := METRICS[scenario.metric].of(*each) or 0.0) > 0]
    return Pair(
        contestant=contestant,
        client=of,
        valid=len(valid),
        trials=len(trials),
        figure=math.exp(sum(map(math.log, figures)) / len(figures)) if figures else None,
        statuses=tuple(dict.fromkeys(trial.status for trial in trials if trial.status not in outcomes.RANKED)),
        lost=max((lost for _, load in valid if (lost := transports.share_lost(load)) is not None), default=None),
    )


# --- the ranking -------------------------------------------------------------------------------------------------


def _standings(
    part: Part,
    samples: Mapping[str, Samples],
    grounds: axes.Grounds,
    family: Sequence[Comparison],
    figures: Sequence[CellFigures],
    faulty: Mapping[str, Faulty],
    scored: Sequence[Axis],
) -> tuple[Standing, ...]:
    """On each ground those that delivered, then those that are ranked apart, each group with its own leader."""
    largest: dict[str, float] = {}
    for cell in figures:
        if cell.loss is not None:
            largest[cell.contestant] = max(largest.get(cell.contestant, 0.0), cell.lost)
    found: list[Standing] = []
    for ground, groups in enumerate(grounds):
        before, alone = 0, axes.is_alone(groups, grounds)
        for number, group in enumerate(groups):
            found += [
                replace(
                    one,
                    rank=None if one.rank is None or alone else one.rank + before,
                    loss=largest.get(one.contestant),
                    lossy=number == 1,
                    faults=faulty[one.contestant].faults if number == 2 else (),
                    ground=ground,
                )
                for one in _ranked(part, samples, group, family, scored)
            ]
            before += len(group)
    return tuple(found)


def _ranked(
    part: Part,
    samples: Mapping[str, Samples],
    group: Sequence[str],
    family: Sequence[Comparison],
    scored: Sequence[Axis],
) -> list[Standing]:
    """One group, its first at rank 1."""
    direction = answers.better(part.scenario)
    ranks, unranked = axes.order(group, family, direction)
    sizes = Counter(ranks.values())
    leader = next(iter(ranks), None)
    standings = []
    for name in (*ranks, *unranked):
        one = answers.against(name, leader, family) if leader is not None else None
        score = scored[0].score(name) if scored else None
        standings.append(
            Standing(
                rank=ranks.get(name),
                shared=name in ranks and sizes[ranks[name]] > 1,
                contestant=name,
                value=_own(samples[name]) if not scored else score.value.value if score and score.value else math.nan,
                relative=Estimate(one.ratio, one.interval, ()) if one else None,
                against_leader=one,
                missing=_missing(part, name),
                bound=capacity.bound(part, name) or (scored[0].bound if scored else ""),
            )
        )
    return standings


def seconds_of_block(part: Part) -> float | None:
    """Return how long one block of this scenario takes, with its repeated trials; None where there was none."""
    return sum(trial.seconds for trial in part.trials) / part.blocks if part.blocks else None


def _own(of: Samples) -> float:
    """The geometric mean of a contestant's own capacities."""
    return math.exp(statistics.fmean(math.log(figure) for figure in of.values()))


def _missing(part: Part, name: str) -> int:
    """Trials of a contestant that its metric is not from."""
    if part.scenario.metric == CAPACITY:
        return capacity.silent(part, name)
    counted = (*outcomes.RANKED, "made_again")
    return sum(trial.contestant == name and trial.status not in counted for trial in part.trials)


def _first_ranked(standings: Sequence[Standing], names: Sequence[str]) -> list[str]:
    """All names: the ranked in their order, then those without a valid trial."""
    ranked = [one.contestant for one in standings]
    return [*ranked, *(name for name in names if name not in ranked)]


# --- beside the ranking ------------------------------------------------------------------------------------------


def _unsteady(ranked: Sequence[Counted]) -> tuple[Unsteady, ...]:
    """Who moved in more windows than chance makes of still ones, 2% at the most (docs/adr/stationary.md)."""
    trials: dict[str, list[bool]] = {}
    for trial, _ in ranked:
        trials.setdefault(trial.contestant, []).append(bool(outcomes.failed(trial, "note")))
    return tuple(
        Unsteady(name, sum(moved), len(moved))
        for name, moved in sorted(trials.items())
        if sum(moved) >= LEAST_UNSTEADY and sum(moved) >= UNSTEADY_SHARE * len(moved)
    )


def _drift(samples: Mapping[str, Samples]) -> float:
    """How much the machine itself changed: fastest block over slowest, with contestants and levels taken out."""
    deviations: dict[int, list[float]] = {}
    for of in samples.values():
        by_level: dict[str, list[tuple[int, float]]] = {}
        for (block, level), figure in of.items():
            by_level.setdefault(level, []).append((block, math.log(figure)))
        for logs in by_level.values():
            centre = float(np.mean([log for _, log in logs]))
            for block, log in logs:
                deviations.setdefault(block, []).append(log - centre)
    means = [float(np.mean(each)) for each in deviations.values()]
    return math.exp(max(means) - min(means)) if means else 1.0

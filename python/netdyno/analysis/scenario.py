"""The findings of one scenario, from its part of a run. Only trials that are valid, or bounds, enter a figure. The
comparisons of the scenario's own metric are one family, and those of the other axes together another: for each family
the chance of any false difference is at most `stats.SIGNIFICANCE`. Pure functions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from netdyno.analysis.capacity import fill as capacity
from netdyno.analysis.found.cells import CellFigures, Estimate, LevelInfo
from netdyno.analysis.found.exclusions import Faulty
from netdyno.analysis.found.flips import FlipFound
from netdyno.analysis.found.notices import Unranked, Unsteady
from netdyno.analysis.found.ranking import (
    Axis,
    Censored,
    Decision,
    EndOfBlocks,
    OverLoads,
    Pair,
    RankingVerdict,
    Standing,
)
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.notices import (
    associations,
    constant_latency,
    knobs,
    languages,
    message_cost,
    scaling,
    single_contestants,
    uneven_threads,
)
from netdyno.analysis.notices.single_contestants import find_neighbours
from netdyno.analysis.ranking import answers, axes, cells, loss
from netdyno.analysis.ranking.samples import collect_metric, collect_samples
from netdyno.analysis.trials import unranked
from netdyno.analysis.trials.peers import describe_part_ground, group_peers
from netdyno.analysis.trials.server_faults import find_faulty, find_unproven
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.stats import Comparison, Samples
from netdyno.model import outcomes, transports
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.metrics import METRICS, TrialWithLoad
from netdyno.model.options import settings
from netdyno.model.trial import Trial
from netdyno.question import plan
from netdyno.question.capacity import CAPACITY

LEAST_UNSTEADY, UNSTEADY_SHARE = 3, 0.25


def derive_findings(
    part: ScenarioTrials, ending: EndOfBlocks | None, significance: float, flips: tuple[FlipFound, ...] = ()
) -> ScenarioFindings:
    """Return the findings of a part. `flips` are those that the levels follow from: levels chosen by their results make
    no ranking, so nothing is compared over all of them."""
    scenario, names = part.scenario, part.contestants
    ranked = [trial for trial, _ in part.ranked]
    sampled = collect_samples(part)
    levels = _list_levels(scenario, part.trials)
    figures = _compute_cells(part, levels)
    faulty = find_faulty(part.trials)
    grounds = [[[name for name in group if name in sampled] for group in groups] for groups in group_peers(part)]
    groups = list(itertools.chain.from_iterable(grounds))
    of_axes: Mapping[str, Mapping[str, Samples]] = {
        axis: collect_metric(part.ranked, axis) for axis in axes.list_names(scenario)
    } or {scenario.metric: sampled}
    families = dict.fromkeys(of_axes, ()) if flips else axes.compare_contestants(of_axes, groups, significance)
    family = families[scenario.metric]
    alone = scenario.metric == CAPACITY  # it has no other axis, and its search goes to the limit
    censored = () if alone else tuple(Censored(cell.level, cell.contestant, cell.share) for cell in part.saturated)
    bars = () if alone else axes.find_error_bars(scenario, part.ranked)
    scored = () if alone else axes.fill(scenario, families, grounds, of_axes, figures, levels, bars, censored)
    standings = _rank_all(part, sampled, grounds, family, figures, faulty, scored)
    absent = tuple(
        name for name in names if name not in faulty and name not in {standing.contestant for standing in standings}
    )
    behind = message_cost.build_rows(part, _put_ranked_first(standings, names))
    basis = answers.Basis(scenario, standings, family, scored, significance, compute_block_seconds(part))
    unranked_verdict: RankingVerdict | None = "not_ranked" if scenario.is_unread else "flip" if flips else None
    decisions = answers.decide_each(basis) if unranked_verdict is None else ()
    return ScenarioFindings(
        scenario=scenario,
        decision=decisions[0] if unranked_verdict is None else Decision(unranked_verdict, names),
        elsewhere=decisions[1:],
        better=answers.read_direction(scenario),
        levels=levels,
        standings=standings,
        comparisons=family,
        cells=figures,
        drift=_compute_drift(sampled),
        pairs=_list_pairs(part),
        loss_bound=scenario.loss_bound,
        unsafe=unranked.describe_unsafe(part.unsafe, part.why_unsafe, levels),
        unranked=tuple(Unranked(name, what) for name, what in part.unranked.items()),
        constant=constant_latency.find_constants(standings, figures, levels, scenario),
        absent=() if scenario.is_unread else absent,
        ground=describe_part_ground(part),
        added_options=single_contestants.find_added_options(scenario, ranked),
        threads_each=single_contestants.find_thread_per_connection(scenario, ranked),
        sampled_threads=single_contestants.find_sampled_threads(ranked),
        ending=ending,
        capacity=capacity.collect_findings(part),
        work=behind,
        whys=associations.explain_differences(part.ranked, standings, families, scenario.metric, behind, significance),
        axes=scored,
        faulty=tuple(faulty.values()),
        unproven=tuple(find_unproven(part.trials).values()),
        censored=censored,
        error_bars=bars,
        unsteady=_find_unsteady(part.ranked),
        noted=single_contestants.find_noted(part.trials),
        within=languages.find_leaders(standings, family, answers.read_direction(scenario), part.about),
        uneven_threads=uneven_threads.find_uneven(scenario, part.ranked),
        reconnected=single_contestants.find_reconnected(part.ranked),
        scaling=scaling.find_scaling(part),
        knobs=knobs.find_knobs(standings, family, answers.read_direction(scenario), part.about),
        warmups=single_contestants.collect_warmups(part.ranked),
        alone=single_contestants.find_measured_alone(part.ranked),
        flips=flips,
        company=find_neighbours(ranked),
        unread=single_contestants.find_unread(part, levels),
        instruments=tuple(sorted({load.instrument for trial in ranked if (load := trial.load) and load.instrument})),
    )


# --- the cells ---------------------------------------------------------------------------------------------------


def _list_levels(scenario: Scenario, trials: Sequence[Trial]) -> tuple[LevelInfo, ...]:
    """Return every planned combination in planned order, then those that only trials name."""
    planned = [
        dict(zip(scenario.factors, combination, strict=True))
        for combination in itertools.product(*scenario.factors.values())
    ]
    by_key = {level_key(values): values for values in [*planned, *(trial.levels for trial in trials)]}
    return tuple(LevelInfo(key, level_label(scenario, values), values) for key, values in by_key.items())


def _compute_cells(part: ScenarioTrials, levels: Sequence[LevelInfo]) -> tuple[CellFigures, ...]:
    by_cell: dict[tuple[str, str], list[TrialWithLoad]] = {}
    for trial, load in sorted(part.ranked, key=lambda counted: counted[0].block):
        by_cell.setdefault((level_key(trial.levels), trial.contestant), []).append((trial, load))
    return tuple(
        cells.compute_figures(name, level.key, trials, part.seed, loss.summarise_cell(trials, part.scenario))
        for level, name in itertools.product(levels, part.contestants)
        if (trials := by_cell.get((level.key, name)))
    )


def read_client(scenario: Scenario, levels: Mapping[str, type_level]) -> str:
    """Return the client of a cell where the client is a factor, else an empty name."""
    return settings(scenario, levels).client if "client" in scenario.factors else ""


def _list_pairs(part: ScenarioTrials) -> tuple[Pair, ...]:
    scenario = part.scenario
    clients = () if scenario.metric == CAPACITY else scenario.factors.get("client", ())
    trials: dict[tuple[str, str], list[Trial]] = {}
    for trial in part.trials:
        trials.setdefault((trial.contestant, read_client(scenario, trial.levels)), []).append(trial)
    return tuple(
        _describe_pair(scenario, name, str(client_name), trials.get((name, str(client_name)), ()))
        for name, client_name in itertools.product(part.contestants, clients)
    )


def _describe_pair(scenario: Scenario, contestant: str, client_name: str, trials: Sequence[Trial]) -> Pair:
    trials = [trial for trial in trials if trial.status != "made_again"]
    valid = [(trial, trial.load) for trial in trials if trial.status in outcomes.RANKED and trial.load is not None]
    figures = [figure for counted in valid if (figure := METRICS[scenario.metric].value(*counted) or 0.0) > 0]
    return Pair(
        contestant=contestant,
        client=client_name,
        valid=len(valid),
        trials=len(trials),
        figure=math.exp(sum(map(math.log, figures)) / len(figures)) if figures else None,
        statuses=tuple(dict.fromkeys(trial.status for trial in trials if trial.status not in outcomes.RANKED)),
        lost=max((lost for _, load in valid if (lost := transports.share_lost(load)) is not None), default=None),
    )


# --- the ranking -------------------------------------------------------------------------------------------------


def _rank_all(
    part: ScenarioTrials,
    samples: Mapping[str, Samples],
    grounds: axes.Grounds,
    family: Sequence[Comparison],
    figures: Sequence[CellFigures],
    faulty: Mapping[str, Faulty],
    scored: Sequence[Axis],
) -> tuple[Standing, ...]:
    """Rank the contestants of each ground without fault, then those ranked apart, each group with its own leader."""
    largest: dict[str, float] = {}
    for cell in figures:
        if "lost" in cell.values:
            largest[cell.contestant] = max(largest.get(cell.contestant, 0.0), cell.value("lost"))
    standings: list[Standing] = []
    for ground, groups in enumerate(grounds):
        before, alone = 0, axes.is_alone(groups, grounds)
        for number, group in enumerate(groups):
            standings += [
                replace(
                    standing,
                    rank=None if standing.rank is None or alone else standing.rank + before,
                    loss=largest.get(standing.contestant),
                    lossy=number == 1,
                    faults=faulty[standing.contestant].faults if number == 2 else (),
                    group=ground,
                )
                for standing in _rank_group(part, samples, group, family, scored)
            ]
            before += len(group)
    return tuple(standings)


def _rank_group(
    part: ScenarioTrials,
    samples: Mapping[str, Samples],
    group: Sequence[str],
    family: Sequence[Comparison],
    scored: Sequence[Axis],
) -> list[Standing]:
    """Rank one group, its first at rank 1."""
    direction = answers.read_direction(part.scenario)
    ranks, without_rank = axes.order(group, family, direction)
    sizes = Counter(ranks.values())
    leader = next(iter(ranks), None)
    standings = []
    for name in (*ranks, *without_rank):
        comparison = answers.find_comparison(name, leader, family) if leader is not None else None
        score = scored[0].score(name) if scored else None
        standings.append(
            Standing(
                rank=ranks.get(name),
                shared=name in ranks and sizes[ranks[name]] > 1,
                contestant=name,
                value=statistics.geometric_mean(samples[name].values())
                if not scored
                else score.value.value
                if score and score.value
                else math.nan,
                relative=Estimate(comparison.ratio, comparison.interval, ()) if comparison else None,
                against_leader=comparison,
                missing=_count_missing(part, name),
                bound=capacity.find_bound(part, name) or (scored[0].bound if scored else ""),
                over_loads=_compute_over_loads(samples[name], samples[leader]) if leader is not None else None,
            )
        )
    return standings


def _compute_over_loads(own: Samples, leader: Samples) -> OverLoads | None:
    """Return the means over the cells that are compared; None where these are of one load."""
    cells = stats.counted(own.keys() & leader.keys())
    if len({level for samples in (own, leader) for _, level in samples}) < 2 or not cells:
        return None
    return OverLoads(
        *(statistics.geometric_mean([samples[cell] for cell in cells]) for samples in (own, leader)),
    )


def compute_block_seconds(part: ScenarioTrials) -> float | None:
    """Return how long one block of this scenario takes, with its retries; None where there was none."""
    return sum(map(plan.sum_trial_seconds, part.trials)) / part.blocks if part.blocks else None


def _count_missing(part: ScenarioTrials, name: str) -> int:
    """Count the trials of a contestant that its metric does not use."""
    if part.scenario.metric == CAPACITY:
        return capacity.count_silent_trials(part, name)
    counted = (*outcomes.RANKED, "made_again")
    return sum(trial.contestant == name and trial.status not in counted for trial in part.trials)


def _put_ranked_first(standings: Sequence[Standing], names: Sequence[str]) -> list[str]:
    """Return all names: the ranked in their order, then those without a valid trial."""
    ranked = [standing.contestant for standing in standings]
    return [*ranked, *(name for name in names if name not in ranked)]


# --- beside the ranking ------------------------------------------------------------------------------------------


def _find_unsteady(ranked: Sequence[TrialWithLoad]) -> tuple[Unsteady, ...]:
    """Find contestants that moved in more windows than chance explains, 2% at the most (docs/adr/stationary.md)."""
    trials: dict[str, list[bool]] = {}
    for trial, _ in ranked:
        trials.setdefault(trial.contestant, []).append(
            any(audit.name == "stationary" for audit in outcomes.failed(trial, "note"))
        )
    return tuple(
        Unsteady(name, sum(moved), len(moved))
        for name, moved in sorted(trials.items())
        if sum(moved) >= LEAST_UNSTEADY and sum(moved) >= UNSTEADY_SHARE * len(moved)
    )


def _compute_drift(samples: Mapping[str, Samples]) -> float:
    """Return the drift of the machine itself: fastest block over slowest, with contestants and levels taken out."""
    deviations: dict[int, list[float]] = {}
    for figures in samples.values():
        by_level: dict[str, list[tuple[int, float]]] = {}
        for (block, level), figure in figures.items():
            by_level.setdefault(level, []).append((block, math.log(figure)))
        for logs in by_level.values():
            centre = float(np.mean([log for _, log in logs]))
            for block, log in logs:
                deviations.setdefault(block, []).append(log - centre)
    means = [float(np.mean(logs)) for logs in deviations.values()]
    return math.exp(max(means) - min(means)) if means else 1.0

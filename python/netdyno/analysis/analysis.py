"""From a stored run to its findings. Pure: no file, clock or process; the same run gives the same findings, always.

Only `valid` trials enter a figure. The others are listed with their reasons. The family that the correction spans is
every comparison of one scenario, for that is one answer: the chance that a ranking claims any difference that is not
there is at most `stats.LEVEL`, each time.
"""

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
    canary,
    cells,
    constant_latency,
    excluded,
    loss,
    made_again,
    measured,
    message_cost,
    stopping,
)
from netdyno.analysis.aa.control import control
from netdyno.analysis.capacity import fill as capacity
from netdyno.analysis.claims.judge import judge
from netdyno.analysis.figures.fill import charts
from netdyno.analysis.findings import (
    Analysis,
    AuditTally,
    Axis,
    CellFigures,
    Censored,
    Counts,
    Estimate,
    Fault,
    Faulty,
    LevelInfo,
    MachineUse,
    Pair,
    ScenarioFindings,
    Standing,
    TrialNote,
    Unsteady,
)
from netdyno.analysis.ground import ground_of
from netdyno.analysis.samples import samples
from netdyno.base import quantities
from netdyno.experiment.capacity import CAPACITY
from netdyno.model import levels, outcomes, transports
from netdyno.model.base import type_level
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key, level_label
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.metrics import METRICS
from netdyno.model.options import settings
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.statistics import stats
from netdyno.statistics.stats import Comparison, Samples

LEAST_UNSTEADY, UNSTEADY_SHARE = 3, 0.25


def analyse(run: Run, level: float = stats.LEVEL) -> Analysis:
    """All findings of a run. Raises hdr.HistogramError where a stored histogram cannot be read."""
    run = outcomes.judged(run)
    safe = excluded.without(run)
    saturated = outcomes.saturated(safe)
    ended = {one.name: found for one in run.experiment.scenarios if (found := stopping.ending(run, one))}
    scenarios = tuple(
        replace(_with_excluded(_scenario(safe, one, level, saturated), run), ending=ended.get(one.name))
        for one in run.experiment.scenarios
    )
    return Analysis(
        run_id=run.run_id,
        experiment=run.experiment.name,
        question=run.experiment.question,
        links=levels.links(run.experiment),
        started_at=run.started_at,
        finished_at=run.finished_at,
        blocks_planned=max(run.experiment.blocks, len({trial.block for trial in run.trials})),
        blocks_measured=len({trial.block for trial in safe.trials if trial.status in outcomes.RANKED}),
        windows_s=tuple(sorted({one.duration_s for one in run.experiment.scenarios})),
        contestants=contestants(safe),
        scenarios=scenarios,
        claims=judge(run, level),
        charts=charts(safe),
        level=level,
        counts=_counts(run),
        set_aside=tuple(
            _note(run, trial) for trial in run.all_trials if trial.status not in (*outcomes.RANKED, "made_again")
        ),
        audits=_audits(run.all_trials),
        made_again=made_again.of_run(run),
        machine=_machine(run.all_trials),
        canary=canary.of_run(run),
        pinning=tuple(dict.fromkeys(trial.pinning for trial in run.all_trials if trial.pinning is not None)),
        control=control(
            safe,
            {one.scenario.name: _whole_family(one) for one in scenarios},
            lambda of, scenario: samples(of, scenario, contestants(of, scenario.name)),
            level,
        ),
        about=run.about,
        environment=run.environment,
        asked=run.experiment,
        example=_example(run),
    )


def _whole_family(findings: ScenarioFindings) -> tuple[Comparison, ...]:
    """All that a ranking's correction spans."""
    return tuple(one for axis in findings.axes for one in axis.comparisons) or findings.comparisons


def contestants(run: Run, scenario: str = "") -> tuple[str, ...]:
    """Of one scenario, or of all. By name, for an experiment may say `*`, and the order in which trials ran is
    random."""
    return tuple(sorted({trial.contestant for trial in run.trials if scenario in ("", trial.scenario)}))


# --- levels ------------------------------------------------------------------------------------------------------


def _levels(run: Run, scenario: Scenario) -> tuple[LevelInfo, ...]:
    """Every planned combination in planned order; then what only trials name."""
    planned = [
        dict(zip(scenario.factors, combination, strict=True))
        for combination in itertools.product(*scenario.factors.values())
    ]
    measured = [trial.levels for trial in run.trials if trial.scenario == scenario.name]
    by_key = {level_key(values): values for values in [*planned, *measured]}
    return tuple(LevelInfo(key, level_label(scenario, values), values) for key, values in by_key.items())


# --- who is ranked with whom --------------------------------------------------------------------------------------


def _groups(
    scenario: Scenario, names: Sequence[str], figures: Sequence[CellFigures], faulty: Mapping[str, Faulty]
) -> tuple[list[str], list[str], list[str]]:
    """Those without a fault that lost no more than the bound in any trial, those that lost more (docs/adr/loss.md), and
    those whose trials show a fault (docs/adr/audit-kinds.md). A capacity is what is served without either, and all are
    ranked by it."""
    if scenario.metric == CAPACITY:
        return list(names), [], []
    lossy = {cell.contestant for cell in figures if cell.marked}
    return (
        [name for name in names if name not in lossy and name not in faulty],
        [name for name in names if name in lossy and name not in faulty],
        [name for name in names if name in faulty],
    )


def _faulty(run: Run, scenario: Scenario) -> dict[str, Faulty]:
    """Everybody with a fault, by name. A crash of every trial leaves nothing to rank, and is told all the same."""
    trials: dict[str, list[Trial]] = {}
    for trial in run.trials:
        if trial.scenario == scenario.name and trial.status not in ("skipped", "made_again"):
            trials.setdefault(trial.contestant, []).append(trial)
    found: dict[str, Faulty] = {}
    for name, each in sorted(trials.items()):
        blamed = [trial for trial in each if trial.status == "faulty"]
        kinds: dict[str, list[Audit]] = {}
        for trial in blamed:
            for audit in outcomes.faults(trial)[:1]:  # what came of a crash is the crash
                kinds.setdefault(audit.name, []).append(audit)
        faults = [Fault(kind, len(audits), len(each), audits[0].detail) for kind, audits in kinds.items()]
        if faults:
            found[name] = Faulty(name, tuple(sorted(faults, key=lambda fault: -fault.trials)))
    return found


def _unsteady(run: Run, scenario: Scenario) -> tuple[Unsteady, ...]:
    """Who moved in more windows than chance makes of still ones, 2% at the most (docs/adr/stationary.md)."""
    trials: dict[str, list[bool]] = {}
    for trial, _ in measured.valid(run, scenario):
        trials.setdefault(trial.contestant, []).append(bool(outcomes.failed(trial, "note")))
    return tuple(
        Unsteady(name, sum(moved), len(moved))
        for name, moved in sorted(trials.items())
        if sum(moved) >= LEAST_UNSTEADY and sum(moved) >= UNSTEADY_SHARE * len(moved)
    )


# --- one scenario ------------------------------------------------------------------------------------------------


def _scenario(run: Run, scenario: Scenario, level: float, saturated: Sequence[outcomes.Saturated]) -> ScenarioFindings:
    names = contestants(run, scenario.name)
    trials = [trial for trial, _ in measured.valid(run, scenario)]
    sampled = samples(run, scenario, names)
    levels = _levels(run, scenario)
    figures = _figures(run, scenario, levels, names)
    faulty = _faulty(run, scenario)
    groups = _groups(scenario, list(sampled), figures, faulty)
    of_axes: dict[str, Mapping[str, Samples]] = {
        axis: axes.samples(run, scenario, axis) for axis in axes.names(scenario)
    } or {scenario.metric: sampled}
    families = axes.compared(of_axes, groups, level)
    family = families[scenario.metric]
    censored = tuple(
        Censored(one.level, one.contestant, one.share)
        for one in saturated
        if one.scenario == scenario.name and scenario.metric != CAPACITY
    )
    bars = axes.error_bars(run, scenario) if scenario.metric != CAPACITY else ()
    scored = axes.fill(scenario, families, groups, figures, levels, bars, censored) if axes.names(scenario) else ()
    standings = _standings(run, scenario, sampled, groups, family, figures, faulty, scored)
    absent = tuple(name for name in names if name not in faulty and name not in {one.contestant for one in standings})
    behind = message_cost.rows(run, scenario, _first_ranked(standings, names))
    return ScenarioFindings(
        scenario=scenario,
        decision=answers.decide(answers.Basis(scenario, standings, family, scored)),
        better=answers.better(scenario),
        levels=levels,
        standings=standings,
        comparisons=family,
        cells=figures,
        drift=_drift(sampled),
        pairs=_pairs(run, scenario, names),
        loss_bound=scenario.loss_bound,
        unsafe=(),
        unranked=(),
        constant=constant_latency.constants(standings, figures, levels, scenario),
        absent=absent,
        ground=ground_of(scenario, trials, run.about, _cores_allowed(run)),
        added_options=added.added_options(scenario, trials),
        threads_each=added.threads_each(scenario, trials),
        sampled_threads=added.sampled_threads(trials),
        capacity=capacity.findings(run, scenario, names),
        work=behind,
        whys=associations.whys(run, scenario, standings, family, behind, level),
        axes=scored,
        faulty=tuple(faulty.values()),
        censored=censored,
        error_bars=bars,
        unsteady=_unsteady(run, scenario),
    )


def _cores_allowed(run: Run) -> int | None:
    cores = run.environment.get("cores_allowed")
    return cores if isinstance(cores, int) else None


def _first_ranked(standings: Sequence[Standing], names: Sequence[str]) -> list[str]:
    """All names: the ranked in their order, then those without a valid trial."""
    ranked = [one.contestant for one in standings]
    return [*ranked, *(name for name in names if name not in ranked)]


def _with_excluded(findings: ScenarioFindings, run: Run) -> ScenarioFindings:
    """What verification found of the unsafe stands beside the answer and changes nothing in it; so does the name of
    one that is not ranked."""
    name = findings.scenario.name
    return replace(
        findings, unsafe=excluded.of_scenario(run, name, findings.levels), unranked=excluded.apart(run, name)
    )


def _client(scenario: Scenario, levels: Mapping[str, type_level]) -> str:
    """The client of a cell where the client is a factor, else nothing."""
    return settings(scenario, levels).client if "client" in scenario.factors else ""


def _pairs(run: Run, scenario: Scenario, names: Sequence[str]) -> tuple[Pair, ...]:
    clients = () if scenario.metric == CAPACITY else scenario.factors.get("client", ())
    trials: dict[tuple[str, str], list[Trial]] = {}
    for trial in run.trials:
        if trial.scenario == scenario.name:
            trials.setdefault((trial.contestant, _client(scenario, trial.levels)), []).append(trial)
    return tuple(
        _pair(scenario, name, str(client), trials.get((name, str(client)), ()))
        for name, client in itertools.product(names, clients)
    )


def _pair(scenario: Scenario, contestant: str, client: str, trials: Sequence[Trial]) -> Pair:
    trials = [trial for trial in trials if trial.status != "made_again"]
    valid = [(trial, trial.load) for trial in trials if trial.status in outcomes.RANKED and trial.load is not None]
    figures = [figure for each in valid if (figure := METRICS[scenario.metric].of(*each) or 0.0) > 0]
    return Pair(
        contestant=contestant,
        client=client,
        valid=len(valid),
        trials=len(trials),
        figure=math.exp(sum(map(math.log, figures)) / len(figures)) if figures else None,
        statuses=tuple(dict.fromkeys(trial.status for trial in trials if trial.status not in outcomes.RANKED)),
        lost=max((lost for _, load in valid if (lost := transports.share_lost(load)) is not None), default=None),
    )


def _standings(
    run: Run,
    scenario: Scenario,
    samples: Mapping[str, Samples],
    groups: Sequence[Sequence[str]],
    family: Sequence[Comparison],
    figures: Sequence[CellFigures],
    faulty: Mapping[str, Faulty],
    scored: Sequence[Axis],
) -> tuple[Standing, ...]:
    """Those that delivered, then those that are ranked apart, each group with its own leader."""
    largest: dict[str, float] = {}
    for cell in figures:
        if cell.loss is not None:
            largest[cell.contestant] = max(largest.get(cell.contestant, 0.0), cell.lost)
    found: list[Standing] = []
    for number, group in enumerate(groups):
        found += [
            replace(
                one,
                rank=None if one.rank is None else one.rank + len(found),
                loss=largest.get(one.contestant),
                lossy=number == 1,
                faults=faulty[one.contestant].faults if number == 2 else (),
            )
            for one in _ranked(run, scenario, samples, group, family, scored)
        ]
    return tuple(found)


def _ranked(
    run: Run,
    scenario: Scenario,
    samples: Mapping[str, Samples],
    group: Sequence[str],
    family: Sequence[Comparison],
    scored: Sequence[Axis],
) -> list[Standing]:
    """One group, its first at rank 1."""
    direction = answers.better(scenario)
    best_first, unranked = axes.order(group, family, direction)
    ranks = stats.ranks(best_first, family, direction)
    sizes = Counter(ranks.values())
    standings = []
    for name in (*best_first, *unranked):
        one = answers.against(name, best_first[0], family) if best_first else None
        score = scored[0].score(name) if scored else None
        standings.append(
            Standing(
                rank=ranks.get(name),
                shared=name in ranks and sizes[ranks[name]] > 1,
                contestant=name,
                value=_own(samples[name]) if not scored else score.value.value if score and score.value else math.nan,
                relative=Estimate(one.ratio, one.interval, ()) if one else None,
                against_leader=one,
                missing=_missing(run, scenario, name),
                bound=capacity.bound(run, scenario, name) or (scored[0].bound if scored else ""),
            )
        )
    return standings


def _own(of: Samples) -> float:
    """The geometric mean of a contestant's own capacities."""
    return math.exp(statistics.fmean(math.log(figure) for figure in of.values()))


def _missing(run: Run, scenario: Scenario, name: str) -> int:
    """Trials of a contestant that its metric is not from."""
    if scenario.metric == CAPACITY:
        return capacity.silent(run, scenario, name)
    return sum(
        (trial.scenario, trial.contestant) == (scenario.name, name)
        and trial.status not in (*outcomes.RANKED, "made_again")
        for trial in run.trials
    )


def _figures(
    run: Run, scenario: Scenario, levels: Sequence[LevelInfo], names: Sequence[str]
) -> tuple[CellFigures, ...]:
    by_cell: dict[tuple[str, str], list[tuple[Trial, LoadResult]]] = {}
    for trial, load in sorted(measured.valid(run, scenario), key=lambda one: one[0].block):
        by_cell.setdefault((level_key(trial.levels), trial.contestant), []).append((trial, load))
    return tuple(
        _cell(name, level.key, trials, scenario, run.experiment.seed)
        for level, name in itertools.product(levels, names)
        if (trials := by_cell.get((level.key, name)))
    )


def _cell(
    name: str, level: str, trials: Sequence[tuple[Trial, LoadResult]], scenario: Scenario, seed: int
) -> CellFigures:
    return cells.figures(name, level, trials, seed, loss.of_cell(trials, scenario, seed))


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


# --- what stands around the answers ------------------------------------------------------------------------------


def _counts(run: Run) -> Counts:
    found = Counter(trial.status for trial in run.all_trials)
    return Counts(
        valid=found["valid"] + found["censored"],
        struck_out=found["struck_out"],
        faulty=found["faulty"],
        failed=found["failed"],
        skipped=found["skipped"],
        made_again=found["made_again"],
    )


def _note(run: Run, trial: Trial) -> TrialNote:
    scenario = next((one for one in run.experiment.scenarios if one.name == trial.scenario), None)
    return TrialNote(
        block=trial.block,
        scenario=trial.scenario,
        contestant=f"{trial.contestant}{quantities.TWIN if trial.twin else ''}",
        client=_client(scenario, trial.levels) if scenario else "",
        level=level_label(scenario, trial.levels) if scenario else level_key(trial.levels),
        status=trial.status,
        cause=measured.set_aside(trial),
        reason=trial.reason,
        log=trial.log,
    )


def _audits(trials: Sequence[Trial]) -> tuple[AuditTally, ...]:
    checks = [audit for trial in trials for audit in trial.audits]
    passed = Counter(audit.name for audit in checks if audit.passed)
    failed = Counter(audit.name for audit in checks if not audit.passed)
    return tuple(AuditTally(name, passed[name], failed[name]) for name in sorted(passed | failed))


def _machine(trials: Sequence[Trial]) -> MachineUse | None:
    told = [trial.machine for trial in trials if trial.status in outcomes.RANKED and trial.machine is not None]
    if not told:
        return None
    steal = [one.steal_s / (one.cores * one.window_s) for one in told]
    foreign = [one.foreign_s / (one.cores * one.window_s) for one in told]
    return MachineUse(
        trials=len(told),
        steal_median=statistics.median(steal),
        steal_most=max(steal),
        foreign_median=statistics.median(foreign),
        foreign_most=max(foreign),
    )


def _example(run: Run) -> Trial | None:
    """The first with figures."""
    names = {scenario.name for scenario in run.experiment.scenarios}
    return next((trial for trial in run.trials if trial.load is not None and trial.scenario in names), None)

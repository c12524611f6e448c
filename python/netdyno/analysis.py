"""From a stored run to its findings. Pure: no file, clock or process; the same run gives the same findings, always.

Only `valid` trials enter a figure. The others are listed with their reasons. The family that Holm's correction spans is
every comparison of one scenario, for that is one answer: the chance that a ranking claims any difference that is not
there is at most `stats.LEVEL`, each time.
"""

from __future__ import annotations

import itertools
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from netdyno import (
    answers,
    attribution,
    canary_findings,
    cells,
    endings,
    loss_words,
    losses,
    measured,
    plan,
    stats,
    timers,
    transports,
    unsafe,
    words,
    work,
)
from netdyno.aa.control import control
from netdyno.capacity import fill as capacity
from netdyno.capacity.again import again
from netdyno.capacity.scenario import CAPACITY
from netdyno.claims.judge import judge
from netdyno.command import by_hand
from netdyno.figures.fill import charts
from netdyno.findings import (
    Analysis,
    AuditTally,
    CellFigures,
    Command,
    Counts,
    Estimate,
    LevelInfo,
    MachineUse,
    Pair,
    ScenarioFindings,
    Standing,
    TrialNote,
)
from netdyno.levels import level_key, level_label
from netdyno.model import LoadResult, Run, Scenario, Trial, type_level
from netdyno.options import Settings, settings
from netdyno.samples import samples
from netdyno.stats import Comparison, Samples
from netdyno.transports import LOOPBACK_ADDRESS


def analyse(run: Run, level: float = stats.LEVEL) -> Analysis:
    """All findings of a run. Raises hdr.HistogramError where a stored histogram cannot be read."""
    safe = unsafe.without(run)
    ended = {one.name: found for one in run.experiment.scenarios if (found := endings.ending(run, one))}
    scenarios = tuple(
        replace(_with_unsafe(_scenario(safe, one, level), run), ending=ended.get(one.name))
        for one in run.experiment.scenarios
    )
    return Analysis(
        run_id=run.run_id,
        experiment=run.experiment.name,
        question=run.experiment.question,
        links=plan.links(run.experiment),
        started_at=run.started_at,
        finished_at=run.finished_at,
        blocks_planned=max(run.experiment.blocks, len({trial.block for trial in run.trials})),
        blocks_measured=len({trial.block for trial in safe.trials if trial.status == "valid"}),
        windows_s=tuple(sorted({one.duration_s for one in run.experiment.scenarios})),
        contestants=contestants(safe),
        scenarios=scenarios,
        claims=endings.told(judge(run, level), ended),
        charts=charts(safe),
        level=level,
        counts=Counts(**{status: _count(run, status) for status in ("valid", "struck_out", "failed", "skipped")}),
        set_aside=tuple(_note(run, trial) for trial in run.all_trials if trial.status != "valid"),
        audits=_audits(run.all_trials),
        machine=_machine(run.all_trials),
        canary=canary_findings.of_run(run),
        pinning=_pinning(run.all_trials),
        control=control(
            safe,
            {one.scenario.name: one.comparisons for one in scenarios},
            lambda of, scenario: samples(of, scenario, contestants(of, scenario.name)),
            level,
        ),
        about=run.about,
        environment=tuple((key, _environment_value(entry)) for key, entry in run.environment.items()),
        commands=_commands(run),
    )


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


# --- comparisons -------------------------------------------------------------------------------------------------


def _compare_all(
    samples: Mapping[str, Samples], groups: Sequence[Sequence[str]], seed: int, level: float
) -> tuple[Comparison, ...]:
    """Every two contestants of a group, all groups corrected as one family. Two that share no cell are no
    hypothesis."""
    raw = [stats.compare(a, b, samples, seed) for group in groups for a, b in itertools.combinations(group, 2)]
    return stats.corrected([one for one in raw if one.pairs], level)


def _groups(
    scenario: Scenario, samples: Mapping[str, Samples], figures: Sequence[CellFigures]
) -> tuple[list[str], list[str]]:
    """Who is ranked with whom: those that lost no more than the bound in any trial, and the others
    (docs/adr/loss.md). A capacity is what is served without such a loss, and all are ranked by it."""
    if scenario.metric == CAPACITY:
        return list(samples), []
    apart = {cell.contestant for cell in figures if cell.marked}
    return [name for name in samples if name not in apart], [name for name in samples if name in apart]


# --- one scenario ------------------------------------------------------------------------------------------------


def _scenario(run: Run, scenario: Scenario, level: float) -> ScenarioFindings:
    names = contestants(run, scenario.name)
    trials = [trial for trial, _ in measured.valid(run, scenario)]
    sampled = samples(run, scenario, names)
    bound = scenario.loss_bound
    levels = _levels(run, scenario)
    figures = _figures(run, scenario, levels, names)
    groups = _groups(scenario, sampled, figures)
    family = _compare_all(sampled, groups, run.experiment.seed, level)
    standings = _standings(run, scenario, sampled, groups, family, figures)
    needed = stats.pairs_needed(len(family), level)
    capacities = capacity.findings(run, scenario, names)
    cells_of_block = len(levels) if capacities is None else len({one.level for one in capacities.curves})
    answer = answers.answer(scenario, standings, family, cells_of_block, needed, bound)
    if capacities is not None and capacities.sentence:
        answer = replace(answer, sentence=capacities.sentence)
    constant = timers.notes(standings, figures, levels, scenario)
    behind = work.rows(run, scenario, _first_ranked(standings, names))
    return ScenarioFindings(
        scenario=scenario,
        verdict=answer.verdict,
        headline=answer.headline,
        sentence=answer.sentence,
        evidence=(*answers.evidence(standings, figures, levels), *loss_words.evidence(standings, figures, levels)),
        caveats=(
            *capacity.caveats(capacities),
            *constant,
            *answers.caveats(scenario, standings, figures, levels, names),
            *loss_words.caveats(figures, bound),
            *answers.added_options(scenario, trials),
            *answers.sampled_threads(trials),
        ),
        better=answers.better(scenario),
        levels=levels,
        standings=standings,
        comparisons=family,
        cells=figures,
        drift=_drift(sampled),
        pairs=_pairs(run, scenario, names),
        loss_bound=bound,
        unsafe=(),
        timers=constant,
        capacity=capacities,
        work=behind,
        whys=attribution.whys(run, scenario, standings, family, behind, level),
    )


def _first_ranked(standings: Sequence[Standing], names: Sequence[str]) -> list[str]:
    """All names: the ranked in their order, then those without a valid trial."""
    ranked = [one.contestant for one in standings]
    return [*ranked, *(name for name in names if name not in ranked)]


def _with_unsafe(findings: ScenarioFindings, run: Run) -> ScenarioFindings:
    """What verification found of the unsafe stands beside the answer and changes nothing in it; so does the name of
    one that is not ranked."""
    apart = unsafe.unranked_caveats(run, findings.scenario.name)
    findings = replace(findings, caveats=(*apart, *findings.caveats))
    found = unsafe.of_scenario(run, findings.scenario.name, findings.levels)
    if not found:
        return findings
    return replace(
        findings,
        sentence=findings.sentence + unsafe.left_out(found),
        unsafe=found,
        caveats=(*unsafe.caveats(found), *findings.caveats),
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
    valid = [trial.load for trial in trials if trial.status == "valid" and trial.load is not None]
    figures = [figure for load in valid if (figure := measured.metric(scenario, load)) > 0]
    return Pair(
        contestant=contestant,
        client=client,
        valid=len(valid),
        trials=len(trials),
        figure=math.exp(sum(map(math.log, figures)) / len(figures)) if figures else None,
        statuses=tuple(dict.fromkeys(trial.status for trial in trials if trial.status != "valid")),
        lost=max((lost for load in valid if (lost := transports.share_lost(load)) is not None), default=None),
    )


def _standings(
    run: Run,
    scenario: Scenario,
    samples: Mapping[str, Samples],
    groups: tuple[Sequence[str], Sequence[str]],
    family: Sequence[Comparison],
    figures: Sequence[CellFigures],
) -> tuple[Standing, ...]:
    """Those that delivered, then those that are ranked apart, each group with its own leader."""
    effects = stats.effects(samples)
    delivered, apart = (_ranked(run, scenario, {name: effects[name] for name in group}, family) for group in groups)
    largest: dict[str, float] = {}
    for cell in figures:
        if cell.loss is not None:
            largest[cell.contestant] = max(largest.get(cell.contestant, 0.0), cell.lost)
    return (
        *(replace(one, loss=largest.get(one.contestant)) for one in delivered),
        *(replace(one, loss=largest.get(one.contestant), apart=True, rank=one.rank + len(delivered)) for one in apart),
    )


def _ranked(run: Run, scenario: Scenario, effects: Mapping[str, float], family: Sequence[Comparison]) -> list[Standing]:
    """One group, its first at rank 1. `effects` is the mean log metric of each."""
    direction = answers.better(scenario)
    best_first = sorted(effects, key=lambda name: effects[name], reverse=direction == "higher")
    ranks = stats.ranks(best_first, family, direction)
    sizes = Counter(ranks.values())
    standings = []
    for name in best_first:
        one = answers.against(name, best_first[0], family)
        standings.append(
            Standing(
                rank=ranks[name],
                shared=sizes[ranks[name]] > 1,
                contestant=name,
                value=math.exp(effects[name]),
                relative=Estimate(one.ratio, one.interval, ()) if one else None,
                against_leader=one,
                missing=_missing(run, scenario, name),
                bound=capacity.bound(run, scenario, name),
            )
        )
    return standings


def _missing(run: Run, scenario: Scenario, name: str) -> int:
    """Trials of a contestant that its metric is not from."""
    if scenario.metric == CAPACITY:
        return capacity.silent(run, scenario, name)
    return sum(
        (trial.scenario, trial.contestant) == (scenario.name, name) and trial.status != "valid" for trial in run.trials
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
    figures = [(trial.block, load, trial.server) for trial, load in trials]
    return cells.figures(name, level, figures, seed, losses.of_cell(trials, scenario, seed))


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


def _count(run: Run, status: str) -> int:
    return sum(trial.status == status for trial in run.all_trials)


def _note(run: Run, trial: Trial) -> TrialNote:
    scenario = next((one for one in run.experiment.scenarios if one.name == trial.scenario), None)
    return TrialNote(
        block=trial.block,
        scenario=trial.scenario,
        contestant=f"{trial.contestant}{words.TWIN if trial.twin else ''}",
        client=_client(scenario, trial.levels) if scenario else "",
        level=level_label(scenario, trial.levels) if scenario else level_key(trial.levels),
        status=trial.status,
        kind=measured.cause(trial),
        reason=trial.reason or measured.NO_REASON,
        log=trial.log,
    )


def _audits(trials: Sequence[Trial]) -> tuple[AuditTally, ...]:
    checks = [audit for trial in trials for audit in trial.audits]
    passed = Counter(audit.name for audit in checks if audit.passed)
    failed = Counter(audit.name for audit in checks if not audit.passed)
    return tuple(AuditTally(name, passed[name], failed[name]) for name in sorted(passed | failed))


def _machine(trials: Sequence[Trial]) -> MachineUse | None:
    told = [trial.machine for trial in trials if trial.status == "valid" and trial.machine is not None]
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


def _pinning(trials: Sequence[Trial]) -> tuple[str, ...]:
    """What was done about pinning, each way once."""
    ways = {trial.pinning: None for trial in trials if trial.pinning is not None}
    return tuple(
        f"server on {_cores(way.server)}, generator on {_cores(way.generator)}{f' ({way.note})' if way.note else ''}"
        for way in ways
    )


def _cores(cores: Sequence[int]) -> str:
    return f"core{'s' if len(cores) > 1 else ''} {words.listed([str(core) for core in cores])}" if cores else "any core"


def _environment_value(entry: str | int | float | bool | list[str]) -> str:
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return "\n".join(entry) if isinstance(entry, list) else str(entry)


def _commands(run: Run) -> tuple[Command, ...]:
    commands = [
        Command("The whole run again", again(run.experiment)),
        Command("This report again, from what is stored", f"./netdyno report {run.run_id}"),
    ]
    scenarios = {scenario.name: scenario for scenario in run.experiment.scenarios}
    started = next((trial for trial in run.trials if trial.load is not None and trial.scenario in scenarios), None)
    if started is not None and started.load is not None:
        asked = started.load.plan
        wanted = settings(scenarios[started.scenario], started.levels)
        endpoint, how = _endpoint_by_hand(asked.url, wanted)
        server, load = by_hand(started, endpoint, wanted, asked.seed)
        commands.append(Command(f"One trial by hand{how}: the server", shlex.join(server)))
        commands.append(Command(f"One trial by hand{how}: its load", shlex.join(load)))
    return tuple(commands)


def _endpoint_by_hand(url: str, wanted: Settings) -> tuple[str, str]:
    """Where a server that is started by hand listens, and how that differs from the trial: its link is gone with it."""
    if wanted.link == "loopback":
        return url, ""
    scheme, _, place = url.partition("://")
    return f"{scheme}://{LOOPBACK_ADDRESS}:{place.rpartition(':')[2]}", ", over the loopback"

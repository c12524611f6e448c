"""From a stored run to its findings. Pure: no file, clock or process; the same run gives the same findings, always. The
run is split once into the parts of its scenarios; trials that enter no figure are listed with their reasons."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from netdyno.analysis.aa.control import summarise_control
from netdyno.analysis.advice import judge_advice
from netdyno.analysis.claims import judge_claims
from netdyno.analysis.claims.evidence import collect_evidence
from netdyno.analysis.figures.fill_charts import build_charts
from netdyno.analysis.flips.judge_flips import follow_flip
from netdyno.analysis.found.advice import Advice
from netdyno.analysis.found.exclusions import TrialNote
from netdyno.analysis.found.run import Analysis, AuditTally, Counts, MachineUse
from netdyno.analysis.gate.judge_gate import judge_gate
from netdyno.analysis.notices import canary, retries
from netdyno.analysis.notices.code_gains import derive_code_gains
from netdyno.analysis.ranking import stopping
from netdyno.analysis.scenario import derive_findings, read_client
from netdyno.analysis.trials import measured
from netdyno.analysis.trials.split import split
from netdyno.kit import quantities
from netdyno.kit.statistics import looks, stats
from netdyno.model import outcomes
from netdyno.model.experiment import Experiment
from netdyno.model.levels import level_key, level_label
from netdyno.model.run import Run
from netdyno.model.trial import Trial


def analyse(run: Run) -> Analysis:
    """Return all findings of a run. Raises HistogramError where a stored histogram cannot be read."""
    run = outcomes.judge_run(run)
    trials, experiment = run.all_trials, run.experiment
    significance = judge_advice.choose_significance(experiment.advise) if experiment.advise else stats.SIGNIFICANCE
    finished = run.finished_at is not None
    parts = split(run)
    by_name = {part.scenario.name: part for part in parts}
    flips = tuple(follow_flip(flip, by_name[flip.scenario], significance) for flip in experiment.flips)
    endings = [stopping.find_ending(part, finished=finished, time_budget_s=experiment.time_budget_s) for part in parts]
    scenarios = tuple(
        derive_findings(
            part,
            ending,
            looks.FURTHER.divide_significance(significance)
            if part.scenario.name in experiment.looked_again
            else significance,
            tuple(flip for flip in flips if flip.question == part.scenario.name),
        )
        for part, ending in zip(parts, endings, strict=True)
    )
    families = {findings.scenario.name: findings.comparisons for findings in scenarios}
    return Analysis(
        run_id=run.run_id,
        experiment=experiment.name,
        question=experiment.question,
        links=run.links,
        started_at=run.started_at,
        finished_at=run.finished_at,
        blocks_planned=max(experiment.blocks, len({trial.block for trial in run.trials})),
        blocks_measured=len({trial.block for part in parts for trial, _ in part.ranked}),
        windows_s=tuple(sorted({scenario.duration_s for scenario in experiment.scenarios})),
        contestants=tuple(sorted({name for part in parts for name in part.contestants})),
        scenarios=scenarios,
        claims=judge_claims.decide_claims(experiment.claims, collect_evidence(run, parts), significance),
        charts=build_charts(experiment.figures, parts),
        significance=significance,
        counts=msgspec.convert(outcomes.counts(run), Counts),
        excluded=tuple(
            _describe_trial(experiment, trial)
            for trial in trials
            if trial.status not in (*outcomes.RANKED, "made_again")
        ),
        audits=_count_audits(trials),
        retried=retries.summarise_retries(trials, experiment.seed),
        machine=_summarise_machine_use(trials),
        canary=canary.summarise_run(run),
        pinning=tuple(dict.fromkeys(trial.pinning for trial in trials if trial.pinning is not None)),
        control=summarise_control(experiment, parts, families, significance, finished=finished),
        about=run.about,
        environment=run.environment,
        requested=experiment,
        typed=run.typed,
        example=_find_example(run),
        trials=tuple(trials),
        gate=judge_gate(experiment.gate, parts, significance) if experiment.gate else None,
        flips=flips,
        code_gains=derive_code_gains(scenarios, run.about),
    )


# --- around the answers ------------------------------------------------------------------------------------------


def _describe_trial(experiment: Experiment, trial: Trial) -> TrialNote:
    scenario = next((scenario for scenario in experiment.scenarios if scenario.name == trial.scenario), None)
    return TrialNote(
        block=trial.block,
        scenario=trial.scenario,
        contestant=f"{trial.contestant}{quantities.TWIN if trial.twin else ''}",
        client=read_client(scenario, trial.levels) if scenario else "",
        level=level_label(scenario, trial.levels) if scenario else level_key(trial.levels),
        status=trial.status,
        cause=measured.find_exclusion_cause(trial),
        reason=trial.reason,
        log=trial.log,
    )


def _count_audits(trials: Sequence[Trial]) -> tuple[AuditTally, ...]:
    checks = [audit for trial in trials for audit in trial.audits]
    passed = Counter(audit.name for audit in checks if audit.passed)
    failed = Counter(audit.name for audit in checks if not audit.passed)
    return tuple(AuditTally(name, passed[name], failed[name]) for name in sorted(passed | failed))


def _summarise_machine_use(trials: Sequence[Trial]) -> MachineUse | None:
    observations = [trial.machine for trial in trials if trial.status in outcomes.RANKED and trial.machine is not None]
    if not observations:
        return None
    steal = [observation.steal_s / (observation.cores * observation.window_s) for observation in observations]
    foreign = [observation.foreign_s / (observation.cores * observation.window_s) for observation in observations]
    return MachineUse(
        trials=len(observations),
        steal_median=statistics.median(steal),
        steal_most=max(steal),
        foreign_median=statistics.median(foreign),
        foreign_most=max(foreign),
    )


def _find_example(run: Run) -> Trial | None:
    """Return the first trial with figures."""
    names = {scenario.name for scenario in run.experiment.scenarios}
    return next((trial for trial in run.trials if trial.load is not None and trial.scenario in names), None)


def derive_advice(run: Run, analysis: Analysis) -> Advice | None:
    """Return the advice of an analysed run; None where it was to give none."""
    if run.experiment.advise is None:
        return None
    (part,) = split(outcomes.judge_run(run))
    found = judge_advice.judge_advice(run.experiment.advise, analysis.scenarios[0], part)
    return replace(found, foreign=analysis.machine.foreign_median if analysis.machine else 0.0)

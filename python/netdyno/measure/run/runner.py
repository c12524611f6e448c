"""Execute an experiment: plan it, run every trial, store each before the next, and return the outcome."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.kit.paths import canary_path
from netdyno.kit.units import utc_now
from netdyno.measure.audits import canary_audit
from netdyno.measure.run import preparation
from netdyno.measure.run.hosts import GoneError, Hosts, RunSetup
from netdyno.measure.run.interrupts import Interrupted, raise_on_signals
from netdyno.measure.run.neighbour_watch import NeighbourWatch
from netdyno.measure.run.progress import (
    Display,
    FirstFailure,
    LateRun,
    LostHosts,
    MeasuredWarmup,
    PlannedTraces,
    Progress,
    RunPlan,
    TimeOfTrials,
)
from netdyno.measure.run.schedule import Schedule
from netdyno.measure.trial import traced, warm_up
from netdyno.measure.trial.canary import Canary
from netdyno.measure.trial.context import Key, TrialContext, key
from netdyno.measure.trial.prepared import record_skip
from netdyno.measure.trial.trial import run_trial
from netdyno.measure.trial.turns import run_in_turns
from netdyno.model import levels, outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad, Neighbour
from netdyno.model.options import settings
from netdyno.model.run import Run
from netdyno.model.trial import Trace, Trial, Warmup
from netdyno.question import plan, side_by_side
from netdyno.store import write


class RunOutcome(NamedTuple):
    """The result of a run: its folder, and the signal's exit code where it was interrupted."""

    run_id: str
    folder: Path
    interrupted: int


def execute(
    experiment: Experiment,
    servers: Sequence[Contestant],
    *,
    clients: Sequence[Contestant] = (),
    results: Path,
    build: Path,
    argv: Sequence[str],
    display: Display,
    foreign_load: ForeignLoad = "strike-out",
    trace: Trace = "auto",
    hosts: Hosts | None = None,
) -> RunOutcome:
    """Run an experiment. `servers` and `clients` are the contestants that its cells name; `foreign_load` decides on a
    trial that shared the machine, `trace` whether system calls are traced afterwards; `hosts` has the hosts of a
    cluster to run on. Raises UserError before the first trial where something cannot work."""
    began_s = time.monotonic()
    begins = datetime.now().astimezone()
    setup = RunSetup(
        experiment=experiment,
        servers=servers,
        clients=clients,
        build=build,
        progress=display.throughput,
        foreign_load=foreign_load,
    )
    prepared = preparation.prepare(setup, results, experiment.name, hosts)
    folder, context, first = prepared.folder, prepared.context, prepared.first
    servers_by_name = {server.name: server for server in servers}
    # The cells are those that were requested, whatever the first requests showed.
    cells = plan.plan(experiment, plan.choose_twins(experiment, servers_by_name, context.clients))
    experiment, servers = first.experiment, first.describe_servers(servers)
    servers_by_name = {server.name: server for server in servers}
    trace = "never" if hosts else trace
    run = preparation.begin_run(prepared, experiment, servers, clients, trace=trace)
    with write.Store.create(folder, run, argv, cells) as stored:
        to_trace = traced.plan_tasks(experiment, servers_by_name, context.clients, trace)
        traces_s = traced.estimate_seconds(to_trace)
        display.begin(RunPlan(experiment, begins, servers_by_name, context.clients, tuple(run.links), traces_s))
        for failure in first.failures.values():
            display.note(FirstFailure(failure))
        canary = Canary(canary_path(build), context.pinning, folder)
        execution = Execution(
            run, cells, servers_by_name, context, canary, stored, display, to_trace, began_s, hosts, [*first.failures]
        )
        return RunOutcome(run.run_id, folder, execution.carry_out())


@dataclass
class Execution:
    """A run that is being carried out: `run` holds the stored trials, `cells` are all planned ones, `to_trace` the
    traces to be taken after them; its time counts from `began_s` (time.monotonic()); `hosts` has the hosts of a
    cluster."""

    run: Run
    cells: Sequence[plan.Cell]
    servers: plan.ContestantsByName
    context: TrialContext
    canary: Canary
    stored: write.Store
    display: Display
    to_trace: Sequence[traced.TraceTask]
    began_s: float = field(default_factory=time.monotonic)
    hosts: Hosts | None = None
    failing: Collection[str] = ()
    """Contestants without a right reply to the first requests, which have no warm-up."""

    @property
    def is_search(self) -> bool:
        """Whether each trial decides the next: then no group of trials takes turns or is judged together."""
        return self.run.experiment.capacity is not None

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        return {scenario.name: scenario for scenario in self.run.experiment.scenarios}

    def carry_out(self) -> int:
        """Run every cell that has no trial yet, to the end of the run, and trace system calls after them. Returns 0,
        or the exit code of what cut it short, a signal or the loss of its hosts."""
        experiment = self.run.experiment
        known = warm_up.collect_known(self.run.all_trials)
        try:
            with raise_on_signals():
                measured = self._measure_warm_ups(known)
        except (Interrupted, GoneError) as cut:
            return self._end_early(cut)
        before_s = time.monotonic() - self.began_s
        self.context = msgspec.structs.replace(
            self.context,
            warmups={cell_key: warmup for cell_key, warmup in known.items() if warmup is not None} | measured,
        )
        longer_s = warm_up.estimate_added_s(self.cells, self.scenarios, self.context.warmups)
        seconds = plan.estimate_seconds(experiment, self.servers, self.context.clients) + longer_s
        if measured and experiment.capacity is None:
            self.display.note(TimeOfTrials(seconds, datetime.now().astimezone()))
        budget_s = experiment.time_budget_s
        progress = Progress(
            tuple(self.cells),
            seconds / max(len(self.cells), 1),
            None if budget_s is None else max(0.0, budget_s - before_s),
        )
        schedule = Schedule(self.run, self.cells, progress, before_s)
        interrupted = self._run_cells(schedule, progress) or self._trace_calls()
        if not interrupted:
            self.stored.finish(utc_now())
        return interrupted

    def _end_early(self, cut: Interrupted | GoneError) -> int:
        self.display.close()
        if isinstance(cut, GoneError):
            self.display.note(LostHosts(cut))
        return cut.exit_code

    def _measure_warm_ups(self, known: Mapping[Key, Warmup | None]) -> dict[Key, Warmup]:
        """Measure the warm-ups of servers with a JIT, and display each at once."""
        scenarios = self.scenarios
        answering = [cell for cell in self.cells if cell.contestant not in self.failing]
        kinds = warm_up.select_kinds(answering, scenarios, self.servers, self.context.clients, known)
        if self.hosts is not None:
            measurements = self.hosts.warm_ups(kinds, scenarios)
        else:
            measurements = warm_up.measure(kinds, scenarios, self.servers, self.context)
        warmups: dict[Key, Warmup] = {}
        for kind, warmup in measurements:
            warmups[key(kind)] = warmup
            where = " ".join([kind.scenario, *(f"{name}={level}" for name, level in kind.levels.items())])
            self.display.note(MeasuredWarmup(kind.contestant, where, warmup))
        return warmups

    def _run_cells(self, schedule: Schedule, progress: Progress) -> int:
        """Run every cell in its order. Returns 0, or the exit code of the signal that cut it short; the trial that it
        interrupted is dropped, because half a window is no result. At the end of a block the canary judges its
        trials."""
        foreign_load, display = self.context.foreign_load, self.display

        def revise(judged: Sequence[Trial]) -> None:
            self.stored.revise(judged)
            for invalid in schedule.revise(judged):
                display.trial_done(invalid, progress)

        canary_judge = canary_audit.CanaryJudge(foreign_load, revise)
        for trial in schedule.trials:
            if schedule.is_over(trial.block) and outcomes.is_canary_judged(trial):
                canary_judge.know(trial)
            else:
                canary_judge.add(trial)
        neighbours = NeighbourWatch(schedule.trials, foreign_load)
        is_late_noted = False
        try:
            with raise_on_signals() as raise_again:
                for group in schedule.groups(self.stored.extend):
                    for cells, alone in self._divide_group(group, schedule, neighbours.present):
                        raise_again()
                        display.trial_started(cells[0], progress)
                        context = msgspec.structs.replace(self.context, neighbour=neighbours.present)
                        for concluded in self._run_together(cells, schedule, context):
                            trial = msgspec.structs.replace(concluded, alone=alone)
                            if self.is_search:
                                trial = canary_audit.add_canary_audit_at_once(trial, schedule.trials, foreign_load)
                            self.stored.add(trial)
                            schedule.add(trial)
                            if not self.is_search:
                                canary_judge.add(trial)
                            display.trial_done(trial, progress)
                            # Only this machine can be watched, and a cluster's trials run on other hosts.
                            if self.hosts is None:
                                if changed := neighbours.add(trial):
                                    display.note(changed)
                                if changed or neighbours.may_stay:
                                    schedule.excuse(trial)
                        if progress.is_late and not is_late_noted:
                            is_late_noted = True
                            limit_s = self.run.experiment.time_limit_s
                            display.note(LateRun(progress.retried, progress.left_s(), limit_s))
                    if schedule.is_over(group[0].block):
                        canary_judge.judge()
                canary_judge.judge(run_ended=True)
        except (Interrupted, GoneError) as cut:
            canary_judge.judge(run_ended=True)  # judges the trials of the block that was cut short
            return self._end_early(cut)
        finally:
            display.close()
        return 0

    def _divide_group(
        self, group: Sequence[plan.Cell], schedule: Schedule, neighbour: Neighbour | None
    ) -> list[tuple[tuple[plan.Cell, ...], str]]:
        """Return the cells of a group that take turns, then each of the others by itself, with the reason."""
        if self.is_search:
            return [(tuple(group), "")]
        scenario = self.scenarios[group[0].scenario]
        busy = side_by_side.find_busy(schedule.trials, scenario.name)
        why_apart = {
            cell.position: side_by_side.BUSY
            if cell.contestant in busy
            else schedule.find_stop_reason(cell)
            or plan.explain_skip(self.servers[cell.contestant], scenario, cell.levels, self.context.clients)
            or side_by_side.explain_apart(self.servers[cell.contestant])
            for cell in group
        }
        quiet = [cell for cell in group if not why_apart[cell.position]]
        contestants = [self.servers[cell.contestant] for cell in quiet]
        level = (scenario.name, levels.level_key(group[0].levels))
        if self.hosts:
            why = "trials run on a cluster"
        elif level in side_by_side.find_lagging(schedule.trials):
            why = side_by_side.BEHIND
        elif level in side_by_side.find_rotating(schedule.trials):
            why = side_by_side.ROTATING
        elif neighbour is not None and neighbour.quota_cores:
            why = side_by_side.QUOTA
        else:
            why = side_by_side.explain_alone(scenario, settings(scenario, group[0].levels), contestants)
        together, reason = ([] if why else quiet), ("" if why == side_by_side.ONLY else why)
        alone = [((cell,), why_apart[cell.position] or reason) for cell in group if cell not in together]
        return [*([(tuple(together), "")] if together else []), *alone]

    def _run_together(self, cells: Sequence[plan.Cell], schedule: Schedule, context: TrialContext) -> list[Trial]:
        """Run one cell, or several in turns."""
        scenario, hosts = self.scenarios[cells[0].scenario], self.hosts
        for cell in cells:
            context = warm_up.carry_over(cell, context)
        if len(cells) > 1:
            begun = self.canary.begin()
            trials = run_in_turns([(cell, self.servers[cell.contestant]) for cell in cells], scenario, context)
            readings = self.canary.end(begun)
            return [msgspec.structs.replace(trial, canary=readings) for trial in trials]
        (cell,) = cells
        server = self.servers[cell.contestant]
        why = schedule.find_stop_reason(cell)
        if not why and hosts is not None:
            why = hosts.why_skip(server, scenario, cell.levels, context.clients)
        if why:
            return [record_skip(cell, why)]
        if hosts is not None:
            return [hosts.trial(cell, scenario, context.warmups.get(key(cell)))]
        return [self.canary.measure_around(partial(run_trial, cell, scenario, server, context))]

    def _trace_calls(self) -> int:
        """Trace system calls after the trials. Returns 0, or the exit code of the signal that cut it short."""
        if count := traced.count_tasks(self.to_trace):
            self.display.note(PlannedTraces(count, traced.estimate_seconds(self.to_trace)))
        try:
            with raise_on_signals():
                for task in self.to_trace:
                    self.stored.add_traced(traced.trace_task(task, self.servers[task.contestant], self.context))
        except Interrupted as signalled:
            return signalled.exit_code
        return 0

"""Execute an experiment: plan it, run every trial, store each before the next, and return the outcome."""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from netdyno.audits import canary as canary_audit
from netdyno.base import quantities
from netdyno.base.errors import UserError, did_you_mean
from netdyno.base.paths import canary_path, generator_path
from netdyno.base.units import clock_after, format_clock
from netdyno.base.utc_now import utc_now
from netdyno.cluster.engine import GoneError
from netdyno.contestants import codesize
from netdyno.experiment import blocks, flips, plan, side_by_side
from netdyno.machine import digests, environment, pinning
from netdyno.machine.links import link_check
from netdyno.model import levels, run
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.observation import ForeignLoad
from netdyno.model.options import settings
from netdyno.model.run import Run
from netdyno.model.trial import Trace, Trial, Warmup
from netdyno.run.neighbour_watch import NeighbourWatch
from netdyno.run.progress import Display, Progress
from netdyno.run.schedule import Schedule
from netdyno.store import write
from netdyno.trial import traced, warm_up
from netdyno.trial.canary import Canary
from netdyno.trial.setup import Bench, Key, key
from netdyno.trial.trial import record_skip, run_trial
from netdyno.trial.turns import run_in_turns

if TYPE_CHECKING:  # it needs Dask, which few runs do
    from netdyno.cluster.stage import Stage

GONE = 4
"""The exit code of a run whose hosts are gone; it can be resumed."""
SPARE_DESCRIPTORS = 64
"""The descriptors of a server or a generator beside its connections: listener, loops, timers, files, libraries."""


class Interrupted(KeyboardInterrupt):
    """The user (SIGINT) or the system (SIGTERM) ends the run; the exit code is 128 + the signal."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.exit_code = 128 + signal_number


class Outcome(NamedTuple):
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
    stage: Stage | None = None,
) -> Outcome:
    """Run an experiment. `servers` and `clients` are the contestants that its cells name; `foreign_load` decides on a
    trial that shared the machine, `trace` whether system calls are traced afterwards; `stage` has the hosts of a
    cluster to run on. Raises UserError before the first trial where something cannot work."""
    check(experiment, servers, build)
    trace = "never" if stage else trace
    servers_by_name, clients_by_name = (
        {server.name: server for server in servers},
        {client.name: client for client in clients},
    )
    if stage is not None:
        stage.check(experiment, servers_by_name, clients_by_name)
    run_id, folder = create_folder(results, experiment.name)
    cells = plan.plan(experiment, plan.choose_twins(experiment, servers_by_name, clients_by_name))
    try:
        bench, facts = set_up(
            experiment,
            servers,
            clients=clients,
            build=build,
            folder=folder,
            progress=display.throughput,
            foreign_load=foreign_load,
            stage=stage,
        )
    except UserError:
        with suppress(OSError):  # something was written, which may say why
            (folder / "logs").rmdir()
            folder.rmdir()
        raise
    run = begin_run(run_id, folder, experiment, facts | {"trace": trace}, servers, clients)
    with write.Store.create(folder, run, argv, cells) as stored:
        to_trace = traced.plan_tasks(experiment, servers_by_name, bench.clients, trace)
        begins = datetime.now().astimezone()
        beside_s = traced.estimate_seconds(to_trace)
        display.begin(
            format_announcement(experiment, servers_by_name, bench.clients, beside_s, begins=begins, over=run.links)
        )
        canary = Canary(canary_path(build), bench.pinning, folder)
        interrupted = carry_out(run, cells, servers_by_name, bench, canary, stored, display, to_trace, stage)
    return Outcome(run_id, folder, interrupted)


def check(experiment: Experiment, servers: Sequence[Contestant], build: Path) -> None:
    """Check for failures in the middle of a run that can be known before it. Raises UserError."""
    for what, program in (("load generator", generator_path(build)), ("canary", canary_path(build))):
        if not program.is_file():
            raise UserError(f"the {what} is not built: {program} is missing (run ./netdyno, which builds it)")
    check_workloads(experiment, servers)
    flips.check(experiment)
    named = {server.name: server for server in servers}
    ensure_descriptors(plan.find_most_descriptors(experiment, named) + SPARE_DESCRIPTORS, experiment.name)


def set_up(
    experiment: Experiment,
    servers: Sequence[Contestant],
    *,
    clients: Sequence[Contestant],
    build: Path,
    folder: Path,
    progress: Callable[[int, float], None],
    foreign_load: ForeignLoad,
    stage: Stage | None = None,
) -> tuple[Bench, run.Environment]:
    """Return the context of a run's trials and the environment that they run in. Measures the links of this machine;
    where there is a `stage`, its hosts describe themselves instead."""
    if stage is not None:
        return stage.set_up(
            experiment,
            servers,
            clients=clients,
            build=build,
            folder=folder,
            progress=progress,
            foreign_load=foreign_load,
        )
    generator = generator_path(build)
    cores = pinning.choose()
    links = link_check.check(experiment, cores, folder)
    facts = environment.collect(experiment, cores, build) | links.environment | {"foreign_load": foreign_load}
    facts |= {"programs": digests.digest_programs(generator, servers, clients)}
    if interpreted := digests.list_runtimes([*servers, *clients]):
        facts["runtimes"] = interpreted
    bench = Bench(
        seed=experiment.seed,
        generator=(str(generator),),
        pinning=cores,
        folder=folder,
        clients={client.name: client for client in clients},
        bad_links=links.bad,
        progress=progress,
        foreign_load=foreign_load,
    )
    return bench, facts


def begin_run(
    run_id: str,
    folder: Path,
    experiment: Experiment,
    facts: run.Environment,
    servers: Sequence[Contestant],
    clients: Sequence[Contestant] = (),
) -> Run:
    """Return a run before its first trial, and write its environment into its folder."""
    write_environment(folder, facts)
    return Run(
        run_id=run_id,
        experiment=experiment,
        started_at=utc_now(),
        finished_at=None,
        environment=facts,
        trials=(),
        about=codesize.describe(servers, clients),
    )


def write_environment(folder: Path, facts: run.Environment) -> None:
    """Write the environment beside the run, for a reader without SQLite."""
    (folder / "environment.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def carry_out(
    run: Run,
    cells: Sequence[plan.Cell],
    servers: plan.Named,
    bench: Bench,
    canary: Canary,
    stored: write.Store,
    display: Display,
    to_trace: Sequence[traced.Task],
    stage: Stage | None = None,
) -> int:
    """Run every cell that has no trial yet, to the end of the run, and trace system calls after them. `run` holds the
    stored trials, `cells` are the planned ones. Returns 0, the exit code of the signal that cut it short, or GONE."""
    experiment = run.experiment
    scenarios = {scenario.name: scenario for scenario in experiment.scenarios}
    known = warm_up.collect_known(run.all_trials)
    kinds = warm_up.select_kinds(cells, scenarios, servers, bench.clients, known)
    began_s = time.monotonic()
    try:
        with raise_on_signals():
            measured = _measure_warm_ups(kinds, scenarios, servers, bench, display, stage)
    except Interrupted as signalled:
        display.close()
        return signalled.exit_code
    except GoneError as gone:
        return _end_without_hosts(display, gone)
    before_s = time.monotonic() - began_s
    bench = bench._replace(
        warmups={cell_key: warmup for cell_key, warmup in known.items() if warmup is not None} | measured
    )
    longer_s = warm_up.estimate_added_s(cells, scenarios, bench.warmups)
    seconds = plan.estimate_seconds(experiment, servers, bench.clients) + longer_s
    if measured:
        ends = clock_after(datetime.now().astimezone(), seconds)
        display.note(f"With these warm-ups the trials take about {format_clock(seconds)}, and end at about {ends}.")
    budget_s = experiment.time_budget_s
    progress = Progress(
        tuple(cells), seconds / max(len(cells), 1), None if budget_s is None else max(0.0, budget_s - before_s)
    )
    schedule = Schedule(run, cells, progress, before_s)
    interrupted = _run_cells(
        schedule, scenarios, servers, bench, canary, stored, display, progress, experiment.time_limit_s, stage
    )
    interrupted = interrupted or _trace_calls(to_trace, servers, bench, stored, display)
    if not interrupted:
        stored.finish(utc_now())
    return interrupted


def _end_without_hosts(display: Display, why: GoneError) -> int:
    display.close()
    display.note(f"The run ends here: {why}.")
    return GONE


def _measure_warm_ups(
    kinds: Sequence[plan.Kind],
    scenarios: Mapping[str, Scenario],
    servers: plan.Named,
    bench: Bench,
    display: Display,
    stage: Stage | None,
) -> dict[Key, Warmup]:
    """Measure the warm-ups of servers with a JIT, and display each at once."""
    warmups: dict[Key, Warmup] = {}
    measurements = stage.warm_ups(kinds, scenarios) if stage else warm_up.measure(kinds, scenarios, servers, bench)
    for kind, warmup in measurements:
        warmups[key(kind)] = warmup
        where = " ".join([kind.scenario, *(f"{name}={level}" for name, level in kind.levels.items())])
        display.note(warm_up.describe_warmups(kind.contestant, where, [warmup]))
    return warmups


def _run_cells(
    schedule: Schedule,
    scenarios: Mapping[str, Scenario],
    servers: plan.Named,
    bench: Bench,
    canary: Canary,
    stored: write.Store,
    display: Display,
    progress: Progress,
    limit_s: float | None,
    stage: Stage | None,
) -> int:
    """Run every cell in its order. Returns 0, or the exit code of the signal that cut it short; the trial that it
    interrupted is dropped, because half a window is no result. At the end of a block the canary judges its trials."""

    def revise(judged: Sequence[Trial]) -> None:
        stored.revise(judged)
        for struck_out in schedule.revise(judged):
            display.trial_done(struck_out, progress)

    judge = canary_audit.Judge(bench.foreign_load, revise)
    for trial in schedule.trials:
        if schedule.is_over(trial.block) and canary_audit.is_judged(trial):
            judge.know(trial)
        else:
            judge.add(trial)
    neighbours = NeighbourWatch(schedule.trials, bench.foreign_load)
    is_late_noted = False
    try:
        with raise_on_signals() as raise_again:
            for group in schedule.groups(stored.extend):
                for cells, alone in _divide_group(group, scenarios[group[0].scenario], servers, bench, schedule, stage):
                    raise_again()
                    display.trial_started(cells[0], progress)
                    bench = bench._replace(neighbour=neighbours.present)
                    for concluded in _run_together(cells, scenarios, servers, bench, canary, schedule, stage):
                        trial = msgspec.structs.replace(concluded, alone=alone)
                        stored.add(trial)
                        schedule.add(trial)
                        judge.add(trial)
                        display.trial_done(trial, progress)
                        # Only this machine can be watched, and a cluster's trials run on other hosts.
                        if stage is None and (changed := neighbours.add(trial)):
                            display.note(changed)
                    if progress.is_late and not is_late_noted:
                        is_late_noted = True
                        display.note(explain_delay(progress, limit_s))
                if schedule.is_over(group[0].block):
                    judge.block_ended()
            judge.run_ended()
    except Interrupted as signalled:
        judge.run_ended()  # judges the trials of the block that was cut short
        return signalled.exit_code
    except GoneError as gone:
        judge.run_ended()
        return _end_without_hosts(display, gone)
    finally:
        display.close()
    return 0


def _divide_group(
    group: Sequence[plan.Cell],
    scenario: Scenario,
    servers: plan.Named,
    bench: Bench,
    schedule: Schedule,
    stage: Stage | None,
) -> list[tuple[tuple[plan.Cell, ...], str]]:
    """Return the cells of a group that take turns, then each of the others by itself, with the reason."""
    busy = side_by_side.find_busy(schedule.trials)
    why_apart = {
        cell.position: side_by_side.BUSY
        if (cell.scenario, cell.contestant) in busy
        else schedule.find_stop_reason(cell)
        or plan.explain_skip(servers[cell.contestant], scenario, cell.levels, bench.clients)
        or side_by_side.explain_apart(servers[cell.contestant])
        for cell in group
    }
    quiet = [cell for cell in group if not why_apart[cell.position]]
    load_settings = settings(scenario, group[0].levels)
    contestants = [servers[cell.contestant] for cell in quiet]
    if stage:
        why = "trials run on a cluster"
    elif (scenario.name, levels.level_key(group[0].levels)) in side_by_side.find_lagging(schedule.trials):
        why = side_by_side.BEHIND
    else:
        why = side_by_side.explain_alone(scenario, load_settings, contestants)
    together = [] if why else quiet
    reason = "" if why == side_by_side.ONLY else why
    alone = [((cell,), why_apart[cell.position] or reason) for cell in group if cell not in together]
    return [*([(tuple(together), "")] if together else []), *alone]


def _run_together(
    cells: Sequence[plan.Cell],
    scenarios: Mapping[str, Scenario],
    servers: plan.Named,
    bench: Bench,
    canary: Canary,
    schedule: Schedule,
    stage: Stage | None,
) -> list[Trial]:
    """Run one cell, or several in turns."""
    scenario = scenarios[cells[0].scenario]
    for cell in cells:
        bench = warm_up.carry_over(cell, bench)
    if len(cells) > 1:
        begun = canary.begin()
        trials = run_in_turns([(cell, servers[cell.contestant]) for cell in cells], scenario, bench)
        readings = canary.end(begun)
        return [msgspec.structs.replace(trial, canary=readings) for trial in trials]
    (cell,) = cells
    why = schedule.find_stop_reason(cell)
    if not why and stage is not None:
        why = stage.why_skip(servers[cell.contestant], scenario, cell.levels, bench.clients)
    if why:
        return [record_skip(cell, why)]
    if stage is not None:
        return [stage.trial(cell, scenario, bench.warmups.get(key(cell)))]
    return [canary.beside(partial(run_trial, cell, scenario, servers[cell.contestant], bench))]


def _trace_calls(
    tasks: Sequence[traced.Task], servers: plan.Named, bench: Bench, stored: write.Store, display: Display
) -> int:
    """Trace system calls once all trials are stored. Returns 0, or the exit code of the signal that cut it short."""
    if text := traced.format_announcement(tasks):
        display.note(text)
    try:
        with raise_on_signals():
            for traced_calls in traced.trace(tasks, servers, bench):
                stored.add_traced(traced_calls)
    except Interrupted as signalled:
        return signalled.exit_code
    return 0


def format_announcement(
    experiment: Experiment,
    servers: plan.Named,
    clients: plan.Named = MappingProxyType({}),
    beside_s: float = 0.0,
    *,
    begins: datetime,
    over: Sequence[str] = (),
) -> str:
    """Announce the questions of a run, its trials, its duration with `beside_s` for work beside the trials, and the
    expected time of its end."""
    cells = sum(len(scenario.contestants) for scenario in experiment.scenarios for _ in levels.combinations(scenario))
    budget_s = experiment.time_budget_s
    shortest = blocks.replace_fewest(experiment) if budget_s is None else experiment
    longest = blocks.replace_most(experiment)
    seconds, most_seconds = (
        plan.estimate_seconds(planned, servers, clients) + beside_s for planned in (shortest, longest)
    )
    if budget_s is not None:
        most_seconds = max(seconds, min(most_seconds, budget_s))
    twins = len(plan.choose_twins(experiment, servers, clients))
    twice = f", {twins} of them twice for the A/A control" if twins else ""
    size = f" at size {experiment.budget}" if experiment.budget != "normal" else ""
    number, takes = quantities.plural(shortest.blocks, "block"), f"about {format_clock(seconds)}"
    ends = f"at about {clock_after(begins, seconds)}"
    precise = any(scenario.precision is not None for scenario in experiment.scenarios)
    if budget_s is not None and longest.blocks > experiment.blocks and not precise and not experiment.flips:
        number = f"{quantities.plural(experiment.blocks, 'block')} and more"
        takes = f"about {format_clock(max(seconds, budget_s + beside_s))}"
        ends = f"at about {clock_after(begins, max(seconds, budget_s + beside_s))}"
        if experiment.time_limit_s is not None:
            takes += f", and up to {format_clock(experiment.time_limit_s)} on a machine that is disturbed"
            ends += f", at the latest at {clock_after(begins, experiment.time_limit_s + beside_s)}"
    elif experiment.flips:
        number = f"{quantities.plural(experiment.blocks, 'block')} and more"
        takes, ends = f"at least {format_clock(seconds)}", f"not before {clock_after(begins, seconds)}"
        if budget_s is not None:
            takes = f"at most {format_clock(max(seconds, budget_s + beside_s))}"
            ends = f"at the latest at {clock_after(begins, max(seconds, budget_s + beside_s))}"
    elif longest.blocks > shortest.blocks:
        number = f"{shortest.blocks} to {quantities.plural(longest.blocks, 'block')}"
        takes = f"between {format_clock(seconds)} and {format_clock(most_seconds)}"
        ends = f"between {clock_after(begins, seconds)} and {clock_after(begins, most_seconds)}"
    return (
        f"{experiment.name}{size}: {experiment.question}\n"
        f"It answers {describe_questions(experiment)}.\n"
        f"It makes {number} of {cells} trials ({quantities.plural(len(servers), 'contestant')}){twice} over "
        f"{quantities.listed(over or levels.links(experiment))}.\n"
        f"It takes {takes} (minutes:seconds), and ends {ends}."
    )


MOST_SCENARIOS_NAMED = 8


def describe_questions(experiment: Experiment) -> str:
    """Describe its scenarios with the metric of each, and the number of published claims that are judged."""
    questions = [f"{scenario.name} (by {scenario.metric})" for scenario in experiment.scenarios]
    if len(questions) > MOST_SCENARIOS_NAMED:
        questions = [f"{len(questions)} scenarios, from {questions[0]} to {questions[-1]}"]
    several = any(len(scenario.contestants) > 1 for scenario in experiment.scenarios)
    what = "which server is best, by how much and at what cost" if several else "what the server does and what it costs"
    claims = len(experiment.claims)
    claims_text = f", and whether {quantities.plural(claims, 'published claim')} hold{'s' if claims == 1 else ''} here"
    along = [f"{flip.first} or {flip.second} by {flip.along}" for flip in experiment.flips]
    flips_text = f", and where the better one changes: {quantities.listed(along)}" if along else ""
    return f"{what}: {quantities.listed(questions)}{claims_text if claims else ''}{flips_text}"


def explain_delay(progress: Progress, limit_s: float | None) -> str:
    """Explain that the machine makes the run longer than was announced."""
    limit_text = "" if limit_s is None else f", {format_clock(limit_s)} in all at the most"
    return (
        f"The machine is disturbed: {quantities.plural(progress.made_again, 'trial')} retried so far. The rest takes "
        f"about {format_clock(progress.left_s())} more{limit_text}."
    )


def check_workloads(experiment: Experiment, servers: Sequence[Contestant]) -> None:
    """Raise UserError for a workload that no server speaks: it is a typing error, not a result. A server of the user's
    own speaks one only; where there are no others, scenarios that it does not speak are skipped as long as one is
    left."""
    known = {workload for server in servers for workload in server.manifest.workloads}
    needed = {scenario.workload for scenario in experiment.scenarios}
    only_own = bool(servers) and all(server.own is not None for server in servers)
    if only_own and not needed & known:
        raise UserError(
            f"experiment {experiment.name!r} needs {quantities.listed(sorted(needed))}, but your server speaks "
            f"{quantities.listed(sorted(known))} (--workload)"
        )
    for scenario in experiment.scenarios:
        if scenario.workload not in known and not only_own:
            where = f"experiment {experiment.name!r}, scenario {scenario.name!r}"
            raise UserError(f"{where}: unknown workload {scenario.workload!r}{did_you_mean(scenario.workload, known)}")


def ensure_descriptors(needed: int, experiment: str) -> None:
    """Raise the soft limit on open files for the programs to inherit. Raises UserError when the hard limit forbids."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UserError(
            f"too few file descriptors: experiment {experiment!r} needs {needed} per program and the limit is {hard}; "
            f"raise it with: ulimit -n {needed} (as root, or by LimitNOFILE or limits.conf, where that is refused)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def create_folder(results: Path, name: str) -> tuple[str, Path]:
    """Create a fresh results/<run-id>; ids sort by time. Raises UserError when it cannot be written."""
    stem = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}"
    for run_id in (stem, *(f"{stem}-{number}" for number in range(2, 100))):
        try:
            (results / run_id / "logs").mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"the results folder {results} cannot be written: {error.strerror}") from error
        return run_id, results / run_id
    raise UserError(f"the results folder {results} has 99 runs of this very second")


@contextmanager
def raise_on_signals() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM raise Interrupted within the block, and restore the handlers after it. The yielded
    function raises it once more if it was lost: Python lets no exception out of a finaliser, nor out of a function
    called around a fork."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise Interrupted(number)

    def again() -> None:
        if received:
            raise Interrupted(received[0])

    hook = sys.unraisablehook

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            hook(unraisable)

    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, interrupt)
    sys.unraisablehook = lost
    try:
        yield again
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def apply_overrides(
    experiment: Experiment,
    number: int | None,
    duration_s: float | None,
    seed: int | None,
    precision: float | None = None,
) -> Experiment:
    """Return the experiment with the options of the command line; None leaves what the file says. `number` is that of
    the blocks."""
    overrides = {"duration_s": duration_s, "precision": precision}
    changed = experiment.with_each(**{key: value for key, value in overrides.items() if value is not None})
    if number is not None:
        changed = blocks.replace_number(changed, number)
    return changed if seed is None else msgspec.structs.replace(changed, seed=seed)

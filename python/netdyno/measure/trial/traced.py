"""Count a server's system calls for a message: a short separate trial under strace, after the measured ones.

Under strace a server is two to ten times slower, so nothing of this is ever a speed: the counts are stored apart from
the trials, in their own table. docs/adr/equal-work.md has the reasons."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from shutil import which
from types import MappingProxyType

import msgspec

from netdyno.kit import quantities
from netdyno.measure.machine import orphans, strace
from netdyno.measure.machine.links.network import NoNetworkError, make_network
from netdyno.measure.machine.process import Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.backend import NoBackendError, start_backend
from netdyno.measure.trial.context import TrialContext, ignore_progress
from netdyno.measure.trial.prepared import load_program, log_path
from netdyno.measure.trial.serving import build_networked_command, wait_ready
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant, stands_already
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import middle
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.transports import find_transport
from netdyno.model.trial import Trace, Traced
from netdyno.question import plan
from netdyno.question.plan import Cell, ContestantsByName

SHARE = 0.1
"""The most that tracing may take of the time of a run's trials."""
WINDOW_S = 0.3
WARMUP_S = 0.1
TIMEOUT_S = 2.0
"""The wait of the load for answers after the window; by then the server is as fast as before."""
FEWEST_MESSAGES = 20
"""The fewest messages to count by: those under way at either end of the window are counted on one side only."""
OVERHEAD_S = 0.3
"""The time beside that: the overhead of any trial, connecting under strace, and parsing some ten thousand calls."""


class TraceTask(msgspec.Struct, frozen=True):
    """One trial to trace, or the `reason` why it is not traced."""

    scenario: Scenario
    contestant: str
    levels: dict[str, type_level]
    reason: str = ""


def plan_tasks(
    experiment: Experiment,
    servers: ContestantsByName,
    clients: ContestantsByName = MappingProxyType({}),
    trace: Trace = "auto",
) -> tuple[TraceTask, ...]:
    """Return the traces of a run: each contestant of a scenario at its middle combination, or none of them, for counts
    are there to be compared. Pure."""
    if trace == "never":
        return ()
    left_s = SHARE * plan.estimate_seconds(experiment, servers, clients) if trace == "auto" else float("inf")
    planned: list[TraceTask] = []
    for scenario in experiment.scenarios:
        scenario_tasks = _list_tasks(scenario, servers, clients)
        takes_s = estimate_seconds(scenario_tasks)
        if takes_s <= left_s:
            left_s -= takes_s
        else:
            reason = f"tracing may take {SHARE:.0%} of a run's time, and this would be more (--trace always)"
            scenario_tasks = [
                task if task.reason else msgspec.structs.replace(task, reason=reason) for task in scenario_tasks
            ]
        planned += scenario_tasks
    return tuple(planned)


def _list_tasks(scenario: Scenario, servers: ContestantsByName, clients: ContestantsByName) -> list[TraceTask]:
    levels = middle(scenario)
    return [
        TraceTask(
            scenario,
            name,
            levels,
            # Its other users must not be slowed down, and it may be on another host.
            "an already running server is not traced"
            if stands_already(servers[name])
            else plan.explain_skip(servers[name], scenario, levels, clients),
        )
        for name in scenario.contestants
    ]


def select_missing(planned: Sequence[TraceTask], done: Sequence[Traced]) -> tuple[TraceTask, ...]:
    """Return the tasks of a resumed run without a stored result. Pure."""
    known = {(traced.scenario, traced.contestant) for traced in done}
    return tuple(task for task in planned if (task.scenario.name, task.contestant) not in known)


def estimate_seconds(planned: Sequence[TraceTask]) -> float:
    """Return the expected length of all tasks. Pure."""
    return sum(
        plan.estimate_trial_seconds(shorten(settings(task.scenario, task.levels))) + OVERHEAD_S
        for task in planned
        if not task.reason
    )


def count_tasks(planned: Sequence[TraceTask]) -> int:
    """Return how many are traced. Pure."""
    return sum(not task.reason for task in planned)


def trace_task(task: TraceTask, contestant: Contestant, context: TrialContext) -> Traced:
    """Trace a server in one task. Raises only KeyboardInterrupt and faults of the harness itself."""
    load_settings = shorten(settings(task.scenario, task.levels))
    context = context.adapt_to_cell(load_settings)
    cell = Cell(block=0, position=0, scenario=task.scenario.name, contestant=task.contestant, levels=task.levels)
    base = Traced(scenario=cell.scenario, contestant=cell.contestant, levels=cell.levels)
    tool = which(strace.NAME)
    reason = task.reason or context.bad_links.get(load_settings.link_words, "")
    if not reason and tool is None:
        reason = "strace is not installed (package strace)"
    if reason or tool is None:
        return msgspec.structs.replace(base, reason=reason)
    path = log_path(cell)
    log = TrialLog(context.folder / path)
    base = msgspec.structs.replace(base, log=str(path))
    try:
        return _run(base, cell, load_settings, contestant, tool, context, log)
    except (NoNetworkError, NoBackendError, TrialError, strace.UnreadableTraceError) as failure:
        log.note(f"not traced: {failure}")
        return msgspec.structs.replace(base, reason=str(failure))


def _run(
    base: Traced,
    cell: Cell,
    load_settings: Settings,
    contestant: Contestant,
    tool: str,
    context: TrialContext,
    log: TrialLog,
) -> Traced:
    quiet = msgspec.structs.replace(context, progress=ignore_progress)
    trace_file = log.path.with_suffix(".trace")
    try:
        with (
            make_network(
                find_transport(contestant),
                load_settings,
                context.pinning,
                log,
                seed=context.seed,
                given=context.network,
            ) as network,
            start_backend(load_settings, network, context, log) as backend,
            log.section(
                "server",
                command := build_networked_command(contestant, load_settings, network, context, backend),
            ) as output,
            orphans.end(),
            Process(command, context.pinning.server, output, talks=True, traceable=True) as server,
        ):
            ready = wait_ready(server, server.lines(), context, contestant, network)
            with strace.attach_tracer(tool, ready.pid, context.pinning.server, trace_file, log) as tracer:
                window = TracedWindow(ends=tracer.terminate)
                program, command = load_program(cell, load_settings, contestant, ready, context)
                load = generate.measure(program, [*network.load, *command], load_settings, server, window, quiet, log)
                strace.let_go(tracer)
        start_s, end_s = _read_window(load)
        try:
            with trace_file.open(encoding="ascii", errors="replace") as lines:
                counted, threads = strace.count(strace.parse_calls(lines), start_s, end_s)
        except FileNotFoundError as error:
            raise TrialError(f"the trace is gone: {trace_file}") from error
    finally:
        trace_file.unlink(missing_ok=True)
    messages = load.requests.completed
    if messages < FEWEST_MESSAGES:
        window_words = quantities.duration(1e9 * (end_s - start_s))
        raise TrialError(
            f"{quantities.plural(messages, 'message')} in {window_words} under strace are too few to count by"
        )
    return msgspec.structs.replace(base, window_s=end_s - start_s, messages=messages, threads=threads, calls=counted)


def _read_window(load: LoadResult) -> tuple[float, float]:
    """Return the window's beginning and end by the wall clock, which is strace's: as the load kept them, for the events
    that announce them are read when the harness gets a core. Raises TrialError where the load began no window here."""
    if load.began_ns == 0:
        raise TrialError("the load program does not state when its window began on this machine's clock")
    start_s = load.began_ns / 1e9 + time.time() - time.monotonic()
    return start_s, start_s + load.plan.duration_s


class TracedWindow(generate.LoadListener):
    """The window as its events announce it, by the wall clock. `begins` and `ends` are called at them: with the end a
    tracer has to go, so that the server answers the rest at its own speed."""

    def __init__(self, ends: Callable[[], None], begins: Callable[[], None] = lambda: None) -> None:
        self._begins = begins
        self._ends = ends
        self._start_s: float | None = None
        self._end_s: float | None = None

    def window_start(self) -> None:
        self._start_s = time.time()
        self._begins()

    def window_end(self) -> None:
        self._end_s = time.time()
        self._ends()

    def generator_ended(self) -> None:
        """End the window at the latest now (window.Watch.generator_ended)."""
        if self._end_s is None:
            self.window_end()

    def read_bounds(self) -> tuple[float, float]:
        """Return its beginning and its end. Raises TrialError when the load announced no window."""
        if self._start_s is None or self._end_s is None:
            raise TrialError("the load program did not announce its window on --events-fd")
        return self._start_s, self._end_s


def shorten(load_settings: Settings) -> Settings:
    """Shorten a load to a moment: the work for a message shows in less than a second."""
    return msgspec.structs.replace(
        load_settings,
        warmup_s=min(load_settings.warmup_s, WARMUP_S),
        duration_s=min(load_settings.duration_s, WINDOW_S),
        timeout_s=min(load_settings.timeout_s, TIMEOUT_S),
        burst_rate=None,
    )

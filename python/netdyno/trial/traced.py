"""What a server asks of the kernel for a message: a short trial of its own under strace, after the measured ones.

Under strace a server is two to ten times slower, so nothing of this is ever a speed: the counts are stored apart from
the trials, in their own table. docs/adr/equal-work.md says why it is done like this."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from netdyno.base import quantities
from netdyno.experiment import plan
from netdyno.experiment.plan import Cell, Named
from netdyno.machine import orphans, server_proc, strace
from netdyno.machine.links.network import Network, NoNetworkError, Place, network_for
from netdyno.machine.pinning import server_cores
from netdyno.machine.process import Process, TrialError
from netdyno.machine.trial_log import TrialLog
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant, stands_already
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import middle
from netdyno.model.options import Settings, settings
from netdyno.model.transports import of as transport_of
from netdyno.model.trial import Trace, Traced
from netdyno.trial import load as generate
from netdyno.trial.command import server_command
from netdyno.trial.setup import Bench
from netdyno.trial.trial import load_program, log_path, wait_ready

SHARE = 0.1
"""Of the time that the trials of a run take, the most that goes into tracing."""
WINDOW_S = 0.3
WARMUP_S = 0.1
TIMEOUT_S = 2.0
"""How long the load waits for answers after the window; by then the server is as fast again as it was."""
FEWEST_MESSAGES = 20
"""What was under way as the window began or ended is counted on one side only: of fewer, too large a part."""
OVERHEAD_S = 0.3
"""What it takes beside that: what any trial takes, connecting under strace, and to understand some ten thousand
calls."""


class Task(NamedTuple):
    """One trial to trace; `reason` says why it is not done."""

    scenario: Scenario
    contestant: str
    levels: dict[str, type_level]
    reason: str = ""


def tasks(
    experiment: Experiment, servers: Named, clients: Named = MappingProxyType({}), trace: Trace = "auto"
) -> tuple[Task, ...]:
    """What is traced of a run: each contestant of a scenario at its one combination, or none of them, for counts are
    there to be compared. Pure."""
    if trace == "never":
        return ()
    left_s = SHARE * plan.estimate_seconds(experiment, servers, clients) if trace == "auto" else float("inf")
    found: list[Task] = []
    for scenario in experiment.scenarios:
        some = _of_scenario(scenario, servers, clients)
        takes_s = seconds(some)
        if takes_s <= left_s:
            left_s -= takes_s
        else:
            reason = f"tracing may take {SHARE:.0%} of a run's time, and this would be more (--trace always)"
            some = [one if one.reason else one._replace(reason=reason) for one in some]
        found += some
    return tuple(found)


def _of_scenario(scenario: Scenario, servers: Named, clients: Named) -> list[Task]:
    levels = middle(scenario)
    return [
        Task(scenario, name, levels, _why_not(servers[name]) or plan.why_skip(servers[name], scenario, levels, clients))
        for name in scenario.contestants
    ]


def _why_not(contestant: Contestant) -> str:
    """Nobody has said that a server may be held up which others perhaps use, and it may be elsewhere."""
    return "an already running server is not traced" if stands_already(contestant) else ""


def missing(some: Sequence[Task], done: Sequence[Traced]) -> tuple[Task, ...]:
    """Those that nothing is stored of yet, of a run that is gone on with. Pure."""
    known = {(one.scenario, one.contestant) for one in done}
    return tuple(one for one in some if (one.scenario.name, one.contestant) not in known)


def seconds(some: Sequence[Task]) -> float:
    """The expected length of all of them. Pure."""
    return sum(
        plan.trial_seconds(_short(settings(one.scenario, one.levels))) + OVERHEAD_S for one in some if not one.reason
    )


def announcement(some: Sequence[Task]) -> str:
    """What is about to happen, empty where nothing is."""
    count = sum(not one.reason for one in some)
    if not count:
        return ""
    return (
        f"tracing system calls in {quantities.plural(count, 'short trial')} of their own, about {seconds(some):.0f} s"
    )


def trace(some: Sequence[Task], servers: Mapping[str, Contestant], bench: Bench) -> Iterator[Traced]:
    """Do them one after the other. Never raises but for KeyboardInterrupt and faults of the harness itself."""
    for task in some:
        yield _traced(task, servers[task.contestant], bench)


def _traced(task: Task, contestant: Contestant, bench: Bench) -> Traced:
    wanted = _short(settings(task.scenario, task.levels))
    bench = bench.for_cell(wanted)
    cell = Cell(block=0, position=0, scenario=task.scenario.name, contestant=task.contestant, levels=task.levels)
    base = Traced(scenario=cell.scenario, contestant=cell.contestant, levels=cell.levels)
    tool = strace.program()
    reason = task.reason or bench.bad_links.get(wanted.link_words, "")
    if not reason and tool is None:
        reason = "strace is not installed (package strace)"
    if reason or tool is None:
        return msgspec.structs.replace(base, reason=reason)
    path = log_path(cell)
    log = TrialLog(bench.folder / path)
    base = msgspec.structs.replace(base, log=str(path))
    try:
        place = Place(bench.pinning, log, bench.seed, bench.network)
        with network_for(transport_of(contestant), wanted, place) as network:
            return _run(base, _Trial(cell, wanted, contestant, network, tool), bench, log)
    except (NoNetworkError, TrialError, strace.UnreadableTraceError) as failure:
        log.note(f"not traced: {failure}")
        return msgspec.structs.replace(base, reason=str(failure))


class _Trial(NamedTuple):
    cell: Cell
    wanted: Settings
    contestant: Contestant
    network: Network
    tool: str


def _expect_one_process(contestant: Contestant, pid: int) -> None:
    if contestant.own is not None and len(server_proc.family(pid)) > 1:
        raise TrialError("it has several processes, of which strace would follow the first only")


def _run(base: Traced, trial: _Trial, bench: Bench, log: TrialLog) -> Traced:
    wanted, network = trial.wanted, trial.network
    quiet = bench._replace(progress=lambda _completed, _seconds: None)
    trace_file = log.path.with_suffix(".trace")
    cores = server_cores(bench.pinning)
    command = [*network.server, *server_command(trial.contestant, wanted, network.address, cores=cores)]
    try:
        with (
            log.section("server", command) as output,
            orphans.end(),
            Process(command, bench.pinning.server, output, talks=True, traceable=True) as server,
        ):
            ready = wait_ready(server, server.lines(), bench, trial.contestant, network)
            _expect_one_process(trial.contestant, ready.pid)
            with strace.attached(trial.tool, ready.pid, bench.pinning.server, trace_file, log) as tracer:
                window = Window(ends=tracer.terminate)
                program, command = load_program(trial.cell, wanted, ready, bench)
                load = generate.measure(program, [*network.load, *command], wanted, server, window, quiet, log)
                _expect_one_process(trial.contestant, ready.pid)  # it may accept before it forks those who serve
                strace.let_go(tracer)
        start_s, end_s = window.bounds()
        try:
            with trace_file.open(encoding="ascii", errors="replace") as lines:
                counted, threads = strace.count(strace.calls(lines), start_s, end_s)
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


class Window:
    """When the window was, by the clock on the wall, which is strace's too. Who looks at the server is told: with its
    end the tracer has to go, so that what is still under way is answered at the server's own speed."""

    def __init__(self, ends: Callable[[], None], begins: Callable[[], None] = lambda: None) -> None:
        self._begins = begins
        self._ends = ends
        self._start_s: float | None = None
        self._end_s: float | None = None

    def connected(self) -> None:
        """Nothing: the window is what counts."""

    def window_start(self) -> None:
        self._start_s = time.time()
        self._begins()

    def window_end(self) -> None:
        self._end_s = time.time()
        self._ends()

    def generator_ended(self) -> None:
        """The window is over at the latest now (watch.Watch.generator_ended)."""
        if self._end_s is None:
            self.window_end()

    def maybe_take(self) -> None:
        """Nothing is due within the window."""

    def next_wait(self, deadline: float) -> float:
        return max(0.0, deadline - time.monotonic())

    def bounds(self) -> tuple[float, float]:
        """Its beginning and its end. Raises TrialError when the load announced no window."""
        if self._start_s is None or self._end_s is None:
            raise TrialError("the load did not announce its window on --events-fd")
        return self._start_s, self._end_s


def _short(wanted: Settings) -> Settings:
    """The same load for a moment: how much work a message is does not take a second to see."""
    return msgspec.structs.replace(
        wanted,
        warmup_s=min(wanted.warmup_s, WARMUP_S),
        duration_s=min(wanted.duration_s, WINDOW_S),
        timeout_s=min(wanted.timeout_s, TIMEOUT_S),
    )

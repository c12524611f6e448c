"""Measure how long a server with a JIT takes to get its final speed: a short separate trial before the measured ones,
without warm-up, in which nothing else is measured. docs/adr/warm-up.md says why, and why others have none."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.settled import settled_from
from netdyno.measure.machine import control_group, cpu_share, jit, orphans, server_proc, server_processes
from netdyno.measure.machine.control_group import NoControlGroupError
from netdyno.measure.machine.links.network import Network, NoNetworkError, make_network
from netdyno.measure.machine.process import Process, TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.backend import NoBackendError, start_backend
from netdyno.measure.trial.command import adapt_to_server, close_loop
from netdyno.measure.trial.context import Key, TrialContext, key
from netdyno.measure.trial.prepared import PreparedTrial, find_limits, load_program, log_path
from netdyno.measure.trial.serving import ReadyLine, build_networked_command, wait_ready
from netdyno.measure.trial.window import Watch
from netdyno.model import transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.trial import Trial, Warmup
from netdyno.question import blocks, plan
from netdyno.question.contestants import own
from netdyno.question.plan import Cell, CellKind, ContestantsByName

LIMIT_S = 10.0
"""A server that is not steady by then keeps its compiler in its figures."""
SLICE_S = 0.5
"""The interval of a load's progress lines (protocol/load-result.md)."""
REST_S = 2.0
"""The time for which the cores must have been the harness's own since the cost settled: where others take half of each
core, a compiler needs twice as long, and its middle looks settled."""
MARGIN = 1.25
"""The factor on a measured warm-up, beside a slice: the next process compiles the same at other moments, and late ones
vary most."""
AHEAD_OF_TIME = ("cmake", "cargo", "erlang", "go")
"""Kinds of contestants compiled before they start, or as they do (Erlang). All others are observed as they run."""


BEFORE_ALL = "000-000-"
"""The beginning of a log's name outside the blocks."""


class NoJitError(Exception):
    """The server makes no machine code while it runs, as far as can be observed."""


class SettledError(Exception):
    """The cost of a message has settled."""


def collect_known(trials: Iterable[Trial]) -> dict[Key, Warmup | None]:
    """Return the warm-ups of a resumed run's trials that ran. Pure."""
    return {key(trial): trial.warmup for trial in trials if trial.status != "skipped"}


def select_kinds(
    cells: Iterable[Cell],
    scenarios: Mapping[str, Scenario],
    servers: ContestantsByName,
    clients: ContestantsByName,
    done: Collection[Key],
) -> tuple[CellKind, ...]:
    """Return the kinds to measure: each that may run and be ranked, once, if its warm-up is not known. Pure."""
    candidates = {
        key(cell): CellKind(cell.scenario, cell.contestant, cell.levels)
        for cell in cells
        if servers[cell.contestant].manifest.kind not in AHEAD_OF_TIME
        and key(cell) not in done
        and blocks.find_most(scenarios[cell.scenario]) >= FEWEST_BLOCKS
    }
    return tuple(
        kind
        for kind in candidates.values()
        if not plan.explain_skip(servers[kind.contestant], scenarios[kind.scenario], kind.levels, clients)
    )


def measure(
    selected: Iterable[CellKind], scenarios: Mapping[str, Scenario], servers: ContestantsByName, context: TrialContext
) -> Iterator[tuple[CellKind, Warmup]]:
    """Measure the warm-up of each kind with a JIT. A server without one is started once, and ended at once; where one
    fails, its trials will say so. Raises only KeyboardInterrupt and faults of the harness itself."""
    without: set[str] = set()
    for kind in selected:
        if kind.contestant in without:
            continue
        try:
            warmup = _measure_alone(kind, scenarios[kind.scenario], servers[kind.contestant], context)
        except NoJitError:
            without.add(kind.contestant)
            continue
        if warmup is not None:
            yield kind, warmup


def carry_over(cell: Cell, context: TrialContext) -> TrialContext:
    """Add a warm-up for a level that was not planned when they were measured: the longest of the same contestant in the
    same scenario. Pure."""
    known = [warmup for (*names, _), warmup in context.warmups.items() if names == [cell.scenario, cell.contestant]]
    if not known or key(cell) in context.warmups:
        return context
    longest = max(known, key=lambda warmup: warmup.seconds)
    return msgspec.structs.replace(context, warmups={**context.warmups, key(cell): longest})


def estimate_added_s(cells: Iterable[Cell], scenarios: Mapping[str, Scenario], warmups: Mapping[Key, Warmup]) -> float:
    """Return the seconds that the measured warm-ups add to these cells. Pure."""
    return sum(
        max(0.0, warmup.of_load_s - settings(scenarios[cell.scenario], cell.levels).warmup_s)
        + (warmup.seconds if warmup.closed else 0.0)
        for cell in cells
        if (warmup := warmups.get(key(cell))) is not None
    )


def needs_closed_loop(scenario: Scenario, settings: Settings, contestant: Contestant, context: TrialContext) -> bool:
    """Whether a warm-up is a closed loop before the trial's own load: an open loop of single requests has too few of
    them to show a JIT what to compile. Not where it would change what is measured or what the server stores, where the
    generator has none, and where it would be slower. Pure."""
    return (
        settings.arrivals != "closed"
        and settings.client == GENERATOR
        and settings.workload != "chat"
        and settings.chunks is None
        and settings.requests_per_connection is None
        and settings.connect_rate != "when-due"
        and not settings.may_change_state
        and not scenario.measures_start
        and "memory" not in (scenario.metric, *scenario.then_by)
        and not transports.find_transport(contestant).messages
        and not stands_already(contestant)
        and not context.is_load_elsewhere
        and _is_faster_closed(settings)
    )


def _is_faster_closed(settings: Settings) -> bool:
    """Whether a closed loop sends more messages than the rate, if a server needs no time of its own."""
    rate_hz = settings.rate or (settings.rate_per_connection or 0) * settings.speakers
    return rate_hz * (settings.service_time_in_all_s + 2 * settings.link_delay_s) < settings.speakers


def warm_up_closed(
    prepared: PreparedTrial, ready: ReadyLine, server: Process, watch: Watch, network: Network
) -> tuple[LoadResult, ...]:
    """Send the requests of a trial in a closed loop for as long as its warm-up says; return their result, or nothing
    where it says nothing. Raises TrialError where they failed."""
    warmup = prepared.base.warmup
    if warmup is None or not warmup.closed:
        return ()
    context = prepared.context
    closed = close_loop(prepared.settings, warmup.seconds)
    _, command = load_program(prepared.cell, closed, prepared.contestant, ready, context)
    limit_s = warmup.seconds + generate.connect_limit_s(closed)
    result, why = generate.check([*network.load, *command], closed, context, prepared.log, lasts_s=limit_s)
    if result is None or result.messages.received == 0:
        reason = why or "no right reply"
        raise generate.name_end(TrialError(f"the closed loop before its load failed: {reason}"), server)
    watch.warmed_up()
    return (result,)


def _measure_alone(kind: CellKind, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Warmup | None:
    """Measure one kind; None where that fails. Raises NoJitError."""
    # The load reports its progress within its window only, and nothing at its end.
    of_trial = adapt_to_server(settings(scenario, kind.levels), contestant)
    is_closed = needs_closed_loop(scenario, of_trial, contestant, context)
    lasts_s = LIMIT_S + SLICE_S
    load_settings = (
        close_loop(of_trial, lasts_s)
        if is_closed
        else msgspec.structs.replace(of_trial, warmup_s=0.0, duration_s=lasts_s, burst_rate=None)
    )
    if load_settings.link_words in context.bad_links:
        return None
    context = context.adapt_to_cell(load_settings)
    cell = Cell(block=0, position=0, **kind._asdict())
    path = log_path(cell)
    log = TrialLog(context.folder / path.with_name(f"warm-up-{path.name[len(BEFORE_ALL) :]}"))
    try:
        transport = transports.find_transport(contestant)
        with make_network(
            transport, load_settings, context.pinning, log, seed=context.seed, given=context.network
        ) as network:
            warmup = _observe_warmup(cell, load_settings, contestant, network, context, log)
    except (NoNetworkError, NoControlGroupError, NoBackendError, TrialError) as failure:
        log.note(f"not measured: {failure}")
        return None
    log.note(f"warm-up: {warmup}")
    return warmup and msgspec.structs.replace(warmup, closed=is_closed)


def _observe_warmup(
    cell: Cell, load_settings: Settings, contestant: Contestant, network: Network, context: TrialContext, log: TrialLog
) -> Warmup | None:
    with (
        control_group.make_group(find_limits(load_settings)) as group,
        start_backend(load_settings, network, context, log) as backend,
        log.section(
            "server",
            command := own.insert_entry(
                build_networked_command(contestant, load_settings, network, context, backend), group.entry
            ),
        ) as output,
        orphans.end(),
        Process(command, context.pinning.server, output, talks=True) as server,
    ):
        ready = wait_ready(server, server.lines(), context, contestant, network)
        pids = server_proc.find_family(ready.pid)
        if not ready.observed or not any(map(jit.compiles, pids)):
            raise NoJitError
        costs = Costs(lambda: sum(server_processes.read_own_cpu_s(pids).values()), _ForeignSeconds(pids))
        program, command = load_program(cell, load_settings, contestant, ready, context)
        with suppress(SettledError):
            generate.measure(
                program,
                [*network.load, *command],
                load_settings,
                server,
                costs,
                msgspec.structs.replace(context, progress=costs.progress),
                log,
            )
        return costs.warmup()


class _ForeignSeconds:
    """The time that the hypervisor and foreign programs took of a core, on average, since the first call."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._own: tuple[int, ...] = ()
        self._cores = os.sched_getaffinity(0)  # within the load this process may have fewer (pinning.keep_punctual)
        self._first: cpu_share.MachineSnapshot | None = None

    def __call__(self) -> float:
        if self._first is None:
            # A server at an address is no child of the harness.
            self._own = tuple({*cpu_share.find_own_processes(), *self._pids})
            self._first = cpu_share.take(self._own)
            return 0.0
        observed = cpu_share.compute_observation(self._first, cpu_share.take(self._own), self._cores)
        return 0.0 if observed is None else (observed.steal_s + observed.foreign_s) / observed.cores


class Costs(generate.LoadListener):
    """The server's cost of a message, slice by slice, the work of its JIT included."""

    def __init__(self, cpu_s: Callable[[], float], others_s: Callable[[], float] = lambda: 0.0) -> None:
        """`cpu_s`: the CPU of the server so far, `others_s`: the time that others took of a core."""
        self._cpu_s = cpu_s
        self._others_s = others_s
        self._last_s = 0.0
        self._last_others_s = 0.0
        self._had_s: list[float] = []
        """The time that others left of each slice."""
        self._completed = 0
        self._began_s: list[float] = []
        self._costs: list[float] = []
        self._now_s = 0.0

    def window_start(self) -> None:
        self._last_s, self._last_others_s = self._cpu_s(), self._others_s()

    def progress(self, completed: int, seconds: float) -> None:
        """End a slice, unless nothing was answered in it: then it goes on. Raises SettledError."""
        if completed <= self._completed:
            return
        cpu_s, others_s = self._cpu_s(), self._others_s()
        self._had_s.append(seconds - self._now_s - (others_s - self._last_others_s))
        self._began_s.append(self._now_s)
        self._costs.append((cpu_s - self._last_s) / (completed - self._completed))
        self._last_s, self._last_others_s = cpu_s, others_s
        self._completed, self._now_s = completed, seconds
        first = settled_from(self._costs)
        if first is not None and sum(self._had_s[first:]) >= REST_S:
            raise SettledError

    def warmup(self) -> Warmup | None:
        """Return the measured warm-up; None where the load reported no progress."""
        if not self._costs:
            return None
        first = settled_from(self._costs)
        if first is None:
            return Warmup(seconds=LIMIT_S, measured_s=LIMIT_S, steady=False)
        measured_s = self._began_s[first]
        return Warmup(seconds=min(LIMIT_S, MARGIN * measured_s + SLICE_S), measured_s=measured_s, steady=True)

"""One trial: a fresh server, a generator against it, the kernel's readings meanwhile, and a verdict.

Every failure is a result with its reason and its log; only an interruption by the user leaves this module."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import msgspec

from netdyno.kit import quantities, url
from netdyno.kit.units import utc_now
from netdyno.measure.audits import of_trial as audits
from netdyno.measure.machine import control_group, jit, orphans, server_proc, server_processes, socket_holders
from netdyno.measure.machine.control_group import ControlGroup, Limits, NoControlGroupError
from netdyno.measure.machine.links.network import Network, NetworkNeeds, NoNetworkError, derive_terms, make_network
from netdyno.measure.machine.pinning import apply_placement, count_generator_cores, count_server_cores
from netdyno.measure.machine.process import (
    KILLED,
    UNREADABLE,
    GoneServerError,
    KilledError,
    LateServerError,
    LineReader,
    Process,
    ServerError,
    TrialError,
    describe_exit,
)
from netdyno.measure.machine.server_processes import Origin
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import client_processes
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.backend import Backend, NoBackendError, find_url, start_backend
from netdyno.measure.trial.command import (
    adapt_to_server,
    build_client_command,
    build_listen_url,
    build_load_command,
    build_server_command,
    check_command,
    choose_program,
    find_target,
    may_reconnect,
)
from netdyno.measure.trial.context import TrialContext, key
from netdyno.measure.trial.window import Watch, WindowLostError
from netdyno.model import outcomes, transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, Distribution, LoadResult
from netdyno.model.observation import MachineObservation, Pinning, RelayTotals, ServerObservation, Starting
from netdyno.model.options import Settings, settings
from netdyno.model.server_options import added_options
from netdyno.model.trial import Trial
from netdyno.question.contestants import own
from netdyno.question.plan import Cell, explain_skip

LINGER = "50ms"
"""The time that the load keeps its connections after the last reply: a server with a thread for each is then read
while they are all there."""


FOUND_THERE = "an already running server keeps its own cores"
LONGEST_LOG_NAME = 200
"""Characters, without those of each program's part (NAME_MAX, limits.h); place and block distinguish logs."""
COLD_WARMUP_S = 1.0
"""Five times as long as the first reply of a JVM takes at rest; of what runs as machine code from the start, none needs
it (docs/adr/warm-up.md)."""
LEFT_BEHIND = "left_behind"
"""The key in the totals of a server's stand-in for the number of programs that it had to end."""
CLOSING_S = 0.2
"""The time in which a server may close none of the load's connections before the closing check runs all the same."""


class TrialMeasurements(msgspec.Struct, frozen=True):
    """The measurements of a trial once its load is over."""

    load: LoadResult
    server: ServerObservation | None
    machine: MachineObservation | None
    kernel: dict[str, int]
    relay: RelayTotals | None
    audits: tuple[Audit, ...]
    ended_by: str = ""
    starting: Starting | None = None


class ReadyLine(msgspec.Struct, frozen=True):
    """The ready line; a server may say more than the contract requires. The stand-in for a server whose process is not
    known gives its own pid here, and is not `observed`."""

    ready: bool
    endpoint: str
    pid: int
    observed: bool = True
    ready_s: float = 0.0
    begun_cpu_s: float = 0.0
    """The time from the start of its program, and the CPU that its process had used before: of a stand-in's server by
    its stand-in."""


def record_skip(cell: Cell, reason: str) -> Trial:
    """The trial of a cell that is not run."""
    return Trial(
        block=cell.block,
        position=cell.position,
        scenario=cell.scenario,
        contestant=cell.contestant,
        levels=cell.levels,
        status="skipped",
        reason=reason,
        started_at=utc_now(),
        seconds=0.0,
        twin=cell.twin,
        attempt=cell.attempt,
    )


class PreparedTrial(msgspec.Struct, frozen=True):
    """A cell that can be run: its settings, its server, and the trial as far as it is known before."""

    cell: Cell
    settings: Settings
    contestant: Contestant
    context: TrialContext
    base: Trial
    log: TrialLog
    measures_start: bool = False


def prepare(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> PreparedTrial | Trial:
    """Return what a cell needs, or its trial where it is skipped."""
    base = record_skip(cell, explain_skip(contestant, scenario, cell.levels, context.clients))
    if base.reason:
        return base
    path = log_path(cell)
    warmup = context.warmups.get(key(cell))
    cell_settings = adapt_to_server(settings(scenario, cell.levels, warmup.seconds if warmup else 0.0), contestant)
    available = count_server_cores(apply_placement(context.pinning, cell_settings.placement))
    if isinstance(cell_settings.server_cores, int) and cell_settings.server_cores > available:
        return record_skip(
            cell, f"server-cores = {cell_settings.server_cores}: the server has {quantities.plural(available, 'core')}"
        )
    if cell_settings.other_build and not (program := Path(choose_program(contestant, cell_settings)[0])).is_file():
        return record_skip(
            cell, f"{program} is missing: a run on one machine builds it, unless NETDYNO_BUILD names the programs"
        )
    if stands_already(contestant) and any(find_limits(cell_settings)):
        return record_skip(cell, "an already running server keeps the limits that it has")
    context = context.adapt_to_cell(cell_settings)
    added = added_options(contestant, cell_settings, cores=count_server_cores(context.pinning))
    base = msgspec.structs.replace(
        base,
        added=added,
        pinning=_choose_pinning(contestant, context),
        log=str(path),
        warmup=warmup,
        neighbour=context.neighbour,
    )
    measures_start = scenario.measures_start and not stands_already(contestant)
    return PreparedTrial(
        cell, cell_settings, contestant, context, base, TrialLog(context.folder / path), measures_start
    )


def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, context: TrialContext) -> Trial:
    """Run one cell and judge it. Never raises but for KeyboardInterrupt and faults of the harness itself."""
    started = time.monotonic()
    prepared = prepare(cell, scenario, contestant, context)
    if isinstance(prepared, Trial):
        return prepared
    cell_settings, context = prepared.settings, prepared.context
    base, log = prepared.base, prepared.log
    try:
        if reason := context.bad_links.get(cell_settings.link_words):
            raise NoNetworkError(reason)
        place = NetworkNeeds(context.pinning, log, derive_seed(cell, context), context.network)
        with make_network(transports.of(contestant), cell_settings, place) as network:
            measured = _choose_measurement(cell_settings)(prepared, network)
    except (NoNetworkError, NoControlGroupError, NoBackendError) as missing:
        log.note(f"skipped: {missing}")
        return msgspec.structs.replace(base, reason=str(missing))
    except WindowLostError as lost:
        judged = audits.foreign_load(lost.machine, context.foreign_load, neighbour=context.neighbour)
        return record_loss(prepared, lost.machine, judged, time.monotonic() - started)
    except TrialError as failure:
        return fail(prepared, failure, time.monotonic() - started)
    return conclude(prepared, measured, time.monotonic() - started)


def _choose_measurement(cell_settings: Settings) -> Callable[[PreparedTrial, Network], TrialMeasurements]:
    """Return the way to measure a cell. Clients that never read have a module of their own, which needs this one."""
    if not cell_settings.is_write_only:
        return _measure
    from netdyno.measure.trial.write_only import measure_writes

    return measure_writes


def record_loss(
    prepared: PreparedTrial, machine: MachineObservation | None, judged: tuple[Audit, ...], seconds: float
) -> Trial:
    """Return the trial that lost its cores to other programs, and is to be retried."""
    status, reason = outcomes.verdict(judged)
    prepared.log.note(f"ended early: {reason}")
    return msgspec.structs.replace(
        prepared.base, status=status, reason=reason, seconds=seconds, machine=machine, audits=judged
    )


def fail(prepared: PreparedTrial, failure: TrialError, seconds: float) -> Trial:
    """Return the trial that could not be completed."""
    prepared.log.note(f"failed: {failure}")
    judged = (_judge_end(failure),) if isinstance(failure, ServerError) else ()
    return msgspec.structs.replace(prepared.base, status="failed", reason=str(failure), seconds=seconds, audits=judged)


def _judge_end(failure: ServerError) -> Audit:
    """Return the audit of a server that ended, or was never ready."""
    if isinstance(failure, KilledError):
        return audits.killed(str(failure))
    return audits.ready(str(failure)) if isinstance(failure, LateServerError) else audits.died(str(failure))


def conclude(prepared: PreparedTrial, measured: TrialMeasurements, seconds: float) -> Trial:
    """Return the trial with what was measured, as its audits judge it."""
    status, reason = outcomes.verdict(measured.audits)
    if reason:
        prepared.log.note(f"invalid: {reason}")
    return msgspec.structs.replace(
        prepared.base, status=status, reason=reason, seconds=seconds, **msgspec.structs.asdict(measured)
    )


def _choose_pinning(contestant: Contestant, context: TrialContext) -> Pinning:
    """Return the cores that bound a trial of the contestant."""
    if not stands_already(contestant):
        return context.pinning
    return msgspec.structs.replace(context.pinning, server=(), note=FOUND_THERE)


def log_path(cell: Cell) -> Path:
    """The log of a trial, relative to the folder of its run."""
    levels = "".join(f"-{name}-{level}" for name, level in cell.levels.items())
    again = f"-{cell.attempt}" if cell.attempt > 1 else ""
    name = f"{cell.block:03}-{cell.position:03}-{cell.scenario}{levels}-{cell.contestant}"
    name = name.encode("ascii", "replace").decode()[:LONGEST_LOG_NAME]
    return Path("logs") / re.sub(r"[^\w.,=+-]", "_", f"{name}{again}.log")


def _measure(prepared: PreparedTrial, network: Network) -> TrialMeasurements:
    cell, cell_settings = prepared.cell, prepared.settings
    contestant, context = prepared.contestant, prepared.context
    log = prepared.log
    with (
        control_group.make_group(find_limits(cell_settings)) as group,
        _explain_kill(group, cell_settings),
        start_backend(cell_settings, network, context, log) as backend,
        log.section(
            "server",
            command := own.insert_entry(
                build_networked_command(contestant, cell_settings, network, context, backend), group.entry
            ),
        ) as output,
        orphans.end(lambda names: log.note(audits.left_behind(names).detail)) as left_programs,
        start_server(command, contestant, context, output, kept=not prepared.measures_start) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, context, contestant, network)
        used_s = _read_used_s(ready) if prepared.measures_start else 0.0
        prepared = lengthen_warmup(prepared, ready)
        cell_settings = prepared.settings
        watch = watch_server(
            prepared,
            ready,
            server,
            network,
            is_lost=partial(
                audits.is_lost,
                window_s=cell_settings.duration_s,
                policy=context.foreign_load,
                paced=network.paced,
                neighbour=context.neighbour,
            ),
            group=group,
        )
        first = _request_first(prepared, ready, network) if prepared.measures_start else None
        program, command = load_program(cell, cell_settings, contestant, ready, context)
        command = [*network.load, *command, "--linger", LINGER]
        load = generate.measure(program, command, cell_settings, server, watch, context, log)
        try:
            closing = check_and_end(prepared, server, lines, ready, watch, network.load)
        except GoneServerError as error:
            raise generate.name_end(error, server) from None
        if closing.ended == describe_exit(KILLED) and group.count_killed():
            closing = msgspec.structs.replace(closing, ended=describe_memory_kill(cell_settings))
        questions = backend.end() if backend else None
    relay = network.relay.end() if network.relay else None
    observed = _find_observation(watch, load, closing)
    machine = watch.machine()
    judged = judge(prepared, ready, load, closing, observed, machine, left_programs, first=first, paced=network.paced)
    if relay:
        judged = (*judged, audits.link(relay, cell_settings.link_delay_s))
    if questions is not None:
        judged = (*judged, audits.backend(questions, _list_loads(load, closing, first)))
    return TrialMeasurements(
        load=load,
        server=observed if ready.observed else None,
        machine=machine,
        kernel=watch.kernel(),
        relay=relay,
        audits=judged,
        starting=_describe_start(ready, used_s, first) if first else None,
    )


def _read_used_s(ready: ReadyLine) -> float:
    """Read the CPU seconds that a server has used since the start of its program."""
    used_s = server_processes.sum_used_s({}, server_processes.read_cpu(server_proc.find_family(ready.pid)))
    return used_s - ready.begun_cpu_s


def _request_first(prepared: PreparedTrial, ready: ReadyLine, network: Network) -> LoadResult:
    """Return the result of the first request to a server. Raises ServerError where it has no right answer."""
    context, settings = prepared.context, prepared.settings
    reconnects = may_reconnect(prepared.contestant, settings)
    command = check_command(context.generator, ready.endpoint, settings, reconnects=reconnects, once=True)
    first, why = generate.check([*network.load, *command], settings, context, prepared.log)
    if first is None or first.latency.response_ns.count == 0:
        raise ServerError(f"the server did not answer its first request{f': {why}' if why else ''}")
    return first


def _describe_start(ready: ReadyLine, used_s: float, first: LoadResult) -> Starting:
    """Return the figures of a start. The time between the ready line and the first connect is the generator's own."""
    answer_s = (first.connect_ns.max + first.latency.response_ns.max) / 1e9
    return Starting(ready_s=ready.ready_s, first_answer_s=ready.ready_s + answer_s, cpu_s=used_s)


def _list_loads(load: LoadResult, closing: ClosingCheck, first: LoadResult | None) -> list[LoadResult]:
    """Return all loads that reached the server."""
    return [result for result in (first, load, closing.check) if result is not None]


def find_limits(settings: Settings) -> Limits:
    """Return the limits of the server's control group in a cell."""
    return Limits(settings.cpu_quota, settings.memory_limit)


@contextmanager
def _explain_kill(group: ControlGroup, settings: Settings) -> Iterator[None]:
    """Charge a server with its end where the kernel killed it at its memory limit: the machine has memory."""
    try:
        yield
    except ServerError as failure:
        if not group.count_killed():
            raise
        raise ServerError(describe_memory_kill(settings)) from failure


def describe_memory_kill(settings: Settings) -> str:
    return f"the kernel killed it at its memory limit of {quantities.memory(settings.memory_limit or 0)}"


def build_networked_command(
    contestant: Contestant,
    settings: Settings,
    network: Network,
    context: TrialContext,
    backend: Backend | None = None,
    *,
    in_front: Sequence[str] = (),
) -> list[str]:
    """Return the command that starts a server in the network of its trial, beside its backend. `in_front`: words
    between the two."""
    server = build_server_command(
        contestant,
        settings,
        network.address,
        cores=count_server_cores(context.pinning),
        backend=find_url(backend),
    )
    return [*network.server, *in_front, *server]


def start_server(
    command: Sequence[str], contestant: Contestant, context: TrialContext, output: IO[bytes], *, kept: bool = True
) -> Process:
    """Start a server whose work is to be charged to it: under a keeper, or its stand-in. Without a keeper, which takes
    longer to start than many a server, what it leaves behind is not charged."""
    return Process(command, context.pinning.server, output, talks=True, kept=kept and not contestant.has_stand_in)


def lengthen_warmup(prepared: PreparedTrial, ready: ReadyLine) -> PreparedTrial:
    """Return the trial with COLD_WARMUP_S where the server compiles as it runs and its own warm-up was not measured, as
    in a run of few blocks: it would be cold for the whole window of a short trial."""
    settings = prepared.settings
    is_cold = prepared.base.warmup is None and settings.warmup_s < COLD_WARMUP_S and jit.compiles(ready.pid)
    if not is_cold:
        return prepared
    longer = msgspec.structs.replace(settings, warmup_s=COLD_WARMUP_S)
    return msgspec.structs.replace(prepared, settings=longer)


def watch_server(
    prepared: PreparedTrial,
    ready: ReadyLine,
    server: Process,
    network: Network,
    *,
    is_lost: Callable[[MachineObservation], bool] = lambda _: False,
    group: ControlGroup | None = None,
) -> Watch:
    """Start to watch a server that is ready."""
    contestant = prepared.contestant
    is_found = stands_already(contestant)
    has_keeper = not is_found and server.pid != ready.pid
    return Watch(
        Origin(ready.pid, keeper=server.pid if has_keeper else 0),
        prepared.settings,
        network.counters,
        endpoint=ready.endpoint if ready.observed else "",
        datagrams=transports.of(contestant).datagrams,
        is_new=not is_found,
        is_lost=is_lost,
        group=group,
    )


class ClosingCheck(msgspec.Struct, frozen=True):
    """The end of a server: its answer to the closing check, or why there was none; how it ended by itself, and where it
    did not, its line of totals and how it ended after SIGTERM. `connected`: the programs that still were when the load
    had left."""

    check: LoadResult | None
    check_error: str
    ended: str
    line: str
    shutdown: str
    connected: tuple[str, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        return read_totals(self.line)


def check_and_end(
    prepared: PreparedTrial,
    server: Process,
    lines: LineReader,
    ready: ReadyLine,
    watch: Watch,
    load_prefix: Sequence[str] = (),
) -> ClosingCheck:
    """Check the server once more after the load has left, and end it."""
    cell_settings, context = prepared.settings, prepared.context
    log = prepared.log
    connected = watch.find_clients()
    await_closes(watch.count_descriptors, watch.descriptors_ready, _estimate_closing_s(cell_settings))
    reconnects = may_reconnect(prepared.contestant, cell_settings)
    command = check_command(context.generator, ready.endpoint, cell_settings, reconnects=reconnects)
    check, check_error = generate.check([*load_prefix, *command], cell_settings, context, log)
    ended = describe_exit(server.exit_code()) if server.has_ended() else ""
    line, shutdown = ("", "") if ended else shut_down(server, lines, context)
    return ClosingCheck(check, check_error, ended, line, shutdown, connected)


def judge(
    prepared: PreparedTrial,
    ready: ReadyLine,
    load: LoadResult,
    closing: ClosingCheck,
    observed: ServerObservation | None,
    machine: MachineObservation | None,
    left_programs: Sequence[str],
    *,
    first: LoadResult | None = None,
    paced: bool = False,
    overruns_s: Sequence[float] = (),
) -> tuple[Audit, ...]:
    """Return the audits of a measured load and of its server. `left_programs`: the names of programs that the server
    left behind. `first`: the result of its first request. `overruns_s`: the time by which each of its slices was too
    long."""
    cell_settings, contestant = prepared.settings, prepared.contestant
    context = prepared.context
    left_by_stand_in = closing.totals.get(LEFT_BEHIND, 0) if contestant.has_stand_in else 0
    judged = [
        *_judge_load(cell_settings, load),
        audits.completed(load),
        audits.killed(closing.ended) if closing.ended == describe_exit(KILLED) else audits.died(closing.ended),
        audits.left_behind(left_programs, left_by_stand_in),
        *([] if closing.ended else [audits.server_alive(closing.check, closing.check_error)]),
        *_judge_observation(observed, load, ready, cell_settings),
        *audits.foreign_load(machine, context.foreign_load, paced=paced, neighbour=context.neighbour),
    ]
    loads = _list_loads(load, closing, first)
    counted = cell_settings.failed_connects == "count"
    totals = {name: value for name, value in closing.totals.items() if name != LEFT_BEHIND}
    judged += audits.strangers(totals, loads, closing.connected, failed_connects=counted)
    if contestant.has_stand_in:
        judged.append(audits.no_totals())
    elif not closing.ended:
        judged.append(audits.server_totals(totals, loads, closing.shutdown, failed_connects=counted))
    reported = observed if ready.observed else None
    cores = _choose_pinning(contestant, context)
    judged += _judge_figures(
        load, reported, cell_settings, cores, load_elsewhere=context.is_load_elsewhere, overruns_s=overruns_s
    )
    return tuple(judged)


def _find_observation(watch: Watch, load: LoadResult, closing: ClosingCheck) -> ServerObservation | None:
    """Read the server's figures of the window; None where the load had lost all connections before it. Raises
    TrialError where nothing explains why no window was announced."""
    if not watch.saw_window and outcomes.has_lost_all_connections(load):
        return None
    return read_observation(watch, closing)


def read_observation(watch: Watch, closing: ClosingCheck) -> ServerObservation:
    """Return the server's readings with its own totals. Raises TrialError where nothing was read."""
    totals = {name: value for name, value in closing.totals.items() if name != LEFT_BEHIND}
    return msgspec.structs.replace(
        watch.observation(totals),
        connections_per_thread=read_connections_per_thread(closing.line),
        tick_lag_ns=read_tick_lag(closing.line),
    )


def _judge_observation(
    observed: ServerObservation | None, load: LoadResult, ready: ReadyLine, cell_settings: Settings
) -> tuple[Audit, ...]:
    """Return the audits of the readings themselves."""
    if observed is None:
        return ()
    if not ready.observed:
        return audits.harness_quiet(observed), audits.unobserved()
    if outcomes.has_lost_all_connections(load):
        return audits.harness_quiet(observed), audits.observed_in_part()
    threads_end = cell_settings.threads_end or load.connections.closed_after_reply > 0
    return (
        audits.harness_quiet(observed),
        audits.observation(observed, cell_settings.duration_s, threads_end=threads_end),
    )


def load_program(
    cell: Cell, cell_settings: Settings, contestant: Contestant, ready: ReadyLine, context: TrialContext
) -> tuple[str, list[str]]:
    """Return the name of the load program for a sentence, and its command line."""
    seed = derive_seed(cell, context)
    if cell_settings.client == GENERATOR:
        cores = count_generator_cores(context.pinning)
        reconnects = may_reconnect(contestant, cell_settings)
        return "generator", build_load_command(
            context.generator, ready.endpoint, cell_settings, seed, cores=cores, reconnects=reconnects
        )
    client = context.clients[cell_settings.client]
    command = build_client_command(client.command, ready.endpoint, cell_settings, seed)
    if not context.is_load_elsewhere:
        command = client_processes.build_command(command, cell_settings.client_processes)
    elif cell_settings.client_processes > 1:  # the host that makes the load starts them
        command += ["--client-processes", str(cell_settings.client_processes)]
    return f"client {client.name}", command


def derive_seed(cell: Cell, context: TrialContext) -> int:
    """Return the seed of a cell: each block has its own, and within it all contestants get the same arrivals."""
    return (context.seed * 1_000_003 + cell.block) % 2**63


def _estimate_closing_s(cell_settings: Settings) -> float:
    """CLOSING_S over a link: a lost FIN is sent again after a second, and each arrives after the delay."""
    if not cell_settings.is_impaired:
        return CLOSING_S
    link_terms = derive_terms(cell_settings)
    return CLOSING_S + 2 * link_terms.delay_s + (1.0 if link_terms.loss else 0.0)


def await_closes(count_descriptors: Callable[[], int], ready: int, patience_s: float = CLOSING_S) -> None:
    """Wait until the server has closed the load's connections, so that the closing check does not meet them. Give up
    when none is closed for `patience_s`. `ready`: the number of its descriptors before the load came."""
    remaining, patience = count_descriptors(), time.monotonic() + patience_s
    while remaining > ready and time.monotonic() < patience:
        time.sleep(0.005)
        current = count_descriptors()
        if current < remaining:
            remaining, patience = current, time.monotonic() + patience_s


def _judge_load(cell_settings: Settings, load: LoadResult) -> tuple[Audit, ...]:
    """Return the audits of the load itself; a client contestant may be slow, for it is what is compared."""
    judged = load.audits if cell_settings.client == GENERATOR else audits.of_client(load.audits)
    if cell_settings.shares_cores:
        judged = audits.on_shared_cores(judged, load)
    return audits.with_failed_connects(judged, load) if cell_settings.failed_connects == "count" else judged


def _judge_figures(
    load: LoadResult,
    observed: ServerObservation | None,
    cell_settings: Settings,
    pinning: Pinning,
    *,
    load_elsewhere: bool,
    overruns_s: Sequence[float] = (),
) -> tuple[Audit, ...]:
    """Return the audits of the window's figures. Their modules need numpy, so they are imported after the window."""
    from netdyno.measure.audits.plausible import plausible
    from netdyno.measure.audits.requested_work import work
    from netdyno.measure.audits.stationary import stalled, stationary
    from netdyno.measure.trial.limits import find_limits, find_requested_work

    bounds = find_limits(cell_settings, pinning, load_elsewhere=load_elsewhere, overruns_s=overruns_s)
    return (
        stationary(load),
        stalled(load, cell_settings.link, overruns_s=overruns_s),
        work(load, observed, find_requested_work(cell_settings)),
        plausible(load, observed, bounds),
    )


def wait_ready(
    server: Process, lines: LineReader, context: TrialContext, contestant: Contestant, network: Network
) -> ReadyLine:
    """Read the server's ready line. Its endpoint must be the requested one, for the load must not reach anything else;
    its process must be one of the server's own, unless the server was running already."""
    timeout_s = contestant.own.ready_timeout_s if contestant.own is not None else context.ready_timeout_s
    line = lines.wait_line(time.monotonic() + timeout_s)
    taken_s = time.monotonic() - server.started_s
    if line is None:
        if lines.at_end and server.wait(time.monotonic() + timeout_s):
            how = describe_exit(server.exit_code())
            raise ServerError(f"the server ended with {how} before it was ready{server.read_last_line()}")
        missing = "the server was not ready" if contestant.own else "no ready line from the server"
        raise LateServerError(f"{missing} within {timeout_s:g} s{server.read_last_line()}")
    try:
        ready = msgspec.json.decode(line, type=ReadyLine)
    except UNREADABLE as error:
        raise ServerError(f"the server's first line is not a ready line: {line[:200]!r}") from error
    if transports.of_url(ready.endpoint) is None:
        raise ServerError(f"the server's ready line names no endpoint: {ready.endpoint[:200]!r}")
    listen_url = build_listen_url(contestant, network.address)
    endpoint = url.endpoint(listen_url, ready.endpoint)
    if endpoint is None:
        raise ServerError(
            f"the server's ready line names {ready.endpoint[:200]!r}, but it was started to listen at {listen_url}"
        )
    if contestant.own is None and ready.pid not in server_proc.find_family(server.pid):
        raise ServerError(f"the server's ready line names process {ready.pid}, which is not the server's")
    ready = msgspec.structs.replace(ready, endpoint=find_target(contestant, endpoint))
    if not contestant.has_stand_in:
        return msgspec.structs.replace(ready, ready_s=taken_s, begun_cpu_s=server.begun_cpu_s)
    serving = socket_holders.find_serving(server.pid, ready.pid, network.counters, ready.endpoint)
    return msgspec.structs.replace(ready, pid=serving or ready.pid, observed=serving is not None)


def shut_down(server: Process, lines: LineReader, context: TrialContext) -> tuple[str, str]:
    """Send SIGTERM; return the server's line of totals, and how it ended where that was not exit code 0."""
    deadline = time.monotonic() + context.shutdown_timeout_s
    server.terminate()
    line = lines.wait_line(deadline)
    if not server.wait(deadline):
        return "", f"nothing within {context.shutdown_timeout_s:g} s of SIGTERM"
    code = server.exit_code()
    return line or "", describe_exit(code) if code != 0 else ""


def read_totals(line: str) -> dict[str, int]:
    """Return the whole numbers of a line of totals; none where it is no such line (an audit then says so)."""
    return {
        name: value
        for name, value in _decode_entries(line).items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


def read_connections_per_thread(line: str) -> tuple[int, ...]:
    """Return the connections of each thread, by the line of totals; none where it does not say."""
    try:
        return msgspec.convert(_decode_entries(line).get("connections_per_thread", ()), tuple[int, ...])
    except msgspec.ValidationError:
        return ()


def read_tick_lag(line: str) -> Distribution | None:
    """Return the lag of the server's main loop, by its line of totals; None where it does not say."""
    try:
        return msgspec.convert(_decode_entries(line).get("tick_lag_ns"), Distribution | None)
    except msgspec.ValidationError:
        return None


def _decode_entries(line: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except UNREADABLE:
        return {}

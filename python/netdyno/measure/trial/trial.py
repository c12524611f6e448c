"""One trial: a fresh server, a generator against it, the kernel's readings meanwhile, and a verdict.

Every failure is a result with its reason and its log; only an interruption by the user leaves this module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from netdyno.kit import quantities
from netdyno.measure.audits import of_trial as audits
from netdyno.measure.machine import control_group, jit, orphans, server_proc, server_processes
from netdyno.measure.machine.control_group import ControlGroup, NoControlGroupError
from netdyno.measure.machine.links.network import Network, NoNetworkError, derive_terms, make_network
from netdyno.measure.machine.process import (
    KILLED,
    GoneServerError,
    LineReader,
    Process,
    ServerError,
    TrialError,
    describe_exit,
)
from netdyno.measure.machine.server_processes import Origin
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.backend import NoBackendError, start_backend
from netdyno.measure.trial.command import check_command, may_reconnect
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.prepared import (
    PreparedTrial,
    TrialMeasurements,
    choose_pinning,
    conclude,
    derive_seed,
    fail,
    find_limits,
    judge_exit,
    load_program,
    prepare,
    record_loss,
)
from netdyno.measure.trial.serving import (
    ReadyLine,
    build_networked_command,
    read_connections_per_thread,
    read_tick_lag,
    read_totals,
    shut_down,
    start_server,
    wait_ready,
)
from netdyno.measure.trial.warm_up import warm_up_closed
from netdyno.measure.trial.window import Watch, WindowLostError
from netdyno.measure.trial.write_only import measure_writes
from netdyno.model import outcomes, transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import MachineObservation, Pinning, ServerObservation, Starting
from netdyno.model.options import Settings
from netdyno.model.trial import Trial
from netdyno.question.contestants import own
from netdyno.question.plan import Cell

LINGER = "50ms"
"""The time that the load keeps its connections after the last reply: a server with a thread for each is then read
while they are all there."""
COLD_WARMUP_S = 1.0
"""Five times as long as the first reply of a JVM takes at rest; of what runs as machine code from the start, none needs
it (docs/adr/warm-up.md)."""
LEFT_BEHIND = "left_behind"
"""The key in the totals of a server's stand-in for the number of programs that it had to end."""
CLOSING_S = 0.2
"""The time in which a server may close none of the load's connections before the closing check runs all the same."""


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
        transport, seed = transports.find_transport(contestant), derive_seed(cell, context)
        with make_network(transport, cell_settings, context.pinning, log, seed=seed, given=context.network) as network:
            measured = (measure_writes if cell_settings.is_write_only else _measure)(prepared, network)
    except (NoNetworkError, NoControlGroupError, NoBackendError) as missing:
        log.note(f"skipped: {missing}")
        return msgspec.structs.replace(base, reason=str(missing))
    except WindowLostError as lost:
        judged = audits.foreign_load(lost.machine, context.foreign_load, neighbour=context.neighbour)
        return record_loss(prepared, lost.machine, judged, time.monotonic() - started)
    except TrialError as failure:
        return fail(prepared, failure, time.monotonic() - started)
    return conclude(prepared, measured, time.monotonic() - started)


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
        before = (first,) if first else warm_up_closed(prepared, ready, server, watch, network)
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
    judged = audit_trial(
        prepared, ready, load, closing, observed, machine, left_programs, before=before, paced=network.paced
    )
    if relay:
        judged = (*judged, audits.link(relay, cell_settings.link_delay_s))
    if questions is not None:
        judged = (*judged, audits.backend(questions, _list_loads(load, closing, before)))
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


def _list_loads(load: LoadResult, closing: ClosingCheck, before: Sequence[LoadResult]) -> list[LoadResult]:
    """Return all loads that reached the server."""
    return [*before, load, *((closing.check,) if closing.check is not None else ())]


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
        datagrams=transports.find_transport(contestant).datagrams,
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


def audit_trial(
    prepared: PreparedTrial,
    ready: ReadyLine,
    load: LoadResult,
    closing: ClosingCheck,
    observed: ServerObservation | None,
    machine: MachineObservation | None,
    left_programs: Sequence[str],
    *,
    before: Sequence[LoadResult] = (),
    paced: bool = False,
    overruns_s: Sequence[float] = (),
) -> tuple[Audit, ...]:
    """Return the audits of a measured load and of its server. `left_programs`: the names of programs that the server
    left behind. `before`: the results of requests before the load. `overruns_s`: the time by which each of its slices
    was too long."""
    cell_settings, contestant = prepared.settings, prepared.contestant
    context = prepared.context
    left_by_stand_in = closing.totals.get(LEFT_BEHIND, 0) if contestant.has_stand_in else 0
    judged = [
        *audits.with_earlier(_judge_load(cell_settings, load), before),
        audits.completed(load),
        judge_exit(closing.ended),
        audits.left_behind(left_programs, left_by_stand_in),
        *([] if closing.ended else [audits.server_alive(closing.check, closing.check_error)]),
        *_judge_observation(observed, load, ready, cell_settings),
        *audits.foreign_load(machine, context.foreign_load, paced=paced, neighbour=context.neighbour),
    ]
    loads = _list_loads(load, closing, before)
    counted = cell_settings.failed_connects == "count"
    totals = {name: value for name, value in closing.totals.items() if name != LEFT_BEHIND}
    judged += audits.strangers(totals, loads, closing.connected, failed_connects=counted)
    if contestant.has_stand_in:
        judged.append(audits.no_totals())
    elif not closing.ended:
        judged.append(audits.server_totals(totals, loads, closing.shutdown, failed_connects=counted))
    reported = observed if ready.observed else None
    cores = choose_pinning(contestant, context)
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
    closes_at_once = load.instrument is not msgspec.UNSET  # without --linger
    threads_end = cell_settings.threads_end or load.connections.closed_after_reply > 0 or closes_at_once
    return (
        audits.harness_quiet(observed),
        audits.observation(observed, cell_settings.duration_s, threads_end=threads_end),
    )


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

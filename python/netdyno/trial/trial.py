"""One trial: a fresh server, a generator against it, what the kernel saw meanwhile, and a verdict.

Whatever goes wrong is a result with its reason and its log; only an interruption by the user gets out of here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from netdyno.audits import of_trial as audits
from netdyno.base import quantities, url
from netdyno.base.utc_now import utc_now
from netdyno.experiment.plan import Cell, why_skip
from netdyno.machine import orphans, server_proc
from netdyno.machine.links.network import Network, NoNetworkError, Place, network_for, terms
from netdyno.machine.pinning import apply_placement, generator_cores, server_cores
from netdyno.machine.process import UNREADABLE, LineReader, Process, ServerError, TrialError, describe_exit
from netdyno.machine.trial_log import TrialLog
from netdyno.model import outcomes, transports
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, Distribution, LoadResult
from netdyno.model.observation import MachineObservation, Pinning, RelayTotals, ServerObservation
from netdyno.model.options import Settings, settings
from netdyno.model.server_options import added_options
from netdyno.model.trial import Trial
from netdyno.trial import client_processes
from netdyno.trial import load as generate
from netdyno.trial.command import check_command, client_command, listens_at, load_command, server_command
from netdyno.trial.setup import Bench, key
from netdyno.trial.window import Watch, WindowLostError

LINGER = "50ms"
"""How long the load keeps its connections after the last answer: a server with a thread for each is then read
while they are all there."""


FOUND_THERE = "an already running server keeps its own cores"
LONGEST_LOG_NAME = 200
"""Characters, beside those of each program's part (NAME_MAX, limits.h); place and block tell logs apart."""
LEFT_BEHIND = "left_behind"
"""In the line of totals of who stands in for a server: the programs that it had to end."""
CLOSING_S = 0.2
"""How long a server may close none of the connections that the load has left, before it is asked for the last time."""


class Measured(NamedTuple):
    """What a trial has once its load is over."""

    load: LoadResult
    server: ServerObservation | None
    machine: MachineObservation | None
    kernel: dict[str, int]
    relay: RelayTotals | None
    audits: tuple[Audit, ...]


class Ready(msgspec.Struct, frozen=True):
    """The ready line; a server may say more than the contract asks. Who stands in for a server whose process is not
    known has its own number here, and is not `observed`."""

    ready: bool
    endpoint: str
    pid: int
    observed: bool = True


def skipped(cell: Cell, reason: str) -> Trial:
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


class Prepared(NamedTuple):
    """A cell that can be run: its settings, its server, and the trial as far as it is known before."""

    cell: Cell
    wanted: Settings
    contestant: Contestant
    bench: Bench
    base: Trial
    log: TrialLog


def prepare(cell: Cell, scenario: Scenario, contestant: Contestant, bench: Bench) -> Prepared | Trial:
    """Return what a cell needs, or its trial where it is skipped."""
    base = skipped(cell, why_skip(contestant, scenario, cell.levels, bench.clients))
    if base.reason:
        return base
    path = log_path(cell)
    warmup = bench.warmups.get(key(cell))
    wanted = settings(scenario, cell.levels, warmup.seconds if warmup else 0.0)
    has = server_cores(apply_placement(bench.pinning, wanted.placement))
    if isinstance(wanted.server_cores, int) and wanted.server_cores > has:
        return skipped(cell, f"server-cores = {wanted.server_cores}: the server has {quantities.plural(has, 'core')}")
    bench = bench.for_cell(wanted)
    added = added_options(contestant, wanted, cores=server_cores(bench.pinning))
    base = msgspec.structs.replace(
        base,
        added=added,
        pinning=_pinning(contestant, bench),
        log=str(path),
        warmup=warmup,
        beside=bench.neighbour,
    )
    return Prepared(cell, wanted, contestant, bench, base, TrialLog(bench.folder / path))


def run_trial(cell: Cell, scenario: Scenario, contestant: Contestant, bench: Bench) -> Trial:
    """Run one cell and judge it. Never raises but for KeyboardInterrupt and faults of the harness itself."""
    started = time.monotonic()
    prepared = prepare(cell, scenario, contestant, bench)
    if isinstance(prepared, Trial):
        return prepared
    _, wanted, _, bench, base, log = prepared
    try:
        if reason := bench.bad_links.get(wanted.link_words):
            raise NoNetworkError(reason)
        place = Place(bench.pinning, log, seed_of(cell, bench), bench.network)
        with network_for(transports.of(contestant), wanted, place) as network:
            measured = _measure(prepared, network)
    except NoNetworkError as missing:
        log.note(f"skipped: {missing}")
        return msgspec.structs.replace(base, reason=str(missing))
    except WindowLostError as lost:
        judged = audits.foreign_load(lost.machine, bench.foreign_load, beside=bench.neighbour)
        return lose(prepared, lost.machine, judged, time.monotonic() - started)
    except TrialError as failure:
        return fail(prepared, failure, time.monotonic() - started)
    return conclude(prepared, measured, time.monotonic() - started)


def lose(prepared: Prepared, machine: MachineObservation | None, judged: tuple[Audit, ...], seconds: float) -> Trial:
    """Return the trial whose cores others took, and which is to be made again."""
    status, reason = outcomes.verdict(judged)
    prepared.log.note(f"ended early: {reason}")
    return msgspec.structs.replace(
        prepared.base, status=status, reason=reason, seconds=seconds, machine=machine, audits=judged
    )


def fail(prepared: Prepared, failure: TrialError, seconds: float) -> Trial:
    """Return the trial that could not be completed."""
    prepared.log.note(f"failed: {failure}")
    died = (audits.died(str(failure)),) if isinstance(failure, ServerError) else ()
    return msgspec.structs.replace(prepared.base, status="failed", reason=str(failure), seconds=seconds, audits=died)


def conclude(prepared: Prepared, measured: Measured, seconds: float) -> Trial:
    """Return the trial with what was measured, as its audits judge it."""
    status, reason = outcomes.verdict(measured.audits)
    if reason:
        prepared.log.note(f"invalid: {reason}")
    return msgspec.structs.replace(prepared.base, status=status, reason=reason, seconds=seconds, **measured._asdict())


def _pinning(contestant: Contestant, bench: Bench) -> Pinning:
    """What bounds a trial of it."""
    if not stands_already(contestant):
        return bench.pinning
    return msgspec.structs.replace(bench.pinning, server=(), note=FOUND_THERE)


def log_path(cell: Cell) -> Path:
    """The log of a trial, relative to the folder of its run."""
    levels = "".join(f"-{name}-{level}" for name, level in cell.levels.items())
    again = f"-{cell.attempt}" if cell.attempt > 1 else ""
    name = f"{cell.block:03}-{cell.position:03}-{cell.scenario}{levels}-{cell.contestant}"
    name = name.encode("ascii", "replace").decode()[:LONGEST_LOG_NAME]
    return Path("logs") / re.sub(r"[^\w.,=+-]", "_", f"{name}{again}.log")


def _measure(prepared: Prepared, network: Network) -> Measured:
    cell, wanted, contestant, bench, _, log = prepared
    command = [*network.server, *server_command(contestant, wanted, network.address, cores=server_cores(bench.pinning))]
    with (
        log.section("server", command) as output,
        orphans.end(lambda names: log.note(audits.left_behind(names).detail)) as left,
        Process(command, bench.pinning.server, output, talks=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, bench, contestant, network)
        descriptors = server_proc.count_descriptors(ready.pid)
        watch = watch_server(
            prepared,
            ready,
            network,
            is_lost=partial(
                audits.is_lost,
                window_s=wanted.duration_s,
                wanted=bench.foreign_load,
                paced=network.paced,
                beside=bench.neighbour,
            ),
        )
        program, command = load_program(cell, wanted, ready, bench)
        command = [*network.load, *command, "--linger", LINGER]
        load = generate.measure(program, command, wanted, server, watch, bench, log)
        farewell = take_leave(prepared, server, lines, ready, descriptors, network.load)
    relay = network.relay.end() if network.relay else None
    observed = _observation(watch, load, farewell)
    machine = watch.machine()
    judged = judge(prepared, ready, load, farewell, observed, machine, left, paced=network.paced)
    if relay:
        judged = (*judged, audits.link(relay, wanted.link_delay_s))
    seen = observed if ready.observed else None
    return Measured(load=load, server=seen, machine=machine, kernel=watch.kernel(), relay=relay, audits=judged)


def watch_server(
    prepared: Prepared,
    ready: Ready,
    network: Network,
    *,
    is_lost: Callable[[MachineObservation], bool] = lambda _: False,
) -> Watch:
    """Begin to watch a server that is ready."""
    contestant = prepared.contestant
    return Watch(
        ready.pid,
        prepared.wanted,
        network.counters,
        datagrams=transports.of(contestant).datagrams,
        with_children=contestant.own is not None,
        is_new=not stands_already(contestant),
        is_lost=is_lost,
    )


class Farewell(NamedTuple):
    """How a server ended: what it answered to the closing check, or why it did not; how it ended by itself, and where
    it did not, its line of totals and how it ended after SIGTERM."""

    check: LoadResult | None
    check_error: str
    ended: str
    line: str
    shutdown: str

    @property
    def totals(self) -> dict[str, int]:
        return read_totals(self.line)


def take_leave(
    prepared: Prepared,
    server: Process,
    lines: LineReader,
    ready: Ready,
    descriptors: int,
    load_prefix: Sequence[str] = (),
) -> Farewell:
    """Once the load has left: ask the server once more, and end it. It had so many descriptors before the load came."""
    _, wanted, _, bench, _, log = prepared
    await_closes(ready.pid, descriptors, _closing_s(wanted))
    closing = check_command(bench.generator, ready.endpoint, wanted)
    check, check_error = generate.check([*load_prefix, *closing], wanted, bench, log)
    ended = describe_exit(server.exit_code()) if server.has_ended() else ""
    line, shutdown = ("", "") if ended else _shut_down(server, lines, bench)
    return Farewell(check, check_error, ended, line, shutdown)


def judge(
    prepared: Prepared,
    ready: Ready,
    load: LoadResult,
    farewell: Farewell,
    observed: ServerObservation | None,
    machine: MachineObservation | None,
    left: Sequence[str],
    *,
    paced: bool = False,
    overruns_s: Sequence[float] = (),
) -> tuple[Audit, ...]:
    """Return what the audits say of a load that was measured and of its server, which left programs of these names.
    `overruns_s`: by how much each of its slices was over."""
    _, wanted, contestant, bench, _, _ = prepared
    behind = farewell.totals.get(LEFT_BEHIND, 0) if contestant.own is not None else 0
    judged = [
        *_of_load(wanted, load),
        audits.completed(load),
        audits.died(farewell.ended),
        audits.left_behind(left, behind),
        *([] if farewell.ended else [audits.server_alive(farewell.check, farewell.check_error)]),
        *_of_observation(observed, load, ready, wanted),
        *audits.foreign_load(machine, bench.foreign_load, paced=paced, beside=bench.neighbour),
    ]
    if contestant.own is not None:
        judged.append(audits.no_totals())
    elif not farewell.ended:
        loads = [load, *([farewell.check] if farewell.check else [])]
        counted = wanted.failed_connects == "count"
        totals = {name: value for name, value in farewell.totals.items() if name != LEFT_BEHIND}
        judged.append(audits.server_totals(totals, loads, farewell.shutdown, failed_connects=counted))
    seen = observed if ready.observed else None
    cores = _pinning(contestant, bench)
    judged += _of_figures(load, seen, wanted, cores, load_elsewhere=bench.is_load_elsewhere, overruns_s=overruns_s)
    return tuple(judged)


def _observation(watch: Watch, load: LoadResult, farewell: Farewell) -> ServerObservation | None:
    """What was read of the server over the window; None where the load had no connection left before that began. Raises
    TrialError where nothing explains why no window was announced."""
    if not watch.saw_window and outcomes.has_lost_all_connections(load):
        return None
    return read_observation(watch, farewell)


def read_observation(watch: Watch, farewell: Farewell) -> ServerObservation:
    """Return what was read of the server, with what it said of itself. Raises TrialError where nothing was read."""
    totals = {name: value for name, value in farewell.totals.items() if name != LEFT_BEHIND}
    return msgspec.structs.replace(
        watch.observation(totals),
        connections_per_thread=read_connections_per_thread(farewell.line),
        tick_lag_ns=read_tick_lag(farewell.line),
    )


def _of_observation(
    observed: ServerObservation | None, load: LoadResult, ready: Ready, wanted: Settings
) -> tuple[Audit, ...]:
    """The audits of the readings themselves."""
    if observed is None:
        return ()
    if not ready.observed:
        return audits.harness_quiet(observed), audits.unobserved()
    if outcomes.has_lost_all_connections(load):
        return audits.harness_quiet(observed), audits.observed_in_part()
    return (
        audits.harness_quiet(observed),
        audits.observation(observed, wanted.duration_s, threads_end=wanted.threads_end),
    )


def load_program(cell: Cell, wanted: Settings, ready: Ready, bench: Bench) -> tuple[str, list[str]]:
    """The program that makes the load, as it is called in a sentence, and its command line."""
    seed = seed_of(cell, bench)
    if wanted.client == GENERATOR:
        cores = generator_cores(bench.pinning)
        return "generator", load_command(bench.generator, ready.endpoint, wanted, seed, cores=cores)
    client = bench.clients[wanted.client]
    command = client_command(client.command, ready.endpoint, wanted, seed)
    if not bench.is_load_elsewhere:
        command = client_processes.command(command, wanted.client_processes)
    elif wanted.client_processes > 1:  # the host that makes the load starts them
        command += ["--client-processes", str(wanted.client_processes)]
    return f"client {client.name}", command


def seed_of(cell: Cell, bench: Bench) -> int:
    """It varies from block to block but not between contestants: within a block all get the same arrivals."""
    return (bench.seed * 1_000_003 + cell.block) % 2**63


def _closing_s(wanted: Settings) -> float:
    """CLOSING_S over a link: a goodbye that is lost comes again after a second, and each comes after the delay."""
    if not wanted.is_impaired:
        return CLOSING_S
    asked = terms(wanted)
    return CLOSING_S + 2 * asked.delay_s + (1.0 if asked.loss else 0.0)


def await_closes(pid: int, descriptors: int, patience_s: float = CLOSING_S) -> None:
    """Until the server has closed what the load has left, so that the closing check does not speak to its ghosts too.
    Gives up when that makes no progress for so long."""
    seen, patience = server_proc.count_descriptors(pid), time.monotonic() + patience_s
    while seen > descriptors and time.monotonic() < patience:
        time.sleep(0.005)
        now = server_proc.count_descriptors(pid)
        if now < seen:
            seen, patience = now, time.monotonic() + patience_s


def _of_load(wanted: Settings, load: LoadResult) -> tuple[Audit, ...]:
    """The audits of the load's own making; a client contestant may be as slow as it is, for it is what is compared."""
    own = load.audits if wanted.client == GENERATOR else audits.of_client(load.audits)
    if wanted.shares_cores:
        own = audits.on_shared_cores(own, load)
    return audits.with_failed_connects(own, load) if wanted.failed_connects == "count" else own


def _of_figures(
    load: LoadResult,
    observed: ServerObservation | None,
    wanted: Settings,
    pinning: Pinning,
    *,
    load_elsewhere: bool,
    overruns_s: Sequence[float] = (),
) -> tuple[Audit, ...]:
    """What the figures of the window themselves tell. Imported here, when it is over, for they need numpy."""
    from netdyno.audits.plausible import plausible
    from netdyno.audits.stationary import stalled, stationary
    from netdyno.trial.limits import limits

    most = limits(wanted, pinning, load_elsewhere=load_elsewhere)
    return stationary(load), stalled(load, wanted.link, overruns_s=overruns_s), plausible(load, observed, most)


def wait_ready(server: Process, lines: LineReader, bench: Bench, contestant: Contestant, network: Network) -> Ready:
    """What the server's first line says. Its endpoint is where the contestant was told to listen, for the load must not
    reach anything else; its process is one of its own, or any where the server stands already."""
    line = lines.wait_line(time.monotonic() + bench.ready_timeout_s)
    if line is None:
        if lines.at_end and server.wait(time.monotonic() + bench.ready_timeout_s):
            how = describe_exit(server.exit_code())
            raise ServerError(f"the server ended with {how} before it was ready{server.last_words()}")
        missing = "the server did not accept connections" if contestant.own else "no ready line from the server"
        raise ServerError(f"{missing} within {bench.ready_timeout_s:g} s{server.last_words()}")
    try:
        ready = msgspec.json.decode(line, type=Ready)
    except UNREADABLE as error:
        raise ServerError(f"the server's first line is not a ready line: {line[:200]!r}") from error
    if transports.of_url(ready.endpoint) is None:
        raise ServerError(f"the server's ready line names no endpoint: {ready.endpoint[:200]!r}")
    told = listens_at(contestant, network.address)
    endpoint = url.endpoint(told, ready.endpoint)
    if endpoint is None:
        raise ServerError(
            f"the server's ready line names {ready.endpoint[:200]!r}, but it was started to listen at {told}"
        )
    if not stands_already(contestant) and ready.pid != server.pid and ready.pid not in server_proc.family(server.pid):
        raise ServerError(f"the server's ready line names process {ready.pid}, which is none of its own")
    return msgspec.structs.replace(ready, endpoint=endpoint)


def _shut_down(server: Process, lines: LineReader, bench: Bench) -> tuple[str, str]:
    """SIGTERM: the line of totals that the server prints, and how it ended where that was not exit code 0."""
    deadline = time.monotonic() + bench.shutdown_timeout_s
    server.terminate()
    line = lines.wait_line(deadline)
    if not server.wait(deadline):
        return "", f"nothing within {bench.shutdown_timeout_s:g} s of SIGTERM"
    code = server.exit_code()
    return line or "", describe_exit(code) if code != 0 else ""


def read_totals(line: str) -> dict[str, int]:
    """The whole numbers of a line of totals; none where it is no such line (an audit then says so)."""
    return {
        name: value for name, value in _entries(line).items() if isinstance(value, int) and not isinstance(value, bool)
    }


def read_connections_per_thread(line: str) -> tuple[int, ...]:
    """Of a line of totals, how many connections each thread got; none where it does not say."""
    try:
        return msgspec.convert(_entries(line).get("connections_per_thread", ()), tuple[int, ...])
    except msgspec.ValidationError:
        return ()


def read_tick_lag(line: str) -> Distribution | None:
    """Return how late the ticks of the server's main loop were, by its line of totals; None if it does not say."""
    try:
        return msgspec.convert(_entries(line).get("tick_lag_ns"), Distribution | None)
    except msgspec.ValidationError:
        return None


def _entries(line: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except UNREADABLE:
        return {}

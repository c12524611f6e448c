"""A cell that is ready to run, with the commands and the log of its trial, and the trial that becomes of it."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from netdyno.kit import quantities
from netdyno.kit.units import utc_now
from netdyno.measure.audits import of_trial as audits
from netdyno.measure.machine.control_group import Limits
from netdyno.measure.machine.pinning import apply_placement, count_generator_cores, count_server_cores
from netdyno.measure.machine.process import KILLED, KilledError, LateServerError, ServerError, TrialError, describe_exit
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import client_processes
from netdyno.measure.trial.command import (
    adapt_to_server,
    build_client_command,
    build_load_command,
    choose_program,
    may_reconnect,
)
from netdyno.measure.trial.context import TrialContext, key
from netdyno.measure.trial.serving import ReadyLine
from netdyno.model import outcomes
from netdyno.model.contestant import GENERATOR, Contestant, stands_already
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import MachineObservation, Pinning, RelayTotals, ServerObservation, Starting
from netdyno.model.options import Settings, settings
from netdyno.model.server_options import added_options
from netdyno.model.trial import Trial
from netdyno.question.plan import Cell, explain_skip

FOUND_THERE = "an already running server keeps its own cores"
LONGEST_LOG_NAME = 200
"""Characters, without those of each program's part (NAME_MAX, limits.h); place and block distinguish logs."""


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
    cell_settings = adapt_to_server(settings(scenario, cell.levels, warmup.of_load_s if warmup else 0.0), contestant)
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
        pinning=choose_pinning(contestant, context),
        log=str(path),
        warmup=warmup,
        neighbour=context.neighbour,
    )
    measures_start = scenario.measures_start and not stands_already(contestant)
    return PreparedTrial(
        cell, cell_settings, contestant, context, base, TrialLog(context.folder / path), measures_start
    )


def find_limits(settings: Settings) -> Limits:
    """Return the limits of the server's control group in a cell."""
    return Limits(settings.cpu_quota, settings.memory_limit)


def choose_pinning(contestant: Contestant, context: TrialContext) -> Pinning:
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


def derive_seed(cell: Cell, context: TrialContext) -> int:
    """Return the seed of a cell: each block has its own, and within it all contestants get the same arrivals."""
    return (context.seed * 1_000_003 + cell.block) % 2**63


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


def judge_exit(how: str) -> Audit:
    """Return the audit of how a server ended by itself (process.describe_exit); empty where it did not."""
    return audits.killed(how) if how == describe_exit(KILLED) else audits.died(how)


def conclude(prepared: PreparedTrial, measured: TrialMeasurements, seconds: float) -> Trial:
    """Return the trial with what was measured, as its audits judge it."""
    status, reason = outcomes.verdict(measured.audits)
    if reason:
        prepared.log.note(f"invalid: {reason}")
    return msgspec.structs.replace(
        prepared.base, status=status, reason=reason, seconds=seconds, **msgspec.structs.asdict(measured)
    )

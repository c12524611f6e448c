"""The consequences of failed audits: three kinds, three consequences (docs/adr/audit-kinds.md). Pure functions.

A failure of the SERVER is a result, and the server is ranked apart. One of the INSTRUMENT is decided per cell, for all
contestants alike, from all of its trials (`judged`). One of the MACHINE: the trial is repeated. A note is only
reported."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from netdyno.kit.statistics import exact
from netdyno.model import transports, uneven_load
from netdyno.model.audit_meanings import FAILURES, FaultKind
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial

CANARY = "canary"
"""The audit of the machine's speed beside a trial; a block is judged when it has ended."""
ABOUT_THE_GENERATOR = "generator"
"""The audit that checks that the generator had CPU to spare and kept its schedule (protocol/load-result.md)."""

KINDS: Mapping[str, FaultKind] = {name: fault_kind for fault_kind, audits in FAILURES.items() for name in audits}
"""The kinds by the name of an audit."""

OF_OTHERS = ("steal", "foreign_load", "throttled", "canary", "turns")
"""Audits that see others take the cores: programs, a hypervisor, a CPU quota. The other audits of the machine see only
that something does not fit."""

VALID: tuple[Status, ...] = ("valid",)
RANKED: tuple[Status, ...] = ("valid", "censored")
"""The statuses in a ranking: in a cell that saturates the generator all figures are bounds, and are reported as
such."""
MEASURED: tuple[Status, ...] = ("valid", "censored", "struck_out", "faulty")

SATURATED = 0.85
"""The share of a core from which on the busiest thread of the generator is the limit (loadgen/report/audits.cpp)."""


def is_canary_judged(trial: Trial) -> bool:
    """Whether the block of a trial has been judged. A trial that failed or was skipped needs no judgement."""
    return trial.status in ("failed", "skipped") or any(audit.name == CANARY for audit in trial.audits)


def kind(audit: str) -> FaultKind:
    """Return the kind of an audit by its name; an unknown, former audit shows nothing about a server."""
    return KINDS.get(audit, "machine")


def failed(trial: Trial, audit_kind: FaultKind) -> tuple[Audit, ...]:
    """Return the failed audits of one kind."""
    return tuple(audit for audit in trial.audits if not audit.passed and kind(audit.name) == audit_kind)


def verdict(audits: Sequence[Audit]) -> tuple[Status, str]:
    """Return "valid", or "struck_out" with every reason. A note is no reason."""
    reasons = [f"{audit.name}: {audit.detail}" for audit in audits if not audit.passed and kind(audit.name) != "note"]
    return ("struck_out", "; ".join(reasons)) if reasons else ("valid", "")


# --- of one load -----------------------------------------------------------------------------------------------------

RATE_TOLERANCE = 0.01
FEW_MESSAGES = 3
CHANCE_SIGMAS = 4
"""As in loadgen/report/audits.cpp: the part of the requested rate that may be missing, and the chance spread of Poisson
arrivals."""


def rate_kept(load: LoadResult) -> float | None:
    """Return the share of the offered rate that was answered; 1 where the rate was kept within the tolerance of the
    generator's audit, because chance in the arrivals is no difference. None in a closed loop."""
    if not load.plan.rate_hz:
        return None
    requested = load.plan.rate_hz * load.plan.duration_s * (1 - (transports.share_lost(load) or 0.0))
    chance = CHANCE_SIGMAS * math.sqrt(requested) if load.plan.arrivals == "poisson" else 0.0
    missing = requested - load.requests.completed
    return 1.0 if missing <= RATE_TOLERANCE * requested + FEW_MESSAGES + chance else load.requests.completed / requested


def has_lost_all_connections(load: LoadResult) -> bool:
    """Whether no connection was established, or each ended early: the load then ends before its window. A client
    contestant connects again, and so does the load of another's server that closes a connection after a reply: there
    are then more connections than are open at a time."""
    connections = load.connections
    ended = sum(load.errors.get(how, 0) for how in ("closed_by_server", "reset", "protocol"))
    reconnects = connections.established > load.plan.connections and load.messages.received > 0
    closed = 0 if reconnects else connections.closed_after_reply
    return load.client is None and ended + closed >= connections.established


# --- of one trial ------------------------------------------------------------------------------------------------


def disturbances(trial: Trial) -> tuple[Audit, ...]:
    """Return the failed audits of the machine. In an overload the queue grows as long as the load lasts, and Little's
    law does not hold for that reason alone."""
    failed_audits = failed(trial, "machine")
    overloaded = trial.load is not None and (rate_kept(trial.load) or 1.0) < 1.0
    return tuple(audit for audit in failed_audits if not (audit.name == "little" and overloaded))


def faults(trial: Trial) -> tuple[Audit, ...]:
    """Return the faults of the server, causes before their consequences. Where the machine was disturbed, only faults
    that no pause of a machine can cause: a server that ended, wrong replies, and no reply at all. The same where an
    open loop requested more than the generator could send: the messages that it gave up on are lost."""
    server_faults = certain_faults(trial) if disturbances(trial) or is_beyond(trial) else failed(trial, "server")
    return _sort_by_cause(trial, server_faults)


def _sort_by_cause(trial: Trial, server_faults: Sequence[Audit]) -> tuple[Audit, ...]:
    causes = [name for name in CAUSES if name not in WRONG or _has_wrong_replies(trial)]
    return tuple(
        sorted(server_faults, key=lambda audit: causes.index(audit.name) if audit.name in causes else len(causes))
    )


def certain_faults(trial: Trial) -> tuple[Audit, ...]:
    """Return the faults of the server that no pause of a machine can cause."""
    return tuple(
        audit
        for audit in failed(trial, "server")
        if audit.name in ("died", "backend")
        or (audit.name in WRONG and _has_wrong_replies(trial))
        or (audit.name == "completed" and _is_silent(trial))
        or (audit.name == "connections" and _is_silent(trial) and _refused_all_connections(trial))
    )


WRONG = ("verification", "bytes")
CAUSES = ("died", "killed", "ready", *WRONG, "connections", "completed")
"""The order in which a server's faults are reported: dropped connections lose replies, and a server that answers
nothing loses all of them."""
STARVED_SHARE = 0.5
"""The share of the window: a server that waited this long for a core may have had no time to answer."""


def _has_wrong_replies(trial: Trial) -> bool:
    load = trial.load
    if load is None:
        return False
    if load.replies and load.replies.unexpected > 0 and load.messages.received == 0:
        return True  # some status in place of the right one to every request
    mixed_up = 0 if transports.may_lose(load) else load.messages.duplicated + load.messages.reordered
    return load.messages.corrupt + mixed_up + load.errors.get("protocol", 0) > 0


def _is_silent(trial: Trial) -> bool:
    """Whether the server answered nothing, neither the load nor the closing check, and no busy machine can be the
    cause: it refused or closed every connection, or it had its core (the scheduler counts its wait for one)."""
    load, server = trial.load, trial.server
    answers_at_end = all(audit.passed for audit in trial.audits if audit.name == "server_alive")
    if load is None or load.messages.received > 0 or answers_at_end:
        return False
    if has_lost_all_connections(load):
        return _refused_all_connections(trial)
    return server is not None and load.messages.sent > 0 and server.run_queue_wait_s < STARVED_SHARE * server.window_s


def _refused_all_connections(trial: Trial) -> bool:
    """Whether the server refused or closed every connection, and none was merely late."""
    load = trial.load
    return (
        load is not None and has_lost_all_connections(load) and load.connections.timed_out + load.connections.other == 0
    )


def is_disturbed(trial: Trial) -> bool:
    """Whether the machine was not the trial's own, and no fault is certain: then the trial is repeated. No figure of
    the load is used."""
    return trial.status not in ("skipped", "failed") and bool(disturbances(trial)) and not faults(trial)


def had_company(trial: Trial) -> bool:
    """Whether an audit saw others take the trial's cores or caches."""
    return any(audit.name in OF_OTHERS for audit in failed(trial, "machine"))


def has_saturated(trial: Trial) -> bool:
    """Whether the generator of the trial was at its limit, or behind its schedule."""
    load = trial.load
    if load is None or not failed(trial, "instrument"):
        return False
    return busiest(load) >= SATURATED or any(audit.name == "achieved_rate" for audit in failed(trial, "instrument"))


def is_beyond(trial: Trial) -> bool:
    """Whether an open loop requested too much of its generator. A generator without connections, which also sends too
    little, does not count."""
    load = trial.load
    return load is not None and bool(load.plan.rate_hz) and has_saturated(trial) and not has_lost_all_connections(load)


def by_itself(trial: Trial) -> Status:
    """Return the status of a trial before the others are known (`judged`): a trial that only the generator's own audit
    doubts will count, at least as a bound."""
    doubted = bool(failed(trial, "instrument")) and not disturbances(trial) and not _is_spoilt(trial)
    return "censored" if doubted and trial.load is not None and trial.status == "struck_out" else trial.status


def busiest(load: LoadResult) -> float:
    """Return the share of a core that the generator's busiest thread used, without spinning."""
    used = (thread.cpu_user_s + thread.cpu_system_s - thread.spun_s for thread in load.generator.threads)
    return max(used, default=0.0) / load.plan.duration_s


# --- of a run ----------------------------------------------------------------------------------------------------


class Saturated(msgspec.Struct, frozen=True):
    """A cell in which a contestant kept the generator at its limit: its figures are bounds, for all contestants. Its
    share of a core is the median over that contestant's trials."""

    scenario: str
    level: str
    """The level's key."""
    contestant: str
    share: float


def judge_run(run: Run) -> Run:
    """Return the run with the final status of each trial: `faulty` where the server failed, `made_again` where the
    machine was disturbed and a later try of the same place replaced it, `censored` in a cell that saturates the
    generator for any contestant. In every other cell, trials that only the generator's own audit doubts count, because
    to exclude single trials for it would exclude fast ones. No trial counts of a scenario in which other programs ran
    beside one contestant and spared another."""
    compared = _list_generator_scenarios(run)
    run = _doubt_uneven(_excuse_unproven(run, compared))
    tried_again = {
        (trial.block, trial.position, attempt) for trial in run.all_trials for attempt in range(1, trial.attempt)
    }
    censored = {(cell.scenario, cell.level) for cell in saturated(run)}

    def decide(trial: Trial) -> Status:
        if trial.status == "skipped":
            return "skipped"
        if trial.scenario in compared and faults(trial):
            return "faulty"
        if trial.status == "failed":
            return "failed"
        if disturbances(trial):
            return "made_again" if (trial.block, trial.position, trial.attempt) in tried_again else "struck_out"
        if _is_spoilt(trial) or _is_unexplained(trial) or _lacks_replies(trial):
            return "struck_out"
        return "censored" if (trial.scenario, level_key(trial.levels)) in censored else "valid"

    return _change_trials(run, lambda trial: msgspec.structs.replace(trial, status=decide(trial)))


def _change_trials(run: Run, change: Callable[[Trial], Trial]) -> Run:
    """Return the run in which each trial is changed, the twins included."""
    return msgspec.structs.replace(run, trials=tuple(map(change, run.trials)), twins=tuple(map(change, run.twins)))


def _doubt_uneven(run: Run) -> Run:
    """Return the run with a failed audit in each trial of a scenario whose contestants did not meet the same
    neighbours."""
    counted = (trial for trial in run.trials if trial.status != "skipped" and not disturbances(trial))
    uneven = uneven_load.find_uneven(counted)

    def doubt(trial: Trial) -> Trial:
        audit = uneven.get(trial.scenario)
        return trial if audit is None else msgspec.structs.replace(trial, audits=(*trial.audits, audit))

    return _change_trials(run, doubt)


MOST_CHANCE = 0.01
"""The chance below which the others of a scenario show a fault so much less often than a contestant."""
FEWEST_EVENTS = 2
"""A single event is no habit, in however few trials."""
BUSY_SHARE = 0.1
"""The share of the cores' time from which on other programs may be why all contestants show a fault in most trials."""
INCOMPLETE = ("killed", *WRONG, "connections", "completed")
"""The faults by which replies are missing from a trial's figures."""


def _excuse_unproven(run: Run, scenarios: Collection[str]) -> Run:
    """Return the run with a note `unproven` in place of each fault in the scenarios that the machine may have caused:
    it takes a core for half a second, and in a closed loop no counter or witness says so (docs/adr/turns.md). A stall,
    a late end and wrong totals leave the trial's figures as they are."""
    proven = _find_proven(run.all_trials)

    def excuse(trial: Trial) -> Trial:
        if trial.scenario not in scenarios:
            return trial
        cell = (trial.scenario, level_key(trial.levels), trial.contestant)
        excused = {fault.name for fault in _list_possible(trial) if (*cell, fault.name) not in proven}
        audits = tuple(excuse_fault(audit) if audit.name in excused else audit for audit in trial.audits)
        return msgspec.structs.replace(trial, audits=audits) if excused else trial

    return _change_trials(run, excuse)


def excuse_fault(fault: Audit) -> Audit:
    """Return the failed audit of a server as a note."""
    return Audit(name="unproven", passed=fault.passed, detail=f"{fault.name}: {fault.detail}")


def unproven_faults(trial: Trial) -> tuple[Audit, ...]:
    """Return the faults of a judged trial that may be the machine's, causes before their consequences."""
    notes = [audit for audit in failed(trial, "note") if audit.name == "unproven"]
    return _sort_by_cause(trial, list(map(_restore_fault, notes)))


def _restore_fault(note: Audit) -> Audit:
    name, _, detail = note.detail.partition(": ")
    return msgspec.structs.replace(note, name=name, detail=detail)


def _list_possible(trial: Trial) -> tuple[Audit, ...]:
    """Return the faults that a pause of the machine can cause."""
    certain = certain_faults(trial)
    return tuple(fault for fault in failed(trial, "server") if fault not in certain)


def _find_proven(trials: Iterable[Trial]) -> frozenset[tuple[str, str, str, str]]:
    """Return scenario, level, contestant and fault where it is proven to be the contestant's own, at the level or over
    all levels of the scenario."""
    counted = [trial for trial in trials if trial.status != "skipped" and not disturbances(trial)]
    proven: set[tuple[str, str, str, str]] = set()
    for scenario, group in _group_trials(counted, lambda trial: trial.scenario).items():
        everywhere = _find_own_faults(group)
        for level, at_level in _group_trials(group, lambda trial: level_key(trial.levels)).items():
            proven |= {(scenario, level, *own) for own in everywhere | _find_own_faults(at_level)}
    return frozenset(proven)


def _group_trials(trials: Iterable[Trial], key: Callable[[Trial], str]) -> dict[str, list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return groups


def _find_own_faults(trials: Sequence[Trial]) -> set[tuple[str, str]]:
    """Return contestant and fault where it is the contestant's own by these trials."""
    own: set[tuple[str, str]] = set()
    contestants = _group_trials(trials, lambda trial: trial.contestant)
    kinds = {fault.name for trial in trials for fault in _list_possible(trial)}
    for name, kind_name in itertools.product(contestants, kinds):
        others = [trial for trial in trials if trial.contestant != name]
        if _is_own(kind_name, contestants[name], others):
            own.add((name, kind_name))
    return own


def _is_own(fault: str, trials: Sequence[Trial], others: Sequence[Trial]) -> bool:
    """Whether a contestant shows a fault more often than the others, by Fisher's exact test: a pause of the machine
    meets all alike. Or in most of its trials, whatever the others do: of those on a quiet machine, unless the fault is
    none of time."""
    quiet = [_has_fault(trial, fault) for trial in trials if fault == "work" or not was_machine_busy(trial)]
    events, other_events = (sum(_has_fault(trial, fault) for trial in group) for group in (trials, others))
    if sum(quiet) >= FEWEST_EVENTS and 2 * sum(quiet) > len(quiet):
        return True
    return exact.compute_chance(events, len(trials), other_events, len(others)) < MOST_CHANCE


def _has_fault(trial: Trial, fault: str) -> bool:
    return any(audit.name == fault for audit in _list_possible(trial))


def was_machine_busy(trial: Trial) -> bool:
    """Whether other work shared the cores, by the kernel's count: with --foreign-load count no audit says so."""
    machine = trial.machine
    if trial.neighbour is not None or machine is None:
        return trial.neighbour is not None
    return machine.foreign_s + machine.steal_s > BUSY_SHARE * machine.cores * machine.window_s


def _lacks_replies(trial: Trial) -> bool:
    """Whether replies are missing from the figures, though it is not proven that the server is why."""
    return any(fault.name in INCOMPLETE for fault in unproven_faults(trial))


def counts(run: Run) -> dict[str, int]:
    """Count the trials by their final status, with 0 for a status that did not occur. Bounds are valid."""
    numbers = Counter(trial.status for trial in judge_run(run).all_trials)
    numbers["valid"] += numbers["censored"]
    return {status: numbers[status] for status in ("valid", "struck_out", "faulty", "failed", "skipped", "made_again")}


def saturated(run: Run) -> tuple[Saturated, ...]:
    """Return the cells in which more than half of a contestant's trials kept the generator at its limit, in the order
    of their names. Trials that the machine or the server spoilt do not count."""
    cells: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in run.all_trials:
        if trial.load is not None and not disturbances(trial) and not _is_spoilt(trial):
            cells.setdefault((trial.scenario, level_key(trial.levels), trial.contestant), []).append(trial)
    return tuple(
        Saturated(*key, statistics.median(busiest(trial.load) for trial in trials if trial.load))
        for key, trials in sorted(cells.items())
        if 2 * sum(map(has_saturated, trials)) > len(trials)
    )


def _is_spoilt(trial: Trial) -> bool:
    """Whether an audit of the server failed, other than for messages that the generator could not send. Where nothing
    was answered within the window, no figure can be a bound."""
    of_server = failed(trial, "server")
    return bool(faults(trial) if is_beyond(trial) else of_server) or any(
        audit.name == "completed" for audit in of_server
    )


def _is_unexplained(trial: Trial) -> bool:
    """Whether a trial is invalid though no audit failed."""
    return trial.status == "struck_out" and all(audit.passed for audit in trial.audits)


def _list_generator_scenarios(run: Run) -> frozenset[str]:
    """Return the scenarios in which a fault can only be the server's: with a client contestant it may be the
    client's."""
    return frozenset(scenario.name for scenario in run.experiment.scenarios if _has_only_generator(scenario))


def _has_only_generator(scenario: Scenario) -> bool:
    return scenario.client == GENERATOR and set(scenario.factors.get("client", (GENERATOR,))) == {GENERATOR}

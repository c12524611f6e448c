"""The consequences of failed audits: three kinds, three consequences (docs/adr/audit-kinds.md). Pure functions.

A failure of the SERVER is a result, and the server is ranked apart. One of the INSTRUMENT is decided per cell, for all
contestants alike, from all of its trials (`judged`). One of the MACHINE: the trial is repeated. A note is only
reported."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from netdyno.model import transports
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.run import Run
from netdyno.model.trial import Status, Trial

Kind = Literal["server", "instrument", "machine", "note"]

KINDS: Mapping[str, Kind] = {
    "died": "server",
    "verification": "server",
    "bytes": "server",
    "connections": "server",
    "completed": "server",
    "stalled": "server",
    "server_alive": "server",
    "server_totals": "server",
    "generator": "instrument",
    "achieved_rate": "instrument",
    "little": "machine",
    "plausible": "machine",
    "window": "machine",
    "harness_quiet": "machine",
    "observation": "machine",
    "steal": "machine",
    "throttled": "machine",
    "foreign_load": "machine",
    "canary": "machine",
    "link": "machine",
    "turns": "machine",
    "side_by_side": "machine",
    "backlog": "machine",
    "rotation": "machine",
    "common_start": "machine",
    "client_slower": "machine",
    "client_stalled": "machine",
    "paused": "note",
    "stationary": "note",
    "left_behind": "note",
}
"""The kinds by the name of an audit; a test compares them with the audits that exist. Accounts that contradict each
other (`little`, `plausible`) show nothing about a server: the measurement is repeated."""

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


def kind(audit: str) -> Kind:
    """Return the kind of an audit by its name; an unknown, former audit shows nothing about a server."""
    return KINDS.get(audit, "machine")


def failed(trial: Trial, audit_kind: Kind) -> tuple[Audit, ...]:
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
    contestant connects again."""
    ended_early = sum(load.errors.get(how, 0) for how in ("closed_by_server", "reset", "protocol"))
    return load.client is None and ended_early >= load.connections.established


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
    causes = [name for name in CAUSES if name not in WRONG or _has_wrong_replies(trial)]
    return tuple(
        sorted(server_faults, key=lambda audit: causes.index(audit.name) if audit.name in causes else len(causes))
    )


def certain_faults(trial: Trial) -> tuple[Audit, ...]:
    """Return the faults of the server that no pause of a machine can cause."""
    return tuple(
        audit
        for audit in failed(trial, "server")
        if audit.name == "died"
        or (audit.name in WRONG and _has_wrong_replies(trial))
        or (audit.name == "completed" and _is_silent(trial))
        or (audit.name == "connections" and _is_silent(trial) and _refused_all_connections(trial))
    )


WRONG = ("verification", "bytes")
CAUSES = ("died", *WRONG, "connections", "completed")
"""The order in which a server's faults are reported: dropped connections lose replies, and a server that answers
nothing loses all of them."""
STARVED_SHARE = 0.5
"""The share of the window: a server that waited this long for a core may have had no time to answer."""


def _has_wrong_replies(trial: Trial) -> bool:
    load = trial.load
    if load is None:
        return False
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
    """Return the share of a core that the generator's busiest thread used, without its lookout for messages."""
    used = (thread.cpu_user_s + thread.cpu_system_s - thread.spun_s for thread in load.generator.threads)
    return max(used, default=0.0) / load.plan.duration_s


# --- of a run ----------------------------------------------------------------------------------------------------


class Saturated(NamedTuple):
    """A cell in which a contestant kept the generator at its limit: its figures are bounds, for all contestants. Its
    share of a core is the median over that contestant's trials."""

    scenario: str
    level: str
    """The level's key."""
    contestant: str
    share: float


def judged(run: Run) -> Run:
    """Return the run with the final status of each trial: `faulty` where the server failed, `made_again` where the
    machine was disturbed and a later try of the same place replaced it, `censored` in a cell that saturates the
    generator for any contestant. In every other cell, trials that only the generator's own audit doubts count, because
    to exclude single trials for it would exclude fast ones."""
    run = _excuse_pauses(run)
    compared = _list_generator_scenarios(run)
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
        if _is_spoilt(trial) or _is_unexplained(trial):
            return "struck_out"
        return "censored" if (trial.scenario, level_key(trial.levels)) in censored else "valid"

    def decide_all(trials: Iterable[Trial]) -> tuple[Trial, ...]:
        return tuple(msgspec.structs.replace(trial, status=decide(trial)) for trial in trials)

    return msgspec.structs.replace(run, trials=decide_all(run.trials), twins=decide_all(run.twins))


OWN_STALLS = 0.01
"""The chance below which others of a scenario stall so much less often than a contestant."""


def _excuse_pauses(run: Run) -> Run:
    """Return the run with `paused` in place of `stalled` where a pause of the machine may be the cause: a hypervisor
    takes a core for half a second, and in a closed loop no counter or witness says so (docs/adr/turns.md). Such a trial
    counts, with its silence."""
    if not any(map(_has_stalled, run.all_trials)):
        return run
    own = _find_own_stalls(run.all_trials)

    def excuse(trial: Trial) -> Trial:
        if (trial.scenario, trial.contestant) in own or not _has_stalled(trial):
            return trial
        audits = tuple(excuse_stall(audit) if audit.name == "stalled" else audit for audit in trial.audits)
        return msgspec.structs.replace(trial, audits=audits)

    return msgspec.structs.replace(run, trials=tuple(map(excuse, run.trials)), twins=tuple(map(excuse, run.twins)))


def excuse_stall(stalled: Audit) -> Audit:
    """Return the audit `stalled` as a note."""
    return Audit(name="paused", passed=stalled.passed, detail=stalled.detail)


def _find_own_stalls(trials: Iterable[Trial]) -> frozenset[tuple[str, str]]:
    """Return scenario and name of the contestants that stalled in more than half of their trials, or alone, or by
    Fisher's exact test more often than the others there: a pause of the machine meets all alike."""
    by_scenario: dict[str, dict[str, list[bool]]] = {}
    for trial in trials:
        if trial.load is not None and not disturbances(trial):
            contestants = by_scenario.setdefault(trial.scenario, {})
            contestants.setdefault(trial.contestant, []).append(_has_stalled(trial))
    return frozenset(
        (scenario, name)
        for scenario, contestants in by_scenario.items()
        for name, stalls in contestants.items()
        if _are_own(stalls, list(itertools.chain.from_iterable(contestants.values())))
    )


def _are_own(stalls: Sequence[bool], of_all: Sequence[bool]) -> bool:
    """Return whether the stalls among a contestant's trials are its own doing; `of_all`: those of all there."""
    count = sum(stalls)
    is_alone, is_usual = count == sum(of_all), 2 * count > len(stalls)
    return count > 0 and (is_alone or is_usual or _compute_chance(stalls, of_all) < OWN_STALLS)


def _has_stalled(trial: Trial) -> bool:
    return any(audit.name == "stalled" and not audit.passed for audit in trial.audits)


def _compute_chance(own: Sequence[bool], of_all: Sequence[bool]) -> float:
    """Return the chance of at least as many stalls of one contestant where those of all are dealt out at random."""
    trials, stalls = len(of_all), sum(of_all)
    dealt = (
        math.comb(len(own), count) * math.comb(trials - len(own), stalls - count)
        for count in range(sum(own), min(len(own), stalls) + 1)
    )
    return sum(dealt) / math.comb(trials, stalls)


def counts(run: Run) -> dict[str, int]:
    """Count the trials by their final status, with 0 for a status that did not occur. Bounds are valid."""
    numbers = Counter(trial.status for trial in judged(run).all_trials)
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

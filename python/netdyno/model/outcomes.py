"""What a failed audit says, and of whom: three kinds, three consequences (docs/adr/audit-kinds.md). Pure functions.

Of the SERVER: a result. Who has one is ranked apart. Of the INSTRUMENT: decided per cell, for all contestants alike,
from all of its trials (`judged`). Of the MACHINE: the trial is made again. A note has no consequence but to be told."""

from __future__ import annotations

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
    "common_start": "machine",
    "client_slower": "machine",
    "client_stalled": "machine",
    "stationary": "note",
    "left_behind": "note",
}
"""By the name of an audit; a test holds it against the audits that there are. Accounts that contradict each other
(`little`, `plausible`) say nothing of a server: the measurement is made again."""

OF_OTHERS = ("steal", "foreign_load", "canary", "turns")
"""Audits that see another at work. The rest of the machine's see only that something does not fit."""

VALID: tuple[Status, ...] = ("valid",)
RANKED: tuple[Status, ...] = ("valid", "censored")
"""What a ranking is made of: in a cell that saturates the generator all figures are bounds, and are told as such."""
MEASURED: tuple[Status, ...] = ("valid", "censored", "struck_out", "faulty")

SATURATED = 0.85
"""Of a core: from so much on the busiest thread of the generator is what limits (loadgen/audits.cpp)."""


def kind(audit: str) -> Kind:
    """Of an audit by its name; one that is not known any more says nothing of a server."""
    return KINDS.get(audit, "machine")


def failed(trial: Trial, of: Kind) -> tuple[Audit, ...]:
    """Its failed audits of one kind."""
    return tuple(audit for audit in trial.audits if not audit.passed and kind(audit.name) == of)


def verdict(audits: Sequence[Audit]) -> tuple[Status, str]:
    """Valid, or struck out with every reason. A note is no reason."""
    reasons = [f"{audit.name}: {audit.detail}" for audit in audits if not audit.passed and kind(audit.name) != "note"]
    return ("struck_out", "; ".join(reasons)) if reasons else ("valid", "")


# --- of one load -----------------------------------------------------------------------------------------------------

RATE_TOLERANCE = 0.01
FEW_MESSAGES = 3
CHANCE_SIGMAS = 4
"""As in loadgen/audits.cpp: what may be missing of the asked rate, and how far Poisson arrivals stray by chance."""


def rate_kept(load: LoadResult) -> float | None:
    """The share of the offered rate that was answered; 1 where the rate was kept as closely as the generator's audit
    asks, for chance in the arrivals is no difference. None in a closed loop."""
    if not load.plan.rate_hz:
        return None
    asked = load.plan.rate_hz * load.plan.duration_s * (1 - (transports.share_lost(load) or 0.0))
    chance = CHANCE_SIGMAS * math.sqrt(asked) if load.plan.arrivals == "poisson" else 0.0
    missing = asked - load.requests.completed
    return 1.0 if missing <= RATE_TOLERANCE * asked + FEW_MESSAGES + chance else load.requests.completed / asked


def has_lost_all_connections(load: LoadResult) -> bool:
    """Whether none was established, or each ended early: the load then ends before its window does. A client contestant
    connects again."""
    ended_early = sum(load.errors.get(how, 0) for how in ("closed_by_server", "reset", "protocol"))
    return load.client is None and ended_early >= load.connections.established


# --- of one trial ------------------------------------------------------------------------------------------------


def disturbances(trial: Trial) -> tuple[Audit, ...]:
    """What the machine did to it. In an overload the queue grows as long as the load lasts, and Little's law does not
    hold for that alone."""
    found = failed(trial, "machine")
    overloaded = trial.load is not None and (rate_kept(trial.load) or 1.0) < 1.0
    return tuple(audit for audit in found if not (audit.name == "little" and overloaded))


def faults(trial: Trial) -> tuple[Audit, ...]:
    """What the server did wrong, the cause before what follows from it. Where the machine was disturbed, only what no
    pause of a machine can cause: a server that ended, replies that were wrong, and no reply at all. So where an open
    loop asked for more than the generator could send: what it gave up on is lost."""
    found = certain_faults(trial) if disturbances(trial) or is_beyond(trial) else failed(trial, "server")
    causes = [name for name in CAUSES if name not in WRONG or _has_wrong_replies(trial)]
    return tuple(sorted(found, key=lambda audit: causes.index(audit.name) if audit.name in causes else len(causes)))


def certain_faults(trial: Trial) -> tuple[Audit, ...]:
    """Those of a server that no pause of a machine can cause."""
    return tuple(
        audit
        for audit in failed(trial, "server")
        if audit.name == "died"
        or (audit.name in WRONG and _has_wrong_replies(trial))
        or (audit.name == "completed" and _is_silent(trial))
        or (audit.name == "connections" and _is_silent(trial) and _let_nobody_stay(trial))
    )


WRONG = ("verification", "bytes")
CAUSES = ("died", *WRONG, "connections", "completed")
"""The order in which a server's faults are told: one that drops connections loses replies, and one that answers nothing
loses all of them."""
STARVED_SHARE = 0.5
"""Of the window: a server that waited so long for a core may have had no time to answer."""


def _has_wrong_replies(trial: Trial) -> bool:
    load = trial.load
    if load is None:
        return False
    mixed_up = 0 if transports.may_lose(load) else load.messages.duplicated + load.messages.reordered
    return load.messages.corrupt + mixed_up + load.errors.get("protocol", 0) > 0


def _is_silent(trial: Trial) -> bool:
    """Whether the server answered nothing, neither the load nor the closing check, and no busy machine can be why: it
    refused or closed every connection, or it had its core. Where it has not, its scheduler counts how long it waits."""
    load, server = trial.load, trial.server
    answers_at_end = all(audit.passed for audit in trial.audits if audit.name == "server_alive")
    if load is None or load.messages.received > 0 or answers_at_end:
        return False
    if has_lost_all_connections(load):
        return _let_nobody_stay(trial)
    return server is not None and load.messages.sent > 0 and server.run_queue_wait_s < STARVED_SHARE * server.window_s


def _let_nobody_stay(trial: Trial) -> bool:
    """Whether the server refused or closed every connection, and none was merely late."""
    load = trial.load
    return (
        load is not None and has_lost_all_connections(load) and load.connections.timed_out + load.connections.other == 0
    )


def is_disturbed(trial: Trial) -> bool:
    """Whether the machine was not the trial's own, and nothing else is certain of it: then it is made again. No figure
    of the load is looked at."""
    return trial.status not in ("skipped", "failed") and bool(disturbances(trial)) and not faults(trial)


def had_company(trial: Trial) -> bool:
    """Whether an audit saw others use its cores or its caches."""
    return any(audit.name in OF_OTHERS for audit in failed(trial, "machine"))


def has_saturated(trial: Trial) -> bool:
    """Whether its generator was at its limit, or behind its schedule."""
    load = trial.load
    if load is None or not failed(trial, "instrument"):
        return False
    return busiest(load) >= SATURATED or any(audit.name == "achieved_rate" for audit in failed(trial, "instrument"))


def is_beyond(trial: Trial) -> bool:
    """Whether an open loop asked its generator for too much. A generator without connections sends too little, too."""
    load = trial.load
    return load is not None and bool(load.plan.rate_hz) and has_saturated(trial) and not has_lost_all_connections(load)


def by_itself(trial: Trial) -> Status:
    """What can be said of a trial before others are known (`judged`): what only the generator's own audit doubts will
    count, if only as a bound."""
    doubted = bool(failed(trial, "instrument")) and not disturbances(trial) and not _spoilt(trial)
    return "censored" if doubted and trial.load is not None and trial.status == "struck_out" else trial.status


def busiest(load: LoadResult) -> float:
    """The share of a core that the generator's busiest thread used, without its lookout for messages."""
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
    """The run with the consequences drawn, in the status of each trial: `faulty` where the server failed, `made_again`
    where the machine was disturbed and a later try of the same place took its stead, `censored` in a cell that
    saturates the generator for someone. What only the generator's own audit doubts counts in every other cell, for to
    leave out single trials for it would be to leave out fast ones."""
    compared = _of_generator(run)
    tried_again = {
        (trial.block, trial.position, attempt) for trial in run.all_trials for attempt in range(1, trial.attempt)
    }
    censored = {(cell.scenario, cell.level) for cell in saturated(run)}

    def of(trial: Trial) -> Status:
        if trial.status == "skipped":
            return "skipped"
        if trial.scenario in compared and faults(trial):
            return "faulty"
        if trial.status == "failed":
            return "failed"
        if disturbances(trial):
            return "made_again" if (trial.block, trial.position, trial.attempt) in tried_again else "struck_out"
        if _spoilt(trial) or _is_struck_out_for_nothing_known(trial):
            return "struck_out"
        return "censored" if (trial.scenario, level_key(trial.levels)) in censored else "valid"

    def all_of(trials: Iterable[Trial]) -> tuple[Trial, ...]:
        return tuple(msgspec.structs.replace(trial, status=of(trial)) for trial in trials)

    return msgspec.structs.replace(run, trials=all_of(run.trials), twins=all_of(run.twins))


def counts(run: Run) -> dict[str, int]:
    """How many trials came out how once the consequences are drawn, those that did not occur as 0. Bounds are valid."""
    found = Counter(trial.status for trial in judged(run).all_trials)
    found["valid"] += found["censored"]
    return {status: found[status] for status in ("valid", "struck_out", "faulty", "failed", "skipped", "made_again")}


def saturated(run: Run) -> tuple[Saturated, ...]:
    """The cells in which more than half of some contestant's trials kept the generator at its limit, in the order of
    their names. Trials that the machine or the server spoilt have no say."""
    cells: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in run.all_trials:
        if trial.load is not None and not disturbances(trial) and not _spoilt(trial):
            cells.setdefault((trial.scenario, level_key(trial.levels), trial.contestant), []).append(trial)
    return tuple(
        Saturated(*key, statistics.median(busiest(trial.load) for trial in trials if trial.load))
        for key, trials in sorted(cells.items())
        if 2 * sum(map(has_saturated, trials)) > len(trials)
    )


def _spoilt(trial: Trial) -> bool:
    """Whether an audit of the server failed, and not for what the generator could not send. Where nothing was answered
    within the window, there is no figure that could be a bound."""
    of_server = failed(trial, "server")
    return bool(faults(trial) if is_beyond(trial) else of_server) or any(one.name == "completed" for one in of_server)


def _is_struck_out_for_nothing_known(trial: Trial) -> bool:
    return trial.status == "struck_out" and all(audit.passed for audit in trial.audits)


def _of_generator(run: Run) -> frozenset[str]:
    """The scenarios in which a fault can only be the server's: beside a client contestant it may be the client's."""
    return frozenset(scenario.name for scenario in run.experiment.scenarios if _only_generator(scenario))


def _only_generator(scenario: Scenario) -> bool:
    return scenario.client == GENERATOR and set(scenario.factors.get("client", (GENERATOR,))) == {GENERATOR}

"""The verdict of one trial on an objective: it held, it did not, or the trial does not count. Pure functions.

An invalid trial counts here: an overloaded server, or one that answered wrongly, does not meet its objective at this
rate. Only trials that failed for a reason other than the server are left out."""

from __future__ import annotations

from typing import NamedTuple

from netdyno.analysis.capacity.search import SearchOutcome
from netdyno.analysis.found.capacity import FailedAudits, Incomplete, Missed, NoAnswer, Overload, Reason
from netdyno.model import outcomes, transports
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import LoadResult
from netdyno.model.objective import LOST, Objective
from netdyno.model.outcomes import rate_kept
from netdyno.model.trial import Trial

ACHIEVED_RATE = "achieved_rate"


class Verdict(NamedTuple):
    """The outcome of a trial; `why` is None where the objective held, and only there."""

    outcome: SearchOutcome
    why: Reason | None = None


def judge_capacity(trial: Trial, objective: Objective, scenario: Scenario) -> Verdict:
    """Judge a trial at a prescribed rate. The order is that of blame: first the measuring side, then the server. A
    generator that others keep from its core is late and not at its limit: times that hold are then bounds, and times
    that do not are the machine's."""
    if trial.load is None and outcomes.is_disturbed(trial):  # ended early
        return Verdict("disturbed", FailedAudits(outcomes.disturbances(trial)))
    if trial.load is None or trial.status in ("failed", "skipped"):
        return Verdict("broken", Incomplete(trial.reason))
    failed = {audit.name: audit for audit in trial.audits if not audit.passed}
    # Without any answer the generator's lag has nothing to be compared with: its audit fails, and blames the wrong
    # side.
    late = failed.get(outcomes.ABOUT_THE_GENERATOR) if trial.load.latency.response_ns.count else None
    if late and (outcomes.has_saturated(trial) or not outcomes.was_machine_busy(trial)):
        return Verdict("generator", FailedAudits((late,)))
    if disturbances := outcomes.disturbances(trial):
        return Verdict("disturbed", FailedAudits(disturbances))
    if ACHIEVED_RATE in failed and not (outcomes.has_lost_all_connections(trial.load) or _were_under_way(trial.load)):
        # More answers than messages: answers held up in the warm-up came within the window.
        held_up = trial.load.requests.completed > trial.load.requests.sent
        return Verdict("disturbed" if held_up else "generator", FailedAudits((failed[ACHIEVED_RATE],)))
    if outcomes.has_lost_all_connections(trial.load):
        return Verdict("failed", FailedAudits(outcomes.faults(trial)))
    if behind := find_overload(trial.load):
        return Verdict("failed", behind)
    if trial.load.requests.completed == 0:
        return Verdict("failed", NoAnswer())
    if server_faults := outcomes.failed(trial, "server"):
        return Verdict("failed", FailedAudits(server_faults))
    missed, lost = objective.broken(trial.load), _find_excess_loss(trial.load, objective, scenario)
    if not missed and lost is None:
        return Verdict("held")
    if missed and late:
        return Verdict("disturbed", FailedAudits((late,)))
    return Verdict("failed", Missed(missed, lost, scenario.loss_bound))


def _were_under_way(load: LoadResult) -> bool:
    """Return whether the answers beyond the messages sent are no more than were under way as the window began. At a few
    hundred messages a second these are more than the audit allows."""
    excess = load.requests.completed - load.requests.sent
    if load.plan.rate_hz is None or not load.latency.response_ns.count:
        return False
    return 0 < excess <= load.plan.rate_hz * load.latency.response_ns.p99 / 1e9


def find_overload(load: LoadResult) -> Overload | None:
    """Return how far the answers stayed behind the requested rate, None where they did not. The audit `achieved_rate`
    passes such a trial, for it shows how fast the server is; but no client is served by waiting ever longer. Messages
    that a transport lost are no overload."""
    if load.plan.rate_hz is None or rate_kept(load) == 1.0:
        return None
    return Overload(load.requests.per_second, load.plan.rate_hz)


def _find_excess_loss(load: LoadResult, objective: Objective, scenario: Scenario) -> float | None:
    """Return the lost share beyond the scenario's bound. The bound holds over a transport that may lose messages where
    the objective does not speak of loss: a latency without the lost messages says too little (docs/adr/loss.md)."""
    lost = transports.share_lost(load)
    if lost is None or any(term.name == LOST for term in objective.terms) or lost <= scenario.loss_bound:
        return None
    return lost

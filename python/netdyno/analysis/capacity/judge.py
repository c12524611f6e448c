"""What one trial says about an objective: it held, it did not, or the trial is no witness. Pure functions.

A struck-out trial is not thrown away here: that a server was overloaded or answered wrongly is an answer to the
question whether it keeps its promise at this rate. Only what is no fault of the server's is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from netdyno.analysis.capacity.search import Outcome
from netdyno.audits.of_trial import ABOUT_THE_GENERATOR
from netdyno.model import outcomes, transports
from netdyno.model.base import Quoted
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.objective import LOST, Objective, Term
from netdyno.model.outcomes import rate_kept
from netdyno.model.trial import Trial

ACHIEVED_RATE = "achieved_rate"


@dataclass(frozen=True)
class FailedAudits:
    """They took the trial away from the server, or found it at fault."""

    audits: tuple[Audit, ...]


@dataclass(frozen=True)
class Incomplete:
    """The trial was not completed."""

    reason: Quoted


@dataclass(frozen=True)
class Overload:
    """The answers stayed behind the offered rate, in messages per second."""

    answered_hz: float
    offered_hz: float


@dataclass(frozen=True)
class NoAnswer:
    """To anything."""


@dataclass(frozen=True)
class Missed:
    """The terms of the objective that were not kept, each with its figure. `lost` is a share of lost messages above the
    bound of a scenario whose objective does not speak of loss, None where there was no such loss."""

    terms: tuple[tuple[Term, float], ...]
    lost: float | None
    bound: float


Reason = FailedAudits | Incomplete | Overload | NoAnswer | Missed


class Verdict(NamedTuple):
    """`why` is None of what held, and of nothing else."""

    outcome: Outcome
    why: Reason | None = None


def judge(trial: Trial, objective: Objective, scenario: Scenario) -> Verdict:
    """What a trial at a prescribed rate says. The order is that of blame: first who measures, then who is measured."""
    if trial.load is None and outcomes.is_disturbed(trial):  # ended early
        return Verdict("disturbed", FailedAudits(outcomes.disturbances(trial)))
    if trial.load is None or trial.status in ("failed", "skipped"):
        return Verdict("broken", Incomplete(trial.reason))
    failed = {audit.name: audit for audit in trial.audits if not audit.passed}
    # Without any answer the generator's lag has nothing to stand beside: its audit fails, and blames the wrong one.
    if ABOUT_THE_GENERATOR in failed and trial.load.latency.response_ns.count:
        return Verdict("generator", FailedAudits((failed[ABOUT_THE_GENERATOR],)))
    if of_the_machine := outcomes.disturbances(trial):
        return Verdict("disturbed", FailedAudits(of_the_machine))
    if ACHIEVED_RATE in failed and not outcomes.has_lost_all_connections(trial.load):
        # More answers than messages: what was held up in the warm-up came within the window.
        held_up = trial.load.requests.completed > trial.load.requests.sent
        return Verdict("disturbed" if held_up else "generator", FailedAudits((failed[ACHIEVED_RATE],)))
    if outcomes.has_lost_all_connections(trial.load):
        return Verdict("failed", FailedAudits(outcomes.faults(trial)))
    if behind := overload(trial.load):
        return Verdict("failed", behind)
    if trial.load.requests.completed == 0:
        return Verdict("failed", NoAnswer())
    if of_the_server := outcomes.failed(trial, "server"):
        return Verdict("failed", FailedAudits(of_the_server))
    missed, lost = objective.broken(trial.load), _too_much_lost(trial.load, objective, scenario)
    if not missed and lost is None:
        return Verdict("held")
    return Verdict("failed", Missed(missed, lost, scenario.loss_bound))


def overload(load: LoadResult) -> Overload | None:
    """How far the answers stayed behind the asked rate, None where they did not. The audit `achieved_rate` passes such
    a trial, for it says how fast the server is; but nobody is served who waits ever longer. What a transport lost is no
    overload."""
    if load.plan.rate_hz is None or rate_kept(load) == 1.0:
        return None
    return Overload(load.requests.per_second, load.plan.rate_hz)


def _too_much_lost(load: LoadResult, objective: Objective, scenario: Scenario) -> float | None:
    """Over a transport that may lose messages, an objective that does not speak of loss still has the bound of the
    scenario: a latency without the messages that never came says too little (docs/adr/loss.md)."""
    lost = transports.share_lost(load)
    if lost is None or any(term.name == LOST for term in objective.terms) or lost <= scenario.loss_bound:
        return None
    return lost

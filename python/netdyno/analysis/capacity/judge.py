"""What one trial says about an objective: it held, it did not, or the trial is no witness. Pure functions.

A struck-out trial is not thrown away here: that a server was overloaded or answered wrongly is an answer to the
question whether it keeps its promise at this rate. Only what is no fault of the server's is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from netdyno.analysis.capacity.search import Outcome
from netdyno.audits.of_trial import ABOUT_THE_GENERATOR
from netdyno.base import quantities
from netdyno.model import outcomes, transports
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.objective import LOST, Objective
from netdyno.model.outcomes import rate_kept
from netdyno.model.trial import Trial

ACHIEVED_RATE = "achieved_rate"


class Verdict(NamedTuple):
    """`why` is one line for everything but `held`."""

    outcome: Outcome
    why: str = ""


def judge(trial: Trial, objective: Objective, scenario: Scenario) -> Verdict:
    """What a trial at a prescribed rate says. The order is that of blame: first who measures, then who is measured."""
    if trial.load is None and outcomes.is_disturbed(trial):  # ended early
        return Verdict("disturbed", _told(outcomes.disturbances(trial)))
    if trial.load is None or trial.status in ("failed", "skipped"):
        return Verdict("broken", trial.reason)
    failed = {audit.name: audit for audit in trial.audits if not audit.passed}
    # Without any answer the generator's lag has nothing to stand beside: its audit fails, and blames the wrong one.
    if ABOUT_THE_GENERATOR in failed and trial.load.latency.response_ns.count:
        return Verdict("generator", _told([failed[ABOUT_THE_GENERATOR]]))
    if of_the_machine := outcomes.disturbances(trial):
        return Verdict("disturbed", _told(of_the_machine))
    if ACHIEVED_RATE in failed:
        # More answers than messages: what was held up in the warm-up came within the window.
        held_up = trial.load.requests.completed > trial.load.requests.sent
        return Verdict("disturbed" if held_up else "generator", _told([failed[ACHIEVED_RATE]]))
    if missing := overload(trial.load):
        return Verdict("failed", missing)
    if trial.load.requests.completed == 0:
        return Verdict("failed", "nothing was answered")
    if of_the_server := outcomes.failed(trial, "server"):
        return Verdict("failed", _told(of_the_server))
    broken = (*objective.broken(trial.load), *_too_much_lost(trial.load, objective, scenario))
    return Verdict("failed", "; ".join(broken)) if broken else Verdict("held")


def overload(load: LoadResult) -> str:
    """How far the answers stayed behind the asked rate, empty where they did not. The audit `achieved_rate` passes such
    a trial, for it says how fast the server is; but nobody is served who waits ever longer. What a transport lost is no
    overload."""
    if load.plan.rate_hz is None:
        return ""
    if rate_kept(load) == 1.0:
        return ""
    return (
        f"overload: {quantities.rate(load.requests.per_second)} answered of {quantities.rate(load.plan.rate_hz)} "
        f"offered"
    )


def _too_much_lost(load: LoadResult, objective: Objective, scenario: Scenario) -> tuple[str, ...]:
    """Over a transport that may lose messages, an objective that does not speak of loss still has the bound of the
    scenario: a latency without the messages that never came says too little (docs/adr/loss.md)."""
    lost = transports.share_lost(load)
    if lost is None or any(term.name == LOST for term in objective.terms) or lost <= scenario.loss_bound:
        return ()
    return (f"lost {quantities.share(lost)}, more than {quantities.share(scenario.loss_bound)}",)


def _told(failed: Sequence[Audit]) -> str:
    return "; ".join(f"{audit.name}: {audit.detail}" for audit in failed)

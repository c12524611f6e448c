"""Audits of a trial: the server, what it said at its end, the machine, and how even the window was."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from netdyno.measure.audits import of_trial
from netdyno.measure.audits.plausible import TrialResources, plausible
from netdyno.measure.audits.requested_work import RequestedWork, work
from netdyno.measure.audits.stationary import stalled, stationary
from netdyno.model.load_result import Audit
from netdyno.model.outcomes import excuse_fault
from tests.support.builders.made_load import MS, TOTALS, load, machine, named, observed, relay
from tests.unit.measure.audits.cases import AuditCase

REPLIES = load().messages.received
MODEM = TrialResources(server_cores=1, generator_cores=1, all_cores=2, copies_hz=1e10, rate_hz=56_000)
REQUEST = RequestedWork(service_s=0.002, burns=True, at_a_time=10)
STILL = (50, 50, 50, 0, 0, 0, 0, 0, 0, 50, 50, 50)
"""The server answers nothing for 300 ms."""
HALTING = (50, 50, 50, 0, 0, 50, 50, 0, 50, 50, 50, 50)
"""Two intervals without an answer are 100 ms."""


def find_strangers(connections: int) -> Sequence[Audit]:
    """The server counted so many connections more than the load opened."""
    return of_trial.strangers(TOTALS | {"connections": TOTALS["connections"] + connections}, [load()], [])


def audit_machine(name: str, **figures: float) -> Audit:
    return named(of_trial.foreign_load(machine(**figures), "strike-out"), name)


def audit_stall(completed: tuple[int, ...]) -> Audit:
    result = load(completed)
    times = replace(result.timeseries, interval_ns=50_000_000, completed=completed)
    return stalled(replace(result, timeseries=times, plan=replace(result.plan, duration_s=0.6)), "loopback")


CASES = {
    # One reply was given without a question to the backend.
    "backend": AuditCase(
        lambda: of_trial.backend(REPLIES - 1, [load()]),
        lambda: of_trial.backend(REPLIES, [load()]),
    ),
    # Nothing was answered.
    "completed": AuditCase(lambda: of_trial.completed(load((0,) * 10)), lambda: of_trial.completed(load())),
    # The server crashed.
    "died": AuditCase(lambda: of_trial.died("signal SIGSEGV"), lambda: of_trial.died("")),
    # Another program kept a core busy.
    "foreign_load": AuditCase(
        lambda: audit_machine("foreign_load", foreign_s=1.0),
        lambda: audit_machine("foreign_load"),
    ),
    # The harness used 3% of a core.
    "harness_quiet": AuditCase(
        lambda: of_trial.harness_quiet(observed(harness_cpu_s=0.03)),
        lambda: of_trial.harness_quiet(observed()),
    ),
    # SIGKILL ended the server.
    "killed": AuditCase(lambda: of_trial.killed("signal SIGKILL"), lambda: of_trial.killed("")),
    "left_behind": AuditCase(lambda: of_trial.left_behind(["sleep", "sleep"]), lambda: of_trial.left_behind([])),
    # One frame in a thousand was 5 ms late on a link of 20 ms.
    "link": AuditCase(
        lambda: of_trial.link(relay(p999_ns=5 * MS), delay_s=0.02),
        lambda: of_trial.link(relay(), delay_s=0.02),
    ),
    # The server was read over half of the window.
    "observation": AuditCase(
        lambda: of_trial.observation(observed(window_s=0.5), 1.0),
        lambda: of_trial.observation(observed(), 1.0),
    ),
    # 31 kB a second came over a modem of 7 kB.
    "plausible": AuditCase(
        lambda: plausible(load(), observed(), MODEM),
        lambda: plausible(load(), observed(), replace(MODEM, rate_hz=10_000_000)),
    ),
    # The server was late.
    "ready": AuditCase(
        lambda: of_trial.ready("no ready line from the server within 10 s"),
        lambda: of_trial.ready(""),
    ),
    # The server no longer answers.
    "server_alive": AuditCase(
        lambda: of_trial.server_alive(None, "no answer within 3 s"),
        lambda: of_trial.server_alive(load(), ""),
    ),
    # The server counted one byte more than was sent.
    "server_totals": AuditCase(
        lambda: of_trial.server_totals(TOTALS | {"bytes_in": TOTALS["bytes_in"] + 1}, [load()], ""),
        lambda: of_trial.server_totals(TOTALS, [load()], ""),
    ),
    "stalled": AuditCase(lambda: audit_stall(STILL), lambda: audit_stall(HALTING)),
    # A third of the throughput was gone after half a second.
    "stationary": AuditCase(
        lambda: stationary(load((100, 101, 99, 100, 100, 67, 66, 67, 68, 67))),
        lambda: stationary(load((100, 101, 99, 100, 100, 99, 102, 100, 99, 100))),
    ),
    # The hypervisor took 5% of two cores.
    "steal": AuditCase(lambda: audit_machine("steal", steal_s=0.1), lambda: audit_machine("steal")),
    # Strangers opened more connections than the load sent messages.
    "stranger_load": AuditCase(lambda: find_strangers(90)[1], lambda: find_strangers(0)[1]),
    "strangers": AuditCase(lambda: find_strangers(1)[0], lambda: find_strangers(0)[0]),
    # A quota held programs back for 5% of two cores' time.
    "throttled": AuditCase(
        lambda: audit_machine("throttled", throttled_s=0.1, throttled_periods=3),
        lambda: audit_machine("throttled", throttled_s=0.0),
    ),
    "unproven": AuditCase(lambda: excuse_fault(audit_stall(STILL)), lambda: excuse_fault(audit_stall(HALTING))),
    # A thousand requests of 2 ms are two seconds of CPU, and the server used 0.3 s.
    "work": AuditCase(
        lambda: work(load(), observed(), REQUEST),
        lambda: work(load(), observed(), REQUEST._replace(burns=False)),
    ),
}

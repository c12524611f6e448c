"""The text about faulty servers. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.exclusions import Fault, Faulty
from netdyno.kit import quantities

WORDS = {
    "died": "ended by itself",
    "killed": "was killed",
    "ready": "was not ready in time",
    "verification": "gave wrong or lost replies",
    "bytes": "sent a wrong number of bytes",
    "connections": "refused or dropped connections",
    "completed": "answered nothing",
    "stalled": "stopped answering for a time",
    "server_alive": "did not answer at the end",
    "server_totals": "reported wrong totals",
    "work": "did less work than requested",
}
"""The fault in words, by the audit that found it."""
LONGEST_DETAIL = 90


def describe_fault(problem: Fault) -> str:
    """Describe a fault, its frequency, and the first detail: "ended by itself in 4 of 11 trials: signal SIGSEGV"."""
    detail = quantities.shortened(problem.detail, LONGEST_DETAIL)
    return (
        f"{WORDS.get(problem.kind, problem.kind)} in {problem.trials} of "
        f"{quantities.plural(problem.total, 'trial')}: {detail}"
    )


def list_faults(faults: Sequence[Fault]) -> str:
    """List the faults of a server, without a subject. A detail may hold what the server printed."""
    return quantities.listed([describe_fault(problem) for problem in faults])


def describe_server(faulty: Faulty) -> str:
    return f"{faulty.contestant} {list_faults(faulty.faults)}"


def list_caveats(unproven: Sequence[Faulty]) -> tuple[str, ...]:
    """Name the faults that are not proven to be a server's own; empty where there are none."""
    if not unproven:
        return ()
    faults = "; ".join(map(describe_server, unproven))
    return (f"Not proven to be the server's own: {faults}. A busy machine can be the cause.",)


def name_separately_ranked(servers: Sequence[Faulty]) -> str:
    """The sentence about servers ranked separately for their faults, with a leading space; empty where there are
    none."""
    return f" Ranked separately, for their faults: {'; '.join(map(describe_server, servers))}." if servers else ""

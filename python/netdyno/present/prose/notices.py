"""What a reader must know of single contestants beside a ranking, a sentence each. Pure functions."""

from __future__ import annotations

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.notices import Company, Reconnected
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.notices.uneven_threads import UNEVEN
from netdyno.kit import quantities
from netdyno.kit.paths import ENTRY
from netdyno.model.outcomes import RATE_TOLERANCE
from netdyno.present.prose import company, loss
from netdyno.present.prose.progress import describe_warmups


def describe_overload(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every cell in overload. A search for the capacity overloads servers on purpose,
    and so does a burst."""
    if findings.capacity or findings.scenario.has_burst:
        return ()
    labels = {level.key: level.label for level in findings.levels}
    return tuple(
        _describe_overloaded(cell, labels[cell.level] if len(labels) > 1 else "", findings.company)
        for cell in findings.cells
        if cell.value("kept") < 1 - RATE_TOLERANCE
    )


def _describe_overloaded(cell: CellFigures, level: str, neighbours: Company | None) -> str:
    place = f" at {level}" if level else ""
    kept = f"{cell.contestant} answered {quantities.share(cell.value('kept'))} of the offered rate{place}"
    if neighbours:
        return f"{kept}, {company.label(neighbours)}: this does not show what it carries alone."
    return (
        f"Overload: {kept}. Its queue grew as long as the load lasted, so its response times depend on the length of "
        f"the trial. Offer a lower rate (--rate); {ENTRY} capacity finds the highest rate it keeps up with."
    )


def describe_constant_latency(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant with the same response time at several loads."""
    says = {standing.contestant: loss.name_with_loss(standing) for standing in findings.standings}
    labels = {level.key: level.label for level in findings.levels}
    return tuple(
        f"{says[constant.contestant]} answers in {quantities.duration(constant.p50_ns)} to "
        f"{quantities.duration(constant.p99_ns)} (p50 to p99) at "
        f"{quantities.listed([labels[key] for key in constant.levels])} alike. A response time that load does not "
        "change suggests a timer (a delayed ACK, a retransmission, a timeout) rather than work: no service time and no "
        "link delay was requested."
        for constant in findings.constant
    )


THROTTLED = "throttled"


def describe_throttling(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each load at which a quota stopped a server; none where there was no quota."""
    return tuple(
        f"The CPU quota stopped {quantities.listed(shares)} of its periods of 100 ms ({level.label})."
        for level in findings.levels
        if (shares := _list_shares(findings, level.key))
    )


def _list_shares(findings: ScenarioFindings, level: str) -> list[str]:
    limited = [cell for cell in findings.cells if cell.level == level and THROTTLED in cell.values]
    if not any(cell.value(THROTTLED) for cell in limited):
        return []
    return [f"{cell.contestant} in {quantities.share(cell.value(THROTTLED))}" for cell in limited]


NOTE_WORDS = {
    "left_behind": "left programs running",
    "strangers": "served other programs than netdyno",
}
"""The note in words, by the audit that found it."""


def describe_noted(findings: ScenarioFindings) -> list[str]:
    """Return a sentence for each note."""
    return [
        f"{note.contestant} {NOTE_WORDS[note.audit]} in {note.trials} of {quantities.plural(note.total, 'trial')}: "
        f"{note.detail}."
        for note in findings.noted
    ]


def describe_uneven_threads(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that was measured so."""
    return tuple(
        f"In {server.trials} of {quantities.plural(server.total, 'trial')} one thread of {server.contestant} had more "
        f"than {UNEVEN:g} times its even share of the connections (at worst {server.most} of {server.connections} on "
        f"{server.threads} threads, at {server.level}). Such figures show chance as much as the model; more "
        "connections spread more evenly."
        for server in findings.uneven_threads
    )


LEAST_KEPT = 1.5
"""With fewer replies on a connection than these, the server closes each after one."""


def describe_reconnects(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for every contestant that closed connections."""
    return tuple(map(_describe_reconnected, findings.reconnected))


def _describe_reconnected(server: Reconnected) -> str:
    trials = quantities.plural(server.total, "trial")
    replies, closed = server.replies / server.closed, quantities.plural(server.closed, "connection")
    often = (
        f"closed each of {closed} after one reply"
        if replies < LEAST_KEPT
        else f"closed {closed} after a reply, one in {replies:,.0f} replies"
    )
    return (
        f"{server.contestant} {often}, in {server.trials} of {trials}; "
        "clients reconnected, and response times include that. Its keep-alive settings decide how often."
    )


def describe_warm_up_times(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each such contestant."""
    return tuple(
        f"W{describe_warmups(warmup.contestant, findings.scenario.name, warmup.warmups).removeprefix('w')}."
        for warmup in findings.warmups
    )


def describe_turns(findings: ScenarioFindings) -> tuple[str, ...]:
    """Return a sentence for each reason against turns."""
    return tuple(
        f"{quantities.listed(group.contestants)} took no turns with others, because {group.why}."
        for group in findings.alone
    )

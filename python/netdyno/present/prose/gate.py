"""What a gate has decided, in words."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.analysis.gate.found import Decision, Faults, Found, Line, Outcome
from netdyno.base import quantities
from netdyno.base.escape import harmless
from netdyno.base.quantities import percent_change, plural, share
from netdyno.model.metrics import METRICS
from netdyno.present.prose import faults as fault_words
from netdyno.present.prose import ranking

OUTCOMES: Mapping[Outcome, str] = {
    "better": "better",
    "within": "within the margin",
    "worse": "worse",
    "faulty": "faulty",
    "open": "not decided",
    "bound": "not decided: the generator was at its limit",
    "unsound": "not decided: the server before was faulty",
}
DECISIONS: Mapping[Decision, str] = {
    "passes": "No metric is worse by more than its margin.",
    "fails": "The server after is worse by more than the margin.",
    "open": "Not decided.",
}


def title(line: Line) -> str:
    return f"{line.scenario}, {METRICS[line.metric].title}"


def margin(line: Line) -> str:
    """As it may be worse."""
    worse = quantities.MINUS if METRICS[line.metric].better == "higher" else "+"
    return f"{worse}{share(line.margin)}"


def figures(line: Line) -> tuple[str, str]:
    """Before and after."""
    speak = METRICS[line.metric].speak
    return speak(line.before), speak(line.after)


def change(line: Line) -> str:
    return percent_change(line.ratio)


def interval(line: Line) -> str:
    return ranking.change_interval(line.interval)


def sentence(line: Line) -> str:
    """The line in one. Where a server was faulty, its faults stand in place of figures that it has not."""
    if line.faults:
        return f"{title(line)}: {OUTCOMES[line.outcome]}. The server after {named_faults(line)}"
    before, after = figures(line)
    return (
        f"{title(line)}: {OUTCOMES[line.outcome]}. {before} before, {after} after: {change(line)} ({interval(line)}), "
        f"margin {margin(line)}, {plural(line.blocks, 'block')}"
    )


def named_faults(line: Line) -> str:
    """What the server did that the line speaks of, without its subject. A detail may hold what the server printed."""
    return harmless(quantities.listed([fault_words.fault(one) for one in line.faults]))


def faults(one: Faults) -> str:
    """What a busy machine causes meets both."""
    return (
        f"{one.scenario}: of {plural(one.of, 'block')}, the server before had a fault in {one.before} and the server "
        f"after in {one.after}"
    )


def decision(found: Found) -> str:
    """With what would help where there is none."""
    outcomes = {line.outcome for line in found.lines}
    if found.decision == "fails" and "worse" not in outcomes:
        named = next((line for line in found.lines if line.faults), None)
        told = f": in {named.scenario!r} it {named_faults(named)}" if named else ""
        return f"The server after has a fault that the server before does not have{told}."
    if found.decision != "open":
        return DECISIONS[found.decision]
    broken = {one.scenario for one in found.faults if one.before == one.after == one.of}
    if broken:
        return f"{DECISIONS['open']} In every block both servers had a fault: {quantities.listed(sorted(broken))}."
    return f"{DECISIONS['open']}{' More time, or a wider margin, would decide.' if 'open' in outcomes else ''}"

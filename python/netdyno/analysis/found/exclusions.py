"""The trials that enter no figure, and the faults of servers.

Frozen data without words; units are in the names."""

from __future__ import annotations

import msgspec

from netdyno.model.base import Name, Quoted
from netdyno.model.trial import Status


class TrialNote(msgspec.Struct, frozen=True):
    """A trial that enters no figure, and why."""

    block: int
    scenario: Name
    contestant: Name
    client: Name
    """The client of a pair; empty where the client is no factor."""
    level: Name
    status: Status
    cause: ExclusionCause
    reason: Quoted
    """Empty where none was stored."""
    log: Quoted


class ExclusionCause(msgspec.Struct, frozen=True):
    """The cause of excluded trials: `disturbed` by the machine in every try, or the failed `audits` that decided, or
    where neither is known their `reason`."""

    disturbed: bool = False
    audits: tuple[Name, ...] = ()
    reason: Quoted = ""


class Fault(msgspec.Struct, frozen=True):
    """A fault of a server: the audit that found it, the number of its trials with it, out of `total` (in an export
    `of`) of the scenario, and the detail of the first."""

    kind: Name
    trials: int
    total: int = msgspec.field(name="of")
    detail: Quoted


class Faulty(msgspec.Struct, frozen=True):
    """A contestant with the faults of its trials, the most frequent first."""

    contestant: Name
    faults: tuple[Fault, ...]

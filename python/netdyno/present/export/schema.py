"""What an export holds. protocol/export.schema.json is made of these types, and a test holds it against them.

Times are nanoseconds, sizes bytes, unless a metric's unit says otherwise. What was not measured is left out of
`figures`, and null elsewhere; an end of an interval that is null is open."""

from __future__ import annotations

from typing import Any

from netdyno.model.base import Frozen, Name, Quoted, type_level

# A program that reads it gets the types as JSON Schema: protocol/export.schema.json.

VERSION = 1


class Figure(Frozen):
    """A figure over several trials with its 95% interval, where there were blocks enough for one."""

    value: float
    low: float | None = None
    high: float | None = None


class Metric(Frozen):
    """What a name in `figures` stands for. `better`: "higher" or "lower"."""

    title: Quoted
    unit: Name
    better: Name


class Contestant(Frozen):
    """Who took part: a `server`, a `client`, or code that they share (`shared`). `lines` are those of its own code."""

    kind: Name
    name: Name
    model: Quoted
    language: Name
    lines: int | None


class Cell(Frozen):
    """A contestant of a question at one level, over its `trials` valid trials of all blocks."""

    question: Name
    contestant: Name
    level: Name
    trials: int
    figures: dict[Name, Figure]


class Trial(Frozen):
    """One trial, every try of it: `status` says what came of it, `reason` why it enters no figure where it enters none,
    and `failed` names the audits that failed. `twin`: it belongs to the A/A control. The harness made each `attempt` on
    its own."""

    question: Name
    contestant: Name
    level: Name
    levels: dict[Name, type_level]
    block: int
    position: int
    attempt: int
    twin: bool
    status: Name
    reason: Quoted
    started_at: Quoted
    seconds: float
    failed: tuple[Name, ...]
    figures: dict[Name, float]


class Note(Frozen):
    """A sentence of table and report. `kind`: of a question "caveat", "why" (what goes along with its ranking) and
    "blocks" (why they ended); of the run "control" (the A/A control), "machine", "made_again"."""

    kind: Name
    question: Name | None
    text: Quoted


class Export(Frozen):
    """`findings` are those of protocol/findings.md: rankings, comparisons, claims, control, gate, flips, what was set
    aside. `metrics` are those that stand in the figures of cells or trials."""

    version: int
    findings: dict[str, Any]
    environment: dict[str, Any]
    metrics: dict[Name, Metric]
    contestants: tuple[Contestant, ...]
    cells: tuple[Cell, ...]
    trials: tuple[Trial, ...]
    notes: tuple[Note, ...]

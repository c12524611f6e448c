"""The types of an export. protocol/export.schema.json is generated from these types, and a test compares the two.

Times are nanoseconds, sizes bytes, unless a metric's unit says otherwise. What was not measured is left out of
`figures`, and null elsewhere; an end of an interval that is null is open."""

from __future__ import annotations

from typing import Any, TypedDict

from netdyno.model.base import Frozen, Name, Quoted, type_level

# A program that reads an export gets the types as JSON Schema: protocol/export.schema.json.

VERSION = 1


class Figure(Frozen):
    """A figure over several trials with its 95% interval, where there were blocks enough for one."""

    value: float
    low: float | None = None
    high: float | None = None


class Metric(Frozen):
    """The meaning of a name in `figures`. `better`: "higher" or "lower"."""

    title: Quoted
    unit: Name
    better: Name


class Contestant(Frozen):
    """A contestant of the run: a `server`, a `client`, or code that they share (`shared`). `lines` are those of its
    own code."""

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
    """One trial; each retry is a trial too. `status` is its result, `reason` why it enters no figure where it enters
    none, and `failed` names the audits that failed. `twin`: it belongs to the A/A control. `attempt` counts the
    harness's tries."""

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
    """A sentence of table and report. `kind`: of a question "caveat", "why" (what correlates with its ranking) and
    "blocks" (why they ended); of the run "control" (the A/A control), "machine", "made_again"."""

    kind: Name
    question: Name | None
    text: Quoted


Part = dict[str, Any]
"""An object as protocol/findings.md describes it."""


class Question(TypedDict):
    """The findings of one scenario, as in protocol/findings.md."""

    name: Name
    workload: Name
    arrivals: Name
    metric: Name
    verdict: Name
    headline: Quoted
    sentence: Quoted
    company: Part | None
    levels: list[Part]
    figures_at: Name | None
    contestants: list[Part]
    axes: list[Part]
    faulty: list[Part]
    censored: list[Part]
    error_bars: list[Part]
    unsteady: list[Part]
    within: list[Part]
    caveats: list[Quoted]
    decision: Part
    elsewhere: list[Part]
    drift: float
    loss_bound: float
    pairs: list[Part]
    capacity: Part | None
    work: list[Part]
    whys: list[Part]
    ending: Part | None
    unsafe: list[Part]
    unranked: list[Part]
    absent: list[Name]
    constant: list[Part]
    ground: Part
    added_options: list[Part]
    threads_each: list[Part]
    sampled_threads: list[Part]
    uneven_threads: list[Part]
    warmups: list[Part]
    alone: list[Part]
    instruments: list[str]


class Findings(TypedDict):
    """The findings of the run, as in protocol/findings.md."""

    version: int
    run_id: Name
    experiment: Name
    question: Quoted
    started_at: Quoted
    finished_at: Quoted | None
    blocks: int
    trials: dict[Name, int]
    made_again: Part
    questions: list[Question]
    claims: list[Part]
    aa: Part
    charts: list[Part]
    machine: Part | None
    canary: list[Part] | None
    audits: list[Part]
    gate: Part | None
    flips: list[Part]
    set_aside: list[Part]


class Export(Frozen):
    """`findings` are those of protocol/findings.md: all but the trials and the figures of cells. `metrics` are those
    in the figures of cells or trials."""

    version: int
    findings: Findings
    environment: dict[str, Any]
    metrics: dict[Name, Metric]
    contestants: tuple[Contestant, ...]
    cells: tuple[Cell, ...]
    trials: tuple[Trial, ...]
    notes: tuple[Note, ...]

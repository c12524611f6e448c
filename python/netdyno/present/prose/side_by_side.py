"""What differs between two runs beside their figures, in words, for `compare` and for a report of several runs."""

from __future__ import annotations

from netdyno.analysis.differences import Change
from netdyno.analysis.findings import Analysis
from netdyno.analysis.run_comparison import AskedAlone, AskedApart, SideBySide
from netdyno.base import quantities
from netdyno.model.options import SCENARIO
from netdyno.run import changes

NOT_PAIRED = (
    "Blocks of different runs are not paired, so these ratios include the machine's drift between the runs. "
    "Each interval holds for its cell alone; * marks a difference that is proven there. "
    "To compare two programs, put both into one run."
)


def nothing_shared(found: SideBySide, first: Analysis, second: Analysis) -> str:
    """Why the second run says nothing of the first's figures; empty where it does."""
    here, there = ([one.scenario.name for one in run.scenarios] for run in (first, second))
    if not set(here) & set(there):
        return (
            f"{found.second} and {found.first} have no question in common, so nothing can be compared: {found.second} "
            f"asks {quantities.listed(there)}, not {quantities.listed(here)}"
        )
    if not found.cells:
        return (
            f"{found.second} and {found.first} have no cell in common, so nothing can be compared: no contestant has "
            "valid trials at the same levels and of the same metric in both"
        )
    return ""


def environment(found: SideBySide) -> list[str]:
    return [changes.said(change) for change in found.environment]


def asked(found: SideBySide) -> list[str]:
    """A question of one run only, or a change of a question of both."""
    return [_asked_alone(one) if isinstance(one, AskedAlone) else _asked_apart(one) for one in found.asked]


def _asked_alone(one: AskedAlone) -> str:
    return f"only {one.run} has the question {one.scenario} (workload {one.workload})"


def _asked_apart(one: AskedApart) -> str:
    return f"{one.scenario}{': ' if one.scenario else ''}{changes.said(_as_in_a_file(one.change))}"


def _as_in_a_file(change: Change) -> Change:
    """The change of a scenario's field as one of the option that has it there; contestants and levels are lists."""
    if isinstance(change.was or change.now, tuple):
        lists = [list(value) if isinstance(value, tuple) else [] for value in (change.was, change.now)]
        return Change(change.key if change.key == "contestants" else f"levels of {change.key}", *lists)
    option = next((option for option in SCENARIO.values() if option.field == change.key), None)
    if option is None:
        return change
    was, now = (None if value is None else option.takes.text(value) for value in (change.was, change.now))
    return Change(option.name, was, now)

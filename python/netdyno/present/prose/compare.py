"""The differences between two runs beside their figures, in words, for `compare` and for a report of several runs."""

from __future__ import annotations

from netdyno.analysis.found.compare import Change, ChangedQuestion, ScenarioOfOne, SideBySide
from netdyno.analysis.found.run import Analysis
from netdyno.kit import quantities
from netdyno.measure.run import changes
from netdyno.model.options import SCENARIO

NOT_PAIRED = (
    "Blocks of different runs are not paired, so these ratios include the machine's drift between the runs. "
    "Figures are over all trials of a cell together, as in the reports; a change is that of a typical trial (geometric "
    "mean). Each interval holds for its cell alone; * marks a difference that is proven there. "
    "To compare two programs, put both into one run."
)


def explain_nothing_shared(runs: SideBySide, first: Analysis, second: Analysis) -> str:
    """Say why no figures of the two runs can be compared; empty where some can."""
    first_names, second_names = ([findings.scenario.name for findings in run.scenarios] for run in (first, second))
    if not set(first_names) & set(second_names):
        return (
            f"{runs.second} and {runs.first} have no scenario in common, so nothing can be compared: {runs.second} "
            f"has {quantities.listed(second_names)}, not {quantities.listed(first_names)}"
        )
    if not runs.cells:
        return (
            f"{runs.second} and {runs.first} have no cell in common, so nothing can be compared: no contestant "
            "has valid trials at the same levels and of the same metric in both"
        )
    return ""


def list_environment_changes(runs: SideBySide) -> list[str]:
    return [changes.format_change(change) for change in runs.environment]


def list_question_changes(runs: SideBySide) -> list[str]:
    """Describe each question of one run only, and each change of a question of both."""
    return [
        _describe_unshared(difference) if isinstance(difference, ScenarioOfOne) else _describe_changed(difference)
        for difference in runs.questions
    ]


def _describe_unshared(question: ScenarioOfOne) -> str:
    return f"only {question.run} has the scenario {question.scenario} (workload {question.workload})"


def _describe_changed(question: ChangedQuestion) -> str:
    change = changes.format_change(_rename_as_option(question.change))
    return f"{question.scenario}{': ' if question.scenario else ''}{change}"


def _rename_as_option(change: Change) -> Change:
    """Convert the change of a scenario's field into one of its option; contestants and levels are lists."""
    if isinstance(change.was or change.now, tuple):
        lists = [list(value) if isinstance(value, tuple) else [] for value in (change.was, change.now)]
        return Change(change.key if change.key == "contestants" else f"levels of {change.key}", *lists)
    option = next((option for option in SCENARIO.values() if option.field == change.key), None)
    if option is None:
        return change
    was, now = (None if value is None else option.takes.text(value) for value in (change.was, change.now))
    return Change(option.name, was, now)

"""A gate's lines for a terminal, for a pull request (Markdown) and for a CI server (JUnit XML)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from netdyno.analysis.found.gate import GatedMetric, GateFindings
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.gate.judge_gate import FAILS, PASSES
from netdyno.present.prose import company, ground
from netdyno.present.prose import gate as prose

HEADINGS = ("question and metric", "before", "after", "change", "interval", "margin", "")


def list_notes(scenarios: Iterable[ScenarioFindings]) -> tuple[str, ...]:
    """Return what holds for all figures of these scenarios: the neighbours and the CPU quota, each sentence once."""
    notes = (
        note
        for scenario in scenarios
        for note in (*company.list_caveats(scenario.company), *ground.describe_quota(scenario.ground.quota_cores))
    )
    return tuple(dict.fromkeys(notes))


def format_text(result: GateFindings, notes: Sequence[str] = ()) -> str:
    """Write the lines, what holds for all of them (`notes`), and the decision."""
    lines = [
        *map(prose.describe_line, result.lines),
        *map(prose.describe_faults, result.faults),
        *notes,
        prose.describe_decision(result),
    ]
    return "\n".join(lines)


def format_markdown(result: GateFindings, run_id: str, notes: Sequence[str] = ()) -> str:
    """Write a table, one line a metric."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *map(_make_row, result.lines)]
    table = "\n".join(f"| {' | '.join(map(_escape_cell, row))} |" for row in rows)
    together = "All intervals hold together with 95%, however often the gate looks at them."
    faults = "".join(f"* {_escape_cell(fault)}\n" for fault in [*map(prose.describe_faults, result.faults), *notes])
    return (
        f"**{prose.describe_decision(result)}**\n\n{table}\n\n{faults}{chr(10) if faults else ''}"
        f"{together} Run `{run_id}`.\n"
    )


def _make_row(line: GatedMetric) -> tuple[str, ...]:
    outcome = prose.OUTCOMES[line.outcome]
    outcome = f"{outcome}: {prose.list_faults(line)}" if line.faults else outcome
    return (
        prose.name_line(line),
        *prose.format_figures(line),
        prose.format_change(line),
        prose.format_interval(line),
        prose.format_margin(line),
        f"**{outcome}**" if line.outcome in FAILS else outcome,
    )


def _escape_cell(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;")


def format_junit(result: GateFindings, run_id: str, notes: Sequence[str] = ()) -> str:
    """Write a test case for each line. An undecided line is skipped: it is no failure, and no success either."""
    suite = ElementTree.Element(
        "testsuite",
        name="netdyno gate",
        tests=str(len(result.lines)),
        failures=str(sum(line.outcome in FAILS for line in result.lines)),
        errors="0",
        skipped=str(sum(line.outcome not in (*FAILS, *PASSES) for line in result.lines)),
    )
    for line in result.lines:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{run_id}.{line.scenario}", name=line.metric)
        if line.outcome not in PASSES:
            kind = "failure" if line.outcome in FAILS else "skipped"
            ElementTree.SubElement(case, kind, message=prose.describe_line(line))
        ElementTree.SubElement(case, "system-out").text = prose.describe_line(line)
    if notes:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(notes)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

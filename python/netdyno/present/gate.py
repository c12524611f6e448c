"""The forms of a gate: for a terminal, a pull request (Markdown), a CI server (JUnit XML) and a history (JSON). Its
words are those of present/prose/gate.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree

from netdyno.analysis.found.gate import GatedMetric, GateFindings
from netdyno.analysis.gate.judge_gate import FAILS, PASSES
from netdyno.kit.escape import harmless, harmless_markdown
from netdyno.kit.quantities import percent_change
from netdyno.present.plain import make_plain
from netdyno.present.prose import faults as fault_words
from netdyno.present.prose import gate as prose
from netdyno.present.prose import ranking

HEADINGS = ("scenario and metric", "before", "after", "change", "interval", "margin", "")


def format_text(result: GateFindings, notes: Sequence[str] = ()) -> str:
    """Write the lines, what holds for all of them (`notes`), and the decision."""
    lines = [*map(prose.describe_line, result.lines), *_list_remarks(result, notes), prose.describe_decision(result)]
    return "\n".join(map(harmless, lines))


def _list_remarks(result: GateFindings, notes: Sequence[str]) -> list[str]:
    faults, missing = map(prose.describe_faults, result.faults), map(prose.describe_unmeasured, result.unmeasured)
    return [*faults, *missing, *notes]


def format_markdown(result: GateFindings, run_id: str, notes: Sequence[str] = ()) -> str:
    """Write a table, one line a metric."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *map(_make_row, result.lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    remarks = "".join(f"* {harmless_markdown(remark)}\n" for remark in _list_remarks(result, notes))
    return (
        f"**{harmless_markdown(prose.describe_decision(result))}**\n\n{table}\n\n{remarks}{chr(10) if remarks else ''}"
        f"{prose.WHAT_HOLDS} Run `{harmless(run_id)}`.\n"
    )


def _make_row(line: GatedMetric) -> tuple[str, ...]:
    outcome = prose.OUTCOMES[line.outcome]
    outcome = f"{outcome}: {fault_words.list_faults(line.faults)}" if line.faults else outcome
    cells = (
        prose.name_line(line),
        *prose.format_figures(line),
        percent_change(line.ratio),
        ranking.format_change_interval(line.interval),
        prose.format_margin(line),
        outcome,
    )
    *figures, last = map(harmless_markdown, cells)
    return (*figures, f"**{last}**" if line.outcome in FAILS else last)


def format_junit(result: GateFindings, run_id: str, notes: Sequence[str] = ()) -> str:
    """Write a test case for each line, by names that are the same in each run. An undecided line is skipped: it is no
    failure, and no success either. One of which nothing was measured is an error."""
    kinds = [_choose_kind(result, line) for line in result.lines]
    suite = ElementTree.Element(
        "testsuite",
        name="netdyno gate",
        tests=str(len(kinds)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="run", value=harmless(run_id))
    for line, kind in zip(result.lines, kinds, strict=True):
        name, sentence = harmless(f"netdyno.{line.scenario}"), harmless(prose.describe_line(line))
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=line.metric)
        if kind:
            ElementTree.SubElement(case, kind, message=sentence)
        ElementTree.SubElement(case, "system-out").text = sentence
    if remarks := [*map(prose.describe_unmeasured, result.unmeasured), *notes]:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(map(harmless, remarks))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def format_history(result: GateFindings, run_id: str, commit: str | None) -> str:
    """Write the gate as one line of JSON. `commit`: the later server's."""
    return json.dumps({"run_id": run_id, "commit": commit, **make_plain(result)}, allow_nan=False) + "\n"


def _choose_kind(result: GateFindings, line: GatedMetric) -> str:
    """Return the element that says why a line does not pass; empty where it passes."""
    if line.outcome in PASSES:
        return ""
    if line.outcome in FAILS:
        return "failure"
    is_missing = line.scenario in {missing.scenario for missing in result.unmeasured}
    return "error" if is_missing else "skipped"

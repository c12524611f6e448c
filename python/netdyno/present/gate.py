"""A gate's lines for a terminal, for a pull request (Markdown) and for a CI server (JUnit XML)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from netdyno.analysis.gate.found import Found, Line
from netdyno.analysis.gate.judge import FAILS, PASSES
from netdyno.present.prose import gate as prose

HEADINGS = ("question and metric", "before", "after", "change", "interval", "margin", "")


def text(found: Found, notes: Sequence[str] = ()) -> str:
    """The lines, what holds for all of them (`notes`), and the decision."""
    told = [*map(prose.sentence, found.lines), *map(prose.faults, found.faults), *notes, prose.decision(found)]
    return "\n".join(told)


def markdown(found: Found, run_id: str, notes: Sequence[str] = ()) -> str:
    """A table, one line a metric."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *map(_cells, found.lines)]
    table = "\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in rows)
    together = "All intervals hold together with 95%, however often the gate looks at them."
    faults = "".join(f"* {_escaped(one)}\n" for one in [*map(prose.faults, found.faults), *notes])
    return f"**{prose.decision(found)}**\n\n{table}\n\n{faults}{chr(10) if faults else ''}{together} Run `{run_id}`.\n"


def _cells(line: Line) -> tuple[str, ...]:
    outcome = prose.OUTCOMES[line.outcome]
    outcome = f"{outcome}: {prose.named_faults(line)}" if line.faults else outcome
    return (
        prose.title(line),
        *prose.figures(line),
        prose.change(line),
        prose.interval(line),
        prose.margin(line),
        f"**{outcome}**" if line.outcome in FAILS else outcome,
    )


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;")


def junit(found: Found, run_id: str, notes: Sequence[str] = ()) -> str:
    """A test case for each line. What is not decided is skipped: that it is no failure, and no success either."""
    suite = ElementTree.Element(
        "testsuite",
        name="netdyno gate",
        tests=str(len(found.lines)),
        failures=str(sum(line.outcome in FAILS for line in found.lines)),
        errors="0",
        skipped=str(sum(line.outcome not in (*FAILS, *PASSES) for line in found.lines)),
    )
    for line in found.lines:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{run_id}.{line.scenario}", name=line.metric)
        if line.outcome not in PASSES:
            kind = "failure" if line.outcome in FAILS else "skipped"
            ElementTree.SubElement(case, kind, message=prose.sentence(line))
        ElementTree.SubElement(case, "system-out").text = prose.sentence(line)
    if notes:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(notes)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

"""Findings for a terminal: a line each, and two more for what could be better."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from netdyno.verbs.instruments.doctor.finding import VERDICTS, Finding

_INDENT = 4


def as_text(findings: Sequence[Finding], width: int) -> str:
    """Format findings in the given order, the worst first; `width` is the terminal's, in columns. Pure."""
    names = max(len(finding.name) for finding in findings)
    verdicts = max(len(verdict) for verdict in VERDICTS)
    lines = [_summarise(findings), ""]
    for finding in findings:
        lead = f"{finding.verdict:{verdicts}}  {finding.name:{names}}  "
        lines += _wrap(finding.found, width, lead, " " * len(lead))
        if finding.verdict in ("bad", "could be better"):
            lines += _wrap(finding.effect, width, " " * _INDENT)
            lines += _wrap(f"fix{' (root)' if finding.needs_root else ''}: {finding.fix}", width, " " * _INDENT)
    return "\n".join(lines)


def _summarise(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}
    return "this machine: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _wrap(text: str, width: int, lead: str, further: str | None = None) -> list[str]:
    indent = lead if further is None else further
    return textwrap.wrap(text, max(width, 40), initial_indent=lead, subsequent_indent=indent, break_long_words=False)

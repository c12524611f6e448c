"""Findings for a terminal: a line each, and two more for what could be better."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from netdyno.instruments.doctor.finding import VERDICTS, Finding

_INDENT = 4


def as_text(findings: Sequence[Finding], width: int) -> str:
    """In the order given, which is the worst first; `width` is the terminal's, in columns. Pure."""
    names = max(len(finding.name) for finding in findings)
    verdicts = max(len(verdict) for verdict in VERDICTS)
    lines = [_summary(findings), ""]
    for finding in findings:
        lead = f"{finding.verdict:{verdicts}}  {finding.name:{names}}  "
        lines += _wrapped(finding.found, width, lead, " " * len(lead))
        if finding.verdict in ("bad", "could be better"):
            lines += _wrapped(finding.effect, width, " " * _INDENT)
            lines += _wrapped(f"fix{' (root)' if finding.needs_root else ''}: {finding.fix}", width, " " * _INDENT)
    return "\n".join(lines)


def _summary(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in VERDICTS}
    return "this machine: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def _wrapped(text: str, width: int, lead: str, further: str | None = None) -> list[str]:
    indent = lead if further is None else further
    return textwrap.wrap(text, max(width, 40), initial_indent=lead, subsequent_indent=indent, break_long_words=False)

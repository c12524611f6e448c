"""`netdyno doctor`: the effects of this machine on figures, and how to reduce them. docs/doctor.md is its manual.

A check is a function in a module of `checks/`; it is found there, and only the manual has to be edited as well."""

from __future__ import annotations

from netdyno.verbs.instruments.doctor.finding import VERDICTS, Finding, list_checks
from netdyno.verbs.instruments.doctor.system import System


def examine(system: System) -> list[Finding]:
    """Run every check on this system; returns the findings, the worst first."""
    findings = [check.examine(system) for check in list_checks()]
    return sorted(findings, key=lambda finding: VERDICTS.index(finding.verdict))

"""What this machine does to figures, and what would make them better: `netdyno doctor`. docs/doctor.md is its manual.

A check is a function in a module of `checks/`; it is found there, and nothing else has to be edited but the manual."""

from __future__ import annotations

from netdyno.instruments.doctor.finding import VERDICTS, Finding, all_checks
from netdyno.instruments.doctor.system import System


def examine(system: System) -> list[Finding]:
    """Every check of this system, the worst first."""
    found = [one.examine(system) for one in all_checks()]
    return sorted(found, key=lambda finding: VERDICTS.index(finding.verdict))

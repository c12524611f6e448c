"""A closed world of audits: whatever can strike a trial out has a case in which it does and one in which it does not,
and a line in the documentation. A new one needs cases/<name>.py and its line in docs/measuring.md."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.support import audit_names

ROOT = audit_names.ROOT
CASES = sorted(path.stem for path in (Path(__file__).parent / "cases").glob("[a-z]*.py"))
DOCUMENT = ROOT / "docs" / "measuring.md"
SECTION = "## Audits"


@pytest.mark.parametrize("name", CASES)
def test_it_strikes_out_and_lets_pass(name: str) -> None:
    case = importlib.import_module(f"tests.unit.measure.audits.cases.{name}")
    bad, good = case.fails(), case.passes()
    assert (bad.name, bad.passed) == (name, False), bad.detail
    assert (good.name, good.passed) == (name, True), good.detail
    assert bad.detail
    assert bad.detail != good.detail


def test_every_audit_of_the_harness_has_its_cases_and_every_case_its_audit() -> None:
    assert set(CASES) == audit_names.of_harness()


def test_every_audit_in_cpp_fails_by_a_fault_there_or_has_a_twin_here() -> None:
    """That the faults fail a trial, and that all pass without one, is tested there (AuditFaults, AllPassOnAGoodTrial),
    and so is that each has one (EachIsStruckOutByAFault)."""
    tests = (ROOT / "tests" / "cpp" / "loadgen" / "test_load_audits.cpp").read_text()
    faults = set(re.findall(r'Fault\{"\w+",\s*"(\w+)"', tests))
    assert faults == audit_names.of_generator()
    assert audit_names.of_cpp() <= faults | set(CASES)


def test_every_audit_has_its_line_in_the_documentation_and_every_line_its_audit() -> None:
    section = DOCUMENT.read_text().partition(SECTION)[2].partition("\n## ")[0]
    lines = re.findall(r"^\* `(\w+)` \(", section, re.MULTILINE)
    assert sorted(lines) == sorted(audit_names.of_harness() | audit_names.of_cpp())


def test_the_names_are_found() -> None:
    assert {"steal", "foreign_load", "window", "server_alive", "stationary", "plausible"} <= audit_names.of_harness()
    assert {"verification", "achieved_rate", "generator"} <= audit_names.of_generator()
    assert "generator" not in audit_names.of_harness(), "a client contestant is not judged by it"

"""A closed world of audits: whatever can strike a trial out has a case in which it does and one in which it does not,
and a meaning that is listed. A new one needs a case in a table of cases/ and a line in model/audit_meanings.py."""

from __future__ import annotations

import re

import pytest

from netdyno.verbs import listing
from tests.support import audit_names
from tests.unit.measure.audits.cases import AuditCase, client, company, trial

ROOT = audit_names.ROOT
CASES = [*client.CASES.items(), *company.CASES.items(), *trial.CASES.items()]
NAMES = [name for name, _ in CASES]


@pytest.mark.parametrize(("name", "case"), CASES, ids=NAMES)
def test_it_makes_a_trial_invalid_and_lets_pass(name: str, case: AuditCase) -> None:
    bad, good = case.fails(), case.passes()
    assert (bad.name, bad.passed) == (name, False), bad.detail
    assert (good.name, good.passed) == (name, True), good.detail
    assert bad.detail
    assert bad.detail != good.detail


def test_every_audit_of_the_harness_has_its_case_and_every_case_its_audit() -> None:
    assert sorted(NAMES) == sorted(audit_names.of_harness())


def test_every_audit_in_cpp_fails_by_a_fault_there_or_has_a_twin_here() -> None:
    """That the faults fail a trial, and that all pass without one, is tested there (AuditFaults, AllPassOnAGoodTrial),
    and so is that each has one (EachFailsByAFault)."""
    tests = (ROOT / "tests" / "cpp" / "loadgen" / "test_load_audits.cpp").read_text()
    faults = set(re.findall(r'Fault\{"\w+",\s*"(\w+)"', tests))
    assert faults == audit_names.of_generator()
    assert audit_names.of_cpp() <= faults | set(NAMES)


def test_every_audit_is_listed_once_and_no_other() -> None:
    listed = [str(row["audit"]) for row in listing.list_audits()]
    assert sorted(listed) == sorted(audit_names.of_harness() | audit_names.of_cpp())


def test_the_names_are_found() -> None:
    assert {"steal", "foreign_load", "window", "server_alive", "stationary", "plausible"} <= audit_names.of_harness()
    assert {"verification", "achieved_rate", "generator"} <= audit_names.of_generator()
    assert "generator" not in audit_names.of_harness(), "a client contestant is not judged by it"

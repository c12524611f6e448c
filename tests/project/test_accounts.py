"""Each verdict on the five studies has its account, which is that of docs/studies.md, and names no option of the
experiment with a value that it does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from netdyno.model.claim import Account, Cells, Claim, Order, Ratio
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.options import SCENARIO
from tests.project.accounts import BEGINS, PAGE, list_lines, render
from tests.support.studies import load_study

NAMED = re.compile(r"`([a-z.-]+) = ([^`]+)`")
"""An option with its value, as these sentences name it."""
STUDIES = [load_study(name) for name in load_study("sources").parts]
CLAIMS = [pytest.param(study, claim, id=claim.id) for study in STUDIES for claim in study.claims]


def list_named(claim: Claim) -> list[tuple[str, str]]:
    """The options that the sentences name of what is measured here."""
    assert claim.account is not None
    texts = [claim.differs, claim.account.answer, claim.script.because if claim.script else ""]
    return [named for text in texts for named in NAMED.findall(text)]


def list_selections(claim: Claim) -> Iterator[Cells]:
    for test in (*claim.tests, *(claim.script.tests if claim.script else ())):
        match test:
            case Ratio():
                yield from (test.a, test.b, *(test.over or ()))
            case Order():
                yield from (cells for cells in (test.cells, test.over, test.minus) if cells is not None)
            case _:
                yield test.cells


def find_scenarios(study: Experiment, claim: Claim) -> list[Scenario]:
    """The scenarios that a claim is about, and those beside them that no claim is about."""
    tested = {cells.scenario for other in study.claims for cells in list_selections(other)}
    own = {cells.scenario for cells in list_selections(claim)}
    return [scenario for scenario in study.scenarios if scenario.name in own or scenario.name not in tested]


def has(scenario: Scenario, name: str, value: str) -> bool:
    """Whether a scenario has the option at this value, or among its levels."""
    levels = [*scenario.factors.get(name, ())]
    option = SCENARIO.get(name)
    if option is not None and name not in scenario.factors:
        levels.append(option.takes.text(getattr(scenario, option.field)))
    levels += [scenario.server[name]] if name in scenario.server else []
    return value in map(str, levels)


def find_untrue(study: Experiment, claim: Claim) -> list[tuple[str, str]]:
    scenarios = find_scenarios(study, claim)
    return [named for named in list_named(claim) if not any(has(scenario, *named) for scenario in scenarios)]


@pytest.mark.parametrize(("study", "claim"), CLAIMS)
def test_what_an_account_names_of_the_experiment_is_so(study: Experiment, claim: Claim) -> None:
    assert find_untrue(study, claim) == []


def test_an_untrue_difference_is_found() -> None:
    study = load_study("asio-vs-folly")
    claim = next(claim for claim in study.claims if claim.id == "D5")
    assert list_named(claim)
    untrue = replace(claim, differs="lines leave one by one (`write-due = joined`, `depth = 401`)")
    assert find_untrue(study, untrue) == [("write-due", "joined"), ("depth", "401")]


def test_the_page_has_the_accounts_of_the_claims() -> None:
    _, begins, chapter = PAGE.read_text().partition(BEGINS)
    assert begins + chapter == render(), "run .venv/bin/python -m tests.project.accounts"


def test_a_sentence_that_claims_of_a_study_share_stands_once() -> None:
    lines = list(list_lines())
    whole = [line for line in lines if line.startswith("* ") and ": as " not in line]
    assert len(whole) == len(set(whole))
    assert "* here: as B4.\n" in lines
    assert [line for line in lines if line.startswith("* its program: as ")] == []


def test_an_account_has_all_its_sentences() -> None:
    assert all(isinstance(claim.account, Account) for study in STUDIES for claim in study.claims)

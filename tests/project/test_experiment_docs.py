"""Every key of an experiment file is in `netdyno list keys`, and none besides; the examples of docs/experiments.md are
experiments."""

from __future__ import annotations

import re

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.claim import Account
from netdyno.model.metrics import CLAIMED, WHYS
from netdyno.model.options import SCENARIO, SERVER
from netdyno.question import budgets, claims, experiment, figures, flips, scenarios
from netdyno.question.key_meanings import MEANINGS
from netdyno.verbs import listing

PAGE = (ROOT / "docs" / "experiments.md").read_text()
CHAPTERS = dict(re.findall(r"^## `?\[?([\w. '-]+?)\]?`?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
OPTIONS = {*SCENARIO, *experiment.OWN}
TEST_KEYS = {key for keys in claims.TEST_KEYS.values() for key in keys} | set(claims.ANY_TEST)
KEYS: dict[str, set[str]] = {
    "experiment": {*experiment.TOP_KEYS, *experiment.INCLUDE_KEYS} - OPTIONS,
    "scenario": set(scenarios.SCENARIO_KEYS) - OPTIONS,
    "budget": set(budgets.BUDGET_KEYS),
    "claim": set(claims.CLAIM_KEYS),
    "claim.account": set(Account.__struct_fields__),
    "claim.script": set(claims.SCRIPT_KEYS),
    "claim.test": TEST_KEYS,
    "figure": {key for keys in figures.FIGURE_KEYS.values() for key in keys},
    "figure.published": set(figures.PUBLISHED_KEYS),
    "flip": set(flips.KEYS),
}
"""The keys that the parsers take and that are no options, by their tables."""
ROWS = listing.list_keys()


def test_every_option_that_some_servers_lack_is_named() -> None:
    named = set(re.findall(r"`([a-z-]+)`", CHAPTERS["scenario.where-possible"]))
    assert set(scenarios.WHERE_POSSIBLE) <= named


@pytest.mark.parametrize("table", KEYS)
def test_every_key_is_listed_and_no_other(table: str) -> None:
    assert set(MEANINGS) == set(KEYS)
    assert set(MEANINGS[table]) == KEYS[table]
    assert {row["key"] for row in ROWS if row["table"] == table} >= KEYS[table]


def test_a_key_that_some_tests_lack_is_listed_with_the_kinds_that_have_it() -> None:
    meanings = {row["key"]: str(row["meaning"]) for row in ROWS if row["table"] == "claim.test"}
    assert meanings["minus"].startswith("order: ")
    assert meanings["metric"].startswith("What is compared")


def test_every_explanation_of_a_claim_and_every_kind_is_named() -> None:
    named = re.findall(r"`([a-z-]+)`", CHAPTERS["A claim"])
    assert set(WHYS) <= set(named)
    assert [kind for kind in claims.TEST_KEYS if f"* `{kind}`: " not in CHAPTERS["A claim's test"]] == []
    assert [kind for kind in figures.FIGURE_KEYS if f"* `{kind}`: " not in CHAPTERS["A figure"]] == []


def test_the_example_of_a_claim_is_one() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (claim,) = re.findall(r"^```toml claim\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (parsed,) = experiment.parse(f"{example}\n{claim}", "example", "docs/experiments.md").claims
    assert (parsed.id, parsed.why) == ("A1", "delayed-acks")


def test_the_example_of_a_figure_is_one() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (figure,) = re.findall(r"^```toml figure\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (parsed,) = experiment.parse(f"{example}\n{figure}", "example", "docs/experiments.md").figures
    assert (parsed.drawn, len(parsed.published)) == (("contestant", "both.nodelay"), 2)


def test_the_example_of_a_flip_is_one() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (flip,) = re.findall(r"^```toml flip\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    without = example.split("[scenario.factors]")[0]
    whole = experiment.parse(f"{without}\n{flip}", "example", "docs/experiments.md")
    (parsed,) = whole.flips
    assert (parsed.first, parsed.members["threads"], parsed.within) == (
        "threads",
        ("threads-*",),
        flips.WITHIN,
    )
    assert whole.scenarios[0].factors == {"connections": (1, 1000)}


def test_the_example_of_a_budget_is_one() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (budgets,) = re.findall(r"^```toml budget\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    smoke, full = (experiment.parse(f"{example}\n{budgets}", "example", "here", budget) for budget in ("smoke", "full"))
    assert (smoke.blocks, smoke.scenarios[0].factors["connections"], full.blocks) == (6, (10,), 20)


def test_the_example_is_an_experiment() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    parsed = experiment.parse(example, "example", "docs/experiments.md")
    assert parsed.scenarios[0].factors["both.nodelay"] == ("on", "off")


def test_every_option_is_listed_with_its_default_and_its_words() -> None:
    listed = {(row["table"], row["key"]): row for row in ROWS}
    assert {key for _, key in listed} >= OPTIONS
    assert [key for table, key in listed if table == "server"] == list(SERVER)
    link = listed["experiment or scenario", "link"]
    assert link["default"] == "loopback"
    assert str(link["meaning"]).endswith("(loopback, lan, wan)")
    assert listed["experiment", "aa-share"]["default"] == "0.05"


def test_every_metric_of_claims_is_listed() -> None:
    assert [row["metric"] for row in listing.list_metrics()] == list(CLAIMED)

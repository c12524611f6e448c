"""Every key of an experiment file is in `netdyno list keys` or explained in docs/experiments.md, and none besides; its
examples are experiments."""

from __future__ import annotations

import re

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.metrics import CLAIMED, WHYS
from netdyno.model.options import LOAD, SCENARIO, SERVER, SHARED, SIDES
from netdyno.question import budgets, claims, experiment, figures, flips, scenarios
from netdyno.verbs import listing

PAGE = (ROOT / "docs" / "experiments.md").read_text()
CHAPTERS = dict(re.findall(r"^## `?\[?([\w. '-]+?)\]?`?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
LISTED = {str(row["key"]): row for row in listing.list_keys() if row["table"] != "server"}
LISTED_OF_SERVERS = [row["key"] for row in listing.list_keys() if row["table"] == "server"]
KEYS = {
    "The experiment": {*experiment.TOP_KEYS, *experiment.INCLUDE_KEYS} - LISTED.keys(),
    "A scenario": set(scenarios.SCENARIO_KEYS) - set(SHARED) - LISTED.keys(),
    "A size": {*budgets.BUDGET_KEYS, *budgets.SCENARIO_KEYS},
    "scenario.factors": (*(name for name in LOAD if name in SERVER), *SIDES),
    "A claim": claims.CLAIM_KEYS,
    "A figure": (
        {key for keys in figures.FIGURE_KEYS.values() for key in keys}
        | figures.FIGURE_KEYS.keys()
        | set(figures.PUBLISHED_KEYS)
    ),
    "A flip": flips.KEYS,
    "A claim's test": {key for keys in claims.TEST_KEYS.values() for key in keys} | {*claims.ANY_TEST},
}


ITEM = re.compile(r"^\* (`[^`]+`(?:, `[^`]+`)*): (.*(?:\n  .*)*)", re.MULTILINE)
"""What the page lists: one key or several, then what they mean."""


def items(chapter: str) -> list[tuple[list[str], str]]:
    return [(re.findall(r"`([^`]+)`", keys), text) for keys, text in ITEM.findall(CHAPTERS[chapter])]


def test_every_option_that_some_servers_lack_is_named() -> None:
    named = set(re.findall(r"`([a-z-]+)`", CHAPTERS["scenario.where-possible"]))
    assert set(scenarios.WHERE_POSSIBLE) <= named


@pytest.mark.parametrize("chapter", KEYS)
def test_every_key_is_explained_and_no_other(chapter: str) -> None:
    explained = [key for keys, _ in items(chapter) for key in keys]
    kinds = claims.TEST_KEYS if chapter == "A claim's test" else ()
    assert sorted(explained) == sorted([*KEYS[chapter], *kinds])


def test_every_explanation_of_a_claim_is_named() -> None:
    (named,) = [text for keys, text in items("A claim") if keys == ["why"]]
    assert re.findall(r"`([a-z-]+)`", named) == list(WHYS)


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


def test_the_example_of_a_size_is_one() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (size,) = re.findall(r"^```toml size\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    smoke, full = (experiment.parse(f"{example}\n{size}", "example", "here", budget) for budget in ("smoke", "full"))
    assert (smoke.blocks, smoke.scenarios[0].factors["connections"], full.blocks) == (6, (10,), 20)


def test_the_example_is_an_experiment() -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    parsed = experiment.parse(example, "example", "docs/experiments.md")
    assert parsed.scenarios[0].factors["both.nodelay"] == ("on", "off")


def test_every_option_is_listed_with_its_default_and_its_words() -> None:
    assert set(SCENARIO) <= LISTED.keys()
    assert list(SERVER) == LISTED_OF_SERVERS
    assert LISTED["link"]["default"] == "loopback"
    assert str(LISTED["link"]["meaning"]).endswith("(loopback, lan, wan)")
    assert (LISTED["aa-share"]["default"], LISTED["link"]["table"]) == ("0.05", "experiment or scenario")


def test_every_metric_of_claims_is_listed() -> None:
    assert [row["metric"] for row in listing.list_metrics()] == list(CLAIMED)

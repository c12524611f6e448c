"""The budgets of an experiment, and experiments that are made of others."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import pytest

from netdyno.kit.errors import UserError
from netdyno.model.claim import Bound, Ratio
from netdyno.model.experiment import Budget, Experiment
from netdyno.question import experiment
from netdyno.question.plan import plan

TOML = """
question = "How much?"
contestants = ["a", "b"]
blocks = 4
warmup = "100ms"
duration = "1s"

[[scenario]]
name = "echo"
workload = "echo"
[scenario.factors]
connections = [10, 100]
both.nodelay = ["on", "off"]

[[scenario]]
name = "chat"
workload = "chat"
connections = 20
contestants = ["b"]
blocks = 2
duration = "3s"

[budget.smoke]
blocks = 1
warmup-per-connection = "2ms"
[budget.smoke.scenario.echo]
warmup = "50ms"
contestants = ["b"]
[budget.smoke.scenario.echo.factors]
connections = [10]

[budget.full]
duration = "10s"
[budget.full.scenario.echo.factors]
connections = [10, 100, 1000]
both.nodelay = ["on"]
[budget.full.scenario.chat]
blocks = 3

[[claim]]
id = "{claim}"
text = "More connections, more messages"
[claim.test]
kind = "ratio"
metric = "throughput"
a = {{ scenario = "echo", connections = 1000 }}
b = {{ scenario = "echo", connections = 10 }}
above = 1
[[claim]]
id = "{claim} too"
text = "Chat is quick"
[claim.test]
kind = "bound"
metric = "p50"
cells = {{ scenario = "chat" }}
below = "1s"
"""
GOOD = TOML.format(claim="X1")


def parse_at(budget: Budget, text: str = GOOD) -> Experiment:
    return experiment.parse(text, "sized", "sized.toml", budget)


def test_normal_is_what_the_file_says() -> None:
    normal = parse_at("normal")
    echo, chat = normal.scenarios
    assert (normal.budget, normal.blocks, echo.blocks, chat.blocks) == ("normal", 4, 4, 2)
    assert (echo.warmup_s, echo.duration_s, chat.duration_s) == (0.1, 1.0, 3.0)
    assert (echo.contestants, chat.contestants) == (("a", "b"), ("b",))
    assert echo.factors == {"connections": (10, 100), "both.nodelay": ("on", "off")}


def test_a_budget_changes_amounts_levels_and_contestants_and_nothing_else() -> None:
    echo, chat = parse_at("smoke").scenarios
    assert (echo.blocks, chat.blocks) == (1, 2)  # what a scenario says for itself counts
    assert (echo.warmup_s, echo.duration_s, chat.warmup_s) == (0.05, 1.0, 0.1)
    assert (echo.contestants, parse_at("full").scenarios[0].contestants) == (("b",), ("a", "b"))
    assert (echo.warmup_per_connection_s, parse_at("full").scenarios[0].warmup_per_connection_s) == (0.002, 0)
    assert echo.factors == {"connections": (10,), "both.nodelay": ("on", "off")}
    echo, chat = parse_at("full").scenarios
    assert (echo.duration_s, chat.duration_s, chat.blocks) == (10.0, 3.0, 3)
    assert echo.factors == {"connections": (10, 100, 1000), "both.nodelay": ("on",)}


def test_a_claim_may_be_about_what_only_a_larger_budget_has() -> None:
    for budget in get_args(Budget):
        (test,) = parse_at(cast(Budget, budget)).claims[0].tests
        assert isinstance(test, Ratio)
        assert test.a.at == {"connections": (1000,)}


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ("[budget.full]", "[budget.ful]", "unknown key 'ful' (did you mean 'full'?)"),
        ("[budget.full]\n", "[budget.full]\nblock = 2\n", "budget.full: unknown key 'block' (did you mean 'blocks'?)"),
        ("[budget.full]\n", "[budget.full]\nlink = 'lan'\n", "budget.full: unknown key 'link'"),
        ("[budget.full.scenario.chat]", "[budget.full.scenario.chats]", "unknown key 'chats' (did you mean 'chat'?)"),
        ("blocks = 3", "size = 64", "scenario 'chat': unknown key 'size'"),
        ("connections = [10]", "depth = [2]", "scenario 'echo': factors: unknown key 'depth'"),
        ("connections = [10]", "connections = [0]", "key 'connections': 0 is not a whole number of at least 1"),
        ("connections = [10]", "connections = 10", "key 'connections' must be a list of levels"),
        ('both.nodelay = ["on"]', 'both.nodela = ["on"]', "factors: both: unknown key 'nodela'"),
        (
            '"50ms"\ncontestants = ["b"]',
            '"50ms"\ncontestants = ["c"]',
            "'contestants': c must be among the scenario's",
        ),
        ("blocks = 1\n", "blocks = 0\n", "key 'blocks': 0 is not a whole number of at least 1"),
    ],
)
def test_a_mistake_in_a_budget_that_is_not_requested_is_one_clear_line(line: str, instead: str, message: str) -> None:
    assert line in GOOD
    with pytest.raises(UserError) as error:
        parse_at("normal", GOOD.replace(line, instead))
    assert message in str(error.value)
    assert str(error.value).startswith("sized.toml: ")


def test_a_budget_that_a_file_has_not_is_one_clear_line() -> None:
    text = GOOD[: GOOD.index("[budget.smoke]")]
    with pytest.raises(UserError, match=r"sized\.toml: no budget 'full', only 'normal'"):
        parse_at("full", text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.toml").write_text(GOOD)
    (tmp_path / "two.toml").write_text(TOML.format(claim="Y1"))
    (tmp_path / "both.toml").write_text('question = "All of it?"\ninclude = ["one", "two"]\nseed = 3\n')
    return tmp_path


def test_experiments_are_run_as_one(folder: Path) -> None:
    both = experiment.load(folder / "both.toml")
    assert (both.name, both.question, both.seed) == ("both", "All of it?", 3)
    assert [scenario.name for scenario in both.scenarios] == ["one: echo", "one: chat", "two: echo", "two: chat"]
    assert [claim.id for claim in both.claims] == ["X1", "X1 too", "Y1", "Y1 too"]
    assert len(plan(both)) == 2 * len(plan(parse_at("normal")))


def test_their_claims_are_about_their_own_scenarios(folder: Path) -> None:
    ratio, bound = (claim.tests[0] for claim in experiment.load(folder / "both.toml").claims[2:])
    assert isinstance(ratio, Ratio)
    assert isinstance(bound, Bound)
    assert {ratio.a.scenario, ratio.b.scenario, bound.cells.scenario} == {"two: echo", "two: chat"}
    assert ratio.a.at == {"connections": (1000,)}


def test_each_is_run_with_the_budget_that_is_requested(folder: Path) -> None:
    smoke = experiment.load(folder / "both.toml", "smoke")
    assert smoke.budget == "smoke"
    assert [scenario.blocks for scenario in smoke.scenarios] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('include = ["one", "tow"]', "unknown experiment 'tow' (did you mean 'two'?)"),
        ("include = []", "key 'include': must be a list of experiments of the same folder"),
        ('include = ["one", "both"]', "key 'include': 'both' is made of others itself"),
        ('include = ["one", "one"]', "key 'include': two of them have a claim 'X1'"),
        ('include = ["one"]\nblocks = 3', "unknown key 'blocks'"),
        ('include = ["broken"]', "broken.toml: the key 'question' is missing"),
    ],
)
def test_a_mistake_in_what_is_included_is_one_clear_line(folder: Path, text: str, message: str) -> None:
    (folder / "broken.toml").write_text("blocks = 3")
    (folder / "wrong.toml").write_text(f'question = "?"\n{text}\n')
    with pytest.raises(UserError) as error:
        experiment.load(folder / "wrong.toml")
    assert message in str(error.value)


def test_one_that_asks_nothing_is_one_clear_line(folder: Path) -> None:
    (folder / "mute.toml").write_text('include = ["one"]\n')
    with pytest.raises(UserError, match=r"mute\.toml: .*question"):
        experiment.load(folder / "mute.toml")

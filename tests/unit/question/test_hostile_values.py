"""Values in TOML of impossible size: refused in a sentence, or planned; and nothing is planned that cannot be kept."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdyno.kit.errors import UserError
from netdyno.kit.toml import MOST_LISTED
from netdyno.model.base import MOST_CELLS
from netdyno.model.options import LINK, LOAD, OWN, SERVER, SHARED
from netdyno.question import experiment, plan

HEAD = 'question = "q"\ncontestants = ["a"]\nblocks = 1\nwarmup = "0s"\nduration = "1s"\n'
SCENARIO = '[[scenario]]\nname = "s"\nworkload = "echo"\n'
OTHER = '[[scenario]]\nname = "t"\nworkload = "echo"\n'
GRID = f"connections = {[*range(1, 101)]}\nsize = {[*range(29, 130)]}"
"""100 times 101 combinations of levels."""
HUGE = [
    *("1e308", "-1e308", "inf", "nan", "-1", "0", "2000000000", str(2**63), "1" * 5000, "1e-308"),
    *('"1e308s"', '"999999999999999999h"', f'"{"x" * 100_000}"', f'"{"9" * 5000}s"'),
    *("[" * 20_000 + "]" * 20_000, "[1e308]", "{}", "[" + "1, " * 100_000 + "1]", "true"),
]
KEYS = sorted({*LOAD, *LINK, *OWN, *SHARED} - {"name", "workload"})


@settings(max_examples=150, deadline=None)
@given(
    key=st.sampled_from([*KEYS, *(f"factors.{name}" for name in KEYS), *(f"server.{name}" for name in SERVER)]),
    value=st.sampled_from(HUGE),
)
def test_whatever_stands_in_a_key_it_is_refused_or_planned(key: str, value: str) -> None:
    with suppress(UserError):
        plan.check_size(experiment.parse(f"{HEAD}{SCENARIO}{key} = {value}\n", "x", "x.toml"))


@pytest.mark.parametrize(
    "key", ["seed", "aa-share", "time-budget", "time-limit", "blocks", "duration", "timeout", "warmup"]
)
@pytest.mark.parametrize("value", HUGE)
def test_whatever_stands_in_a_key_of_the_file_it_is_refused_or_planned(key: str, value: str) -> None:
    head = "".join(line for line in HEAD.splitlines(keepends=True) if not line.startswith(f"{key} "))
    with suppress(UserError):
        plan.check_size(experiment.parse(f"{head}{key} = {value}\n{SCENARIO}", "x", "x.toml"))


def test_more_than_can_be_kept_is_not_planned() -> None:
    for blocks, is_possible in ((MOST_CELLS, True), (MOST_CELLS + 1, False)):
        large = experiment.parse(HEAD.replace("blocks = 1", f"blocks = {blocks}") + SCENARIO, "x", "x.toml")
        if is_possible:
            plan.check_size(large)
            continue
        with pytest.raises(UserError, match="1000001 trials are planned, and at most 1000000 can be"):
            plan.plan(large)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + SCENARIO * (MOST_LISTED + 1), "'scenario': a list of 10001; at most 10000 are possible"),
        (f"{HEAD}{SCENARIO}path = {['/'] * (MOST_LISTED + 1)}", "'path': a list of 10001; at most 10000"),
        (f"{HEAD}{SCENARIO}[scenario.factors]\nconnections = {[*range(1, MOST_LISTED + 2)]}", "a list of 10001"),
        (f"{HEAD}{SCENARIO}[scenario.factors]\n{GRID}", "scenario 1.*10100 combinations of levels so far; at most"),
        (f"{HEAD}{SCENARIO}[scenario.factors]\n{GRID[:-6]}]\n{OTHER}", "scenario 2: 10001 combinations"),
    ],
)
def test_what_would_take_long_to_plan_is_refused_with_the_limit(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        experiment.parse(text, "x", "x.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("x = " + "[" * 20_000 + "]" * 20_000, "nested too deeply"), (f"x = {'1' * 5000}", "not valid TOML: Exceeds")],
)
def test_a_text_that_the_reader_gives_up_is_no_toml(text: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        experiment.parse(text, "x", "x.toml")

"""Colours and marks of contestants, in any company."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.present.report.theme import COUNT, assign_styles

EXPERIMENTS = sorted((ROOT / "experiments").glob("*.toml"))


def styles_of(*names: str) -> list[tuple[int, int]]:
    return [(style.colour, style.shape) for style in assign_styles(names).values()]


@pytest.mark.parametrize("name", ["go-net", "a-server-of-mine"])
def test_a_contestant_looks_the_same_in_each_report(name: str) -> None:
    alone = styles_of(name)[0]
    assert styles_of("epoll-reactor", "asio-callbacks", name)[2] == alone
    assert styles_of(name, "tokio")[0] == alone


@pytest.mark.parametrize("path", EXPERIMENTS, ids=[path.stem for path in EXPERIMENTS])
def test_up_to_eight_of_an_experiment_have_a_colour_each(path: Path) -> None:
    patterns = tomllib.loads(path.read_text()).get("contestants", ())
    names = [name for name in patterns if "*" not in name]
    styles = styles_of(*names)
    assert len(set(styles)) == len(names)
    if len(patterns) == len(names) <= 8:  # a pattern stands for more
        assert len({colour for colour, _ in styles}) == len(names)


def test_no_two_look_the_same_even_where_their_names_choose_the_same() -> None:
    names = [f"server-{number}" for number in range(COUNT)]
    assert len(set(styles_of(*names))) == COUNT
    assert len(styles_of(*names, "one-more")) == COUNT + 1
    first, second = next(pair for pair in itertools.combinations(names, 2) if styles_of(pair[0]) == styles_of(pair[1]))
    assert len(set(styles_of(first, second))) == 2

"""A `[[figure]]` table is read whole, and a mistake in it is one clear line that names the nearest valid word."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.model.base import type_level
from netdyno.model.claim import Cells
from netdyno.model.experiment import Experiment
from netdyno.model.figure import Figure, Published
from netdyno.model.metrics import CLAIMED, METRICS
from netdyno.question import experiment
from netdyno.question import figures as parse
from tests.support.chosen import discover_once

GOOD = """
question = "Which?"
contestants = ["asio-*", "folly-async"]
blocks = 6
warmup = "0s"
duration = "1s"
[[scenario]]
name = "echo"
workload = "echo"
[scenario.factors]
client = ["asio-*"]
connections = [10, 100, 1000]
both.nodelay = ["on", "off"]
[[scenario]]
name = "rpc"
workload = "rpc"
[scenario.factors]
threads = [1, 2]
connections = [10, 100]
[[scenario]]
name = "rpc again"
workload = "rpc"
[scenario.factors]
threads = [1, 2]
connections = [10, 100]
[[figure]]
kind = "bars"
title = "Bars"
scenario = "echo"
metric = "throughput"
cells = { connections = 10 }
along = "client"
across = "both.nodelay"
panels = "contestant"
[[figure.published]]
at = { contestant = "asio-callbacks", client = "asio-callbacks", both.nodelay = "off" }
value = 9128.15
[[figure]]
kind = "curves"
title = "Curves"
scenario = "rpc"
metric = "p50"
along = "connections"
across = "contestant"
panels = ["threads"]
below = ["cpu", "memory"]
x-scale = "log"
published = [{ at = { contestant = "folly-async", connections = 70, threads = 1 }, value = "3.9ms" }]
[[figure]]
kind = "ladder"
title = "Ladder"
scenario = ["rpc", "rpc again"]
metric = "mean"
cells = { threads = 2, connections = 100 }
panels = "scenario"
published = [{ at = { scenario = "rpc again", contestant = "folly-async", threads = 2 }, value = "2872us" }]
[[figure]]
kind = "surface"
title = "Surface"
scenario = "rpc"
metric = "connected"
cells = { contestant = "folly-async" }
along = "connections"
across = "threads"
published = [{ at = { connections = 100, threads = 1 }, value = 0 }]
"""
BARS = GOOD[: GOOD.index('[[figure]]\nkind = "curves"')]


def read(text: str) -> Experiment:
    return experiment.parse(text, "good", "good.toml")


def test_figures_are_parsed_into_frozen_words() -> None:
    at_2: dict[str, tuple[type_level, ...]] = {"threads": (2,), "connections": (100,)}
    assert read(GOOD).figures == (
        Figure(
            kind="bars",
            title="Bars",
            metric="throughput",
            cells=(Cells(scenario="echo", at={"connections": (10,)}),),
            along="client",
            across="both.nodelay",
            panels=("contestant",),
            published=(
                Published(
                    at={"contestant": "asio-callbacks", "client": "asio-callbacks", "both.nodelay": "off"},
                    value=9128.15,
                ),
            ),
        ),
        Figure(
            kind="curves",
            title="Curves",
            metric="p50",
            cells=(Cells(scenario="rpc"),),
            along="connections",
            across="contestant",
            panels=("threads",),
            below=("cpu", "memory"),
            x_log=True,
            published=(Published(at={"threads": 1, "contestant": "folly-async", "connections": 70}, value=3.9e6),),
        ),
        Figure(
            kind="ladder",
            title="Ladder",
            metric="mean",
            cells=(Cells(scenario="rpc", at=at_2), Cells(scenario="rpc again", at=at_2)),
            along="contestant",
            panels=("scenario",),
            log=True,
            published=(Published(at={"scenario": "rpc again", "contestant": "folly-async"}, value=2.872e6),),
        ),
        Figure(
            kind="surface",
            title="Surface",
            metric="connected",
            cells=(Cells(scenario="rpc", at={"contestant": ("folly-async",)}),),
            along="connections",
            across="threads",
            published=(Published(at={"threads": 1, "connections": 100}, value=0.0),),
        ),
    )


def test_figures_are_stored_with_the_experiment_and_one_without_is_still_read() -> None:
    parsed = read(GOOD)
    stored = msgspec.json.encode(parsed)
    assert msgspec.json.decode(stored, type=Experiment) == parsed
    before = {key: value for key, value in msgspec.json.decode(stored).items() if key != "figures"}
    assert msgspec.convert(before, Experiment).figures == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "bars"', 'kind = "bar"', "figure 1 ('Bars'): key 'kind': 'bar' is not valid (did you mean 'bars'?)"),
        (
            'kind = "bars"',
            "",
            "figure 1 ('Bars'): the key 'kind' is missing (there are: bars, curves, ladder, surface)",
        ),
        ('title = "Bars"', "", "figure 1: key 'title': must be a text"),
        ('title = "Bars"', 'title = "Bars"\ncolour = 1', "figure 1 ('Bars'): unknown key 'colour'"),
        ('title = "Bars"', 'title = "Bars"\nbelow = ["cpu"]', "unknown key 'below'"),
        ('across = "both.nodelay"', 'acros = "both.nodelay"', "unknown key 'acros' (did you mean 'across'?)"),
        ('metric = "throughput"', 'metric = "thruput"', "'thruput' is not valid (did you mean 'throughput'?)"),
        ('metric = "throughput"', 'metric = "lines"', "key 'metric': 'lines' is not valid"),
        ('scenario = "echo"', "", "the key 'scenario' is missing; (there are: echo, rpc, rpc again)"),
        ('scenario = "echo"', 'scenario = "ecco"', "unknown scenario 'ecco' (did you mean 'echo'?)"),
        ('scenario = "echo"', 'scenario = ["echo", "echo"]', "key 'scenario': must be a scenario, or a list of some"),
        ("connections = 10 }", 'scenario = "echo" }', "cells: key 'scenario': a figure names it outside 'cells'"),
        ("connections = 10 }", "connections = 11 }", "cells: key 'connections': 11 is not a level of 'connections'"),
        ("connections = 10 }", "connection = 10 }", "cells: unknown key 'connection' (did you mean 'connections'?)"),
        ("connections = 10 }", "connections = [10, 100] }", "'connections' has several values there: name it in"),
        ('along = "client"', 'along = "clients"', "key 'along': 'clients' is not valid (did you mean 'client'?)"),
        ('along = "client"', "", "the key 'along' is missing"),
        ('panels = "contestant"', "", "'contestant' has several values there: name it in 'along', 'across' or"),
        ('panels = "contestant"', 'panels = "client"', "'client' is drawn twice; 'along', 'across' and 'panels' each"),
        ('panels = "contestant"', 'panels = ["contestant", "a", "b"]', "key 'panels': names more than 2 coordinates"),
        (
            'panels = "contestant"',
            'panels = "contestant"\nscale = "lg"',
            "key 'scale': 'lg' is not valid (did you mean",
        ),
        ("value = 9128.15", "", "published 1: the key 'value' is missing"),
        ("value = 9128.15", 'value = "9128"', "published 1: key 'value': '9128' is not a number above 0"),
        ("value = 9128.15", "value = 9128.15\nunit = 1", "published 1: unknown key 'unit'"),
        ('client = "asio-callbacks", ', "", "published 1: at: the key 'client' is missing; the figure draws it"),
        ('client = "asio-callbacks", ', 'client = "qt", ', "at: key 'client': 'qt' is not a level of 'client' in this"),
        (
            'client = "asio-callbacks", ',
            'client = ["asio-x"], ',
            "key 'client': a published figure stands at one value",
        ),
        ('client = "asio-callbacks", ', 'cleint = "asio-x", ', "at: unknown key 'cleint' (did you mean 'client'?)"),
        ('nodelay = "off" }', 'nodelay = "no" }', "at: key 'both.nodelay': 'no' is not a level of 'both.nodelay'"),
    ],
)
def test_a_mistake_is_one_clear_line(old: str, new: str, message: str) -> None:
    assert old in BARS
    before, figure = BARS.split("[[figure]]", 1)
    with pytest.raises(UserError) as error:
        read(f"{before}[[figure]]{figure.replace(old, new, 1)}")
    assert str(error.value).startswith("good.toml: figure 1")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'along = "connections"\nacross = "contestant"',
            'along = "contestant"',
            "the levels of 'contestant' are no numb",
        ),
        ('below = ["cpu", "memory"]', 'below = ["p50"]', "figure 2 ('Curves'): key 'below': names a metric twice"),
        ('below = ["cpu", "memory"]', 'below = "cpu"', "key 'below': must be a list of metrics"),
        ('below = ["cpu", "memory"]', 'below = ["cup"]', "key 'below': 'cup' is not valid (did you mean 'cpu'?)"),
        ('value = "3.9ms"', "value = 3.9", "published 1: key 'value': 3.9 is not a duration: write a text with a unit"),
        ('scenario = ["rpc", "rpc again"]', 'scenario = "rpc"', "figure 3 ('Ladder'): key 'panels': 'scenario' is not"),
        ('panels = "scenario"', "", "figure 3 ('Ladder'): 'scenario' has several values there: name it in 'panels'"),
        ('scenario = "rpc again", con', 'scenario = "rpc agin", con', "key 'scenario': 'rpc agin' is not valid"),
        (
            'metric = "connected"',
            'metric = "connected"\nscale = "log"',
            "'connected' is a share and may be 0, which a log",
        ),
        ('across = "threads"', "", "figure 4 ('Surface'): the key 'across' is missing"),
        ("threads = 1 }, value = 0 }", 'threads = "a" }, value = 0 }', "at: key 'threads': 'a' is not a level of"),
        (
            "value = 0 }]",
            "value = 0 }, { at = { connections = 100, threads = 1 }, value = 1 }]",
            "2: key 'at': another",
        ),
    ],
)
def test_a_mistake_in_another_kind_is_one_clear_line(old: str, new: str, message: str) -> None:
    before, figures = GOOD.split('[[figure]]\nkind = "curves"', 1)
    assert old in figures
    with pytest.raises(UserError) as error:
        read(f'{before}[[figure]]\nkind = "curves"{figures.replace(old, new, 1)}')
    assert message in str(error.value)


def test_what_was_published_stands_in_every_panel_that_it_does_not_choose_among() -> None:
    figure = read(BARS.replace('at = { contestant = "asio-callbacks", ', "at = { ")).figures[0]
    assert figure.published[0].at == {"client": "asio-callbacks", "both.nodelay": "off"}


def test_scenarios_that_have_contestants_of_their_own_need_no_panels() -> None:
    head, ladder = GOOD[: GOOD.index("[[figure]]")], GOOD[GOOD.index('[[figure]]\nkind = "ladder"') :]
    ladder = ladder[: ladder.index('[[figure]]\nkind = "surface"')]
    together = ladder.replace('panels = "scenario"', "").replace('scenario = "rpc again", ', "")
    with pytest.raises(UserError, match="'scenario' has several values there: name it in 'panels'"):
        read(head + together)
    for name, own in (("rpc", "asio-callbacks"), ("rpc again", "folly-async")):
        head = head.replace(f'name = "{name}"\n', f'name = "{name}"\ncontestants = ["{own}"]\n')
    (figure,) = read(head + together).figures
    assert (figure.drawn, len(figure.cells)) == (("contestant",), 2)
    assert [cells.at for cells in figure.published] == [{"contestant": "folly-async"}]


def test_in_an_experiment_of_several_the_scenarios_of_figures_are_named_after_their_study(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "all.toml").write_text('question = "All?"\ninclude = ["good"]\n')
    figures = experiment.load(tmp_path / "all.toml").figures
    assert [figure.title for figure in figures] == ["good: Bars", "good: Curves", "good: Ladder", "good: Surface"]
    assert [cells.scenario for cells in figures[2].cells] == ["good: rpc", "good: rpc again"]
    assert figures[2].published[0].at["scenario"] == "good: rpc again"


def test_a_table_in_the_place_of_a_list_is_refused() -> None:
    with pytest.raises(UserError, match=r"'figure' must be one or more \[\[figure\]\] tables"):
        read(f"figure = 1\n{BARS[: BARS.index('[[figure]]')]}")


def test_every_metric_of_trials_can_be_drawn_and_none_of_code() -> None:
    claimed = {name for name in CLAIMED if METRICS[name].of_code is None}
    assert set(parse.OF_TRIALS) == {*claimed, "handshake"}
    assert all(METRICS[name].amount is not None for name in parse.OF_TRIALS)


@pytest.mark.parametrize("name", experiment.list_names(ROOT / "experiments"))
def test_figures_of_this_repository_name_contestants_that_exist(name: str) -> None:
    servers, clients = ({contestant.name for contestant in discover_once(kind)} for kind in ("server", "client"))
    for figure in experiment.load(ROOT / "experiments" / f"{name}.toml").figures:
        for coordinate, known in (("contestant", servers), ("client", {"netdyno-load", *clients})):
            named = {value for cells in figure.cells for value in cells.at.get(coordinate, ())}
            assert named | {cells.at[coordinate] for cells in figure.published if coordinate in cells.at} <= known

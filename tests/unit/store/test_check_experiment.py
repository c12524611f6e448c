"""Stored experiments that are well formed and impossible: refused in a sentence, or analysed; nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdyno.analysis.analysis import analyse
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.model.base import MOST
from netdyno.present.export import tables
from netdyno.present.export.collect import collect
from netdyno.question import experiment
from netdyno.store import read, schema
from netdyno.store.read import check_experiment, check_numbers
from tests.support.builders.made_claims import claims_run
from tests.support.builders.stored import stored
from tests.support.edit_store import edit_store

IMPOSSIBLE = [1e308, -1e308, 10**30, 2**63, -5, 0, 1e-300, "1e308s", "gone", "", "x" * 100_000, None, []]


def list_places(value: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of each number, text and flag, and a new one in each table."""
    if isinstance(value, dict):
        yield (*place, "service-time")
        for key in value:
            yield from list_places(value[key], (*place, key))
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from list_places(held, (*place, number))
    else:
        yield place


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(claims_run(), tmp_path_factory.mktemp("results")) / schema.FILE_NAME


def replace_experiment(path: Path, text: str) -> str:
    """Store another text of the experiment, and return the one before."""
    with edit_store(path) as connection:
        (before,) = connection.execute("SELECT experiment FROM run").fetchone()
        connection.execute("UPDATE run SET experiment = ?", (text,))
    return str(before)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_stands_in_a_value_of_an_experiment_it_is_refused_or_analysed(path: Path, data: st.DataObject) -> None:
    with edit_store(path) as connection:
        (text,) = connection.execute("SELECT experiment FROM run").fetchone()
    changed = json.loads(text)
    *folders, name = data.draw(st.sampled_from(sorted(list_places(changed), key=str)))
    table = changed
    for folder in folders:
        table = table[folder]
    table[name] = data.draw(st.sampled_from(IMPOSSIBLE))
    replace_experiment(path, json.dumps(changed))
    try:
        with suppress(UserError):
            tables.format_json(collect(analyse(read.load(path))))
    finally:
        replace_experiment(path, text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda stored: stored["scenarios"][0]["server"].update({"service-time": 1e308}), "is not a duration"),
        (lambda stored: stored["scenarios"][0]["factors"].update(size=[1e308]), "1e"),
        (lambda stored: stored["claims"][0]["tests"][0].update(metric="gone"), "names the metric 'gone'"),
        (lambda stored: stored["claims"][0].update(why="gone"), "names the metric 'gone'"),
        (lambda stored: rename_scenario(stored["claims"]), "names the scenario 'gone'"),
        (
            lambda stored: stored["scenarios"][0].update(
                factors={key: [1] * 1000 for key in ("size", "depth", "rate")}
            ),
            "at most 10000 are possible",
        ),
    ],
)
def test_what_no_experiment_can_have_is_named(path: Path, change: Any, reason: str) -> None:
    with edit_store(path) as connection:
        (text,) = connection.execute("SELECT experiment FROM run").fetchone()
    changed = json.loads(text)
    change(changed)
    replace_experiment(path, json.dumps(changed))
    try:
        with pytest.raises(UserError, match=reason):
            read.load(path)
    finally:
        replace_experiment(path, text)


def rename_scenario(claims: Any) -> None:
    for place in list_places(claims):
        if place[-1] == "scenario":
            table = claims
            for folder in place[:-1]:
                table = table[folder]
            table["scenario"] = "gone"


@pytest.mark.parametrize("number", [MOST + 1, -MOST - 1, 1e308, float("inf"), float("nan")])
def test_a_number_beyond_measurement_is_refused_at_any_depth(number: float) -> None:
    check_numbers({"a": [MOST, {"b": -MOST}]})
    with pytest.raises(ValueError, match=r"the number .* is not between"):
        check_numbers({"a": [1, {"b": number}]})


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_a_stored_run_of_each_experiment_can_be_read(path: Path) -> None:
    check_experiment(experiment.load(path))

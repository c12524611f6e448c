"""Reading a run back, whole or as far as it came."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.toml import walk
from netdyno.model import outcomes
from netdyno.model.base import MOST, type_level
from netdyno.model.contestant import About
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import check_combinations, combinations, count_combinations
from netdyno.model.metrics import METRICS, WHYS
from netdyno.model.options import SERVER, option_of, settings
from netdyno.model.run import Environment, Run
from netdyno.model.trial import Traced, Trial
from netdyno.model.values import DURATION
from netdyno.question.contestants import own
from netdyno.question.plan import Cell
from netdyno.store.opening import opened
from netdyno.store.schema import FILE_NAME

_BEGUN_AT = re.compile(r"\A\d{8}-\d{6}-")
"""The beginning of a run's id; the name of its experiment follows."""
_Columns = TypeVar("_Columns")
_Kind = TypeVar("_Kind")


def load(path: Path) -> Run:
    """Read a run back, whole or as far as it came. Raises UserError: missing, no run of netdyno, or of another
    version."""
    with opened(path) as connection:
        return _load(connection)


def _load(connection: sqlite3.Connection) -> Run:
    run_id, experiment_text, started_at, finished_at, environment, words = _read_row(
        connection,
        "run_id, experiment, started_at, finished_at, environment, argv",
        tuple[str, str, str, str | None, str, str],
    )
    _check_run_id(run_id)
    trials = _load_trials(connection)
    experiment = _decode_experiment(experiment_text)
    _check_levels(experiment, trials)
    return Run(
        run_id=run_id,
        experiment=experiment,
        started_at=started_at,
        finished_at=finished_at,
        environment=msgspec.json.decode(environment, type=Environment),
        about=_load_about(connection),
        trials=tuple(trial for trial in trials if not trial.twin),
        twins=tuple(trial for trial in trials if trial.twin),
        traced=tuple(_decode_column(connection, "SELECT traced FROM traced ORDER BY number", Traced)),
        typed=msgspec.json.decode(words, type=tuple[str, ...])[1:],
    )


def _load_trials(connection: sqlite3.Connection) -> list[Trial]:
    """Read all trials. Raises ValueError also where a trial names another place than that of its row: it would be
    judged there."""
    query = "SELECT block, position, attempt, trial FROM trial ORDER BY block, position, rowid"  # tries in their order
    trials = []
    for *place, text in connection.execute(query):
        trial = msgspec.json.decode(msgspec.convert(text, str), type=Trial)
        if place != [trial.block, trial.position, trial.attempt]:
            raise ValueError(f"the trial stored as {place} names another place")
        trials.append(trial)
    return trials


def _check_run_id(run_id: str) -> None:
    """Raise ValueError for an id that cannot be the name of a folder, because it becomes part of paths and of command
    lines to copy."""
    if not run_id or run_id.startswith((".", "-")) or "/" in run_id or "\0" in run_id:
        raise ValueError(f"its id {run_id!r} is no valid run id")


def _decode_column(connection: sqlite3.Connection, query: str, kind: type[_Kind]) -> list[_Kind]:
    """Decode the JSON in the only column of a query. Raises ValueError."""
    return [msgspec.json.decode(msgspec.convert(text, str), type=kind) for (text,) in connection.execute(query)]


def read_head(path: Path) -> tuple[Experiment, Environment, str | None]:
    """Read the experiment of a stored run, its environment, and the time of its end, without decoding its trials."""
    with opened(path) as connection:
        experiment, environment, finished_at = _read_row(
            connection, "experiment, environment, finished_at", tuple[str, str, str | None]
        )
        return _decode_experiment(experiment), msgspec.json.decode(environment, type=Environment), finished_at


def _read_row(connection: sqlite3.Connection, columns: str, types: type[_Columns]) -> _Columns:
    """Read columns about the run as a whole. Raises ValueError where there is no row, or a value of another type."""
    row = connection.execute(f"SELECT {columns} FROM run").fetchone()
    if row is None:
        raise ValueError("it holds no run")
    return msgspec.convert(row, types)


def _decode_experiment(text: str) -> Experiment:
    """Decode an experiment. Raises ValueError also for a level that no run can have."""
    experiment = msgspec.json.decode(text, type=Experiment)
    check_experiment(experiment)
    for scenario in experiment.scenarios:
        for levels in combinations(scenario):
            _check_settings(scenario, levels)
    return experiment


def _check_settings(scenario: Scenario, levels: Mapping[str, type_level]) -> None:
    """Raise ValueError for a level that no run can have."""
    try:
        settings(scenario, levels)
    except KeyError as error:
        raise ValueError(f"{error} is no factor") from error


def _check_levels(experiment: Experiment, trials: Iterable[Trial]) -> None:
    """Raise ValueError for a level of a trial that no run can have."""
    scenarios = {scenario.name: scenario for scenario in experiment.scenarios}
    for name, levels in {(trial.scenario, tuple(trial.levels.items())) for trial in trials}:
        if name in scenarios:
            _check_settings(scenarios[name], dict(levels))


def _load_about(connection: sqlite3.Connection) -> tuple[About, ...]:
    """Read the contestants that took part."""
    about = _decode_column(connection, "SELECT about FROM about ORDER BY number", About)
    for described in about:
        if described.own is not None:
            own.check_stored(described.own)
    return tuple(about)


def load_cells(path: Path) -> tuple[Cell, ...]:
    """Read the plan of a stored run, in its order."""
    with opened(path) as connection:
        rows = connection.execute(
            "SELECT block, position, scenario, contestant, levels, twin FROM cell ORDER BY block, position"
        )
        planned = msgspec.convert(rows.fetchall(), list[tuple[int, int, str, str, str, int]])
        return tuple(
            Cell(
                block=block,
                position=position,
                scenario=scenario,
                contestant=contestant,
                levels=msgspec.json.decode(text, type=dict[str, type_level]),
                twin=bool(twin_flag),
            )
            for block, position, scenario, contestant, text, twin_flag in planned
        )


def run_ids(results: Path) -> list[str]:
    """List the stored runs in a results folder, oldest first (a run id begins with its time)."""
    return sorted(path.parent.name for path in results.glob(f"*/{FILE_NAME}"))


def find(results: Path, run: str) -> Path:
    """Find the file of a run by its id, by the path of its folder or file, or by the name of its experiment, whose
    newest run it is. Raises UserError with the nearest id."""
    newest = [run_id for run_id in run_ids(results) if _BEGUN_AT.sub("", run_id) == run][-1:]
    ways = (results / run / FILE_NAME, Path(run) / FILE_NAME, Path(run))
    for candidate in (*ways, *(results / run_id / FILE_NAME for run_id in newest)):
        if candidate.is_file():
            return candidate
    raise UserError(f"no such run {run!r} in {results}{did_you_mean(run, run_ids(results))}")


def summary(path: Path) -> Mapping[str, object]:
    """Return the data of one line about a stored run, its trials counted by the same rule as in its report."""
    with opened(path) as connection:
        run = _load(connection)
        planned = connection.execute("SELECT count(*) FROM cell").fetchone()[0]
    return {
        "id": run.run_id,
        "experiment": run.experiment.name,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "planned": planned,
        "trials": outcomes.counts(run),
    }


_POSITIVE = ("least_published", "within")
"""The numbers of claims and flips of which a logarithm is taken."""


def check_experiment(experiment: Experiment) -> None:
    """Raise ValueError for a number, an option, a metric or the name of a scenario that no experiment can have."""
    check_combinations("its experiment", sum(map(count_combinations, experiment.scenarios)))
    for scenario in experiment.scenarios:
        _check_options(scenario)
    if experiment.seed < 0:
        raise ValueError(f"the seed {experiment.seed} is below 0")
    stored = msgspec.to_builtins(experiment)
    check_numbers({key: value for key, value in stored.items() if key != "seed"})
    names = {scenario.name for scenario in experiment.scenarios}
    for _, table in walk([stored["claims"], stored["figures"], stored["flips"]]):
        if isinstance(table, dict):
            _check_table(table, names)


def check_numbers(stored: object) -> None:
    """Raise ValueError where a number in these values is beyond those of a measurement (model/base.py)."""
    for _, value in walk(stored):
        if isinstance(value, int | float) and not abs(value) <= MOST:
            raise ValueError(f"the number {str(value)[:30]} is not between {-MOST} and {MOST}")


def _check_options(scenario: Scenario) -> None:
    """An option of an older netdyno is only shown, and may have any value."""
    for name, value in (*scenario.server.items(), *scenario.where_possible.items()):
        if name in SERVER and option_of(name).takes is DURATION:
            DURATION.read(value)
    for name, levels in scenario.factors.items():
        if not levels:
            raise ValueError(f"the factor {name!r} has no level")


def _check_table(table: Mapping[str, object], names: set[str]) -> None:
    scenario = table.get("scenario")
    if isinstance(scenario, str) and scenario not in names:
        raise ValueError(f"it names the scenario {scenario[:100]!r}, which it does not have")
    for key, known in (("metric", METRICS), ("why", {"": "", **WHYS})):
        if isinstance(metric := table.get(key), str) and metric not in known:
            raise ValueError(f"it names the metric {metric[:100]!r}, which does not exist")
    if isinstance(at := table.get("at"), dict) and not all(at.values()):
        raise ValueError("it names a coordinate without any value")
    is_share = METRICS[str(table.get("metric") or "throughput")].scale == "share"
    for key in _POSITIVE if is_share else (*_POSITIVE, "threshold"):
        if isinstance(value := table.get(key), int | float) and value <= 0:
            raise ValueError(f"{key} is {value}, and must be above 0")

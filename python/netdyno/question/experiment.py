"""Experiments, which are questions as data: experiments/<name>.toml, parsed once into frozen values.

A key or value that is not understood is an error that names the file, the key and the nearest valid key."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast, get_args

import msgspec

from netdyno.kit.errors import UserError, check_keys, did_you_mean
from netdyno.kit.files import kind_of
from netdyno.kit.paths import ROOT
from netdyno.kit.toml import parse_table, read_table
from netdyno.model.base import type_level
from netdyno.model.claim import Cells
from netdyno.model.contestant import GENERATOR
from netdyno.model.experiment import Budget, Experiment, Flip, Scenario
from netdyno.model.figure import SCENARIO, Figure, Published
from netdyno.model.levels import check_combinations, combinations, count_combinations
from netdyno.model.options import SHARED, read_key, settings
from netdyno.model.values import declared
from netdyno.question import budgets
from netdyno.question.blocks import check as check_blocks
from netdyno.question.claims import parse as parse_claims
from netdyno.question.figures import parse as parse_figures
from netdyno.question.flips import add_ends
from netdyno.question.flips import parse as parse_flips
from netdyno.question.scenarios import convert, read_shared
from netdyno.question.scenarios import parse as parse_scenario
from netdyno.question.scenarios import replace_load as replace_scenario_load

_REQUIRED = ("contestants", "blocks", "warmup", "duration")
OWN = declared(Experiment)
TIMES = ("time-budget", "time-limit")
TOP_KEYS = ("question", *SHARED, *OWN, "scenario", "claim", "figure", "flip", "budget")
INCLUDE_KEYS = ("question", "include", "seed", "aa-share")
"""The keys of an experiment that is made of others."""
AA_SHARE = 0.05
"""The default share of the A/A control in the time of all trials."""

T = TypeVar("T")


def find_experiments_folder() -> Path:
    """The folder of the repository's experiments."""
    return ROOT / "experiments"


def list_names(folder: Path) -> list[str]:
    """List every experiment in a folder, by name."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find(name_or_path: str, folder: Path) -> Path:
    """Find the file of an experiment by its name or by the path of a .toml. Raises UserError with the nearest name."""
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = Path(name_or_path)
        if path.is_file():
            return path
        if path.exists():
            raise UserError(f"{name_or_path} is {kind_of(path.stat().st_mode)}; name the file of an experiment")
        raise UserError(f"no such experiment file: {name_or_path}")
    path = folder / f"{name_or_path}.toml"
    if not path.is_file():
        raise UserError(f"unknown experiment {name_or_path!r}{did_you_mean(name_or_path, list_names(folder))}")
    return path


def load(path: Path, budget: Budget = "normal") -> Experiment:
    """Read an experiment with a budget, and those that it includes. Raises UserError with one clear line."""
    raw = read_table(path)
    if "include" not in raw:
        return _build_experiment(raw, path.stem, str(path), budget)
    check_keys(str(path), raw, INCLUDE_KEYS)
    included = raw["include"]
    if not isinstance(included, list) or not included or not all(isinstance(name, str) for name in included):
        raise UserError(f"{path}: key 'include': must be a list of experiments of the same folder")
    studies = []
    for name in included:
        study = find(name, path.parent)
        table = read_table(study)
        if "include" in table:
            raise UserError(f"{path}: key 'include': {name!r} is made of others itself")
        studies.append(_build_experiment(table, name, str(study), budget))
    return _join_studies(raw, path, studies, budget)


def list_budgets(path: Path) -> tuple[Budget, ...]:
    """The budgets that an experiment can be run with: those that each of its parts has. Raises UserError as `load`
    does."""
    raw = read_table(path)
    included = raw.get("include")
    if isinstance(included, list) and all(isinstance(name, str) for name in included):
        parts = [list_budgets(find(name, path.parent)) for name in included]
        return tuple(budget for budget in get_args(Budget) if all(budget in part for part in parts))
    available = budgets.read_budgets(raw, str(path))
    return tuple(budget for budget in get_args(Budget) if budget in available)


def parse(text: str, name: str, where: str, budget: Budget = "normal") -> Experiment:
    """Parse the text of an experiment that includes no other; `where` is what errors call it. Pure."""
    return _build_experiment(parse_table(text, where), name, where, budget)


def _build_experiment(raw: Mapping[str, object], name: str, where: str, budget: Budget) -> Experiment:
    check_keys(where, raw, TOP_KEYS)
    for key in ("question", "scenario"):
        if key not in raw:
            raise UserError(f"{where}: the key {key!r} is missing")
    raw = add_ends(raw, where)
    by_budget = {key: _parse_scenarios(table, where) for key, table in budgets.read_budgets(raw, where).items()}
    if budget not in by_budget:
        raise UserError(f"{where}: no budget {budget!r}, only {', '.join(map(repr, by_budget))}")
    experiment = convert(
        where,
        {"name": name, "question": raw["question"], "budget": budget, "scenarios": by_budget[budget]}
        | _read_own(raw if budget == "normal" else {key: raw[key] for key in raw if key not in TIMES}, where),
        Experiment,
    )
    # A claim and a figure may name cells that only a larger budget has: they are reported as missing, or not drawn.
    widest = budgets.merge_levels(by_budget.values())
    claims = parse_claims(raw.get("claim", []), widest, where)
    figures = parse_figures(raw.get("figure", []), widest, where)
    flips = parse_flips(raw.get("flip", []), by_budget[budget], where)
    return msgspec.structs.replace(experiment, claims=claims, figures=figures, flips=flips)


def _parse_scenarios(raw: Mapping[str, object], where: str) -> tuple[Scenario, ...]:
    tables = raw["scenario"]
    if not isinstance(tables, list) or not tables:
        raise UserError(f"{where}: 'scenario' must be one or more [[scenario]] tables")
    shared = read_shared(where, raw)
    for key in _REQUIRED:
        if key not in raw and not all(isinstance(table, dict) and key in table for table in tables):
            raise UserError(f"{where}: the key {key!r} is missing")
    scenarios: list[Scenario] = []
    count = 0
    for number, table in enumerate(tables, 1):
        scenarios.append(parse_scenario(table, shared, f"{where}: scenario {number}"))
        count += count_combinations(scenarios[-1])
        check_combinations(f"{where}: scenario {number}", count)
    for number, scenario in enumerate(scenarios, 1):
        there = f"{where}: scenario {number} ({scenario.name!r})"
        check_blocks(there, scenario, timed="time-budget" in raw or "flip" in raw)
    _check_unique(where, scenarios)
    return tuple(scenarios)


def _join_studies(raw: Mapping[str, object], path: Path, studies: Sequence[Experiment], budget: Budget) -> Experiment:
    """Join all studies into one experiment: names of scenarios, and in the cells of claims and figures, get the study's
    name in front."""
    parts = [_prefix_names(study, study.name) for study in studies]
    claims = tuple(claim for part in parts for claim in part.claims)
    for number, claim in enumerate(claims):
        if any(claim.id == earlier.id for earlier in claims[:number]):
            raise UserError(f"{path}: key 'include': two of them have a claim {claim.id!r}")
    values = {
        "name": path.stem,
        "budget": budget,
        "scenarios": tuple(scenario for part in parts for scenario in part.scenarios),
        "claims": claims,
        "figures": tuple(figure for part in parts for figure in part.figures),
        "flips": tuple(flip for part in parts for flip in part.flips),
        "parts": tuple(study.name for study in studies),
        **_read_own(raw, str(path)),
    }
    return convert(str(path), values | {key: raw[key] for key in ("question",) if key in raw}, Experiment)


def _read_own(raw: Mapping[str, object], where: str) -> dict[str, object]:
    """Read the experiment's own options, with the default share of the A/A control."""
    own_options = {option.field: read_key(where, option, raw[key]) for key, option in OWN.items() if key in raw}
    return {"aa_share": AA_SHARE, **own_options}


def _prefix_names(value: T, study: str) -> T:
    """Put the study's name in front of the name of every scenario, selection of cells and figure in a value."""
    if isinstance(value, tuple):
        return cast(T, tuple(_prefix_names(item, study) for item in value))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: _prefix_names(getattr(value, name), study) for name in value.__struct_fields__}
    if isinstance(value, Cells | Flip):
        fields["scenario"] = f"{study}: {value.scenario}"
    if isinstance(value, Figure):
        fields["title"] = f"{study}: {value.title}"
    if isinstance(value, Published):
        fields["at"] = {name: f"{study}: {item}" if name == SCENARIO else item for name, item in value.at.items()}
    if isinstance(value, Scenario):
        fields["name"] = f"{study}: {value.name}"
    return cast(T, msgspec.structs.replace(value, **fields))


def choose_contestants(experiment: Experiment, choose: Callable[[Sequence[str]], Sequence[str]]) -> Experiment:
    """Replace the patterns of each scenario's contestants by the names that they choose."""
    return experiment.change_each(
        lambda scenario: msgspec.structs.replace(scenario, contestants=tuple(choose(scenario.contestants)))
    )


def replace_load(experiment: Experiment, connections: int | None, rate: float | None) -> Experiment:
    """Return the experiment with the load of the command line in each scenario; None leaves what the file says. Pure.
    Raises UserError where that is not possible."""
    given = [name for name, value in {"--connections": connections, "--rate": rate}.items() if value is not None]
    if not given:
        return experiment
    if experiment.claims or experiment.figures or experiment.flips:
        raise UserError(
            f"{given[0]}: {experiment.name!r} has claims, figures or flips of its own load; run 'web' instead"
        )
    if rate is not None and all(scenario.arrivals == "closed" for scenario in experiment.scenarios):
        raise UserError(f"--rate: {experiment.name!r} has only closed loops, and these have no rate")
    return experiment.change_each(
        lambda scenario: replace_scenario_load(
            scenario, f"experiment {experiment.name!r}, scenario {scenario.name!r}", connections, rate
        )
    )


def choose_clients(
    experiment: Experiment, names: Sequence[str], where: str, instruments: Collection[str] = ()
) -> Experiment:
    """Replace the patterns of the `client` factors by the names they match, the generator's among them, each once;
    `instruments` are matched by their names alone. Pure. Raises UserError naming `where`, the key and the nearest name
    for one that is no client."""
    scenarios = tuple(
        _replace_clients(scenario, (GENERATOR, *names), instruments, f"{where}: scenario {number} ({scenario.name!r})")
        for number, scenario in enumerate(experiment.scenarios, 1)
    )
    return msgspec.structs.replace(experiment, scenarios=scenarios)


def _replace_clients(scenario: Scenario, known: Sequence[str], instruments: Collection[str], where: str) -> Scenario:
    if scenario.client not in known:
        hint = did_you_mean(scenario.client, known)
        raise UserError(f"{where}: key 'client': unknown client {scenario.client!r}{hint}")
    if "client" not in scenario.factors:
        return scenario
    chosen: dict[type_level, None] = {}  # in order, each once
    for pattern in map(str, scenario.factors["client"]):
        matching = [
            name
            for name in known
            if name == pattern or (fnmatch.fnmatchcase(name, pattern) and name not in instruments)
        ]
        if not matching:
            raise UserError(f"{where}: factors: key 'client': unknown client {pattern!r}{did_you_mean(pattern, known)}")
        chosen.update(dict.fromkeys(matching))
    return msgspec.structs.replace(scenario, factors=scenario.factors | {"client": tuple(chosen)})


def list_clients(experiment: Experiment) -> tuple[str, ...]:
    """List the client contestants that any cell starts, by name; the generator is none of them."""
    names = {
        settings(scenario, levels).client for scenario in experiment.scenarios for levels in combinations(scenario)
    }
    return tuple(sorted(names - {GENERATOR}))


def _check_unique(where: str, scenarios: Iterable[Scenario]) -> None:
    names: set[str] = set()
    for scenario in scenarios:
        if scenario.name in names:
            raise UserError(f"{where}: two scenarios are called {scenario.name!r}")
        names.add(scenario.name)

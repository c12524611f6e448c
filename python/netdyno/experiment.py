"""An experiment is a question as data: experiments/<name>.toml, parsed once into frozen values.

Whatever is not understood is an error that names the file, the key and the nearest valid key."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from netdyno.claims.parse import parse as parse_claims
from netdyno.errors import UserError, check_keys, did_you_mean
from netdyno.model import GENERATOR, Experiment, Scenario, type_level
from netdyno.options import LOAD, SERVER, SIDES, Settings, check_value, settings
from netdyno.paths import ROOT
from netdyno.plan import combinations
from netdyno.transports import SOME_SERVERS_OPTIONS
from netdyno.units import parse_duration, parse_rate

_TOP = {
    "question": "question",
    "contestants": "contestants",
    "blocks": "blocks",
    "warmup": "warmup_s",
    "duration": "duration_s",
    "timeout": "timeout_s",
    "loss-bound": "loss_bound",
    "link": "link",
    "link-rate": "link_rate",
    "seed": "seed",
}
_SCENARIO = {name: name.replace("-", "_") for name in ("name", "workload", "arrivals", "metric", *LOAD)}
TOP_KEYS = (*_TOP, "scenario", "claim")
SCENARIO_KEYS = (*_SCENARIO, "factors", "server", "where-possible")
WHERE_POSSIBLE = ("threads", *SOME_SERVERS_OPTIONS)
"""What one server can have and another cannot, and a comparison may still leave to each (transports.py)."""
_DURATIONS = ("warmup", "duration", "timeout")
MOST_SERVICE_TIME_S = 10  # protocol/WIRE.md
_REQUIRED = ("question", "contestants", "blocks", "warmup", "duration", "scenario")

T = TypeVar("T")


def experiments_dir(root: Path = ROOT) -> Path:
    """Where the experiments of the repository are."""
    return root / "experiments"


def names(folder: Path) -> list[str]:
    """Every experiment in a folder, by name."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find(name_or_path: str, folder: Path) -> Path:
    """The file of an experiment given by name or by the path of a .toml. Raises UserError with the nearest name."""
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise UserError(f"no such experiment file: {name_or_path}")
        return path
    path = folder / f"{name_or_path}.toml"
    if not path.is_file():
        raise UserError(f"unknown experiment {name_or_path!r}{did_you_mean(name_or_path, names(folder))}")
    return path


def load(path: Path) -> Experiment:
    """Read an experiment. Raises UserError with one clear line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, where: str) -> Experiment:
    """Parse the text of an experiment; `where` is what errors call it. Pure."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not valid TOML: {error}") from error
    check_keys(where, raw, TOP_KEYS)
    for key in _REQUIRED:
        if key not in raw:
            raise UserError(f"{where}: the key {key!r} is missing")
    tables = raw.pop("scenario")
    if not isinstance(tables, list) or not tables:
        raise UserError(f"{where}: 'scenario' must be one or more [[scenario]] tables")
    scenarios = tuple(_scenario(table, f"{where}: scenario {number}") for number, table in enumerate(tables, 1))
    _check_unique(where, scenarios)
    claims = raw.pop("claim", [])
    values = {_TOP[key]: _seconds(where, key, value) if key in _DURATIONS else value for key, value in raw.items()}
    experiment = _convert(where, {"name": name, **values, "scenarios": scenarios}, Experiment)
    _check_amounts(where, experiment)
    found = parse_claims(claims, experiment.scenarios, experiment.contestants, where)
    return msgspec.structs.replace(experiment, claims=found)


def _scenario(table: object, where: str) -> Scenario:
    if not isinstance(table, dict):
        raise UserError(f"{where}: must be a table")
    if isinstance(table.get("name"), str):
        where = f"{where} ({table['name']!r})"
    check_keys(where, table, SCENARIO_KEYS)
    for key in ("name", "workload"):
        if key not in table:
            raise UserError(f"{where}: the key {key!r} is missing")
    values: dict[str, object] = {}
    for key, value in table.items():
        if key in _SCENARIO:
            values[_SCENARIO[key]] = check_value(where, key, value) if key in LOAD else value
    values["server"] = _options(where, table, "server", SERVER)
    values["where_possible"] = _options(where, table, "where-possible", WHERE_POSSIBLE)
    values["factors"] = _factors(f"{where}: factors", _table(where, table, "factors"))
    scenario = _convert(where, values, Scenario)
    for levels in combinations(scenario):
        wanted = settings(scenario, levels)
        _check_loop(where, wanted, has_depth="depth" in table or "depth" in scenario.factors)
        _check_load(where, wanted)
        _check_client(where, wanted)
    return scenario


def _options(where: str, parent: Mapping[str, object], key: str, known: Iterable[str]) -> dict[str, type_level]:
    """A table of server options, each with a value that it takes."""
    table = _table(where, parent, key)
    check_keys(f"{where}: {key}", table, known)
    return {name: check_value(f"{where}: {key}", name, value) for name, value in table.items()}


def _table(where: str, parent: Mapping[str, object], key: str) -> dict[str, object]:
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{where}: {key!r} must be a table")
    return value


def _factors(where: str, table: Mapping[str, object]) -> dict[str, tuple[type_level, ...]]:
    factors: dict[str, tuple[type_level, ...]] = {}
    for key, levels in _flat(where, table).items():
        if not isinstance(levels, list) or not levels:
            raise UserError(f"{where}: key {key!r} must be a list of levels, such as [10, 100]")
        factors[key] = tuple(check_value(where, key, level) for level in levels)
        if len(set(factors[key])) != len(levels):
            raise UserError(f"{where}: key {key!r} names a level twice")
    return factors


def _flat(where: str, table: Mapping[str, object]) -> dict[str, object]:
    """The factors by their full names (options.whose); an option that two of them would set is an error."""
    on_both_sides = [name for name in LOAD if name in SERVER]
    check_keys(where, table, (*LOAD, *SERVER, *SIDES))
    flat = {key: levels for key, levels in table.items() if key not in SIDES}
    for side in SIDES:
        inner = _table(where, table, side)
        check_keys(f"{where}: {side}", inner, on_both_sides)
        flat |= {f"{side}.{key}": levels for key, levels in inner.items()}
    for name in on_both_sides:
        if f"both.{name}" in flat and (name in flat or f"server.{name}" in flat):
            raise UserError(f"{where}: key 'both.{name}': {name!r} varies on one side as well; leave one of them out")
    return flat


def _check_loop(where: str, wanted: Settings, *, has_depth: bool) -> None:
    """An open loop needs a rate and knows no depth, a closed loop has no rate: half would not run, half mislead."""
    rates = [
        key
        for key, rate in (("rate", wanted.rate), ("rate-per-connection", wanted.rate_per_connection))
        if rate is not None
    ]
    if wanted.arrivals == "closed" and rates:
        raise UserError(
            f"{where}: {rates[0]!r} needs arrivals = 'constant' or 'poisson'; a closed loop has no rate of its own"
        )
    if wanted.arrivals != "closed" and not rates:
        raise UserError(
            f"{where}: arrivals = {wanted.arrivals!r} needs a 'rate' (messages per second in all) "
            "or a 'rate-per-connection'"
        )
    if len(rates) > 1:
        raise UserError(f"{where}: 'rate' and 'rate-per-connection' say the same thing twice; leave one of them out")
    if wanted.arrivals != "closed" and parse_duration(wanted.round) > 0:
        raise UserError(f"{where}: 'round' is for a closed loop; an open loop sends when the schedule says")
    if wanted.arrivals != "closed" and has_depth:
        raise UserError(f"{where}: 'depth' is for a closed loop; an open loop sends when the schedule says")


def _check_client(where: str, wanted: Settings) -> None:
    """A client contestant is a closed loop with one request in flight (protocol/client.md): what only the generator can
    do is an error here and not a failure in the middle of a run."""
    if wanted.client == GENERATOR:
        return
    only_generator = {
        "arrivals": (wanted.arrivals, "closed"),
        "depth": (wanted.depth, 1),
        "round": (wanted.round, "0s"),
        "generator-threads": (wanted.generator_threads, 1),
        "connect-rate": (wanted.connect_rate, "burst"),
    }
    for key, (asked, possible) in only_generator.items():
        if asked != possible:
            raise UserError(
                f"{where}: key {key!r}: {asked!r} is what only {GENERATOR} can do; with client = {wanted.client!r}, a "
                f"closed loop with one request in flight, it is {possible!r}"
            )


def _check_load(where: str, wanted: Settings) -> None:
    """What the generator would refuse in the middle of a run (loadgen/plan.cpp, contradiction)."""
    least = 29 if wanted.workload in ("echo", "lines") else 28  # protocol/WIRE.md, Stamps
    if wanted.size < least:
        raise UserError(
            f"{where}: key 'size': {wanted.size} bytes; a message of {wanted.workload!r} has at least {least}"
        )
    service_s = parse_duration(wanted.service_time)
    if service_s > 0 and wanted.workload != "rpc":
        raise UserError(f"{where}: key 'service-time': a request of 'rpc' can ask for one, {wanted.workload!r} cannot")
    if service_s > MOST_SERVICE_TIME_S:
        raise UserError(f"{where}: key 'service-time': {wanted.service_time} is above {MOST_SERVICE_TIME_S} s")
    to_others = wanted.workload == "chat" and wanted.server.get("audience", "others") == "others"
    most = wanted.connections // 2 if to_others else wanted.connections
    if wanted.generator_threads > most:
        raise UserError(
            f"{where}: key 'generator-threads': {wanted.generator_threads} threads need more connections than "
            f"{wanted.connections}{' (two each, where a witness times a chat)' if to_others else ''}"
        )


def _seconds(where: str, key: str, value: object) -> float:
    if not isinstance(value, str):
        raise UserError(f"{where}: key {key!r}: {value!r} is not a duration: write a text with a unit, such as '250ms'")
    try:
        return parse_duration(value)
    except ValueError as error:
        raise UserError(f"{where}: key {key!r}: {error}") from error


def _convert(where: str, values: Mapping[str, object], kind: type[T]) -> T:
    """msgspec checks the types; its message is turned round so that the key stands first."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        message, _, key = str(error).partition(" - at `$.")
        shown = key.rstrip("`").removesuffix("_s").replace("_", "-")
        hint = _choices(key.rstrip("`"), values)
        raise UserError(f"{where}: {f'key {shown!r}: ' if shown else ''}{message}{hint}") from error


def _choices(field: str, values: Mapping[str, object]) -> str:
    """The nearest valid word for a key that takes one of a few words."""
    words = {
        "arrivals": ("closed", "constant", "poisson"),
        "metric": ("throughput", "p50", "p99", "mean"),
        "link": ("loopback", "lan"),
    }.get(field)
    return did_you_mean(str(values.get(field)), words) if words else ""


def with_clients(experiment: Experiment, names: Sequence[str], where: str) -> Experiment:
    """The experiment with the patterns of its `client` factors replaced by the names they match, the generator's among
    them, each once. Pure. Raises UserError naming `where`, the key and the nearest name for one that is no client."""
    scenarios = tuple(
        _with_clients(scenario, (GENERATOR, *names), f"{where}: scenario {number} ({scenario.name!r})")
        for number, scenario in enumerate(experiment.scenarios, 1)
    )
    return msgspec.structs.replace(experiment, scenarios=scenarios)


def _with_clients(scenario: Scenario, known: Sequence[str], where: str) -> Scenario:
    if scenario.client not in known:
        hint = did_you_mean(scenario.client, known)
        raise UserError(f"{where}: key 'client': unknown client {scenario.client!r}{hint}")
    if "client" not in scenario.factors:
        return scenario
    chosen: dict[type_level, None] = {}  # in order, each once
    for pattern in map(str, scenario.factors["client"]):
        matching = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
        if not matching:
            raise UserError(f"{where}: factors: key 'client': unknown client {pattern!r}{did_you_mean(pattern, known)}")
        chosen.update(dict.fromkeys(matching))
    return msgspec.structs.replace(scenario, factors=scenario.factors | {"client": tuple(chosen)})


def clients(experiment: Experiment) -> tuple[str, ...]:
    """The client contestants that any cell starts, by name; the generator is none of them."""
    names = {
        settings(scenario, levels).client for scenario in experiment.scenarios for levels in combinations(scenario)
    }
    return tuple(sorted(names - {GENERATOR}))


def _check_unique(where: str, scenarios: tuple[Scenario, ...]) -> None:
    seen: set[str] = set()
    for scenario in scenarios:
        if scenario.name in seen:
            raise UserError(f"{where}: two scenarios are called {scenario.name!r}")
        seen.add(scenario.name)


def _check_amounts(where: str, experiment: Experiment) -> None:
    if experiment.blocks < 1:
        raise UserError(f"{where}: key 'blocks': {experiment.blocks} is not a whole number of at least 1")
    if experiment.seed < 0:
        raise UserError(f"{where}: key 'seed': {experiment.seed} is not a whole number of at least 0")
    if not 0 <= experiment.loss_bound < 1:
        raise UserError(f"{where}: key 'loss-bound': {experiment.loss_bound} is not a share from 0 to below 1")
    if experiment.duration_s <= 0:
        raise UserError(f"{where}: key 'duration': must be above 0")
    _check_link(where, experiment)
    if not experiment.contestants:
        raise UserError(f"{where}: key 'contestants': names nobody; write [\"*\"] for all")


def _check_link(where: str, experiment: Experiment) -> None:
    """The loopback takes whatever the programs give it: a rate would not be kept there."""
    if experiment.link_rate is None:
        return
    if experiment.link == "loopback":
        raise UserError(f"{where}: key 'link-rate': the loopback has no rate; write link = \"lan\" beside it")
    try:
        parse_rate(experiment.link_rate)
    except ValueError as error:
        raise UserError(f"{where}: key 'link-rate': {error}") from error

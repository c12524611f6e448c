"""`netdyno profile`: where one server spends its time, or where two differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from msgspec.structs import replace

from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.escape import harmless, harmless_lines
from netdyno.base.files import write_whole
from netdyno.base.paths import build_dir
from netdyno.commands.flags import Asked
from netdyno.contestants import contestants, own
from netdyno.experiment import plan, scenarios
from netdyno.experiment.plan import Cell
from netdyno.experiment.profile import LOAD
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import middle
from netdyno.model.options import Settings, settings
from netdyno.model.profile import Profile, Profiled
from netdyno.run import needed, runner
from netdyno.store import profiles
from netdyno.trial import profiled
from netdyno.trial.setup import unwatched

MOST_SERVERS = 2
PAGE_NAME = "profile.html"
LEAST_WINDOW_S = 1.0
"""Of a profile beside a run, whose own windows may be too short to see much."""


class Wishes(NamedTuple):
    """What `netdyno profile` was asked for: servers by name, the command lines of one's own and their names; `asked`
    has a value for each option of LOAD that has one."""

    servers: tuple[str, ...]
    commands: tuple[str, ...]
    names: tuple[str, ...]
    asked: Asked
    results: Path
    as_json: bool


def run(wishes: Wishes) -> int:
    """0 where there is a profile of each, 1 where one is missing, 128 + signal when interrupted."""
    build = build_dir()
    servers = _servers(wishes, build)
    scenario = scenario_of(wishes.asked, servers)
    experiment = Experiment(name="profile", question="Where does the time go?", scenarios=(scenario,))
    ready = needed.make(experiment, servers, [], build).servers
    runner.check(experiment, ready, build)
    _, folder = runner.create_folder(wishes.results, "profile-" + "-".join(one.name for one in ready)[:100])
    bench, _ = runner.set_up(
        experiment, ready, clients=(), build=build, folder=folder, progress=unwatched, foreign_load="count"
    )
    say = sys.stderr if wishes.as_json else sys.stdout
    found: list[Profile] = []
    try:
        with runner.signals_raise():
            for number, server in enumerate(ready):
                print(f"{server.name}: {load_words(scenario)}, twice under perf", file=say, flush=True)
                found += profiled.profile(_task(number, scenario, server), bench)
    except runner.Interrupted as signalled:
        return signalled.exit_code
    return _tell(found, scenario, folder, wishes.as_json)


def scenario_of(asked: Asked, servers: Sequence[Contestant]) -> Scenario:
    """The load under which they are looked at. Raises UserError naming the option."""
    workload = _workload(asked.get("workload"), servers)
    given = [option for option in LOAD if option.name in asked]
    fields = {option.field: asked[option.name] for option in given if option.place in ("own", "load", "shared")}
    rate = asked.get("rate")
    of_load: dict[str, object] = {
        "name": workload,
        "workload": workload,
        "contestants": tuple(one.name for one in servers),
        "arrivals": "closed" if rate is None else "poisson",
        "server": {option.name: asked[option.name] for option in given if option.place == "server"},
    }
    return scenarios.build("profile", fields | of_load, has_depth="depth" in asked)


def _servers(wishes: Wishes, build: Path) -> list[Contestant]:
    everyone = contestants.discover(build=build)
    found = [contestants.by_name(everyone, name) for name in wishes.servers]
    workload = wishes.asked.get("workload") or own.DEFAULT_WORKLOAD
    mine = [Own(command=line, workload=workload) for line in wishes.commands]
    found += own.named(mine, wishes.names, [one.name for one in everyone])
    if not 1 <= len(found) <= MOST_SERVERS or len({one.name for one in found}) < len(found):
        raise UserError("a profile is of one server, or of two different ones (see: list servers; --server COMMAND)")
    return found


def _workload(asked: str | None, servers: Sequence[Contestant]) -> str:
    """The first that all of them speak, where none is asked for."""
    known = [name for name in servers[0].manifest.workloads if all(name in one.manifest.workloads for one in servers)]
    if asked is None and known:
        return known[0]
    for server in servers:
        if asked not in server.manifest.workloads:
            speaks = quantities.listed(server.manifest.workloads)
            raise UserError(
                f"--workload: {server.name} does not speak {asked or servers[0].manifest.workloads[0]!r} "
                f"(it speaks {speaks})"
            )
    assert asked is not None
    return asked


def load_words(scenario: Scenario) -> str:
    """What both do, in one line."""
    pace = "as fast as they are answered" if scenario.rate is None else f"{scenario.rate:g} messages/s"
    return (
        f"{scenario.workload} over {quantities.plural(scenario.connections, 'connection')}, {pace}, "
        f"{scenario.duration_s:g} s"
    )


def _task(number: int, scenario: Scenario, server: Contestant) -> profiled.Task:
    cell = Cell(block=0, position=number, scenario=scenario.name, contestant=server.name, levels={})
    return profiled.Task(cell, settings(scenario, {}), server)


def _tell(found: Sequence[Profile], scenario: Scenario, folder: Path, as_json: bool) -> int:
    from netdyno.present.profile import page
    from netdyno.present.prose import profile as prose

    asked = Profiled(load=load_words(scenario), profiles=tuple(found))
    folded = profiles.write(asked, folder, "profile")
    target = (folder / PAGE_NAME).resolve()
    write_whole(target, page(asked))
    told = [
        {
            "server": one.server,
            "sort": one.sort,
            "folded": str(folded[one.server, one.sort]) if one.stacks else None,
            "seconds": one.total_us / 1e6,
            "samples": one.samples,
            "notes": prose.notes(one),
        }
        for one in found
    ]
    if as_json:
        print(json.dumps({"report": str(target), "profiles": told}), flush=True)
    else:
        print(f"{_notes(found)}\n{harmless(f'profile: {target}')}", flush=True)
    return 0 if all(one.stacks or one.sort == "off-cpu" for one in found) else 1


def _notes(found: Sequence[Profile]) -> str:
    """What is to be said of each."""
    from netdyno.present.prose import profile as prose

    return harmless_lines("\n".join(f"{one.server}, {one.sort}: {note}" for one in found for note in prose.notes(one)))


def beside(experiment: Experiment, ready: needed.Ready, folder: Path, build: Path, say: IO[str]) -> None:
    """Profiles of a run's servers once its trials are over, kept in its folder for its report: of each question at the
    one combination in the middle of its levels. Ctrl-C ends them, and the run stays what it is."""
    bench, _ = runner.set_up(
        experiment,
        ready.servers,
        clients=ready.clients,
        build=build,
        folder=folder,
        progress=unwatched,
        foreign_load="count",
    )
    named = {server.name: server for server in ready.servers}
    with suppress(runner.Interrupted), runner.signals_raise():
        for scenario in experiment.scenarios:
            found: list[Profile] = []
            chosen = middle(scenario)
            wanted = settings(scenario, chosen)
            wanted = replace(wanted, duration_s=max(wanted.duration_s, LEAST_WINDOW_S))
            for number, name in enumerate(scenario.contestants):
                cell = Cell(block=0, position=number, scenario=scenario.name, contestant=name, levels=chosen)
                why = plan.why_skip(named[name], scenario, chosen, bench.clients)
                server = replace(named[name], available=False, why_not=why) if why else named[name]
                found += profiled.profile(profiled.Task(cell, wanted, server), bench)
            asked = Profiled(question=scenario.name, load=settings_words(wanted, chosen), profiles=tuple(found))
            profiles.write(asked, folder, f"{profiles.OF_QUESTION}{scenario.name}")
            print(f"profile of {harmless(scenario.name)}: {asked.load}\n{_notes(found)}", file=say, flush=True)


def settings_words(wanted: Settings, levels: Mapping[str, type_level]) -> str:
    """The load of a combination, in one line."""
    at = "".join(f", {name} {level}" for name, level in levels.items())
    return f"{wanted.workload}{at}, {wanted.duration_s:g} s"

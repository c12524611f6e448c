"""`netdyno profile`: the functions in which one server spends its time, or in which two differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless, harmless_lines
from netdyno.kit.paths import build_dir
from netdyno.measure.run import interrupts, needed, preparation
from netdyno.measure.run.hosts import RunSetup
from netdyno.measure.trial import profiled
from netdyno.measure.trial.command import adapt_to_server
from netdyno.measure.trial.context import TrialContext
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import middle
from netdyno.model.options import PROFILED, Settings, settings
from netdyno.model.profile import Profile, Profiled
from netdyno.present.prose.loads import describe_combination, describe_profiled
from netdyno.question import plan, scenarios
from netdyno.question.contestants import contestants
from netdyno.question.plan import Cell
from netdyno.store import profiles
from netdyno.verbs import own_servers
from netdyno.verbs.flags import GivenOptions, select_fields
from netdyno.verbs.own_servers import ServersRequest

MOST_SERVERS = 2
LEAST_WINDOW_S = 1.0
"""The least window of a profile beside a run, because the run's own windows may be too short to show much."""


def run(request: ServersRequest) -> int:
    """Profile the servers. Return 0 where each has a profile, 1 where one is missing, 128 + signal when interrupted."""
    build = build_dir()
    servers = _find_servers(request, build)
    scenario = build_scenario(request.given, servers)
    experiment = Experiment(name="profile", question="Where does the time go?", scenarios=(scenario,))
    experiment = own_servers.set_requests(experiment, request.own.requests, servers)
    ready = needed.make(experiment, servers, [], build).servers
    setup = RunSetup(experiment=experiment, servers=ready, build=build, foreign_load=request.foreign_load)
    name = "profile-" + "-".join(server.name for server in ready)[:100]
    prepared = preparation.prepare(setup, request.results, name)
    (scenario,) = prepared.first.experiment.scenarios
    ready = prepared.first.describe_servers(ready)
    output = sys.stderr if request.as_json else sys.stdout
    measured: list[Profile] = []
    try:
        with interrupts.raise_on_signals():
            for number, server in enumerate(ready):
                print(f"{server.name}: {describe_profiled(scenario)}, twice under perf", file=output, flush=True)
                load_settings = adapt_to_server(settings(scenario, {}), server)
                task = _build_task(number, scenario, {}, load_settings, server, prepared.context)
                measured += profiled.profile(task, prepared.context)
    except interrupts.Interrupted as signalled:
        return signalled.exit_code
    return _present_profiles(measured, scenario, prepared.folder, request.as_json)


def build_scenario(values: GivenOptions, servers: Sequence[Contestant]) -> Scenario:
    """Return the load under which they are profiled. Raises UserError naming the option."""
    workload = contestants.choose_workload(values.get("workload"), servers)
    rate = values.get("rate")
    load_fields: dict[str, object] = {
        "name": workload,
        "workload": workload,
        "contestants": tuple(server.name for server in servers),
        "arrivals": "closed" if rate is None else "poisson",
    }
    return scenarios.build("profile", select_fields(PROFILED, values) | load_fields, has_depth="depth" in values)


def _find_servers(request: ServersRequest, build: Path) -> list[Contestant]:
    if request.own.addresses:
        raise UserError(
            "--address: an already running server is not profiled, because that would slow it down for others"
        )
    everyone = contestants.discover(build=build)
    is_sent_bytes = "send" in request.own.requests or not request.own.commands
    own = msgspec.structs.replace(request.own, workload=None if is_sent_bytes else request.given.get("workload"))
    servers = [contestants.find_by_name(everyone, name) for name in request.servers]
    servers += own_servers.resolve(own, [server.name for server in everyone])
    if not 1 <= len(servers) <= MOST_SERVERS or len({server.name for server in servers}) < len(servers):
        raise UserError("a profile is of one server, or of two different ones (see: list servers; --server COMMAND)")
    return servers


def _build_task(
    number: int,
    scenario: Scenario,
    levels: dict[str, type_level],
    load_settings: Settings,
    server: Contestant,
    context: TrialContext,
) -> profiled.ProfileTask:
    """Return the task of a server at a combination of levels. A server that cannot have it says why in its profile."""
    cell = Cell(block=0, position=number, scenario=scenario.name, contestant=server.name, levels=levels)
    why_skipped = plan.explain_skip(server, scenario, levels, context.clients)
    possible = replace(server, available=False, why_not=why_skipped) if why_skipped else server
    return profiled.ProfileTask(cell, load_settings, possible)


def _present_profiles(measured: Sequence[Profile], scenario: Scenario, folder: Path, as_json: bool) -> int:
    from netdyno.analysis.notices import functions
    from netdyno.present.prose import profile as prose
    from netdyno.present.terminal.profile import render

    question = Profiled(load=describe_profiled(scenario), profiles=tuple(measured))
    folded = profiles.write(question, folder, "profile")
    entries = [
        {
            "server": profile.server,
            "sort": profile.sort,
            "folded": str(folded[profile.server, profile.sort].resolve()) if profile.stacks else None,
            "seconds": profile.total_us / 1e6,
            "samples": profile.samples,
            "notes": prose.list_notes(profile),
            "functions": [function._asdict() for function in functions.rank_functions([profile])],
        }
        for profile in measured
    ]
    if as_json:
        print(json.dumps({"folder": str(folder.resolve()), "profiles": entries}), flush=True)
    else:
        render(question, sys.stdout)
        for path in folded.values():
            print(harmless(f"stacks: {path.resolve()}"), flush=True)
    return 0 if all(profile.stacks or profile.sort == "off-cpu" for profile in measured) else 1


def _describe_notes(measured: Sequence[Profile]) -> str:
    """Return the notes on each profile, one a line."""
    from netdyno.present.prose import profile as prose

    return harmless_lines(
        "\n".join(
            f"{profile.server}, {profile.sort}: {note}" for profile in measured for note in prose.list_notes(profile)
        )
    )


def run_after_trials(
    experiment: Experiment, ready: needed.PreparedContestants, folder: Path, build: Path, output: IO[str]
) -> None:
    """Profile a run's servers once its trials are over, for its report: each question at the one combination in the
    middle of its levels. The profiles stay in the run's folder. Ctrl-C ends them and leaves the run as it is."""
    setup = RunSetup(
        experiment=experiment,
        servers=ready.servers,
        clients=ready.clients,
        build=build,
        foreign_load="count",
    )
    context, _ = preparation.set_up(setup, folder)
    named = {server.name: server for server in ready.servers}
    with suppress(interrupts.Interrupted), interrupts.raise_on_signals():
        for scenario in experiment.scenarios:
            measured: list[Profile] = []
            chosen = middle(scenario)
            load_settings = settings(scenario, chosen)
            load_settings = replace(load_settings, duration_s=max(load_settings.duration_s, LEAST_WINDOW_S))
            for number, name in enumerate(scenario.contestants):
                task = _build_task(number, scenario, chosen, load_settings, named[name], context)
                measured += profiled.profile(task, context)
            question = Profiled(
                question=scenario.name, load=describe_combination(load_settings, chosen), profiles=tuple(measured)
            )
            profiles.write(question, folder, f"{profiles.OF_QUESTION}{scenario.name}")
            print(
                f"profile of {harmless(scenario.name)}: {question.load}\n{_describe_notes(measured)}",
                file=output,
                flush=True,
            )

"""The command lines that repeat a run, its report and one of its trials. Pure functions."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

import msgspec

from netdyno.analysis.found.run import Analysis
from netdyno.kit.paths import ENTRY
from netdyno.measure.trial.command import BACKEND_BY_HAND, build_user_commands, close_loop
from netdyno.model import own_requests
from netdyno.model.contestant import About, Own, list_settings
from netdyno.model.experiment import Experiment
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.own_requests import AT_FILE
from netdyno.model.run import OF_CLUSTER
from netdyno.model.transports import LOOPBACK_ADDRESS, SERVER_ADDRESS
from netdyno.model.trial import Trial
from netdyno.question.capacity import list_search_options
from netdyno.question.contestants import stand_in

_SCHEMES = {"tls": "tcp", "http": "tcp", "https": "tls"}
"""Of a load's URL: the endpoint of its server."""


class RepeatCommand(msgspec.Struct, frozen=True):
    """A command line, and what it repeats."""

    purpose: str
    line: str


def list_commands(analysis: Analysis) -> tuple[RepeatCommand, ...]:
    cluster_flag = " --cluster DIR" if OF_CLUSTER in analysis.environment else ""
    whole = RepeatCommand(
        "The whole run again", build_repeat_command(analysis.requested, analysis.about) + cluster_flag
    )
    report = RepeatCommand("This report again, from the stored run", f"{ENTRY} report {shlex.quote(analysis.run_id)}")
    trial = analysis.example
    return (
        whole,
        report,
        *(_build_trial_commands(analysis, trial, trial.load) if trial is not None and trial.load else ()),
    )


POSTGRESQL = ".venv/bin/python -m netdyno.measure.trial.postgresql"


def _build_trial_commands(analysis: Analysis, trial: Trial, load: LoadResult) -> tuple[RepeatCommand, ...]:
    scenario = next(scenario for scenario in analysis.requested.scenarios if scenario.name == trial.scenario)
    cell_settings = settings(scenario, trial.levels, trial.warmup.of_load_s if trial.warmup else 0.0)
    endpoint, difference = _find_endpoint(load.plan.url, cell_settings)
    server, client = build_user_commands(trial, endpoint, cell_settings, load.plan.seed)
    program = POSTGRESQL if cell_settings.asks_postgresql else f"{ENTRY} serve calibration --workload rpc"
    backend = f"{program} --listen tcp://{BACKEND_BY_HAND}"
    first = (RepeatCommand("One trial by hand: the backend", backend),) if cell_settings.has_backend else ()
    warming: tuple[RepeatCommand, ...] = ()
    if trial.warmup and trial.warmup.closed:
        closed = close_loop(cell_settings, trial.warmup.seconds)
        _, command = build_user_commands(trial, endpoint, closed, load.plan.seed)
        warming = (RepeatCommand(f"One trial by hand{difference}: its warm-up", shlex.join(command)),)
    loading = (*warming, RepeatCommand(f"One trial by hand{difference}: its load", shlex.join(client)))
    for contestant in analysis.about:
        if contestant.name == trial.contestant and contestant.own is not None:
            if contestant.own.address:
                return loading
            server = stand_in.fill_in(
                shlex.split(contestant.own.command), *stand_in.place(endpoint.partition(AT_FILE)[0])
            )
    return *first, RepeatCommand(f"One trial by hand{difference}: the server", shlex.join(server)), *loading


def _find_endpoint(url: str, cell_settings: Settings) -> tuple[str, str]:
    """Return the endpoint of a server started by hand, and how it differs from the trial's: a link that was made for it
    ends with its trial."""
    address, _, file = url.partition(AT_FILE)
    if file:
        return f"{_find_endpoint(address, cell_settings)[0]}{AT_FILE}{file}", ""
    scheme, _, place = address.partition("://")
    scheme, place = _SCHEMES.get(scheme, scheme), place.partition("/")[0]
    if not cell_settings.is_apart or place.rpartition(":")[0] != SERVER_ADDRESS:
        return f"{scheme}://{place}", ""
    return f"{scheme}://{LOOPBACK_ADDRESS}:{place.rpartition(':')[2]}", ", over the loopback"


MANY = 2
"""So many servers of one template are siblings."""


def build_repeat_command(experiment: Experiment, about: Sequence[About] = ()) -> str:
    """Return the command that repeats the run, from its description and not from the words that were typed."""
    started = [(contestant.name, contestant.own) for contestant in about if contestant.own is not None]
    requests = _list_request_flags(experiment, about)
    if experiment.capacity is None:
        sends = any(scenario.send is not None for scenario in experiment.scenarios)
        workload = ["--workload", started[0][1].workload] if started and not sends else []
        return shlex.join([ENTRY, "run", experiment.name, *_list_servers(started), *workload, *requests])
    options = list_search_options(experiment, experiment.capacity)
    if started:  # what the messages are, their own options say
        options = {name: value for name, value in options.items() if name not in ("workload", "size")}
        options |= {} if experiment.scenarios[0].are_own else {"workload": started[0][1].workload}
    names = [] if started else experiment.scenarios[0].contestants
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join([ENTRY, "capacity", *names, *_list_servers(started), *requests, *words])


def _list_servers(started: Sequence[tuple[str, Own]]) -> list[str]:
    """Return the options that name the user's own servers; siblings by their command line with its places, and the
    levels of their knobs."""
    templates = Counter(server.template for _, server in started)
    flags: list[str] = []
    levels: dict[str, dict[str, None]] = {}
    seen: set[str] = set()
    for name, server in sorted(started, key=lambda known: templates[known[1].template] > 1):
        if not server.template or templates[server.template] < MANY:
            flags += [*_list_server_flags(server), "--as", name]
            continue
        if server.template not in seen:
            given = name.rpartition(f"{next(iter(server.knobs))}=")[0].rstrip(".")
            flags += ["--server", server.template, *(["--as", given] if given else [])]
        seen.add(server.template)
        for knob, level in server.knobs.items():
            levels.setdefault(knob, {})[level] = None
    return flags + [word for knob, known in levels.items() for word in ("--vary", f"{knob}={','.join(known)}")]


def _list_request_flags(experiment: Experiment, about: Sequence[About]) -> tuple[str, ...]:
    """Return the options that say what the user's own servers were sent, and how they were started."""
    if not any(contestant.own is not None for contestant in about):
        return ()
    words = [*_list_load_flags(experiment)] if experiment.capacity is None else []
    words += [word for scenario in experiment.scenarios for word in own_requests.list_options(scenario)]
    for contestant in about:
        words += list_settings(msgspec.structs.asdict(contestant.own)) if contestant.own is not None else ()
    return tuple(dict.fromkeys(words))


def _list_load_flags(experiment: Experiment) -> tuple[str, ...]:
    """Return the options of a load that all scenarios share: a rate may have been lowered, and both may have been
    given."""
    if experiment.claims or experiment.figures or experiment.flips:
        return ()
    connections = {scenario.connections for scenario in experiment.scenarios}
    is_varied = any("connections" in scenario.factors for scenario in experiment.scenarios)
    flags = [] if is_varied or len(connections) > 1 else [f"--connections={connections.pop()}"]
    rates = {scenario.rate for scenario in experiment.scenarios if scenario.arrivals != "closed"}
    rate = rates.pop() if len(rates) == 1 else None
    return (*flags, *([f"--rate={rate:g}"] if rate is not None else []))


def _list_server_flags(server: Own) -> tuple[str, ...]:
    """Return the option that names the server: its address, or its command. The permission to load beyond the loopback
    is the user's to add."""
    return ("--address", server.address) if server.address else ("--server", server.command)

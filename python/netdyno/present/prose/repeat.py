"""The command lines that repeat a run, its report and one of its trials. Pure functions."""

from __future__ import annotations

import shlex

import msgspec

from netdyno.analysis.found.run import Analysis
from netdyno.kit.escape import hide_secrets
from netdyno.kit.paths import ENTRY
from netdyno.measure.trial.command import BACKEND_BY_HAND, build_user_commands, close_loop
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.own_requests import AT_FILE
from netdyno.model.transports import LOOPBACK_ADDRESS, SERVER_ADDRESS
from netdyno.model.trial import Trial
from netdyno.question.contestants import stand_in
from netdyno.question.contestants.own import MAY_LOAD

_SCHEMES = {"tls": "tcp", "http": "tcp", "https": "tls"}
"""Of a load's URL: the endpoint of its server."""


class RepeatCommand(msgspec.Struct, frozen=True):
    """A command line, and what it repeats."""

    purpose: str
    line: str


def list_commands(analysis: Analysis) -> tuple[RepeatCommand, ...]:
    typed = format_typed(analysis)
    whole = (RepeatCommand("The command line that made this run", typed),) if typed else ()
    report = RepeatCommand("This report again, from the stored run", f"{ENTRY} report {shlex.quote(analysis.run_id)}")
    trial = analysis.example
    by_hand = _build_trial_commands(analysis, trial, trial.load) if trial is not None and trial.load else ()
    return tuple(RepeatCommand(command.purpose, hide_secrets(command.line)) for command in (*whole, report, *by_hand))


MOST_TYPED = 4_000
"""The most characters of a command line that is shown."""


def format_typed(analysis: Analysis) -> str:
    """Return the command line that made the run, as a shell takes it; empty where none is stored, or one longer than
    a person types. The permission to load a server beyond the loopback is the user's to add."""
    words = [word for word in analysis.typed if word != f"--{MAY_LOAD}"]
    line = shlex.join([ENTRY, *words])
    return line if words and len(line) <= MOST_TYPED else ""


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

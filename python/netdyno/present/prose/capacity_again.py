"""The command that a stored run was started by. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from netdyno.experiment.capacity import list_search_options
from netdyno.model import own_requests
from netdyno.model.contestant import About, Own, list_settings
from netdyno.model.experiment import Experiment


def build_repeat_command(experiment: Experiment, about: Sequence[About] = ()) -> str:
    """Return the command that repeats the run, from its description and not from the words that were typed."""
    if experiment.capacity is None:
        started = [(contestant.name, contestant.own) for contestant in about if contestant.own is not None]
        flags = [word for name, contestant in started for word in (*_list_server_flags(contestant), "--as", name)]
        sends = any(scenario.send is not None for scenario in experiment.scenarios)
        workload = ["--workload", started[0][1].workload] if started and not sends else []
        return shlex.join(
            ["./netdyno", "run", experiment.name, *flags, *workload, *_list_request_flags(experiment, about)]
        )
    options = list_search_options(experiment, experiment.capacity)
    flags = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join(["./netdyno", "capacity", *experiment.scenarios[0].contestants, *flags])


def _list_request_flags(experiment: Experiment, about: Sequence[About]) -> tuple[str, ...]:
    """Return the options that say what the user's own servers were sent, and how they were started."""
    if not any(contestant.own is not None for contestant in about):
        return ()
    words = [word for scenario in experiment.scenarios for word in own_requests.list_options(scenario)]
    for contestant in about:
        words += list_settings(msgspec.structs.asdict(contestant.own)) if contestant.own is not None else ()
    return tuple(dict.fromkeys(words))


def _list_server_flags(server: Own) -> tuple[str, ...]:
    """Return the option that names the server: its address, or its command. The permission to load beyond the loopback
    is the user's to add."""
    return ("--address", server.address) if server.address else ("--server", server.command)

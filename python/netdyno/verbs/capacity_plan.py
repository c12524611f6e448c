"""The request of `netdyno capacity`, as an experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY
from netdyno.kit.units import duration_words
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import CapacityPlan, Experiment
from netdyno.model.objective import Objective
from netdyno.model.objective import parse as parse_objective
from netdyno.present.prose.capacity import format_rate
from netdyno.question import scenarios
from netdyno.question.capacity import CAPACITY, RATE, SEARCH, to_level
from netdyno.question.contestants import contestants
from netdyno.verbs import own_servers
from netdyno.verbs.flags import GivenOptions, select_fields
from netdyno.verbs.own_servers import ServersRequest

DEFAULT_START_HZ = 1000.0
START_SHARE = 0.5
"""A search starts at this share of the rate at which a user's own server answered the first requests: the objective
then holds at the start of most searches, and few steps are far from the answer."""


def plan_searches(request: ServersRequest, known: Sequence[Contestant]) -> tuple[Experiment, tuple[Contestant, ...]]:
    """Return the searches as one experiment with all servers, and the servers. Raises UserError."""
    workload = request.given.get("workload") if own_servers.has_servers(request.own) else None
    own = own_servers.resolve(
        msgspec.structs.replace(request.own, workload=workload), [server.name for server in known]
    )
    servers = (*(contestants.find_by_name(known, name) for name in dict.fromkeys(request.servers)), *own)
    if not servers:
        raise UserError(f"name a server (see: {ENTRY} list servers), or start your own: --server 'my-server {{port}}'")
    for server in servers:
        if server.manifest.apart:
            exclusion = "unsafe" if server.manifest.unsafe else "not ranked"
            raise UserError(f"{server.name} is {exclusion}, so its capacity is not measured")
    experiment = build_experiment(request.given, servers)
    return own_servers.set_requests(experiment, request.own.requests, servers), servers


def build_experiment(values: GivenOptions, servers: Sequence[Contestant]) -> Experiment:
    """Return the searches as an experiment of one scenario. Raises UserError naming the option."""
    objective = parse_objective(values["objective"], "--objective")
    workload = contestants.choose_workload(values.get("workload"), servers)
    is_to_be_measured = any(server.own is not None for server in servers)
    limits = _plan_search(values, objective, 0.0 if is_to_be_measured else None)
    names = [server.name for server in servers]
    search_fields: dict[str, object] = {
        "name": workload,
        "workload": workload,
        "contestants": tuple(names),
        "metric": CAPACITY,
        "factors": {RATE: (to_level(limits.start_hz),)},
    }
    subject = f"does {names[0]} meet" if len(names) == 1 else f"do {quantities.listed(names)} meet"
    return Experiment(
        name=f"{CAPACITY}-{names[0]}",
        question=f"Up to which rate {subject} {objective.text}?",
        scenarios=(scenarios.build("capacity", select_fields(SEARCH, values) | search_fields),),
        seed=values["seed"],
        capacity=limits,
    )


def narrow(experiment: Experiment, server: Contestant, values: GivenOptions, rate_hz: float | None) -> Experiment:
    """Return the search of one server. `rate_hz`: the replies a second that it gave to the first requests; None where
    there were none."""
    objective = parse_objective(values["objective"], "--objective")
    limits = _plan_search(values, objective, rate_hz)
    (scenario,) = experiment.scenarios
    narrowed = msgspec.structs.replace(
        scenario, contestants=(server.name,), factors={RATE: (to_level(limits.start_hz),)}
    )
    return msgspec.structs.replace(
        experiment,
        name=f"{CAPACITY}-{server.name}",
        question=f"Up to which rate does {server.name} meet {objective.text}?",
        scenarios=(narrowed,),
        capacity=limits,
    )


def _plan_search(values: GivenOptions, objective: Objective, measured_hz: float | None = None) -> CapacityPlan:
    """Return the bounds of the search: below the least rate a window has too few messages for the objective's
    percentile. It starts below the rate that was measured, where one was, at a rate that most servers have."""
    least = float(math.ceil(objective.least_messages() / values["duration"] - 1e-9))
    most = values["most"]
    usual = DEFAULT_START_HZ if measured_hz is None else min(most, float(f"{START_SHARE * measured_hz:.2g}"))
    start = values.get("start", max(usual, least))
    if start < least:
        raise UserError(
            f"--start: at {format_rate(start)}/s a window of {duration_words(values['duration'])} has fewer than "
            f"{objective.least_messages()} messages, too few for {objective.text}; "
            f"begin at {format_rate(least)}/s or take a "
            "longer --duration"
        )
    if most < start:
        raise UserError(
            f"--most: {format_rate(most)} is below the rate that the search starts at, {format_rate(start)}"
        )
    return CapacityPlan(
        objective=values["objective"],
        start_hz=start,
        least_hz=min(least, start),
        most_hz=most,
        resolution=values["resolution"],
        needed=values["needed"],
    )

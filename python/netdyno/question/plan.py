"""The plan of a run: its cells in order. Pure: the same experiment, contestants and seed give the same plan.

Every block holds every cell once, in an order of its own drawn from the seed, so that drift of the machine falls on all
contestants alike and comparisons can be paired within blocks. Cells that differ only in their contestant follow each
other, as they are compared, and take turns where they can (side_by_side.py). For each cell that the A/A control chose,
a block holds a second one, the twin, at a place as random as any among these (docs/adr/aa-control.md)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.model import transports
from netdyno.model.base import MOST_CELLS, Frozen, type_level
from netdyno.model.contestant import GENERATOR, MANIFEST_OPTIONS, OF_FRAMEWORKS, Contestant, stands_already
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations, level_key
from netdyno.model.options import MOST_THREADS, Settings, count_check_connections, settings, sides_of_factor
from netdyno.model.server_options import added_options, all_options
from netdyno.model.trial import Trial
from netdyno.question.capacity import select_coordinates

TRIAL_OVERHEAD_S = 0.15
"""The time of a trial beside warm-up and window: starting and ending the server, connecting, the closing check.
Measured: 0.06 s with 1 to 100 connections on an idle machine of two cores, 0.13 s on a busy one."""

LAN_OVERHEAD_S = 0.2
"""The time that the link lan adds to a trial: making two namespaces and their link, and ending them. Measured: 0.15 to
0.2 s on a busy machine of two cores."""

CANARY_S = 0.04
"""The time of the canary after a trial, its process included (canary.py)."""

WAN_TRIPS = 8
"""The trips over the link that a trial waits for beside its window: connecting, the last answers, the closes and the
closing check have a trip there and one back each."""


class Cell(Frozen):
    """One planned trial: `position` counts from 0 within its block, blocks count from 1. `twin`: it is the second of
    its kind in the block. `attempt` counts its tries; the first is planned."""

    block: int
    position: int
    scenario: str
    contestant: str
    levels: dict[str, type_level]
    twin: bool = False
    attempt: int = 1


class CellKind(NamedTuple):
    """The part of a cell that is the same in all blocks."""

    scenario: str
    contestant: str
    levels: dict[str, type_level]


def plan(experiment: Experiment, twice: Sequence[CellKind] = ()) -> tuple[Cell, ...]:
    """Return all cells of all blocks, in running order. The scenarios name their contestants. A scenario with fewer
    blocks than others is in the first ones. `twice`: the kinds with a twin in each of their blocks. Raises UserError
    where they are too many."""
    check_size(experiment)
    randomness = random.Random(experiment.seed)
    cells: list[Cell] = []
    for block in range(1, experiment.blocks + 1):
        running = [scenario for scenario in experiment.scenarios if block <= scenario.blocks]
        order = [(kind, False) for scenario in running for kind in _list_kinds(scenario)]
        order += [(kind, True) for kind in twice if any(kind.scenario == scenario.name for scenario in running)]
        cells += (
            Cell(block=block, position=position, twin=twin, **kind._asdict())
            for position, (kind, twin) in enumerate(_shuffle(order, randomness))
        )
    return tuple(cells)


def check_size(experiment: Experiment) -> None:
    """Raise UserError for an experiment whose plan is too long to be kept. Pure."""
    planned = sum(
        scenario.blocks * len(scenario.contestants) * math.prod(map(len, scenario.factors.values()))
        for scenario in experiment.scenarios
    )
    if planned > MOST_CELLS:
        raise UserError(f"{planned} trials are planned, and at most {MOST_CELLS} can be: take fewer blocks or levels")


def _shuffle(order: Sequence[tuple[CellKind, bool]], randomness: random.Random) -> Iterator[tuple[CellKind, bool]]:
    """Yield the groups of compared contestants in random order, and the cells of each group in random order."""
    groups: dict[tuple[str, str], list[tuple[CellKind, bool]]] = {}
    for kind, twin in order:
        groups.setdefault((kind.scenario, level_key(kind.levels)), []).append((kind, twin))
    for group in randomness.sample(list(groups.values()), len(groups)):
        yield from randomness.sample(group, len(group))


def find_twins(cells: Iterable[Cell]) -> tuple[CellKind, ...]:
    """Return the kinds that these cells hold twice."""
    kinds: list[CellKind] = []
    for cell in cells:
        kind = CellKind(cell.scenario, cell.contestant, cell.levels)
        if cell.twin and kind not in kinds:
            kinds.append(kind)
    return tuple(kinds)


def _list_kinds(scenario: Scenario) -> Iterator[CellKind]:
    for levels in combinations(scenario):
        for contestant in scenario.contestants:
            yield CellKind(scenario.name, contestant, levels)


ContestantsByName = Mapping[str, Contestant]
"""The contestants of a run by name. Of clients, the generator is none."""


def explain_skip(
    contestant: Contestant,
    scenario: Scenario,
    levels: dict[str, type_level],
    clients: ContestantsByName = MappingProxyType({}),
) -> str:
    """Say why a contestant, or the cell's client, cannot have this cell; empty when they can. A server itself refuses a
    thread count that its model cannot have (docs/adr/limited-by-threads.md), so here it becomes a stated skip."""
    cell_settings = settings(scenario, levels)
    reason = _explain_silence(contestant, scenario.workload)
    if reason:
        return reason
    if cell_settings.client != GENERATOR:
        client = clients[cell_settings.client]
        reason = (
            _explain_silence(client, scenario.workload)
            or _explain_unreachable(client, contestant)
            or _explain_external_load(client, cell_settings)
        )
        if reason:
            return f"client {client.name}: {reason}"
    elif cell_settings.client_processes > 1:
        return f"{GENERATOR} is one process, with threads; only clients have client-processes"
    reason = transports.why_not(transports.find_transport(contestant), contestant.name, cell_settings, levels)
    reason = (
        reason
        or _explain_requests(contestant, cell_settings)
        or _explain_plain_text(contestant, cell_settings)
        or _explain_streams(contestant, cell_settings)
        or _explain_own_server(contestant, cell_settings, levels)
        or _explain_missing_option(contestant, cell_settings)
    )
    if reason:
        return reason
    manifest = contestant.manifest
    # The number of cores decides nothing: a contestant that cannot have so many threads does not get them.
    threads = all_options(cell_settings.server, added_options(contestant, cell_settings, cores=1)).get("threads", 1)
    if manifest.threads != "any" and threads != 1:
        model = "runs on exactly one thread" if manifest.threads == "one" else "has a thread for each connection"
        return f"{contestant.name} {model}; threads = {threads} is not a level it can have"
    if manifest.limits_clients:
        return _explain_waiting_clients(contestant, cell_settings, int(threads))
    return ""


def _explain_waiting_clients(contestant: Contestant, settings: Settings, threads: int) -> str:
    """Say why a contestant that serves no more clients at a time than it has threads cannot have a cell: some clients
    would wait for others to leave, so for the end of the trial, or the cell would need too many threads."""
    limit = contestant.manifest.clients.rpartition("-")[2]  # threads or processes
    model = f"{contestant.name} serves no more clients at a time than it has {limit}"
    most = max(settings.connections, count_check_connections(settings.workload))
    if threads > MOST_THREADS:
        return f"{model}, {MOST_THREADS} at most; {most} connections are too many for it"
    if threads < most and not settings.clients_leave:
        return (
            f"{model}; with threads = {threads}, {most - threads} of {most} connections would wait until others leave"
        )
    return ""


def _explain_plain_text(contestant: Contestant, settings: Settings) -> str:
    """Say why a cell cannot be encrypted; empty when it can, or is not asked to be."""
    if not settings.is_encrypted:
        return ""
    if settings.workload == "chat":
        return f"{contestant.name} does not encrypt chat: a message would be another one for each recipient"
    if settings.client != GENERATOR:
        return f"client {settings.client}: it does not speak TLS"
    return ""


def _explain_streams(contestant: Contestant, settings: Settings) -> str:
    """Say why a contestant has no cell of streams; empty where it has, and for a server of one's own, which is seen."""
    if settings.chunks is None or contestant.own is not None or contestant.manifest.has_streams:
        return ""
    return f'{contestant.name} answers with no stream ("streams" of its server.json)'


def _explain_requests(contestant: Contestant, settings: Settings) -> str:
    """Say why a contestant has no right reply to the requests of a cell; empty when it has."""
    if contestant.own is not None or settings.workload == "web" or not settings.are_own:
        return ""
    return f"{contestant.name} can only repeat the URL of a request; 'path' and 'send' are for your own servers"


def _explain_own_server(contestant: Contestant, settings: Settings, levels: Iterable[str]) -> str:
    """Say why a server of the user's own, or a framework, cannot have a cell: it gets no options, but for a framework's
    threads, so levels of an option would be the same cell several times, and requested work would not be done, nor
    encrypted. One that runs already cannot be put behind a link."""
    if not contestant.has_stand_in:
        return ""
    if not contestant.manifest.spends_time and settings.longest_service_time_s > 0:
        return f"{contestant.name} cannot spend a service time"
    varied = {option for factor in levels if (option := sides_of_factor(factor)[1])}
    understood = _list_understood(contestant, settings)
    ignored = varied - understood
    ignored |= {"service-time"} & settings.server.keys()
    ignored |= {"service-kind"} if settings.has_backend else set()
    ignored |= {"tls"} - understood if settings.is_encrypted else set()
    ignored |= {"build"} if settings.other_build else set()
    ignored |= {"size"} & set(levels) if settings.are_own else set()
    if ignored:
        what = "a framework" if contestant.manifest.is_framework else "your own server"
        return f"{contestant.name} is {what}, which does not get the options {quantities.listed(sorted(ignored))}"
    if stands_already(contestant) and settings.is_apart:
        return f"{contestant.name} is already running, and cannot be put behind the link {settings.link!r}"
    return ""


def _list_understood(contestant: Contestant, settings: Settings) -> set[str]:
    """Return the options of servers that reach a server without options: those that each request of a framework's
    workload names, and those that its command has a place for."""
    in_requests = {"service-kind"} if settings.workload in OF_FRAMEWORKS else set()
    return in_requests | ({"threads", *contestant.manifest.options} if contestant.manifest.is_framework else set())


def _explain_missing_option(contestant: Contestant, settings: Settings) -> str:
    """Return why a cell cannot have an option switched on that its server's manifest does not name; empty if it can."""
    requested = {name for name in MANIFEST_OPTIONS if settings.server.get(name, "off") != "off"}
    requested |= {"pool"} if settings.has_backend else set()
    requested |= {"build"} if settings.other_build and not contestant.manifest.has_builds else set()
    requested |= {"backend"} if settings.asks_postgresql and not contestant.manifest.has_postgresql_driver else set()
    lacking = sorted(requested - {*contestant.manifest.options})
    if contestant.own is not None or not lacking:
        return ""
    return f"{contestant.name} does not have the option {quantities.listed(lacking)}"


def _explain_silence(contestant: Contestant, workload: str) -> str:
    """Say why a server or client cannot speak in a workload; empty when it can."""
    manifest = contestant.manifest
    if not contestant.available:
        return contestant.why_not
    if workload not in manifest.workloads:
        return f"{contestant.name} does not speak the workload {workload!r}"
    return ""


def _explain_unreachable(client: Contestant, server: Contestant) -> str:
    """Say why a client contestant cannot reach a server; empty when it can."""
    needed = transports.find_transport(server).name
    if needed in client.manifest.transports:
        return ""
    return (
        f"{client.name} speaks {quantities.listed(client.manifest.transports)} and not {needed}, as {server.name} does"
    )


def _explain_external_load(client: Contestant, settings: Settings) -> str:
    """Say why an external load program cannot have a cell; empty when it can."""
    is_closed = bool(client.manifest.instrument) and settings.arrivals == "closed"
    return f"{client.name} is an open loop, and this load is closed" if is_closed else ""


def estimate_trial_seconds(settings: Settings) -> float:
    """The expected length of one trial, in seconds."""
    link_s = LAN_OVERHEAD_S if settings.is_apart else 0.0
    delay_s = WAN_TRIPS * settings.link_delay_s if settings.is_impaired else 0.0
    connect_s = 0.0 if isinstance(settings.connect_rate, str) else settings.connections / settings.connect_rate
    return connect_s + settings.warmup_s + settings.duration_s + TRIAL_OVERHEAD_S + CANARY_S + link_s + delay_s


def sum_trial_seconds(trial: Trial) -> float:
    """The time that a trial took, with the canary after it."""
    after = trial.canary.after if trial.canary is not None else None
    return trial.seconds + (after.seconds if after is not None else 0.0)


def sum_seconds(trials: Collection[Trial]) -> float:
    """The time that trials took, with the measurements of warm-ups before the first."""
    warm_ups = {
        (trial.scenario, trial.contestant, level_key(trial.levels)): trial.warmup.measured_s
        for trial in trials
        if trial.warmup is not None
    }
    return sum(map(sum_trial_seconds, trials)) + sum(warm_ups.values())


def estimate_seconds(
    experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName = MappingProxyType({})
) -> float:
    """The expected length of the whole run, in seconds, twins included; cells that will be skipped cost nothing."""
    blocks = {scenario.name: scenario.blocks for scenario in experiment.scenarios}
    return sum(
        seconds + blocks[kind.scenario] * _find_startup_s(servers[kind.contestant])
        for costs in (_list_costs, _draw_twins)
        for kind, seconds in costs(experiment, servers, clients)
    )


def _find_startup_s(contestant: Contestant) -> float:
    """Return how much longer than others a server takes to start and to end, as far as it is known."""
    return max(0.0, contestant.own.overhead_s - TRIAL_OVERHEAD_S) if contestant.own is not None else 0.0


def choose_twins(
    experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName = MappingProxyType({})
) -> tuple[CellKind, ...]:
    """The kinds that the A/A control runs twice in every block: as many as fit into its share of the time."""
    return tuple(kind for kind, _ in _draw_twins(experiment, servers, clients))


def _list_costs(
    experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName
) -> list[tuple[CellKind, float]]:
    """List the kinds that will be run, each with its seconds in all blocks together."""
    scenarios = {scenario.name: scenario for scenario in experiment.scenarios}
    return [
        (kind, scenario.blocks * estimate_trial_seconds(settings(scenario, kind.levels)))
        for scenario in scenarios.values()
        for kind in _list_kinds(scenario)
        if not explain_skip(servers[kind.contestant], scenario, kind.levels, clients)
    ]


class _Unit(NamedTuple):
    """The cells of one A/A comparison, for a capacity those of all rates, and their seconds."""

    costs: list[tuple[CellKind, float]]

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.costs)


def _draw_twins(
    experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName
) -> list[tuple[CellKind, float]]:
    """Draw the twins from the seed, so that scenarios come in turn, and contestants within them. Contestants that enter
    no ranking are never drawn, nor cells with too few blocks for a verdict."""
    costs = _list_costs(experiment, servers, clients)
    share = experiment.aa_share
    left_s = share / (1 - share) * sum(seconds for _, seconds in costs) * (1 + 1e-9)
    scenarios = {scenario.name: scenario for scenario in experiment.scenarios}
    units: dict[tuple[str, str, str], _Unit] = {}
    for kind, seconds in costs:
        scenario = scenarios[kind.scenario]
        if scenario.blocks >= FEWEST_BLOCKS and not servers[kind.contestant].manifest.apart:
            unit_key = kind.scenario, kind.contestant, level_key(select_coordinates(scenario, kind.levels))
            units.setdefault(unit_key, _Unit([])).costs.append((kind, seconds))
    waiting = list(units.items())
    random.Random(f"A/A {experiment.seed}").shuffle(waiting)
    chosen: list[tuple[CellKind, float]] = []
    of_scenario, of_contestant = Counter[str](), Counter[str]()
    while waiting := [keyed_unit for keyed_unit in waiting if keyed_unit[1].seconds <= left_s]:
        unit_key, unit = min(
            waiting, key=lambda keyed_unit: (of_scenario[keyed_unit[0][0]], of_contestant[keyed_unit[0][1]])
        )
        waiting.remove((unit_key, unit))
        chosen += unit.costs
        left_s -= unit.seconds
        of_scenario[unit_key[0]] += 1
        of_contestant[unit_key[1]] += 1
    return chosen


def find_most_descriptors(experiment: Experiment, servers: ContestantsByName) -> int:
    """The most file descriptors that the connections of any cell take in one program, generator or server."""
    return max(
        cell.connections * servers[contestant].manifest.descriptors_per_client + cell.pool
        for scenario in experiment.scenarios
        for cell in (settings(scenario, levels) for levels in combinations(scenario))
        for contestant in scenario.contestants
    )

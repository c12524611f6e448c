"""The first requests to the user's own servers, before the first trial: a run that can have no right reply ends here,
and the replies show what of them can be verified, over how many connections, and at which rate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.measure.machine import orphans
from netdyno.measure.machine.links.network import MACHINE
from netdyno.measure.machine.pinning import count_server_cores
from netdyno.measure.machine.process import Process, TrialError, describe_exit
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.command import (
    adapt_to_server,
    build_closed_command,
    build_first_command,
    build_server_command,
    count_first_connections,
    may_reconnect,
)
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.serving import shut_down, wait_ready
from netdyno.model import own_requests
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.model.wrong_reply import WrongReply, WrongReplyError
from netdyno.question.plan import explain_skip


class ChangedReplyError(UserError):
    """The two servers of a gate answer a request differently, and the user requested that they do not."""


LEAST_WAIT_S, LONGEST_WAIT_S = 2.0, 5.0
"""The longest time that the first reply may take: the timeout, within these bounds. A short gate has a timeout that a
busy machine exceeds."""
CLOSED_LOOPS = 3
"""The most loads that show how much a server answers: the best counts, for a neighbour makes one slower, and none
faster."""
MOST_PATHS = 100
"""The most paths that are requested one by one where some reply was wrong."""


class FirstBodies(NamedTuple):
    """The length of the first body of each path, and its hash where that is verified; `varying`, where equal URLs have
    replies of different lengths."""

    by_path: Mapping[str, str]
    varying: bool = False


LARGEST_VARIATION = 2
"""The largest ratio of two servers' first bodies that replies of varying length explain: beyond it one of them answers
something else, such as an error with status 200."""


class Send(Protocol):
    """Makes a load with these settings and returns its result: over so many connections, or over a few, where at least
    one reply must be right."""

    def __call__(self, cell_settings: Settings, *, connections: int | None = None) -> LoadResult: ...


class ServerReplies(msgspec.Struct, frozen=True):
    """The first bodies by scenario; the replies a second of a closed loop by scenario, and the most of all; whether
    each connection was closed after a reply; and how long the server took to be ready and to end."""

    bodies: dict[str, FirstBodies]
    closed_hz: dict[str, float]
    rate_hz: float
    closes: bool
    overhead_s: float = 0.0


class FirstReplies(msgspec.Struct, frozen=True):
    """The experiment with what is verified of replies, and at which rate; and the replies of each of the user's own
    servers, by its name."""

    experiment: Experiment
    by_server: Mapping[str, ServerReplies]
    failures: Mapping[str, UserError] = msgspec.field(default_factory=dict)
    """Of a gate: why one of its two has no right reply, by its name."""

    def describe_servers(self, servers: Sequence[Contestant]) -> tuple[Contestant, ...]:
        """Return the servers with what their first requests showed of them."""
        return tuple(map(self._describe_server, servers))

    def _describe_server(self, server: Contestant) -> Contestant:
        replies = self.by_server.get(server.name)
        if server.own is None or replies is None:
            return server
        own = msgspec.structs.replace(server.own, closes=replies.closes, overhead_s=replies.overhead_s)
        return msgspec.structs.replace(server, own=own)


def check(experiment: Experiment, servers: Mapping[str, Contestant], context: TrialContext) -> FirstReplies:
    """Start each of the user's own servers once, and send it the first requests of each scenario. Raises UserError
    where a server has no right reply to a request. A gate goes on where one of its two has: the fault of the other is
    what it decides."""
    own_servers = [contestant for contestant in servers.values() if contestant.own is not None]
    by_server: dict[str, ServerReplies] = {}
    failures: dict[str, UserError] = {}
    for contestant in own_servers:
        try:
            by_server[contestant.name] = _ask_first(contestant, experiment, context)
        except UserError as failure:
            failures[contestant.name] = failure
            if experiment.gate is None or len(failures) == len(own_servers):
                raise next(iter(failures.values())) from None
    settled = experiment.change_each(
        lambda scenario: _settle_scenario(scenario, by_server, is_gate=experiment.gate is not None)
    )
    return FirstReplies(settled, by_server, failures)


def _settle_scenario(scenario: Scenario, by_server: Mapping[str, ServerReplies], *, is_gate: bool) -> Scenario:
    """Return the scenario with what is verified of replies, and at which rate. Raises UserError where the servers of a
    gate answer differently."""
    name = scenario.name
    bodies = {server: replies.bodies[name] for server, replies in by_server.items() if name in replies.bodies}
    closed_hz = {server: replies.closed_hz[name] for server, replies in by_server.items() if name in replies.closed_hz}
    if is_gate and (difference := _describe_difference(bodies)):
        raise (UserError if scenario.verify is None else ChangedReplyError)(difference)
    if scenario.path and scenario.verify is None:
        varying = any(first.varying for first in bodies.values())
        scenario = msgspec.structs.replace(scenario, verify="status" if varying else "length")
    return lower_rate(scenario, closed_hz)


def find_enough_hz(experiment: Experiment) -> float:
    """Return how many replies a second a server must give so that no scenario's rate is lowered for it. Pure."""
    return max(
        (
            scenario.rate / scenario.rate_share
            for scenario in experiment.scenarios
            if scenario.rate and scenario.rate_share
        ),
        default=0.0,
    )


def lower_rate(scenario: Scenario, closed_hz: Mapping[str, float]) -> Scenario:
    """Return the scenario with a rate that the slowest server can carry, where its own is above that. `closed_hz`: how
    many replies a second each server gave in a closed loop. Pure."""
    known = {name: rate_hz for name, rate_hz in closed_hz.items() if rate_hz > 0}
    if scenario.rate_share is None or scenario.rate is None or not known:
        return scenario
    slowest = min(known, key=lambda name: known[name])
    rate_hz = float(f"{scenario.rate_share * known[slowest]:.2g}")
    if rate_hz >= scenario.rate:
        return scenario
    return msgspec.structs.replace(scenario, rate=rate_hz, rate_for=slowest)


def _ask_first(contestant: Contestant, experiment: Experiment, context: TrialContext) -> ServerReplies:
    """Send a server its first requests. Raises UserError where it cannot be loaded or has no right reply."""
    if not contestant.available:
        raise UserError(f"{contestant.name} cannot be loaded: {contestant.why_not}")
    try:
        return _ask(contestant, experiment, context)
    except TrialError as failure:
        raise UserError(f"{contestant.name}: {failure}") from failure


def _describe_difference(of_servers: Mapping[str, FirstBodies]) -> str:
    """Say where servers that are to be equal answer a path differently; empty where they do not."""
    (first, expected), *others = of_servers.items() or [("", FirstBodies({}))]
    for name, actual in others:
        for path in expected.by_path.keys() & actual.by_path.keys():
            bodies = expected.by_path[path], actual.by_path[path]
            if _are_unlike(*bodies, varying=expected.varying or actual.varying):
                return (
                    f"{first} and {name} answer {path} differently: {_describe_body(bodies[0])} and "
                    f"{_describe_body(bodies[1])}. --verify status accepts that"
                )
    return ""


def _are_unlike(body: str, other: str, *, varying: bool) -> bool:
    if not varying:
        return body != other
    shorter, longer = sorted(int(text.partition(" ")[0]) for text in (body, other))
    return longer > LARGEST_VARIATION * shorter


def _describe_body(body: str) -> str:
    length, _, digest = body.partition(" ")
    return f"{quantities.plural(int(length), 'byte')}{f' with the hash {digest}' if digest else ''}"


def _list_cells(experiment: Experiment, contestant: Contestant, context: TrialContext) -> list[tuple[str, Settings]]:
    """Return the settings of the first cell of each scenario that the server has."""
    cells = []
    for scenario in experiment.scenarios:
        levels = next(iter(combinations(scenario)), {})
        if contestant.name in scenario.contestants and not explain_skip(contestant, scenario, levels, context.clients):
            cells.append((scenario.name, adapt_to_server(settings(scenario, levels), contestant)))
    return cells


def _ask(contestant: Contestant, experiment: Experiment, context: TrialContext) -> ServerReplies:
    """Start the server and send it the first requests of each scenario; return what came."""
    cells = _list_cells(experiment, contestant, context)
    if not cells:
        return ServerReplies({}, {}, 0.0, closes=False)
    log = TrialLog(context.folder / "logs" / f"first-requests-{contestant.name}.log")
    command = build_server_command(contestant, cells[0][1], cores=count_server_cores(context.pinning))
    started_s = time.monotonic()
    with (
        log.section("server", command) as output,
        orphans.end(),
        Process(command, context.pinning.server, output, talks=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, context, contestant, MACHINE)
        overhead_s = time.monotonic() - started_s

        loads: list[LoadResult] = []

        def send(cell_settings: Settings, *, connections: int | None = None) -> LoadResult:
            """Send requests over a few connections, or over all that a cell has. Raises UserError where no reply over a
            few is right."""
            wait_s, reconnects = choose_wait_s(cell_settings), may_reconnect(contestant, cell_settings)
            build_command = build_first_command if connections is None else build_closed_command
            load = build_command(context.generator, ready.endpoint, cell_settings, wait_s, reconnects=reconnects)
            result, why = generate.check(load, cell_settings, context, log)
            if (result is None or result.messages.received == 0) and server.wait(time.monotonic() + generate.NEWS_S):
                how = describe_exit(server.exit_code())
                raise TrialError(f"the server ended with {how} at its first requests{server.read_reason()}")
            if result is None:
                raise TrialError(why)
            opened = connections or count_first_connections(cell_settings)
            if served := count_served(result, opened):
                raise UserError(
                    f"{contestant.name} answers {quantities.plural(served, 'connection')} at a time: the other "
                    f"{opened - served} of {opened} got no reply within {wait_s:g} s; -c {served} loads only that many"
                )
            if connections is None and result.messages.received == 0:
                raise WrongReplyError(WrongReply(contestant.name, cell_settings, result, wait_s))
            loads.append(result)
            return result

        bodies = {name: _find_first_bodies(send, cell_settings) for name, cell_settings in cells}
        closed_hz = _measure_closed_loops(send, cells, find_enough_hz(experiment))
        ends_s = time.monotonic()
        shut_down(server, lines, context)
    overhead_s += time.monotonic() - ends_s
    rate_hz = max(load.requests.per_second for load in loads)
    return ServerReplies(bodies, closed_hz, rate_hz, _closes_each(loads), overhead_s)


def count_served(load: LoadResult, connections: int) -> int:
    """Return how many connections a server answers that answers no other as long as these stay open; 0 of any other
    server. A slow one answers none twice before the others have an answer, and with a short listen queue the others
    are not connected. Pure."""
    served = load.connection_mean_ns.count if load.connection_mean_ns is not None else connections
    others, has_closed = connections - served, load.connections.closed_after_reply > 0
    waiting = min(others, load.connections.established - served)
    is_held = waiting > 0 and load.messages.lost >= others and load.messages.received >= 2 * served and not has_closed
    return served if is_held else 0


def _measure_closed_loops(send: Send, cells: Sequence[tuple[str, Settings]], enough_hz: float) -> dict[str, float]:
    """Return how many replies a second come over all connections of the cell of a scenario; of equal loads, once. A
    load with less than `enough_hz` is repeated."""
    measured: dict[tuple[int, tuple[str, ...]], float] = {}
    closed_hz: dict[str, float] = {}
    for name, cell_settings in cells:
        if cell_settings.workload == "chat":
            continue
        load = cell_settings.speakers, (*own_requests.list_options(cell_settings), str(cell_settings.size))
        if load not in measured:
            for _ in range(CLOSED_LOOPS):
                result = send(cell_settings, connections=cell_settings.speakers)
                measured[load] = max(measured.get(load, 0.0), result.requests.per_second)
                if measured[load] >= enough_hz:
                    break
        closed_hz[name] = measured[load]
    return closed_hz


def _closes_each(loads: Sequence[LoadResult]) -> bool:
    """Whether each connection was closed after a reply; the last ones may have been open at the end of a load."""
    return all(
        0 < load.messages.received <= load.connections.closed_after_reply + load.plan.connections for load in loads
    ) and any(load.connections.closed_after_reply > 0 for load in loads)


def _find_first_bodies(send: Send, cell_settings: Settings) -> FirstBodies:
    """Send the first requests of a scenario. Return the first body of each URL, and whether equal URLs had replies of
    different lengths where that was to be found out."""
    by_length = bool(cell_settings.path) and cell_settings.verify is None
    first = msgspec.structs.replace(cell_settings, verify="length") if by_length else cell_settings
    load = send(first)
    bodies = load.replies.bodies if load.replies else {}
    if load.messages.lost == 0 and not (load.replies and load.replies.unexpected):
        return FirstBodies(bodies)
    by_status = msgspec.structs.replace(cell_settings, verify="status") if by_length else cell_settings
    for path_settings in _list_paths(by_status):
        send(path_settings)
    return FirstBodies(bodies, varying=True)


def choose_wait_s(cell_settings: Settings) -> float:
    """Return the longest time that a first reply may take."""
    return min(LONGEST_WAIT_S, max(LEAST_WAIT_S, cell_settings.timeout_s))


def _list_paths(cell_settings: Settings) -> Iterator[Settings]:
    """Return the settings with each of the paths alone."""
    if len(cell_settings.path) > 1:
        for path in cell_settings.path[:MOST_PATHS]:
            yield msgspec.structs.replace(cell_settings, path=(path,))

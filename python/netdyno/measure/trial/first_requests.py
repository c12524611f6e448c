"""The first requests to the user's own servers, before the first trial: a run that can have no right reply ends here,
and the replies show what of them can be verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.measure.machine import orphans
from netdyno.measure.machine.links.network import MACHINE
from netdyno.measure.machine.pinning import count_server_cores
from netdyno.measure.machine.process import Process, TrialError, describe_exit
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.command import add_host, build_first_command, build_server_command, may_reconnect
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import shut_down, wait_ready
from netdyno.measure.trial.wrong_reply import explain
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.question.plan import explain_skip

LONGEST_WAIT_S = 5.0
"""The longest time that the first reply may take, unless the timeout is shorter."""
MOST_PATHS = 100
"""The most paths that are requested one by one where some reply was wrong."""


Bodies = Mapping[str, str]
"""The length of the first body of each path, and its hash where that is verified."""


class FirstRequests(NamedTuple):
    """A server of the user's own that gets its first requests: `send` makes a load with these settings and returns its
    result."""

    contestant: Contestant
    send: Callable[[Settings], LoadResult]


class FirstReplies(NamedTuple):
    """The experiment with what is verified of replies, and how many replies a second each of the user's own servers
    gave to the first requests, at most."""

    experiment: Experiment
    rates_hz: Mapping[str, float]


class _Replies(NamedTuple):
    """The first bodies by scenario, None where equal URLs have replies of different lengths, and the most replies a
    second."""

    bodies: dict[str, Bodies | None]
    rate_hz: float


def check(experiment: Experiment, servers: Mapping[str, Contestant], context: TrialContext) -> FirstReplies:
    """Start each of the user's own servers once, and send it the first requests of each scenario. Raises UserError
    where a server has no right reply to a request. A gate goes on where one of its two has: the fault of the other is
    what it decides."""
    bodies: dict[str, dict[str, Bodies | None]] = {scenario.name: {} for scenario in experiment.scenarios}
    rates_hz: dict[str, float] = {}
    own_servers = [contestant for contestant in servers.values() if contestant.own is not None]
    failures: list[UserError] = []
    for contestant in own_servers:
        try:
            replies = _ask_first(contestant, experiment, context)
        except UserError as failure:
            failures.append(failure)
            if experiment.gate is None or len(failures) == len(own_servers):
                raise failures[0] from None
            continue
        rates_hz[contestant.name] = replies.rate_hz
        for scenario_name, first_bodies in replies.bodies.items():
            bodies[scenario_name][contestant.name] = first_bodies
    if experiment.gate is not None:
        for of_servers in bodies.values():
            _compare_bodies(of_servers)
    varying = {name for name, of_servers in bodies.items() if None in of_servers.values()}
    scenarios = tuple(_settle_verification(scenario, varying) for scenario in experiment.scenarios)
    return FirstReplies(msgspec.structs.replace(experiment, scenarios=scenarios), rates_hz)


def _ask_first(contestant: Contestant, experiment: Experiment, context: TrialContext) -> _Replies:
    """Send a server its first requests. Raises UserError where it cannot be loaded or has no right reply."""
    if not contestant.available:
        raise UserError(f"{contestant.name} cannot be loaded: {contestant.why_not}")
    try:
        return _ask(contestant, experiment, context)
    except TrialError as failure:
        raise UserError(f"{contestant.name}: {failure}") from failure


def _compare_bodies(of_servers: Mapping[str, Bodies | None]) -> None:
    """Raise UserError where servers that are to be equal answer a path differently."""
    (first, expected), *others = of_servers.items() or [("", None)]
    for name, actual in others:
        for path in (expected or {}).keys() & (actual or {}).keys():
            bodies = (expected or {})[path], (actual or {})[path]
            if bodies[0] != bodies[1]:
                raise UserError(
                    f"{first} and {name} answer {path} differently: {_describe_body(bodies[0])} and "
                    f"{_describe_body(bodies[1])}. --verify status accepts that"
                )


def _describe_body(body: str) -> str:
    length, _, digest = body.partition(" ")
    return f"{quantities.plural(int(length), 'byte')}{f' with the hash {digest}' if digest else ''}"


def _list_cells(experiment: Experiment, contestant: Contestant, context: TrialContext) -> list[tuple[str, Settings]]:
    """Return the settings of the first cell of each scenario that the server has."""
    cells = []
    for scenario in experiment.scenarios:
        levels = next(iter(combinations(scenario)), {})
        if contestant.name in scenario.contestants and not explain_skip(contestant, scenario, levels, context.clients):
            cells.append((scenario.name, add_host(settings(scenario, levels), contestant)))
    return cells


def _settle_verification(scenario: Scenario, varying: set[str]) -> Scenario:
    if not scenario.path or scenario.verify is not None:
        return scenario
    return msgspec.structs.replace(scenario, verify="status" if scenario.name in varying else "length")


def _ask(contestant: Contestant, experiment: Experiment, context: TrialContext) -> _Replies:
    """Start the server and send it the first requests of each scenario; return what came."""
    cells = _list_cells(experiment, contestant, context)
    if not cells:
        return _Replies({}, 0.0)
    log = TrialLog(context.folder / "logs" / f"first-requests-{contestant.name}.log")
    command = build_server_command(contestant, cells[0][1], cores=count_server_cores(context.pinning))
    with (
        log.section("server", command) as output,
        orphans.end(lambda _: None),
        Process(command, context.pinning.server, output, talks=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, context, contestant, MACHINE)

        rates_hz: list[float] = []

        def send(cell_settings: Settings) -> LoadResult:
            reconnects = may_reconnect(contestant, cell_settings)
            load = build_first_command(
                context.generator, ready.endpoint, cell_settings, choose_wait_s(cell_settings), reconnects=reconnects
            )
            result, why = generate.check(load, cell_settings, context, log)
            if (result is None or result.messages.received == 0) and server.wait(time.monotonic() + generate.NEWS_S):
                how = describe_exit(server.exit_code())
                raise TrialError(f"the server ended with {how} at its first requests{server.read_last_line()}")
            if result is None:
                raise TrialError(why)
            rates_hz.append(result.requests.per_second)
            return result

        requests = FirstRequests(contestant, send)
        bodies = {name: _find_first_bodies(requests, cell_settings) for name, cell_settings in cells}
        shut_down(server, lines, context)
    return _Replies(bodies, max(rates_hz))


def _find_first_bodies(requests: FirstRequests, cell_settings: Settings) -> Bodies | None:
    """Send the first requests of a scenario. Return the first body of each URL; None where equal URLs had replies of
    different lengths and that was to be found out."""
    by_length = bool(cell_settings.path) and cell_settings.verify is None
    first = _with_verify(cell_settings, "length") if by_length else cell_settings
    load = _send_checked(requests, first)
    if load.messages.lost == 0 and not (load.replies and load.replies.unexpected):
        return load.replies.bodies if load.replies else {}
    for path_settings in _list_paths(_with_verify(cell_settings, "status") if by_length else cell_settings):
        _send_checked(requests, path_settings)
    return None


def choose_wait_s(cell_settings: Settings) -> float:
    """Return the longest time that a first reply may take."""
    return min(LONGEST_WAIT_S, cell_settings.timeout_s)


def _send_checked(requests: FirstRequests, cell_settings: Settings) -> LoadResult:
    """Send requests. Raises UserError where no reply is right."""
    load = requests.send(cell_settings)
    if load.messages.received == 0:
        raise UserError(explain(requests.contestant.name, cell_settings, load, choose_wait_s(cell_settings)))
    return load


def _with_verify(cell_settings: Settings, verify: str) -> Settings:
    return msgspec.structs.replace(cell_settings, verify=verify)


def _list_paths(cell_settings: Settings) -> Iterator[Settings]:
    """Return the settings with each of the paths alone."""
    if len(cell_settings.path) > 1:
        for path in cell_settings.path[:MOST_PATHS]:
            yield msgspec.structs.replace(cell_settings, path=(path,))

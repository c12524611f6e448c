"""The trials of a run on one host of servers, under the load of others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.kit.paths import ENTRY, canary_path, generator_path
from netdyno.measure.cluster.controller import Controller
from netdyno.measure.cluster.described import Host
from netdyno.measure.cluster.requests import (
    HostSettings,
    LoadHost,
    NotDone,
    Prepare,
    Prepared,
    Reply,
    Request,
    TrialDone,
    TrialRequest,
    WarmupsDone,
    WarmupsRequest,
)
from netdyno.measure.machine import digests, environment
from netdyno.measure.machine.links import network
from netdyno.measure.machine.links.network import Network
from netdyno.measure.run.hosts import GoneError, RunSetup
from netdyno.measure.trial.context import TrialContext, ignore_progress
from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.observation import Pinning
from netdyno.model.options import settings
from netdyno.model.run import BETWEEN_HOSTS, OF_CLUSTER, OF_LOAD, Environment
from netdyno.model.trial import Trial, Warmup
from netdyno.question import plan
from netdyno.question.plan import Cell, CellKind, ContestantsByName

PREPARE_S = 1800.0
"""Seconds that a host may take to build the programs that it starts."""
BEYOND_S = 60.0
"""Seconds that a trial may take beyond its planned time."""
STORED = {"valid", "struck_out", "skipped", "failed"}
"""The statuses of a trial that a host may send; any other follows from the rest of its run."""
_REPLIES = {Prepare: Prepared, TrialRequest: TrialDone, WarmupsRequest: WarmupsDone}


class HostLostError(Exception):
    """A host has not fulfilled a request; the text says why."""


class Stage:
    """The hosts of a run, used within their Controller."""

    def __init__(self, control: Controller) -> None:
        """Choose the hosts of the run. Raises UserError where there is not exactly one host of servers, or none that
        makes a load."""
        self._control = control
        hosts = control.hosts()
        self._server = _find_only(hosts, "server")
        self._clients = _select_clients(hosts)
        _take_first(self._clients, 1)
        self._host_settings = HostSettings(
            seed=0,
            pinning=Pinning(server=(), generator=(), note=""),
            foreign_load="strike-out",
            address=self._server.description.inside,
            loads=(),
        )
        self._between = Network(
            (),
            (),
            Path("/proc/net"),
            load_hosts=len(self._clients),
            is_lan=_count_machines(self._server, self._clients) > 1,
        )
        self._progress: Callable[[int, float], None] = ignore_progress
        self._folder = Path()

    def check(self, experiment: Experiment, servers: ContestantsByName, clients: ContestantsByName) -> None:
        """Check the cells of an experiment. Raises UserError where none of them can run on these hosts."""
        why_not = [
            self.why_skip(servers[contestant], scenario, levels, clients)
            for scenario in experiment.scenarios
            for levels in combinations(scenario)
            for contestant in scenario.contestants
        ]
        if why_not and all(why_not):
            raise UserError(f"no contestant of {experiment.name!r} can run on these hosts: {why_not[0]}")

    def why_skip(
        self, contestant: Contestant, scenario: Scenario, levels: dict[str, type_level], clients: ContestantsByName
    ) -> str:
        """Return why a cell cannot run on these hosts; empty when it can."""
        return plan.explain_skip(contestant, scenario, levels, clients) or network.find_obstacle(
            transports.find_transport(contestant), settings(scenario, levels), self._between
        )

    def set_up(self, setup: RunSetup, folder: Path) -> tuple[TrialContext, Environment]:
        """Let every host that is needed build and describe itself. The first host of the load starts the client
        contestants. Raises UserError where a host has other programs, or another commit, than this machine."""
        experiment, servers, clients = setup.experiment, setup.servers, setup.clients
        counts = {
            settings(scenario, levels).client_hosts
            for scenario in experiment.scenarios
            for levels in combinations(scenario)
        }
        most = max((count for count in counts if count <= len(self._clients)), default=1)
        self._clients = _take_first(self._clients, most)
        pinning = _describe_pinning(
            self._server, self._clients, starts_clients=any(client.available for client in clients)
        )
        loads = tuple(
            LoadHost(address=host.address, cores=cores, realtime=pinning.realtime)
            for host, cores in zip(self._clients, _choose_cores(self._clients), strict=True)
        )
        names = tuple(server.name for server in servers if server.available)
        generator, canary = generator_path(setup.build), canary_path(setup.build)
        commit = environment.read_commit().get("git_commit")
        server_prepared = self._prepare_host(self._server, Prepare(servers=names))
        _check(self._server, server_prepared, digests.digest_host(generator, canary, servers), commit)
        load_prepared: list[Prepared] = []
        for number, host in enumerate(self._clients):
            started = [client for client in clients if client.available] if number == 0 else []
            request = Prepare(servers=(), clients=tuple(client.name for client in started))
            load_prepared.append(self._prepare_host(host, request))
            _check(host, load_prepared[-1], digests.digest_host(generator, canary, (), started), commit)
        self._host_settings = msgspec.structs.replace(
            self._host_settings, seed=experiment.seed, foreign_load=setup.foreign_load, pinning=pinning, loads=loads
        )
        self._progress, self._folder = setup.progress, folder
        context = TrialContext(
            seed=experiment.seed,
            generator=(str(generator),),
            pinning=pinning,
            folder=folder,
            clients={client.name: client for client in clients},
            foreign_load=setup.foreign_load,
        )
        recorded = server_prepared.environment | environment.describe_run(experiment, context.pinning)
        programs = {line for prepared in (server_prepared, *load_prepared) for line in prepared.programs}
        recorded |= {"foreign_load": setup.foreign_load, "programs": sorted(programs)}
        recorded |= {
            "link": BETWEEN_HOSTS,
            OF_CLUSTER: _describe_host(self._server),
            "hosts": _count_machines(self._server, self._clients),
        }
        recorded[f"{OF_CLUSTER}.doctor"] = list(self._server.description.findings)
        for number, (host, prepared) in enumerate(zip(self._clients, load_prepared, strict=True), 1):
            name = OF_LOAD if number == 1 else f"{OF_LOAD}-{number}"
            recorded[name] = _describe_host(host)
            recorded[f"{name}.doctor"] = list(host.description.findings)
            for key, value in prepared.environment.items():
                if server_prepared.environment.get(key) != value:
                    recorded[f"{name}.{key}"] = value
        return context, recorded

    def trial(self, cell: Cell, scenario: Scenario, warmup: Warmup | None) -> Trial:
        """Make a trial, which fails where a host is lost meanwhile. Raises GoneError where a host for it has left."""
        cell_settings = settings(scenario, cell.levels, warmup.of_load_s if warmup else 0.0)
        self._check_hosts(cell_settings.client_hosts)
        began = time.monotonic()
        limit_s = plan.estimate_trial_seconds(cell_settings) + BEYOND_S
        request = TrialRequest(host_settings=self._host_settings, cell=cell, scenario=scenario, warmup=warmup)
        try:
            done = self._perform(self._server, request, limit_s)
        except HostLostError as lost:
            return _build_failed_trial(cell, str(lost), time.monotonic() - began)
        assert isinstance(done, TrialDone)
        if not _is_trial_of(done.trial, cell):
            return _build_failed_trial(
                cell, f"{self._server.address} answered for another trial", time.monotonic() - began
            )
        return msgspec.structs.replace(done.trial, levels=cell.levels, log=self._store_log(cell, done))

    def _store_log(self, cell: Cell, done: TrialDone) -> str:
        """Store the log of a trial; return its path relative to the run's folder, which is not the path on its host."""
        if not done.trial.log:
            return ""
        from netdyno.measure.trial.prepared import log_path

        path = self._folder / log_path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(done.log, encoding="utf-8", errors="replace")
        return str(log_path(cell))

    def warm_ups(
        self, kinds: Sequence[CellKind], scenarios: Mapping[str, Scenario]
    ) -> Iterator[tuple[CellKind, Warmup]]:
        """Measure how long those with a JIT warm up. Raises GoneError."""
        if not kinds:
            return
        self._check_hosts(len(self._clients))
        request = WarmupsRequest(
            host_settings=self._host_settings, scenarios=tuple(scenarios.values()), kinds=tuple(kinds)
        )
        try:
            done = self._perform(self._server, request, BEYOND_S * (1 + len(kinds)))
        except HostLostError as lost:
            raise GoneError(str(lost)) from lost
        assert isinstance(done, WarmupsDone)
        if {number for number, _ in done.found} - set(range(len(kinds))):
            raise GoneError(f"the host {self._server.address} reported a warm-up that was not requested")
        yield from ((kinds[number], warmup) for number, warmup in done.found)

    def _check_hosts(self, clients: int) -> None:
        """Check that the needed hosts are still there. Raises GoneError where one has left. No other takes its place,
        nor does the same one after it has joined again, perhaps with other programs: all trials of a cell have the same
        hosts and programs."""
        joined = self._control.names()
        for host in (self._server, *self._clients[:clients]):
            if (name := joined.get(host.address)) != host.name:
                again = " and joined again" if name else ""
                raise GoneError(f"the host {host.address} has left the cluster{again}")
            if not self._control.answers(host.address):
                raise GoneError(f"the host {host.address} does not answer")

    def _prepare_host(self, host: Host, request: Prepare) -> Prepared:
        try:
            done = self._perform(host, request, PREPARE_S)
        except HostLostError as lost:
            raise UserError(str(lost)) from lost
        assert isinstance(done, Prepared)
        return done

    def _perform(self, host: Host, request: Request, limit_s: float) -> Reply:
        """Send a request to a host and return its reply. Raises HostLostError when the host is lost, takes too long, or
        its answer does not match the request."""
        try:
            text = self._control.perform(host.address, msgspec.json.encode(request), self._progress, limit_s)
            reply: Reply = msgspec.json.decode(text, type=Reply)
        except OSError as error:
            why = str(error) or "no connection to it could be made"
            raise HostLostError(f"the host {host.address} was lost: {why}") from error
        except msgspec.DecodeError as error:
            raise HostLostError(f"the host {host.address} sent no reply that can be read: {error}") from error
        if isinstance(reply, NotDone):
            raise HostLostError(f"the host {host.address}: {reply.why}")
        if not isinstance(reply, _REPLIES[type(request)]):
            raise HostLostError(f"the host {host.address} sent an answer that does not match the request")
        return reply


def _is_trial_of(trial: Trial, cell: Cell) -> bool:
    """Return whether a trial is of this cell, and has a status of STORED. Pure."""
    same = (getattr(trial, name) == getattr(cell, name) for name in Cell.__struct_fields__)
    return all(same) and trial.status in STORED


def _find_only(hosts: Sequence[Host], role: str) -> Host:
    matching = [host for host in hosts if host.description.role == role]
    if len(matching) != 1:
        raise UserError(
            f"a run needs one host that has joined as {role}, and {len(matching) or 'none'} "
            f"{'have' if len(matching) > 1 else 'has'} ({ENTRY} cluster status)"
        )
    if matching[0].description.is_busy:
        raise UserError(f"the host {matching[0].address} is busy with another run")
    return matching[0]


def _select_clients(hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Return the hosts that make a load, by their addresses."""
    return tuple(sorted((host for host in hosts if host.description.role == "client"), key=lambda host: host.address))


def _take_first(hosts: Sequence[Host], count: int) -> tuple[Host, ...]:
    """Return the first `count` hosts. Raises UserError where there are fewer, or one is busy."""
    if len(hosts) < count:
        raise UserError(
            f"this run needs {quantities.plural(count, 'host')} that joined as client, and there "
            f"{'are' if len(hosts) > 1 else 'is'} {len(hosts) or 'none'} ({ENTRY} cluster status)"
        )
    for host in hosts[:count]:
        if host.description.is_busy:
            raise UserError(f"the host {host.address} is busy with another run")
    return tuple(hosts[:count])


def _choose_cores(clients: Sequence[Host]) -> list[tuple[int, ...]]:
    """Return as many cores on each host as the one with the fewest has, so that the parts of a load are equal."""
    fewest = min(len(host.description.cores) for host in clients)
    return [host.description.cores[:fewest] for host in clients]


def _describe_pinning(server: Host, clients: Sequence[Host], *, starts_clients: bool = False) -> Pinning:
    realtime = all(host.description.realtime for host in (server, *clients))
    how = "at real-time priority" if realtime else "at normal priority"
    where = quantities.listed([host.address for host in clients])
    of_clients = f", client contestants on {clients[0].address}" if starts_clients and len(clients) > 1 else ""
    return Pinning(
        server=server.description.cores,
        generator=_choose_cores(clients)[0],
        note=f"server on {server.address}, generator on {where} {how}{of_clients}; workers are not pinned",
        realtime=realtime,
    )


def _check(host: Host, prepared: Prepared, programs: Sequence[str], commit: object) -> None:
    if prepared.why_not:
        contestant = next(iter(prepared.why_not))
        raise UserError(f"{contestant} cannot be started on {host.address}: {prepared.why_not[contestant]}")
    if (other_commit := prepared.environment.get("git_commit")) != commit:
        raise UserError(f"{host.address} is at commit {other_commit}, and this machine at {commit}")
    if different := sorted({line.split()[0] for line in set(programs) ^ set(prepared.programs)}):
        raise UserError(f"{host.address} has other programs than this machine: {quantities.listed(different)}")
    if f"{digests.HARNESS} {host.description.harness}" not in programs:
        raise UserError(
            f"the worker of {host.address} has joined before {digests.HARNESS} was changed: restart the worker"
        )


def _count_machines(server: Host, clients: Sequence[Host]) -> int:
    """Count the machines of a run: one, where a load was made on the server's own, or may have been."""
    load_boots = {host.description.boot for host in clients}
    may_share_server = not server.description.boot or load_boots & {server.description.boot, ""}
    return 1 if may_share_server else 1 + len(load_boots)


def _describe_host(host: Host) -> str:
    return f"{host.description.host} at {host.address}, kernel {host.description.kernel}"


def _build_failed_trial(cell: Cell, reason: str, seconds: float) -> Trial:
    from netdyno.measure.trial.prepared import record_skip

    return msgspec.structs.replace(record_skip(cell, reason), status="failed", seconds=seconds)

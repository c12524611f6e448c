"""The trials of a run on one host of servers, under the load of others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.base.paths import canary_path, generator_path
from netdyno.cluster.control import Control
from netdyno.cluster.described import Host
from netdyno.cluster.engine import GoneError
from netdyno.cluster.requests import (
    Ground,
    LoadHost,
    NotDone,
    Prepare,
    Prepared,
    Reply,
    Request,
    TrialDone,
    TrialWanted,
    WarmupsDone,
    WarmupsWanted,
)
from netdyno.experiment import plan
from netdyno.experiment.plan import Cell, Kind, Named
from netdyno.machine import digests, environment
from netdyno.machine.links import network
from netdyno.machine.links.network import Network
from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import combinations
from netdyno.model.observation import ForeignLoad, Pinning
from netdyno.model.options import settings
from netdyno.model.run import BETWEEN_HOSTS, OF_CLUSTER, OF_LOAD, Environment
from netdyno.model.trial import Trial, Warmup
from netdyno.trial.setup import Bench, unwatched

PREPARE_S = 1800.0
"""How long a host may take to build what it starts."""
BEYOND_S = 60.0
"""How long a trial may take beyond what is planned for it."""
STORED = {"valid", "struck_out", "skipped", "failed"}
"""What becomes of a trial; all else follows from the others of its run."""
_REPLIES = {Prepare: Prepared, TrialWanted: TrialDone, WarmupsWanted: WarmupsDone}


class HostLostError(Exception):
    """A host has not done what was wanted of it; the text says why."""


class Stage:
    """Used within its Control."""

    def __init__(self, control: Control) -> None:
        """Raises UserError where there is not exactly one host of servers, and none that makes a load."""
        self._control = control
        hosts = control.hosts()
        self._server = _only(hosts, "server")
        self._clients = _clients(hosts)
        _first(self._clients, 1)
        self._ground = Ground(
            seed=0,
            pinning=Pinning(server=(), generator=(), note=""),
            foreign_load="strike-out",
            address=self._server.description.inside,
            loads=(),
        )
        self._between = Network((), (), Path("/proc/net"), load_hosts=len(self._clients))
        self._progress: Callable[[int, float], None] = unwatched
        self._folder = Path()

    def check(self, experiment: Experiment, servers: Named, clients: Named) -> None:
        """Raises UserError where no cell of it can be had on these hosts."""
        why_not = [
            self.why_skip(servers[contestant], scenario, levels, clients)
            for scenario in experiment.scenarios
            for levels in combinations(scenario)
            for contestant in scenario.contestants
        ]
        if why_not and all(why_not):
            raise UserError(f"no contestant of {experiment.name!r} can run on these hosts: {why_not[0]}")

    def why_skip(
        self, contestant: Contestant, scenario: Scenario, levels: dict[str, type_level], clients: Named
    ) -> str:
        """Why a cell cannot be had on these hosts; empty when it can."""
        return plan.why_skip(contestant, scenario, levels, clients) or network.why_not(
            transports.of(contestant), settings(scenario, levels), self._between
        )

    def set_up(
        self,
        experiment: Experiment,
        servers: Sequence[Contestant],
        *,
        clients: Sequence[Contestant],
        build: Path,
        folder: Path,
        progress: Callable[[int, float], None],
        foreign_load: ForeignLoad,
    ) -> tuple[Bench, Environment]:
        """Every host that is needed builds and describes itself. The first host of the load starts the client
        contestants. Raises UserError where a host has other programs, or another commit, than this machine."""
        wanted = {_client_hosts(one, levels) for one in experiment.scenarios for levels in combinations(one)}
        most = max((count for count in wanted if count <= len(self._clients)), default=1)
        self._clients = _first(self._clients, most)
        pinning = _pinning(self._server, self._clients, starts_clients=any(client.available for client in clients))
        loads = tuple(
            LoadHost(address=one.address, cores=cores, realtime=pinning.realtime)
            for one, cores in zip(self._clients, _cores(self._clients), strict=True)
        )
        names = tuple(server.name for server in servers if server.available)
        generator, canary = generator_path(build), canary_path(build)
        commit = environment.commit().get("git_commit")
        of_servers = self._prepared(self._server, Prepare(servers=names))
        _check(self._server, of_servers, digests.of_host(generator, canary, servers), commit)
        of_loads: list[Prepared] = []
        for number, host in enumerate(self._clients):
            started = [client for client in clients if client.available] if number == 0 else []
            request = Prepare(servers=(), clients=tuple(client.name for client in started))
            of_loads.append(self._prepared(host, request))
            _check(host, of_loads[-1], digests.of_host(generator, canary, (), started), commit)
        self._ground = msgspec.structs.replace(
            self._ground, seed=experiment.seed, foreign_load=foreign_load, pinning=pinning, loads=loads
        )
        self._progress, self._folder = progress, folder
        bench = Bench(
            seed=experiment.seed,
            generator=(str(generator),),
            pinning=pinning,
            folder=folder,
            clients={client.name: client for client in clients},
            foreign_load=foreign_load,
        )
        found = of_servers.environment | environment.of_run(experiment, bench.pinning)
        programs = {line for prepared in (of_servers, *of_loads) for line in prepared.programs}
        found |= {"foreign_load": foreign_load, "programs": sorted(programs)}
        found |= {
            "link": BETWEEN_HOSTS,
            OF_CLUSTER: _said(self._server),
            "hosts": _machines(self._server, self._clients),
        }
        found[f"{OF_CLUSTER}.doctor"] = list(self._server.description.findings)
        for number, (host, prepared) in enumerate(zip(self._clients, of_loads, strict=True), 1):
            name = OF_LOAD if number == 1 else f"{OF_LOAD}-{number}"
            found[name] = _said(host)
            found[f"{name}.doctor"] = list(host.description.findings)
            for key, value in prepared.environment.items():
                if of_servers.environment.get(key) != value:
                    found[f"{name}.{key}"] = value
        return bench, found

    def trial(self, cell: Cell, scenario: Scenario, warmup: Warmup | None) -> Trial:
        """One trial, failed where a host is lost meanwhile. Raises GoneError where there is none for it."""
        self._look(_client_hosts(scenario, cell.levels))
        began = time.monotonic()
        limit_s = plan.trial_seconds(settings(scenario, cell.levels, warmup.seconds if warmup else 0.0)) + BEYOND_S
        wanted = TrialWanted(ground=self._ground, cell=cell, scenario=scenario, warmup=warmup)
        try:
            done = self._perform(self._server, wanted, limit_s)
        except HostLostError as lost:
            return _failed(cell, str(lost), time.monotonic() - began)
        assert isinstance(done, TrialDone)
        if not _is_of(done.trial, cell):
            return _failed(cell, f"{self._server.address} answered for another trial", time.monotonic() - began)
        return msgspec.structs.replace(done.trial, levels=cell.levels, log=self._logged(cell, done))

    def _logged(self, cell: Cell, done: TrialDone) -> str:
        """Where the log of a trial stands now, relative to the run's folder: not where its host says that it does."""
        if not done.trial.log:
            return ""
        from netdyno.trial.trial import log_path

        path = self._folder / log_path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(done.log, encoding="utf-8", errors="replace")
        return str(log_path(cell))

    def warm_ups(self, kinds: Sequence[Kind], scenarios: Mapping[str, Scenario]) -> Iterator[tuple[Kind, Warmup]]:
        """How long those with a JIT warm up. Raises GoneError."""
        if not kinds:
            return
        self._look(len(self._clients))
        asked = tuple((kind.scenario, kind.contestant, kind.levels) for kind in kinds)
        wanted = WarmupsWanted(ground=self._ground, scenarios=tuple(scenarios.values()), kinds=asked)
        try:
            done = self._perform(self._server, wanted, BEYOND_S * (1 + len(kinds)))
        except HostLostError as lost:
            raise GoneError(str(lost)) from lost
        assert isinstance(done, WarmupsDone)
        if {number for number, _ in done.found} - set(range(len(kinds))):
            raise GoneError(f"the host {self._server.address} reported a warm-up that was not requested")
        yield from ((kinds[number], warmup) for number, warmup in done.found)

    def _look(self, clients: int) -> None:
        """Raises GoneError where a host has left that is to do something. Another does not take its place, nor does
        the same that has joined anew, perhaps with other programs: what a trial is made with is the same for all of a
        cell."""
        there = self._control.names()
        for host in (self._server, *self._clients[:clients]):
            if (name := there.get(host.address)) != host.name:
                anew = " and joined again" if name else ""
                raise GoneError(f"the host {host.address} has left the cluster{anew}")
            if not self._control.answers(host.address):
                raise GoneError(f"the host {host.address} does not answer")

    def _prepared(self, host: Host, request: Prepare) -> Prepared:
        try:
            done = self._perform(host, request, PREPARE_S)
        except HostLostError as lost:
            raise UserError(str(lost)) from lost
        assert isinstance(done, Prepared)
        return done

    def _perform(self, host: Host, wanted: Request, limit_s: float) -> Reply:
        """Have it done there. Raises HostLostError when the host is lost, takes too long, or answers something else
        than it was asked for."""
        try:
            text = self._control.perform(host.address, msgspec.json.encode(wanted), self._progress, limit_s)
            reply: Reply = msgspec.json.decode(text, type=Reply)
        except OSError as error:
            why = str(error) or "no connection to it could be made"
            raise HostLostError(f"the host {host.address} was lost: {why}") from error
        except msgspec.DecodeError as error:
            raise HostLostError(f"the host {host.address} sent no reply that can be read: {error}") from error
        if isinstance(reply, NotDone):
            raise HostLostError(f"the host {host.address}: {reply.why}")
        if not isinstance(reply, _REPLIES[type(wanted)]):
            raise HostLostError(f"the host {host.address} sent an answer that does not match the request")
        return reply


def _is_of(trial: Trial, cell: Cell) -> bool:
    """Whether it is of this cell, and has a status that trials have. Pure."""
    same = (getattr(trial, name) == getattr(cell, name) for name in Cell.__struct_fields__)
    return all(same) and trial.status in STORED


def _only(hosts: Sequence[Host], role: str) -> Host:
    found = [host for host in hosts if host.description.role == role]
    if len(found) != 1:
        raise UserError(
            f"a run needs one host that has joined as {role}, and {len(found) or 'none'} "
            f"{'have' if len(found) > 1 else 'has'} (./netdyno cluster status)"
        )
    if found[0].description.is_busy:
        raise UserError(f"the host {found[0].address} is busy with another run")
    return found[0]


def _clients(hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Those that make a load, by their addresses."""
    return tuple(sorted((one for one in hosts if one.description.role == "client"), key=lambda one: one.address))


def _first(found: Sequence[Host], count: int) -> tuple[Host, ...]:
    """So many of them. Raises UserError."""
    if len(found) < count:
        raise UserError(
            f"this run needs {quantities.plural(count, 'host')} that joined as client, and there "
            f"{'are' if len(found) > 1 else 'is'} {len(found) or 'none'} (./netdyno cluster status)"
        )
    for host in found[:count]:
        if host.description.is_busy:
            raise UserError(f"the host {host.address} is busy with another run")
    return tuple(found[:count])


def _client_hosts(scenario: Scenario, levels: Mapping[str, type_level]) -> int:
    return settings(scenario, levels).client_hosts


def _cores(clients: Sequence[Host]) -> list[tuple[int, ...]]:
    """As many on each host as on that which has the fewest, so that parts are equal."""
    fewest = min(len(host.description.cores) for host in clients)
    return [host.description.cores[:fewest] for host in clients]


def _pinning(server: Host, clients: Sequence[Host], *, starts_clients: bool = False) -> Pinning:
    realtime = all(host.description.realtime for host in (server, *clients))
    how = "at real-time priority" if realtime else "at normal priority"
    where = quantities.listed([host.address for host in clients])
    of_clients = f", client contestants on {clients[0].address}" if starts_clients and len(clients) > 1 else ""
    return Pinning(
        server=server.description.cores,
        generator=_cores(clients)[0],
        note=f"server on {server.address}, generator on {where} {how}{of_clients}; workers are not pinned",
        realtime=realtime,
    )


def _check(host: Host, found: Prepared, own: Sequence[str], commit: object) -> None:
    if found.why_not:
        first = next(iter(found.why_not))
        raise UserError(f"{first} cannot be started on {host.address}: {found.why_not[first]}")
    if (there := found.environment.get("git_commit")) != commit:
        raise UserError(f"{host.address} is at commit {there}, and this machine at {commit}")
    if differ := sorted({line.split()[0] for line in set(own) ^ set(found.programs)}):
        raise UserError(f"{host.address} has other programs than this machine: {quantities.listed(differ)}")
    if f"{digests.HARNESS} {host.description.harness}" not in own:
        raise UserError(
            f"the worker of {host.address} has joined before {digests.HARNESS} was changed: restart the worker"
        )


def _machines(server: Host, clients: Sequence[Host]) -> int:
    """How many took part: one, where a load was made on the server's own, or may have been."""
    of_loads = {host.description.boot for host in clients}
    may_be_the_servers = not server.description.boot or of_loads & {server.description.boot, ""}
    return 1 if may_be_the_servers else 1 + len(of_loads)


def _said(host: Host) -> str:
    return f"{host.description.host} at {host.address}, kernel {host.description.kernel}"


def _failed(cell: Cell, reason: str, seconds: float) -> Trial:
    from netdyno.trial.trial import skipped

    return msgspec.structs.replace(skipped(cell, reason), status="failed", seconds=seconds)

"""Performs a controller's request to a host, in a process of one thread:
`python -m netdyno.measure.cluster.trial_helper FOLDER PARENT`. The folder has the request; the reply is written beside
it. It prints the progress of the window on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from netdyno.kit.child import die_with
from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir, canary_path, generator_path
from netdyno.measure.cluster import clocks
from netdyno.measure.cluster.requests import (
    HostSettings,
    LoadMade,
    PartsMade,
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
from netdyno.measure.machine.links.network import Network
from netdyno.measure.machine.pinning import place_canary
from netdyno.measure.trial import warm_up
from netdyno.measure.trial.canary import Canary
from netdyno.measure.trial.context import TrialContext, decode_load, key
from netdyno.measure.trial.trial import run_trial
from netdyno.model.contestant import GENERATOR, Contestant
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import HostCanary
from netdyno.model.options import settings
from netdyno.question.contestants import building, contestants

REQUEST, REPLY, WAY = "request.json", "reply.json", "way"
STAND_IN = Path(__file__).parent / "load_stand_in.py"


def main(folder: Path, parent: int) -> int:
    die_with(parent)
    request = msgspec.json.decode((folder / REQUEST).read_bytes(), type=Request)
    try:
        reply = perform(request, folder)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    (folder / REPLY).write_bytes(msgspec.json.encode(reply))
    return 0


def perform(request: Request, folder: Path) -> Reply:
    """Perform a request and return the reply. Raises UserError."""
    match request:
        case Prepare():
            return _prepare(request)
        case TrialRequest():
            return _make_trial(request, folder)
        case WarmupsRequest():
            return _measure_warm_ups(request, folder)


def _prepare(request: Prepare) -> Prepared:
    build = build_dir()
    servers, clients = _find_contestants(request.servers, "server"), _find_contestants(request.clients, "client")
    targets = [target for server in servers for target in building.list_targets(server, "server")]
    targets += [target for client in clients for target in building.list_targets(client, "client")]
    targets += building.list_tls_targets(servers)
    building.make((building.GENERATOR, building.CANARY, *targets), build)
    servers = [contestants.prepare(server, build=build) for server in servers]
    clients = [contestants.prepare(client, build=build, kind="client") for client in clients]
    interpreted = digests.list_runtimes([*servers, *clients])
    return Prepared(
        environment=environment.describe_machine(build) | ({"runtimes": interpreted} if interpreted else {}),
        programs=tuple(digests.digest_host(generator_path(build), canary_path(build), servers, clients)),
        why_not={
            contestant.name: contestant.why_not for contestant in (*servers, *clients) if not contestant.available
        },
    )


def _make_trial(request: TrialRequest, folder: Path) -> TrialDone:
    (server,) = _find_contestants([request.cell.contestant], "server")
    results = ResultDecoder()
    clients = [settings(request.scenario, request.cell.levels).client]
    context = msgspec.structs.replace(_build_context(request.host_settings, folder, clients), decode=results.decode)
    if request.warmup is not None:
        context = msgspec.structs.replace(context, warmups={key(request.cell): request.warmup})
    pinning = request.host_settings.pinning
    cores = place_canary(pinning.server, is_load=False, realtime=pinning.realtime)
    canary = Canary(canary_path(build_dir()), cores, folder)
    trial = canary.measure_around(lambda: run_trial(request.cell, request.scenario, server, context))
    trial = msgspec.structs.replace(trial, canaries=results.canaries)
    log = folder / trial.log
    return TrialDone(trial=trial, log=log.read_text(encoding="utf-8", errors="replace") if trial.log else "")


def _measure_warm_ups(request: WarmupsRequest, folder: Path) -> WarmupsDone:
    kinds = request.kinds
    servers = {
        server.name: server for server in _find_contestants(sorted({kind.contestant for kind in kinds}), "server")
    }
    scenarios = {scenario.name: scenario for scenario in request.scenarios}
    clients = [settings(scenarios[kind.scenario], kind.levels).client for kind in kinds]
    measured = warm_up.measure(kinds, scenarios, servers, _build_context(request.host_settings, folder, clients))
    return WarmupsDone(found=tuple((kinds.index(kind), warmup) for kind, warmup in measured))


def _find_contestants(names: Sequence[str], kind: contestants.ContestantKind) -> list[Contestant]:
    if not names:
        return []
    discovered = contestants.discover(kind=kind)
    return [contestants.find_by_name(discovered, name, kind) for name in names]


def _find_clients(names: Iterable[str]) -> dict[str, Contestant]:
    """Find client contestants by name. A host of the load starts them by that name, and this host may lack what they
    need."""
    clients = _find_contestants(sorted({*names} - {GENERATOR}), "client")
    return {
        client.name: msgspec.structs.replace(client, command=(client.name,), available=True, why_not="")
        for client in clients
    }


def _build_context(host_settings: HostSettings, folder: Path, clients: Iterable[str]) -> TrialContext:
    """Build the context of a run on one machine, but with a load made elsewhere. `clients` are the programs that make
    it."""
    pinning = host_settings.pinning
    known = msgspec.json.encode({"hosts": host_settings.loads, "foreign_load": host_settings.foreign_load}).decode()
    way = (sys.executable, "-I", "-S", str(STAND_IN), str(folder / WAY), known)
    return TrialContext(
        seed=host_settings.seed,
        generator=(GENERATOR,),
        pinning=pinning,
        folder=folder,
        clients=_find_clients(clients),
        progress=_report_progress,
        foreign_load=host_settings.foreign_load,
        # Where it is not, the controller has skipped such cells.
        network=Network(
            (), way, Path("/proc/net"), host_settings.address, load_hosts=len(host_settings.loads), is_lan=True
        ),
        decode=ResultDecoder().decode,
    )


class ResultDecoder:
    """A decoder of results of loads, which keeps the canaries' readings beside the last that was measured."""

    def __init__(self) -> None:
        self.canaries: tuple[HostCanary, ...] = ()

    def decode(self, text: bytes) -> LoadResult:
        """Decode a result. Raises what msgspec does, and HistogramError."""
        if not text.startswith(b'{"canaries"'):
            return decode_result(text)
        made = msgspec.json.decode(text, type=LoadMade)
        self.canaries = made.canaries
        return decode_result(bytes(made.result))


def decode_result(text: bytes) -> LoadResult:
    """Decode the result of a load that one host made or several. Raises what msgspec does, and HistogramError."""
    if not text.startswith(b'{"parts"'):
        return decode_load(text)
    from netdyno.measure.audits.host_audits import common_start
    from netdyno.measure.trial.merged import merge_hosts  # imported after the window, as they need numpy

    parts = msgspec.json.decode(text, type=PartsMade).parts
    by_host = {part.host: decode_load(bytes(part.result)) for part in parts}
    window_s = next(iter(by_host.values())).plan.duration_s
    within_ns = {part.host: clocks.start_within_ns(part.before, part.after) for part in parts}
    return merge_hosts(by_host, [common_start(within_ns, window_s)])


def _report_progress(completed: int, seconds: float) -> None:
    print(completed, seconds, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))

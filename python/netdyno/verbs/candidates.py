"""The servers that `netdyno advise` compares: those that speak the workload here, and the user's own."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import msgspec

from netdyno.kit import quantities
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.model import transports
from netdyno.model.contestant import Contestant
from netdyno.question import workload
from netdyno.question.contestants import codesize, contestants
from netdyno.question.workload import Workload
from netdyno.verbs import own_servers
from netdyno.verbs.own_servers import OwnServers


def settle_workload(described: OwnServers, requested: Workload) -> tuple[OwnServers, Workload]:
    """Return the user's own servers and the workload that they speak: http unless it says otherwise. Raises UserError
    for a service time, which only requests of web ask for."""
    if not own_servers.has_servers(described):
        return described, requested
    if "service-time" in requested and requested.get("speaks") != workload.FRAMEWORKS_SPEAK:
        raise UserError("--service-time: your own server does its own work; leave --service-time out")
    if requested.get("fan-out") != "room":
        requested = {"speaks": own_servers.SPEAKS_HTTP, **requested}
    spoken = None if "send" in described.requests else str(requested.get("speaks", "chat"))
    return msgspec.structs.replace(described, workload=spoken), requested


def choose_candidates(
    known: Sequence[Contestant], described: OwnServers, requested: Workload
) -> tuple[Contestant, ...]:
    """Return netdyno's own servers that are allowed, and the user's own. netdyno's can only repeat the URL of a
    request, so where something else is requested they are candidates only by name. Raises UserError where there is
    none."""
    own = own_servers.resolve(described, [server.name for server in known])
    if not own:
        return select_allowed(known, requested)
    of_others = [
        pattern
        for pattern in requested.get("contestants", ())
        if not any(fnmatch.fnmatchcase(server.name, pattern) for server in own)
    ]
    echoes = described.requests.keys() <= {"verify"} and described.requests.get("verify", "echo") == "echo"
    if not of_others and ("contestants" in requested or not echoes):
        return own
    return (*select_allowed(known, {**requested, "contestants": of_others or ("*",)}), *own)


def select_allowed(servers: Sequence[Contestant], requested: Workload) -> tuple[Contestant, ...]:
    """Return the servers that speak the workload, can be started and are in an allowed language. Raises UserError where
    there is none."""
    scenario = "chat" if requested.get("fan-out") == "room" else str(requested.get("speaks", "rpc"))
    patterns = requested.get("contestants", ("*",))
    named = contestants.select(servers, patterns)
    carriers = requested.get("transports", workload.DEFAULT_TRANSPORTS)
    for name in carriers:
        if name not in transports.TRANSPORTS:
            raise UserError(f"--transports: unknown transport {name!r}{did_you_mean(name, transports.TRANSPORTS)}")
    able = [
        server
        for server in named
        if server.available
        and scenario in server.manifest.workloads
        and transports.find_transport(server).name in carriers
        and (server.manifest.spends_time or server.name in patterns)
    ]
    if languages := requested.get("languages"):
        written = {
            program.name: program.language for program in codesize.describe(able, ()) if program.kind == "server"
        }
        known = sorted({language.lower() for language in written.values() if language})
        for language in languages:
            if language.lower() not in known:
                raise UserError(f"--languages: no server is written in {language!r}{did_you_mean(language, known)}")
        chosen_languages = {language.lower() for language in languages}
        able = [server for server in able if written.get(server.name, "").lower() in chosen_languages]
    if not able:
        names = [server.name for server in named]
        carrier_names = " or ".join(carriers)
        if len(names) == 1:
            raise UserError(f"{names[0]} does not support {scenario} over {carrier_names} here")
        subject = f"neither {names[0]} nor {names[1]}" if len(names) == 2 else f"none of {quantities.listed(names)}"
        raise UserError(f"{subject} supports {scenario} over {carrier_names} here")
    return tuple(able)

"""The server options that the harness sets beside those of a cell: they are stored with the trial (`Trial.added`)."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import MANIFEST_OPTIONS, Contestant
from netdyno.model.options import MOST_THREADS, Settings, check_connections
from netdyno.model.values import CORES


def added_options(contestant: Contestant, wanted: Settings, *, cores: int) -> dict[str, type_level]:
    """What the contestant can have of the options that are wanted where possible; what it cannot do without, a thread
    for each connection where a client beyond the thread count waits (docs/adr/limited-by-threads.md), for clients that
    stay; and a thread for each core where the cell says `threads = "cores"` or nothing about threads
    (docs/adr/same-cores.md). What the cell itself says about an option goes before. Pure."""
    if contestant.own is not None:
        return {}
    added = {
        name: value
        for name, value in wanted.where_possible.items()
        if name not in wanted.server and _has(contestant, name)
    }
    threads = wanted.server.get("threads", added.get("threads"))
    limited = contestant.manifest.clients == "limited-by-threads" and wanted.server.get("threads", CORES) == CORES
    if limited and not (threads == CORES and wanted.clients_leave):
        added["threads"] = max(wanted.connections, check_connections(wanted.workload))
    elif threads in (None, CORES) and _has(contestant, "threads"):
        added["threads"] = min(cores, MOST_THREADS)
    return added


def all_options(of_cell: Mapping[str, type_level], added: Mapping[str, type_level]) -> dict[str, type_level]:
    """What a server is given. A model that cannot have any number of threads is told nothing of `cores`: it has its one
    thread, or one for each connection. Pure."""
    options = {**of_cell, **added}
    if options.get("threads") == CORES:
        del options["threads"]
    return options


def _has(contestant: Contestant, option: str) -> bool:
    if option == "threads":
        return contestant.manifest.threads == "any"
    if option in MANIFEST_OPTIONS:
        return option in contestant.manifest.options
    return transports.has_option(transports.of(contestant), option)

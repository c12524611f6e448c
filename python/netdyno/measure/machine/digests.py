"""Digests of the programs that a run started, to compare them with those of a later build or of another host."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from subprocess import SubprocessError

from netdyno.kit.errors import UserError
from netdyno.kit.paths import ROOT
from netdyno.measure.machine import loaded
from netdyno.model.contestant import GENERATOR, Contestant, stands_already

SHOWN = 12
"""Hexadecimal digits of a digest: enough to distinguish two builds, and no defence against an attacker."""

HARNESS = "python/"
"""The name of the harness among programs."""
CLIENT = "client-"
"""The prefix of the name of a client contestant there, as in the build (building.list_targets)."""


def digest_programs(
    generator: Path, servers: Sequence[Contestant], clients: Sequence[Contestant] = (), tls_layer: Path | None = None
) -> list[str]:
    """Return one line each, by name: the digest (SHA-256) of all that its program loads (loaded.py), and of how its
    manifest starts it. A contestant that is not available has none, nor has a server that stands already: what was
    started for it is a stand-in. A client may have the name of a server, so its line begins with CLIENT. `tls_layer`:
    what servers load that speak TLS. Raises UserError where a file of it cannot be read."""
    lines = {GENERATOR: _digest_files(loaded.list_program_files(generator))}
    if tls_layer is not None:
        lines[tls_layer.stem] = _digest_files(loaded.list_program_files(tls_layer))
    lines |= {server.name: _digest_contestant(server) for server in _select_started(servers)}
    lines |= {f"{CLIENT}{client.name}": _digest_contestant(client) for client in _select_started(clients)}
    return [f"{name} {digest}" for name, digest in sorted(lines.items())]


def list_runtimes(contestants: Sequence[Contestant]) -> list[str]:
    """Return one line for each that is interpreted, by name: its interpreter, with version and path. Raises UserError
    where that cannot be found out."""
    interpreted = [
        (contestant.name, runtime)
        for contestant in _select_started(contestants)
        if (runtime := _find_runtime(contestant)) is not None
    ]
    return [f"{name}: {runtime.name} {runtime.version}, {runtime.program}" for name, runtime in sorted(interpreted)]


def digest_host(
    generator: Path, canary: Path, servers: Sequence[Contestant], clients: Sequence[Contestant] = ()
) -> list[str]:
    """Return the digests with those of the canary and the harness's own code: what hosts of one run have in common."""
    canary_digest = _digest_files(loaded.list_program_files(canary))
    return [
        *digest_programs(generator, servers, clients),
        f"{canary.name} {canary_digest}",
        f"{HARNESS} {digest_harness()}",
    ]


def digest_harness(folder: Path = ROOT / HARNESS) -> str:
    """Return the digest of all Python files that the harness may load, as they are now."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:SHOWN]


def _select_started(contestants: Sequence[Contestant]) -> list[Contestant]:
    return [contestant for contestant in contestants if contestant.available and not stands_already(contestant)]


def _digest_contestant(contestant: Contestant) -> str:
    try:
        return _digest_files(loaded.files(contestant), contestant.manifest.run)
    except (OSError, SubprocessError, zipfile.BadZipFile) as error:
        raise UserError(f"files of {contestant.name} cannot be read: {error}") from error


def _find_runtime(contestant: Contestant) -> loaded.LoadedRuntime | None:
    try:
        return loaded.find_runtime(contestant)
    except (OSError, SubprocessError) as error:
        raise UserError(f"the runtime of {contestant.name} cannot be identified: {error}") from error


def _digest_files(files: Iterable[Path], words: Sequence[str] = ()) -> str:
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{word}\0".encode())
    for path in files:
        digest.update(f"{path.name}\0{loaded.digest(path)}\0".encode())
    return digest.hexdigest()[:SHOWN]

"""Which programs a run started, so that they can be told from what a later build made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from netdyno.base.paths import ROOT
from netdyno.model.contestant import GENERATOR, Contestant, stands_already

SHOWN = 12
"""Hexadecimal digits of a digest: enough to tell two builds apart, and no defence against anybody."""

HARNESS = "python/"
"""Its name among programs."""


def digests(generator: Path, contestants: Sequence[Contestant]) -> list[str]:
    """One line each, by name: the digest (SHA-256) of all files that its command names. Who is not available has
    none, nor has a server that stands already: what was started for it is a stand-in."""
    started = [one for one in contestants if one.available and not stands_already(one)]
    commands = {GENERATOR: (str(generator),)} | {one.name: one.command for one in started}
    return [f"{name} {_digest(command)}" for name, command in sorted(commands.items())]


def of_host(generator: Path, canary: Path, contestants: Sequence[Contestant]) -> list[str]:
    """The same with the canary, and the harness's own code: what hosts of one run have in common."""
    return [*digests(generator, contestants), f"{canary.name} {_digest((str(canary),))}", f"{HARNESS} {harness()}"]


def harness(folder: Path = ROOT / HARNESS) -> str:
    """The digest of all Python files that the harness may load, as they are now."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:SHOWN]


def _digest(command: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for word in command:
        if Path(word).is_file():
            with Path(word).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:SHOWN]

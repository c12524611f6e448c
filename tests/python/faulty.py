"""Contestants that are the same program and differ in their faults, for whole runs (fakes/faulty_server.py)."""

from __future__ import annotations

import sys
from pathlib import Path

from netdyno.model import Contestant, Manifest

PROGRAM = Path(__file__).parent / "fakes" / "faulty_server.py"
HEALTHY = "healthy"
FAULTS = {HEALTHY: "none", "crashing": "crash", "corrupting": "corrupt", "stalling": "stall"}
"""The fault of each, by the name of the contestant."""


def contestants(folder: Path, fault_after_s: float) -> tuple[Contestant, ...]:
    """All of them; `folder` keeps how often each was started."""
    return tuple(_contestant(name, folder / f"{name}.starts", fault_after_s) for name in FAULTS)


def _contestant(name: str, starts: Path, fault_after_s: float) -> Contestant:
    options = ("--fault", FAULTS[name], "--starts", str(starts), "--fault-after", f"{fault_after_s:g}")
    command = (sys.executable, "-I", "-S", str(PROGRAM), *options)
    manifest = Manifest(
        kind="command",
        model="a fake",
        summary=f"echoes, with the fault {FAULTS[name]!r} at every third start",
        workloads=("echo",),
        threads="one",
        run=command,
    )
    return Contestant(name=name, manifest=manifest, command=command, available=True)

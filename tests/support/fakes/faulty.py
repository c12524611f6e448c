"""Contestants that are the same program and differ in their faults, for whole runs (fakes/faulty_server.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from netdyno.model.contestant import Contestant, Manifest

PROGRAM = Path(__file__).with_name("faulty_server.py")
HEALTHY = "healthy"
FAULTS = {HEALTHY: "none", "crashing": "crash", "corrupting": "corrupt", "stalling": "stall"}
"""The fault of each, by the name of the contestant."""


def contestants(folder: Path, fault_after_s: float) -> tuple[Contestant, ...]:
    """All of them; `folder` keeps how often each was started."""
    return tuple(_contestant(name, folder / f"{name}.starts", fault_after_s) for name in FAULTS)


def slow(folder: Path, burn_per_read_s: float) -> Contestant:
    """The healthy one with some CPU time for each read: beside it a server in C++ that does nothing more than it must
    is fast, whatever the machine. With 64 connections, 1000 messages in flight in each and 29 bytes a message, the fast
    one takes all that a core of the generator can send, also where it has a quarter of its own core, and this one, with
    0.5 ms, a third of that."""
    healthy = _contestant(HEALTHY, folder / "slow.starts", 0.0)
    command = (*healthy.command, "--burn-per-read", f"{burn_per_read_s:g}")
    return msgspec.structs.replace(healthy, name="slow", command=command)


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

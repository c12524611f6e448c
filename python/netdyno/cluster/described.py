"""What a host says of itself, as `cluster status` shows it."""

from __future__ import annotations

import platform
import socket
from pathlib import Path

from netdyno.cluster.clocks import Offset
from netdyno.cluster.links import Link
from netdyno.machine import topology
from netdyno.machine.pinning import may_run_realtime, usable_cores
from netdyno.model.base import Frozen

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""random(4). Containers and network namespaces of one machine read the same."""


class Description(Frozen):
    """A host by its own account. `cores` are those that its programs get; `inside` is where its servers listen.
    `realtime`: whether they may run before everything else. `findings`: what the doctor thought of it when it joined,
    but for what is good. `is_busy`: a trial is made there, or a part of one. `boot`: what all hosts of one kernel have
    in common, and no others; empty where the kernel does not say. `harness`: the digest of the code that its worker has
    loaded."""

    host: str
    role: str
    cores: tuple[int, ...]
    kernel: str
    inside: str
    realtime: bool
    is_busy: bool = False
    findings: tuple[str, ...] = ()
    boot: str = ""
    harness: str = ""


class Host(Frozen):
    """A host as the controller sees it; `name` is another's when it joins once more, `links`: from each other host, by
    its address, where they were asked for."""

    address: str
    name: str
    clock: Offset
    description: Description
    links: dict[str, Link]


def describe(
    role: str, asked: tuple[int, ...], address: str, findings: tuple[str, ...], *, is_busy: bool, harness: str = ""
) -> Description:
    """This host, of which these cores were `asked` for, or nothing was said."""
    allowed = usable_cores()
    cores = asked or default_cores(role, tuple(one.cpu for one in topology.read().alike))
    # A load that has every core would keep its own worker from saying that it lives.
    realtime = len(cores) < len(allowed) and may_run_realtime() if role == "client" else may_run_realtime()
    return Description(
        host=socket.gethostname(),
        role=role,
        cores=cores,
        kernel=platform.release(),
        inside=address,
        realtime=realtime,
        is_busy=is_busy,
        findings=findings,
        boot=_boot(),
        harness=harness,
    )


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def default_cores(role: str, alike: tuple[int, ...]) -> tuple[int, ...]:
    """All of one kind, but that of a load the first is left to the worker, where there are several. Pure."""
    return alike[1:] if role == "client" and len(alike) > 1 else alike

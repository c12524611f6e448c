"""The description of a host by itself, as `cluster status` shows it."""

from __future__ import annotations

import platform
import socket
from pathlib import Path

from netdyno.kit.files import read_if_there
from netdyno.measure.cluster.clocks import Offset
from netdyno.measure.cluster.host_links import HostLink
from netdyno.measure.machine import topology
from netdyno.measure.machine.pinning import list_usable_cores, may_run_realtime
from netdyno.model.base import Frozen

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The file of random(4) whose content containers and network namespaces of one machine share."""


class Description(Frozen):
    """A host by its own account. `cores` are those that its programs get; `inside` is the address where its servers
    listen. `realtime`: whether they may run before everything else. `findings`: the doctor's findings when it joined,
    but for the good ones. `is_busy`: a trial is made there, or a part of one. `boot`: a mark that all hosts of one
    kernel have in common, and no others; empty where the kernel does not give it. `harness`: the digest of the code
    that its worker has loaded."""

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
    """A host as the controller sees it. `name` changes when the host joins again. `links`: from each other host, by its
    address, where they were requested."""

    address: str
    name: str
    clock: Offset
    description: Description
    links: dict[str, HostLink]


def describe(
    role: str, requested: tuple[int, ...], address: str, findings: tuple[str, ...], *, is_busy: bool, harness: str = ""
) -> Description:
    """Describe this host, of which these cores were `requested`, or none, for the default."""
    allowed = list_usable_cores()
    cores = requested or choose_default_cores(role, tuple(processor.cpu for processor in topology.read().alike))
    # A load on every core would keep its own worker from sending signs of life.
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
        boot=read_if_there(BOOT_ID),
        harness=harness,
    )


def choose_default_cores(role: str, alike: tuple[int, ...]) -> tuple[int, ...]:
    """Return all cores of one kind; of a load's, the first is left to the worker where there are several. Pure."""
    return alike[1:] if role == "client" and len(alike) > 1 else alike

"""The link `lan`: two private network namespaces of this machine, joined by a veth pair (veth(4)) and by nothing else:
what crosses it passes two IP stacks, and nothing leaves the machine. docs/adr/links.md says what it is for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from netdyno.environment import SYSCTLS
from netdyno.namespace import Namespace, NotAllowedError, private_namespace

INTERFACE = "lan"
"""Of both ends, each in its own namespace."""
SERVER_ADDRESS, LOAD_ADDRESS = "10.77.0.1", "10.77.0.2"
_PREFIX = 30
_MTU_FRAME = 1514  # bytes of a full Ethernet frame, without its checksum
_BURST_S = 1e-3
_QUEUE_FRAMES = 1000
"""What waits for a link with a rate before more is dropped: the length of an Ethernet interface's queue on Linux."""
_UP_TIMEOUT_S = 10.0


class Lan(NamedTuple):
    """Both ends. The server's has SERVER_ADDRESS, the load's LOAD_ADDRESS; there is no route to anywhere else."""

    server: Namespace
    load: Namespace


@contextmanager
def joined(rate_hz: int | None = None) -> Iterator[Lan]:
    """Make one, which carries at most so many bits per second in each direction, or as many as it can. All of it is
    gone when the block ends, or this process. Raises NotAllowedError, which says what the system lacks."""
    ip, tc = _tool("ip"), _tool("tc") if rate_hz else ""
    settings = _settings()
    with (
        private_namespace(settings=settings) as server,
        private_namespace(beside=server, settings=settings) as load,
    ):
        _wire(ip, server, load)
        if rate_hz:
            for end in (server, load):
                _limit(tc, end, rate_hz)
        for end in (server, load):
            _do(end, [ip, "link", "set", INTERFACE, "up"], "bring the link up")
        for end in (server, load):
            _await_up(ip, end)
        yield Lan(server, load)


def _tool(name: str) -> str:
    """The path of a tool, also for users without the folders of the system's programs on their PATH."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise NotAllowedError(f"{name} not found: install iproute2")
    return found


def _wire(ip: str, server: Namespace, load: Namespace) -> None:
    pair = f"link add {INTERFACE} type veth peer name {INTERFACE} netns {load.pid}\n"
    _do(server, [ip, "-batch", "-"], "the kernel needs veth: CONFIG_VETH, or as root: modprobe veth", pair)
    # Without an address of IPv6 the kernel looks for no neighbours and no routers: nothing crosses but the load.
    quiet = f"link set {INTERFACE} addrgenmode none\n" if Path("/proc/sys/net/ipv6").exists() else ""
    for end, address in ((server, SERVER_ADDRESS), (load, LOAD_ADDRESS)):
        address_it = f"address add {address}/{_PREFIX} dev {INTERFACE}\n"
        _do(end, [ip, "-batch", "-"], "give the link its addresses", quiet + address_it)


def _limit(tc: str, end: Namespace, rate_hz: int) -> None:
    """A token bucket before the wire (tc-tbf(8)). What may go at once is a millisecond's worth, because timers come
    late, and two frames at least; the kernel cuts longer packets up."""
    burst = max(round(rate_hz / 8 * _BURST_S), 2 * _MTU_FRAME)
    bucket = ["rate", f"{rate_hz}bit", "burst", f"{burst}b", "limit", f"{burst + _QUEUE_FRAMES * _MTU_FRAME}b"]
    command = [tc, "qdisc", "add", "dev", INTERFACE, "root", "tbf", *bucket]
    _do(end, command, "a link with a rate needs tbf in the kernel: CONFIG_NET_SCH_TBF, or as root: modprobe sch_tbf")


def _settings() -> list[str]:
    """What is recorded of the machine's network, as FILE=VALUE: a new namespace has some of it from there and the
    kernel's defaults for the rest, and would not be what the report says."""
    files = (Path("/proc/sys") / name.replace(".", "/") for name in SYSCTLS if name.startswith("net."))
    return [f"{file}={file.read_text().strip()}" for file in files if file.exists()]


def _await_up(ip: str, end: Namespace) -> None:
    """Until the kernel has noticed that both ends are up; before that it drops what is sent."""
    deadline = time.monotonic() + _UP_TIMEOUT_S
    while True:
        (found,) = json.loads(_do(end, [ip, "-json", "link", "show", INTERFACE], "look at the link"))
        if found["operstate"] == "UP":
            return
        if time.monotonic() > deadline:
            raise NotAllowedError(f"the link did not come up within {_UP_TIMEOUT_S:g} s: it is {found['operstate']}")
        time.sleep(0.001)


def _do(end: Namespace, command: Sequence[str], what: str, given: str = "") -> str:
    """Run a command at one end; NotAllowedError with `what`, which says what it was for or what it needs."""
    try:
        return end.run(*command, given=given)
    except subprocess.CalledProcessError as error:
        said = " ".join(str(error.stderr).split()) or f"exit code {error.returncode}"
        raise NotAllowedError(f"{Path(command[0]).name}: {said} ({what})") from error

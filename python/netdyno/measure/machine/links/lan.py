"""The link `lan`: two private network namespaces of this machine, joined by a veth pair (veth(4)) and by nothing else:
packets that cross it pass two IP stacks, and nothing leaves the machine. docs/adr/links.md says what it is for."""

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

from netdyno.measure.machine.environment import SYSCTLS
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS

INTERFACE = "lan"
"""The name of the interface at both ends, each in its own namespace."""
_PREFIX = 30
MTU_FRAME = 1514  # bytes of a full Ethernet frame, without its checksum
_BURST_S = 1e-3
QUEUE_FRAMES = 1000
"""The frames that wait for a link with a rate before more are dropped: the queue of an Ethernet interface on Linux."""
_UP_TIMEOUT_S = 10.0


class Lan(NamedTuple):
    """Both ends of a link. The server's has SERVER_ADDRESS, the load's LOAD_ADDRESS; there is no route to anywhere
    else."""

    server: Namespace
    load: Namespace


@contextmanager
def make_link(rate_hz: int | None = None) -> Iterator[Lan]:
    """Make such a link, which carries at most so many bits per second in each direction, or as many as it can. All of
    it is gone when the block, or this process, ends. Raises NotAllowedError, which says what the system lacks."""
    with make_ends() as ends:
        join_by_veth(ends)
        if rate_hz:
            for end in ends:
                limit(end, rate_hz)
        bring_up(ends)
        await_up(ends)
        yield ends


@contextmanager
def make_ends() -> Iterator[Lan]:
    """Make both ends, with nothing between them yet. Raises NotAllowedError."""
    find_tool("ip")  # before anything is made in vain
    settings = _read_settings()
    with (
        make_namespace(settings=settings) as server,
        make_namespace(partner=server, settings=settings) as load,
    ):
        yield Lan(server, load)


def join_by_veth(ends: Lan) -> None:
    """Put a veth pair between them, with an end in each; it is down."""
    pair = f"link add {INTERFACE} type veth peer name {INTERFACE} netns {ends.load.pid}\n"
    do(
        ends.server,
        [find_tool("ip"), "-batch", "-"],
        "the kernel needs veth: CONFIG_VETH, or as root: modprobe veth",
        pair,
    )


def bring_up(ends: Lan) -> None:
    """Give both interfaces their addresses and bring them up."""
    # Without an address of IPv6 the kernel looks for no neighbours and no routers: only the load crosses.
    quiet = f"link set {INTERFACE} addrgenmode none\n" if Path("/proc/sys/net/ipv6").exists() else ""
    for end, address in zip(ends, (SERVER_ADDRESS, LOAD_ADDRESS), strict=True):
        commands = f"{quiet}address add {address}/{_PREFIX} dev {INTERFACE}\nlink set {INTERFACE} up\n"
        do(end, [find_tool("ip"), "-batch", "-"], "give the link its addresses", commands)


def await_up(ends: Lan) -> None:
    """Wait until the kernel has noticed that both ends of a veth pair are up; before that it drops all frames."""
    for end in ends:
        deadline = time.monotonic() + _UP_TIMEOUT_S
        while (state := _read_state(end)) != "UP":
            if time.monotonic() > deadline:
                raise NotAllowedError(f"the link did not come up within {_UP_TIMEOUT_S:g} s: it is {state}")
            time.sleep(0.001)


def _read_state(end: Namespace) -> str:
    (link,) = json.loads(do(end, [find_tool("ip"), "-json", "link", "show", INTERFACE], "look at the link"))
    return str(link["operstate"])


def find_tool(name: str) -> str:
    """Return the path of a tool, also for users without the folders of the system's programs on their PATH."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is None:
        raise NotAllowedError(f"{name} not found: install iproute2")
    return path


def limit(end: Namespace, rate_hz: int, parent: str = "root") -> None:
    """Put a token bucket before the wire (tc-tbf(8)), at the root of the interface or below a queueing discipline."""
    command = [find_tool("tc"), "qdisc", "add", "dev", INTERFACE, *parent.split(), "tbf", *format_token_bucket(rate_hz)]
    do(end, command, "a link with a rate needs tbf in the kernel: CONFIG_NET_SCH_TBF, or as root: modprobe sch_tbf")


def format_token_bucket(rate_hz: int) -> list[str]:
    """Return the parameters of a token bucket. A burst is a millisecond's worth, because timers come late, and two
    frames at least; the kernel cuts up longer packets."""
    burst = max(round(rate_hz / 8 * _BURST_S), 2 * MTU_FRAME)
    return ["rate", f"{rate_hz}bit", "burst", f"{burst}b", "limit", f"{burst + QUEUE_FRAMES * MTU_FRAME}b"]


def _read_settings() -> list[str]:
    """Read the recorded settings of the machine's network, as FILE=VALUE: a new namespace inherits some of them and has
    the kernel's defaults for the rest, and so would not match the report."""
    files = (Path("/proc/sys") / name.replace(".", "/") for name in SYSCTLS if name.startswith("net."))
    return [f"{file}={file.read_text().strip()}" for file in files if file.exists()]


def do(end: Namespace, command: Sequence[str], what: str, given: str = "") -> str:
    """Run a command at one end. Raises NotAllowedError with `what`, its purpose or its need."""
    try:
        return end.run(*command, given=given)
    except subprocess.CalledProcessError as error:
        reason = " ".join(str(error.stderr).split()) or f"exit code {error.returncode}"
        raise NotAllowedError(f"{Path(command[0]).name}: {reason} ({what})") from error

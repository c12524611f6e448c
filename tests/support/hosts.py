"""Hosts of a cluster on one machine: network namespaces on a bridge, each with a clock of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from netdyno.measure.machine import server_proc
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.measure.machine.links.namespace_child import read_network
from tests.support.patience import PATIENCE_S, eventually

NETDYNO = (sys.executable, "-P", "-m", "netdyno")
BRIEF = (sys.executable, "-P", str(Path(__file__).with_name("brief.py")))
"""The same, in a hurry."""
APART_S = 100_000
"""How far the clock of each host is ahead of that of the one before."""


class NamespaceHost(NamedTuple):
    """`enter` stands before a command that is to run there."""

    name: str
    address: str
    enter: tuple[str, ...]
    switch: Namespace

    def unplug(self) -> None:
        """Take its link down, at the other end, as a cable is pulled."""
        self.switch.run("ip", "link", "set", f"port-{self.name}", "down")

    def plug(self) -> None:
        """Take its link up again."""
        self.switch.run("ip", "link", "set", f"port-{self.name}", "up")

    def start(self, *words: str, program: Sequence[str] = NETDYNO) -> subprocess.Popen[str]:
        """A command of netdyno's on this host, whose output is read."""
        return subprocess.Popen(
            [*self.enter, *program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


@contextmanager
def on_a_bridge(*names: str) -> Iterator[dict[str, NamespaceHost]]:
    """Yield these hosts; all is gone with the block, or an AssertionError names what is left. Skips the test where
    the system has no namespaces."""
    with _left_by_all() as hold, ExitStack() as stack:
        try:
            switch = stack.enter_context(make_namespace())
            hold(switch)
            switch.run("ip", "link", "add", "bridge0", "type", "bridge")
            switch.run("ip", "link", "set", "bridge0", "up")
            yield {name: _host(stack, switch, number, name, hold) for number, name in enumerate(names, 1)}
        except NotAllowedError as error:
            pytest.skip(f"no namespaces here: {error}")


@contextmanager
def _left_by_all() -> Iterator[Callable[[Namespace], None]]:
    """Check after the block that no process is in a namespace that it was handed. Each is held until then: the kernel
    would give its number to the next namespace."""
    numbers: set[int] = set()
    with ExitStack() as held:

        def hold(made: Namespace) -> None:
            held.enter_context(Path(f"/proc/{made.pid}/ns/net").open())
            numbers.add(read_network(made.pid))

        yield hold
        eventually(lambda: not _inside(numbers), lambda: f"still in a host's namespace: {_inside(numbers)}")


def _inside(numbers: Container[int]) -> list[str]:
    """Return the commands that run in one of these network namespaces."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if read_network(entry.name) in numbers:
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return commands


def _host(
    stack: ExitStack, switch: Namespace, number: int, name: str, hold: Callable[[Namespace], None]
) -> NamespaceHost:
    made = stack.enter_context(make_namespace(partner=switch))
    hold(made)
    address, port = f"10.88.0.{number}", f"port-{name}"
    switch.run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(made.pid))
    switch.run("ip", "link", "set", port, "master", "bridge0", "up")
    made.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    made.run("ip", "link", "set", "eth0", "up")
    clock = ["unshare", "--time", "--monotonic", str(number * APART_S), "--boottime", str(number * APART_S)]
    keep = [*made.enter, *clock, "--fork", "--kill-child", "--", "sh", "-c", "echo $$; exec cat"]
    keeper = subprocess.Popen(keep, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.enter_context(keeper)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    stack.callback(keeper.stdin.close)
    inside = ("nsenter", "--target", keeper.stdout.readline().strip(), "--time", "--")
    return NamespaceHost(name, address, (*made.enter, *inside), switch)


@contextmanager
def daemon(host: NamespaceHost, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A scheduler, or the worker of a host, once it has said that it stands; it may end before the block does."""
    with host.start("cluster", *words) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(("scheduler at", "joined")), line + process.stdout.read()
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)


def await_child(pid: int, name: str, but: int = 0) -> int:
    """A process below that one of that name, once it is there; `but` is not meant."""
    children: list[int] = []

    def is_there() -> bool:
        children[:] = [child for child in server_proc.find_family(pid)[1:] if child != but and is_called(child, name)]
        return bool(children)

    eventually(is_there, f"{name} never came to run")
    return children[0]


def is_called(pid: int, name: str) -> bool:
    """Whether that is the program it has become."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == name
    except OSError:
        return False

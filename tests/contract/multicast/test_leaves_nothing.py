"""What a time to live means on the wire: one end of a veth(4) pair is the server's interface, and the test listens at
the other end, where a neighbour would be."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from netdyno.measure.machine.links.namespace import Namespace
from tests.contract.golden import wire
from tests.contract.messages.transport import HELO, WELC, control
from tests.support.inside import Inside
from tests.support.patience import PATIENCE_S
from tests.support.server import Server, serving

GROUP = "239.255.0.1"
OWN = "10.9.1.1"
ETH_P_IP = 0x0800
MESSAGE = wire.frame(b"for the members only")
ASKED_AGAIN_S = 1.0
LAST = b"for everybody on the link"  # with a time to live of 1, which is the default (ip(7))


@pytest.fixture(autouse=True)
def _one_cpu() -> Iterator[None]:
    """The test, and the server that it starts, run on one CPU: packets wait for their receiver in a queue of the CPU
    that sent them, so only those of one CPU keep their order (netif_rx in net/core/dev.c)."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def neighbour(private: Namespace, sockets: Inside) -> socket.socket:
    """Gets every IPv4 packet that leaves by the interface `here`."""
    if shutil.which("ip") is None:
        pytest.skip("ip not found: install iproute2")
    try:
        private.run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no veth here: {error.stderr}")
    private.run("ip", "address", "add", f"{OWN}/24", "dev", "here")
    # The other end first: an interface that has its peer sends from the moment it is up; else the kernel lets it do so
    # later, and drops until then what is sent (net/core/link_watch.c).
    private.run("ip", "link", "set", "there", "up")
    private.run("ip", "link", "set", "here", "up")
    listens = sockets.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
    listens.bind(("there", 0))
    return listens


def ask_again_until(take: Callable[[], bool], ask: Callable[[], object], taking: socket.socket) -> None:
    """Ask, and take what comes until it is the answer. Ask again where nothing comes: a datagram that a busy machine
    has dropped does not come again by itself."""
    taking.settimeout(ASKED_AGAIN_S)
    deadline = time.monotonic() + PATIENCE_S
    ask()
    while time.monotonic() < deadline:
        try:
            if take():
                return
        except TimeoutError:
            ask()
    pytest.fail(f"asked for {PATIENCE_S:g} s, and no answer came")


def datagrams_until(last: bytes, neighbour: socket.socket, send_last: Callable[[], object]) -> list[tuple[int, bytes]]:
    """What goes to the group before a certain datagram does: time to live and payload. (IGMP, which announces
    the joining, is no datagram.)"""
    seen: list[tuple[int, bytes]] = []

    def take() -> bool:
        packet = neighbour.recv(1 << 16)[14:]
        header = (packet[0] & 15) * 4
        if packet[9] == socket.IPPROTO_UDP and packet[16:20] == socket.inet_aton(GROUP):
            seen.append((packet[8], packet[header + 8 :]))
        return bool(seen) and seen[-1][1] == last

    ask_again_until(take, send_last, neighbour)
    return seen[:-1]


def say(client: socket.socket, server: Server) -> None:
    """A chat message of a client that is known. The server has sent it to the group when this returns: it leaves in the
    turn of the event loop in which it came, and the last HELO comes in a later one."""
    client.connect((OWN, server.address[1]))
    for token, before in ((1, b""), (2, MESSAGE), (3, b"")):
        if before:
            client.send(before)
        _greet(client, token)


def _greet(client: socket.socket, token: int) -> None:
    welcome = control(WELC, token)
    ask_again_until(lambda: client.recv(100) == welcome, lambda: client.send(control(HELO, token)), client)


@pytest.mark.parametrize("members", [0, 1])
@pytest.mark.parametrize("ttl", ["0", "1"])
def test_only_a_time_to_live_of_1_leaves_the_machine(
    ttl: str, members: int, server: tuple[str, ...], private: Namespace, sockets: Inside, neighbour: socket.socket
) -> None:
    """Also while no client is a member: Linux then sends out what has a time to live of 0, unless the server is one."""
    listen = f"multicast://{GROUP}:0?interface=here" + ("&ttl=1" if ttl == "1" else "")
    with (
        serving((*private.enter, *server), "--listen", listen, "--workload", "chat") as served,
        sockets.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        sockets.socket(socket.AF_INET, socket.SOCK_DGRAM) as member,
        neighbour,
    ):
        assert served.endpoint == f"multicast://{GROUP}:{served.address[1]}?interface=here&server={OWN}" + (
            "&ttl=1" if ttl == "1" else ""
        )
        if members:
            member.bind(served.address)
            join = socket.inet_aton(GROUP) + socket.inet_aton(OWN)
            member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join)
        say(client, served)
        if members:
            member.settimeout(PATIENCE_S)
            assert member.recv(100) == MESSAGE
        member.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(OWN))
        send_last = partial(member.sendto, LAST, (GROUP, served.address[1]))
        assert datagrams_until(LAST, neighbour, send_last) == ([(1, MESSAGE)] if ttl == "1" else [])

"""The transports between a load and a server, as far as a plan must know them: where a server of a trial listens, and
which options and loads have a meaning there (protocol/WIRE.md, "Transports that carry messages")."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from netdyno.kit import quantities
from netdyno.model.contestant import Contestant
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, sides_of_factor

LOOPBACK_ADDRESS = "127.0.0.1"
SERVER_ADDRESS, LOAD_ADDRESS = "10.77.0.1", "10.77.0.2"
"""The addresses of the two ends of a link that is not the loopback."""
STREAM_SERVER_OPTIONS = ("backlog", "nodelay", "read-buffer", "write-mode")
MESSAGE_SERVER_OPTIONS = ("peers", "peer-timeout", "socket-buffer")
ZMQ_SERVER_OPTIONS = ("io-threads", "hwm")
OWN_SENDING_OPTIONS = ("deliveries",)
"""Options of servers that make the system calls themselves; over ZeroMQ, libzmq does and joins messages itself."""
SOME_TRANSPORTS_OPTIONS = (
    *STREAM_SERVER_OPTIONS,
    *OWN_SENDING_OPTIONS,
    *MESSAGE_SERVER_OPTIONS,
    *ZMQ_SERVER_OPTIONS,
)
"""Options that exist over some transports only."""
STREAM_LOAD_OPTIONS = {
    "nodelay",
    "write-mode",
    "requests-per-connection",
    "slow-readers",
    "busy-connections",
    "start",
}
"""The options of the load that exist only over a stream."""
AROUND_THE_SIZE = {"echo": 0, "rpc": 4 + 64, "chat": 4}
"""The most bytes of a message beside its `size`, by workload, as netdyno-load counts them (loadgen/plan/plan.cpp): a
length, and the fields of a request beside its stamp."""
MOST_DATAGRAM_BYTES = 65_507
"""UDP over IPv4 (RFC 768, RFC 791): 65535 bytes less both headers."""


class Transport(msgspec.Struct, frozen=True):
    """A transport. The server of a trial listens at `listen`, with an address that the link decides (see `at`). With
    `messages` there are no connections and no stream: loss is a figure beside every latency, and no fault that makes a
    trial invalid."""

    name: str
    listen: str
    messages: bool
    most_bytes: int | None = None
    """The longest whole message in bytes; None where only the server's --max-frame limits it."""
    audiences: tuple[str, ...] = ("others", "all")
    datagrams: bool = False
    private: bool = False
    """Whether a trial needs a network namespace of its own, so that none of its messages leaves the machine."""

    def to_url(self, address: str) -> str:
        """Return the URL at which a server on a link with this address listens: on a free port, or in a group, which
        needs no address."""
        return self.listen.format(address=address)


TRANSPORTS: Mapping[str, Transport] = {
    transport.name: transport
    for transport in (
        Transport("tcp", "tcp://{address}:0", messages=False),
        Transport("udp", "udp://{address}:0", messages=True, datagrams=True, most_bytes=MOST_DATAGRAM_BYTES),
        # A group of the local scope (RFC 2365); a trial runs in a namespace of its own, whose one interface is lo.
        Transport(
            "multicast",
            "multicast://239.255.0.1:0?interface=lo",
            messages=True,
            most_bytes=MOST_DATAGRAM_BYTES,
            audiences=("all",),
            datagrams=True,
            private=True,
        ),
        Transport("zmq+tcp", "zmq+tcp://{address}:0", messages=True),
    )
}


def find_transport(contestant: Contestant) -> Transport:
    """Return the transport over which a contestant is measured: the first that its manifest names."""
    return TRANSPORTS[contestant.manifest.transports[0]]


def of_url(url: str) -> Transport | None:
    """Return the transport of a URL; None for an unknown one."""
    return TRANSPORTS.get(url.partition("://")[0])


def may_lose(load: LoadResult) -> bool:
    """Whether a load went over a transport that may lose messages."""
    transport = of_url(load.plan.url)
    return transport is not None and transport.messages


def share_lost(load: LoadResult) -> float | None:
    """Return the share of the messages of one trial that were lost; None over a stream."""
    if not may_lose(load):
        return None
    return load.messages.lost / load.messages.expected if load.messages.expected else 0.0


def why_not(transport: Transport, name: str, settings: Settings, levels: Collection[str]) -> str:
    """Return why a cell cannot be measured over a transport; empty when it can. `levels` are the factors of the cell: a
    factor that has no meaning there would measure the same thing under several names. Pure."""
    idle = _list_meaningless(transport, settings, levels)
    if idle:
        return f"{name} speaks {transport.name}, where {quantities.listed(idle)} {_conjugate_mean(idle)} nothing"
    audience = str(settings.server.get("audience", "others"))
    if settings.workload == "chat" and audience not in transport.audiences:
        return (
            f"{name} speaks {transport.name}, where the audience of a chat is {quantities.listed(transport.audiences)}"
        )
    whole = settings.size + AROUND_THE_SIZE.get(settings.workload, 0)
    if transport.most_bytes is not None and whole > transport.most_bytes:
        return f"{name} speaks {transport.name}; {settings.size} bytes do not fit into a datagram"
    return ""


def _conjugate_mean(names: Collection[str]) -> str:
    return "means" if len(names) == 1 else "mean"


def _list_meaningless(transport: Transport, settings: Settings, levels: Collection[str]) -> list[str]:
    """Return the options of a cell that the transport does not have, in alphabetical order."""
    of_server = {option for option in settings.server if not has_option(transport, option)}
    if not transport.messages:
        return sorted(of_server)
    varied = {str(sides_of_factor(factor)[0]) for factor in levels} & STREAM_LOAD_OPTIONS
    return sorted({*varied, *settings.list_changed(STREAM_LOAD_OPTIONS), *of_server})


def has_option(transport: Transport, option: str) -> bool:
    """Whether a server on this transport has the option at all."""
    if option in ZMQ_SERVER_OPTIONS:
        return transport.name == "zmq+tcp"
    if option in OWN_SENDING_OPTIONS:
        return transport.name != "zmq+tcp"
    return option not in (STREAM_SERVER_OPTIONS if transport.messages else MESSAGE_SERVER_OPTIONS)

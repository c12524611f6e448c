"""Where a trial's packets travel: the network of the machine, or one of its own that nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from netdyno import lan
from netdyno.namespace import Namespace, NotAllowedError, private_namespace
from netdyno.options import Settings
from netdyno.transports import LOOPBACK_ADDRESS, Transport
from netdyno.units import parse_rate


class NoNetworkError(Exception):
    """The trial cannot be had on this system; the text is the reason of the skip."""


class Network(NamedTuple):
    """`server` and `load` stand before the commands of the programs of the trial, `address` is the server's; `counters`
    is where the kernel counts what the server sends and receives."""

    server: tuple[str, ...]
    load: tuple[str, ...]
    counters: Path
    address: str = LOOPBACK_ADDRESS


MACHINE = Network((), (), Path("/proc/net"))


@contextmanager
def network_for(transport: Transport, wanted: Settings) -> Iterator[Network]:
    """The network of one trial, which is gone with it. Raises NoNetworkError."""
    if wanted.link == "lan":
        with _over_lan(transport, wanted) as network:
            yield network
    elif transport.private:
        with _alone(transport) as network:
            yield network
    else:
        yield MACHINE


@contextmanager
def _alone(transport: Transport) -> Iterator[Network]:
    try:
        with private_namespace() as made:
            yield Network(made.enter, made.enter, _counters(made))
    except NotAllowedError as error:
        raise NoNetworkError(
            f"{transport.name} is measured in a private network namespace only, and none can be had here: {error}"
        ) from error


@contextmanager
def _over_lan(transport: Transport, wanted: Settings) -> Iterator[Network]:
    if transport.private:
        raise NoNetworkError(f"the link lan does not carry {transport.name}; measure it over the loopback")
    rate_hz = parse_rate(wanted.link_rate) if wanted.link_rate else None
    try:
        with lan.joined(rate_hz) as made:
            yield Network(made.server.enter, made.load.enter, _counters(made.server), lan.SERVER_ADDRESS)
    except NotAllowedError as error:
        raise NoNetworkError(f"the link {wanted.link_words} cannot be had here: {error}") from error


def _counters(namespace: Namespace) -> Path:
    return Path(f"/proc/{namespace.pid}/net")

"""The network of a trial's packets: that of the machine, or a private one that nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from netdyno.kit.units import parse_rate
from netdyno.measure.machine.links import lan, wan
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.measure.machine.links.relay import Relay
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings
from netdyno.model.transports import LOOPBACK_ADDRESS, SERVER_ADDRESS, Transport


class NoNetworkError(Exception):
    """The trial cannot run on this system; the text is the reason of the skip."""


class Network(msgspec.Struct, frozen=True):
    """`server` and `load` stand before the commands of the programs of the trial, `address` is the server's; `counters`
    is where the kernel counts what the server sends and receives. `relay` is the program that makes the link, if any.
    `paced`: the kernel is the link, and sends frames by timers of its own, in time that is no process's. `load_hosts`:
    the number of hosts that can make a load together. `is_lan`: it lies between machines."""

    server: tuple[str, ...]
    load: tuple[str, ...]
    counters: Path
    address: str = LOOPBACK_ADDRESS
    relay: Relay | None = None
    paced: bool = False
    load_hosts: int = 1
    is_lan: bool = False


MACHINE = Network((), (), Path("/proc/net"))


@contextmanager
def make_network(
    transport: Transport, settings: Settings, pinning: Pinning, log: TrialLog, *, seed: int, given: Network = MACHINE
) -> Iterator[Network]:
    """Make the network of one trial, which is gone with it. `pinning` and `log` are those of its programs, `seed` is
    that of random losses, and `given` lies between the programs where no link is requested: this machine, or hosts of a
    cluster. Raises NoNetworkError."""
    if reason := find_obstacle(transport, settings, given):
        raise NoNetworkError(reason)
    if settings.is_apart and given is MACHINE:
        if transport.private:
            raise NoNetworkError(
                f"the link {settings.link} does not carry {transport.name}; measure it over the loopback"
            )
        with _join_ends(settings, pinning, log, seed) as network:
            yield network
    elif transport.private:
        with _make_private(transport) as network:
            yield network
    else:
        yield given


def find_obstacle(transport: Transport, settings: Settings, given: Network) -> str:
    """Return why a trial cannot run on this machine, or on these hosts, whatever their kernels are; empty when it can.
    The network between machines is their `lan`, as it is. Pure."""
    is_plain_lan = settings.is_apart and not settings.is_impaired and find_rate_hz(settings) is None
    needs_link = settings.is_apart and not (is_plain_lan and given.is_lan)
    if given is not MACHINE and (needs_link or transport.private):
        network = (
            f"the link {settings.link_words}" if needs_link else f"the private network that {transport.name} needs"
        )
        return f"{network} lies within one machine, and this run has several"
    if given is not MACHINE and settings.shares_cores:
        return "server and generator share cores of one machine, and this run has several"
    if given is not MACHINE and settings.has_backend:
        return "a backend runs beside the load program on the server's machine, and this run has several"
    if settings.client_hosts > given.load_hosts:
        available = "one" if given.load_hosts == 1 else str(given.load_hosts)
        return f"{settings.client_hosts} client hosts make this load, and this run has {available}"
    return ""


@contextmanager
def _make_private(transport: Transport) -> Iterator[Network]:
    try:
        with make_namespace() as namespace:
            yield Network(namespace.enter, namespace.enter, _find_counters(namespace))
    except NotAllowedError as error:
        raise NoNetworkError(
            f"{transport.name} is measured in a private network namespace only, and none can be made here: {error}"
        ) from error


@contextmanager
def _join_ends(settings: Settings, pinning: Pinning, log: TrialLog, seed: int) -> Iterator[Network]:
    try:
        if not settings.is_impaired:
            with lan.make_link(find_rate_hz(settings)) as ends:
                yield _build_network(ends.server, ends.load, paced=find_rate_hz(settings) is not None)
        else:
            with wan.make_link(derive_terms(settings, seed), log, pinning) as ends:
                yield _build_network(ends.server, ends.load, relay=ends.relay, paced=ends.relay is None)
    except NotAllowedError as error:
        raise NoNetworkError(f"the link {settings.link_words} is not available here: {error}") from error


def _build_network(server: Namespace, load: Namespace, *, relay: Relay | None = None, paced: bool) -> Network:
    return Network(server.enter, load.enter, _find_counters(server), SERVER_ADDRESS, relay, paced)


def derive_terms(settings: Settings, seed: int = 1) -> wan.Terms:
    """Return the terms of a cell for the link wan. Pure."""
    return wan.Terms(settings.link_delay_s, settings.link_loss, find_rate_hz(settings), seed)


def find_rate_hz(settings: Settings) -> int | None:
    """Return the bits per second of a cell's link; None where it is not limited. Pure."""
    return parse_rate(settings.link_rate) if settings.link_rate else None


def _find_counters(namespace: Namespace) -> Path:
    return Path(f"/proc/{namespace.pid}/net")

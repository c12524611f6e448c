"""Where a trial's packets travel: the network of the machine, or one of its own that nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from netdyno.base.units import parse_rate
from netdyno.machine.links import lan, wan
from netdyno.machine.links.namespace import Namespace, NotAllowedError, private_namespace
from netdyno.machine.links.relay import Relay
from netdyno.machine.trial_log import TrialLog
from netdyno.model.observation import Pinning
from netdyno.model.options import Settings
from netdyno.model.transports import LOOPBACK_ADDRESS, SERVER_ADDRESS, Transport


class NoNetworkError(Exception):
    """The trial cannot be had on this system; the text is the reason of the skip."""


class Network(NamedTuple):
    """`server` and `load` stand before the commands of the programs of the trial, `address` is the server's; `counters`
    is where the kernel counts what the server sends and receives. `relay` is the link itself, where one is.
    `paced`: the kernel is the link, and lets frames go by timers of its own, in time that is no process's.
    `load_hosts`: how many hosts can make a load together."""

    server: tuple[str, ...]
    load: tuple[str, ...]
    counters: Path
    address: str = LOOPBACK_ADDRESS
    relay: Relay | None = None
    paced: bool = False
    load_hosts: int = 1


MACHINE = Network((), (), Path("/proc/net"))


class Place(NamedTuple):
    """What a network of a trial may need: where its programs run, where they write, the seed of what is random, and
    what lies between its programs where no link is asked for: this machine, or hosts of a cluster."""

    pinning: Pinning
    log: TrialLog
    seed: int
    given: Network = MACHINE


@contextmanager
def network_for(transport: Transport, wanted: Settings, place: Place) -> Iterator[Network]:
    """The network of one trial, which is gone with it. Raises NoNetworkError."""
    if reason := why_not(transport, wanted, place.given):
        raise NoNetworkError(reason)
    if wanted.is_apart:
        if transport.private:
            raise NoNetworkError(
                f"the link {wanted.link} does not carry {transport.name}; measure it over the loopback"
            )
        with _joined(wanted, place) as network:
            yield network
    elif transport.private:
        with _alone(transport) as network:
            yield network
    else:
        yield place.given


def why_not(transport: Transport, wanted: Settings, given: Network) -> str:
    """Why a trial cannot be had on this machine, or on these hosts, whatever their kernels are; empty when it can.
    Pure."""
    if given is not MACHINE and (wanted.is_apart or transport.private):
        what = f"the link {wanted.link}" if wanted.is_apart else f"the private network that {transport.name} needs"
        return f"{what} lies within one machine, and this run has several"
    if given is not MACHINE and wanted.shares_cores:
        return "server and load share cores of one machine, and this run has several"
    if wanted.client_hosts > given.load_hosts:
        there = "one" if given.load_hosts == 1 else str(given.load_hosts)
        return f"{wanted.client_hosts} client hosts make this load, and this run has {there}"
    return ""


@contextmanager
def _alone(transport: Transport) -> Iterator[Network]:
    try:
        with private_namespace() as made:
            yield Network(made.enter, made.enter, _counters(made))
    except NotAllowedError as error:
        raise NoNetworkError(
            f"{transport.name} is measured in a private network namespace only, and none can be made here: {error}"
        ) from error


@contextmanager
def _joined(wanted: Settings, place: Place) -> Iterator[Network]:
    try:
        if not wanted.is_impaired:
            with lan.joined(rate_hz(wanted)) as ends:
                yield _between(ends.server, ends.load)._replace(paced=rate_hz(wanted) is not None)
        else:
            with wan.joined(terms(wanted, place.seed), place.log, place.pinning) as ends:
                yield _between(ends.server, ends.load, ends.relay)._replace(paced=ends.relay is None)
    except NotAllowedError as error:
        raise NoNetworkError(f"the link {wanted.link_words} is not available here: {error}") from error


def _between(server: Namespace, load: Namespace, relay: Relay | None = None) -> Network:
    return Network(server.enter, load.enter, _counters(server), SERVER_ADDRESS, relay)


def terms(wanted: Settings, seed: int = 1) -> wan.Terms:
    """What a cell asks of the link wan. Pure."""
    return wan.Terms(wanted.link_delay_s, wanted.link_loss, rate_hz(wanted), seed)


def rate_hz(wanted: Settings) -> int | None:
    """Bits per second of a cell's link; None where it is not limited. Pure."""
    return parse_rate(wanted.link_rate) if wanted.link_rate else None


def _counters(namespace: Namespace) -> Path:
    return Path(f"/proc/{namespace.pid}/net")

"""The link `wan`: that of lan.py with delay, loss and a rate, by netem (tc-netem(8)) where the kernel has it, else by
the project's own relay (link/). docs/adr/links.md says why, and what the two have in common."""

from __future__ import annotations

import functools
import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from netdyno.kit.paths import build_dir, relay_path
from netdyno.kit.units import format_duration
from netdyno.measure.machine.links import lan, relay
from netdyno.measure.machine.links.lan import INTERFACE, Lan
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.measure.machine.links.relay import Relay
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.observation import Pinning
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS

UNPINNED = Pinning(server=(), generator=(), note="not pinned")
_HARDWARE_ADDRESSES = ("02:00:00:00:77:01", "02:00:00:00:77:02")  # of the server's end and of the load's
_MOST_FRAMES_HZ = 200_000
"""More small frames than a relay carries in a second, so that a limit for this rate never binds."""
_LEAST_LIMIT, _MOST_LIMIT = 16_384, 1 << 20  # frames; link/plan.cpp takes no more


class Terms(msgspec.Struct, frozen=True):
    """The terms of the link, in each direction. `seed` is that of the relay's losses."""

    delay_s: float = 0.0
    loss: float = 0.0
    rate_hz: int | None = None
    seed: int = 1


class Way(NamedTuple):
    """The way in which such a link is made here, and the kernel's reason where it is not netem."""

    by: Literal["netem", "relay"]
    why: str = ""


class Wan(NamedTuple):
    """Both ends, as for a lan, and the relay between them; None where the kernel is the link itself."""

    server: Namespace
    load: Namespace
    relay: Relay | None


@functools.cache
def choose_way() -> Way:
    """Try to set up a netem on the loopback interface of a network that is made for this test. Raises NotAllowedError
    where no such network can be made."""
    try:
        tc = lan.find_tool("tc")
    except NotAllowedError as missing:
        return Way("relay", str(missing))
    with make_namespace() as namespace:
        try:
            namespace.run(
                tc, "qdisc", "add", "dev", "lo", "root", "netem", *format_netem(Terms(delay_s=0.001, loss=0.01))
            )
        except subprocess.CalledProcessError as error:
            return Way("relay", f"tc: {' '.join(str(error.stderr).split())}")
    return Way("netem")


def format_netem(terms: Terms) -> list[str]:
    """Return the parameters of a netem with these terms, but for the rate, for which a token bucket stands below it.
    Pure."""
    delay = ["delay", f"{round(terms.delay_s * 1e6)}us"] if terms.delay_s else []
    loss = ["loss", "random", f"{terms.loss * 100:.6g}%"] if terms.loss else []
    return [*delay, *loss, "limit", str(count_frames(terms))]


def count_frames(terms: Terms) -> int:
    """Return the number of frames that must fit on the link in each direction, so that it is never the limit. Pure."""
    return min(max(math.ceil(terms.delay_s * _MOST_FRAMES_HZ), _LEAST_LIMIT), _MOST_LIMIT)


def build_relay_command(program: Path, ends: Lan, terms: Terms) -> list[str]:
    """Return the command of the relay between two ends, started at one of them. Pure."""
    rate = ["--rate", f"{terms.rate_hz}bit", "--queue", str(lan.QUEUE_FRAMES * lan.MTU_FRAME)] if terms.rate_hz else []
    return [
        *ends.server.enter,
        str(program),
        *(f"/proc/{end.pid}/ns/net" for end in ends),
        *("--interface", INTERFACE),
        *("--delay", format_duration(terms.delay_s), "--loss", f"{terms.loss:.12g}", *rate),
        *("--limit", str(count_frames(terms)), "--seed", str(terms.seed)),
    ]


@contextmanager
def make_link(terms: Terms, log: TrialLog, pinning: Pinning = UNPINNED) -> Iterator[Wan]:
    """Make such a link. A relay runs where `pinning` says, and writes into `log`. All of it is gone when the block, or
    this process, ends. Raises NotAllowedError, which says what the system lacks."""
    with lan.make_ends() as ends:
        way = choose_way()
        if way.by == "netem":
            _join_by_netem(ends, terms)
            yield Wan(*ends, relay=None)
        else:
            with _join_by_relay(ends, terms, way, log, pinning) as running:
                yield Wan(*ends, relay=running)


def _join_by_netem(ends: Lan, terms: Terms) -> None:
    lan.join_by_veth(ends)
    tc = lan.find_tool("tc")
    for end in ends:
        # netem loses whole packets, so no packet longer than a frame may reach it.
        lan.do(end, [lan.find_tool("ip"), "link", "set", INTERFACE, "gso_max_segs", "1"], "let TCP send single frames")
        command = [tc, "qdisc", "add", "dev", INTERFACE, "root", "handle", "1:", "netem", *format_netem(terms)]
        lan.do(end, command, "give the link its delay and loss")
        if terms.rate_hz:
            lan.limit(end, terms.rate_hz, parent="parent 1:")
    _introduce(ends)
    lan.await_up(ends)


@contextmanager
def _join_by_relay(ends: Lan, terms: Terms, way: Way, log: TrialLog, pinning: Pinning) -> Iterator[Relay]:
    program = relay_path(build_dir())
    try:
        if not program.is_file():
            raise NotAllowedError(f"the relay is not built: {program} is missing; run ./netdyno, which builds it")
        with relay.launch_relay(build_relay_command(program, ends, terms), log, pinning) as running:
            for end in ends:
                # The kernel queues frames until the relay reads them: at least as many as may be on the link.
                command = [lan.find_tool("ip"), "link", "set", INTERFACE, "txqueuelen", str(count_frames(terms))]
                lan.do(end, command, "let frames wait for the relay")
            _introduce(ends)
            yield running
    except NotAllowedError as error:
        raise NotAllowedError(f"{error} (netem is not available either: {way.why})") from error


def _introduce(ends: Lan) -> None:
    """Bring both up with each other's hardware address set: a query for it may be lost on a link that loses frames, and
    the kernel repeats it only after a second (arp(7))."""
    ip = lan.find_tool("ip")
    for end, own_hardware in zip(ends, _HARDWARE_ADDRESSES, strict=True):
        lan.do(end, [ip, "link", "set", INTERFACE, "address", own_hardware], "give the link its hardware addresses")
    lan.bring_up(ends)
    neighbours = zip(ends, (LOAD_ADDRESS, SERVER_ADDRESS), reversed(_HARDWARE_ADDRESSES), strict=True)
    for end, address, hardware in neighbours:
        command = [ip, "neigh", "add", address, "lladdr", hardware, "dev", INTERFACE, "nud", "permanent"]
        lan.do(end, command, "let both ends know each other")

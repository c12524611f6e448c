"""What a link really gives: the round trip of small datagrams and the share of them that is lost each way, measured
before it is used, and held against what was asked of it."""

from __future__ import annotations

import math
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from netdyno.base import quantities
from netdyno.machine.links import wan
from netdyno.machine.links.namespace import NotAllowedError
from netdyno.machine.links.network import terms
from netdyno.machine.links.wan import Terms, Wan
from netdyno.machine.pinning import relay_note
from netdyno.machine.trial_log import TrialLog
from netdyno.model import levels
from netdyno.model.experiment import Experiment
from netdyno.model.observation import Pinning
from netdyno.model.options import settings
from netdyno.model.run import Environment
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS

_NUMBER = struct.Struct("!I")
_PAYLOAD = bytes(8)
_FRAME_BITS = 8 * (14 + 20 + 8 + _NUMBER.size + len(_PAYLOAD))  # Ethernet, IP and UDP around it
SENDING_S = 0.5
"""How long datagrams are sent; the last of them has its round trip and some patience beside that."""
_PATIENCE_S = 0.1
_MOST_HZ = 8000
_MOST_UNDER_WAY = 400
"""Datagrams on the link at a time: they fit into a socket's buffer of the default size when they come all at once."""
_LEAST_DATAGRAMS = 20
_BUFFER_BYTES = 4 << 20

DELAY_TOLERANCE = 0.1
DELAY_TOLERANCE_S = 0.001
"""How much longer than asked a round trip may take, whichever is more. It may never be shorter than the delays."""
_LOSS_TOLERANCE = 0.001
_DEVIATIONS = 4.0
"""How far the loss may be off, in standard deviations of a share of so many datagrams, beside _LOSS_TOLERANCE."""


class Measured(NamedTuple):
    """Of `sent` datagrams, so many came to the server's end, and of these so many came back. A round trip is that of a
    datagram that did; both are None where none did."""

    sent: int
    arrived: int
    returned: int
    round_trip_p50_s: float | None
    round_trip_p99_s: float | None

    @property
    def lost_there(self) -> float:
        return 1 - self.arrived / self.sent

    @property
    def lost_back(self) -> float:
        return 1 - self.returned / self.arrived if self.arrived else 0.0


class Checked(NamedTuple):
    """What a run's links give: `environment` is recorded with the run, `bad` says why nothing is measured over a link,
    by its words."""

    environment: Environment
    bad: dict[str, str]


ATTEMPTS = 3
"""A machine that was held up for a moment gets another chance, and a link that is wrong stays so."""


def check(experiment: Experiment, pinning: Pinning, folder: Path) -> Checked:
    """Make each different wan of an experiment, measure it and hold it against what was asked."""
    asked = {
        wanted.link_words: terms(wanted, experiment.seed)
        for scenario in experiment.scenarios
        for wanted in (settings(scenario, levels) for levels in levels.combinations(scenario))
        if wanted.is_impaired
    }
    lines: list[str] = []
    bad: dict[str, str] = {}
    for number, (name, of) in enumerate(asked.items(), 1):
        log = TrialLog(folder / "logs" / f"link-{number}.log")
        line, fault = judge(name, of, partial(probe, of, pinning, log))
        lines.append(line)
        if fault:
            bad[name] = fault
            log.note(fault)
    recorded: Environment = {"link.wan": list(lines), "pinning.relay": relay_note(pinning)} if lines else {}
    return Checked(recorded, bad)


def probe(asked: Terms, pinning: Pinning, log: TrialLog) -> Measured:
    """Make a link for the purpose and measure it. Raises NotAllowedError."""
    with wan.joined(asked, log, pinning) as made:
        return measure(made, asked)


def rate_hz(terms: Terms) -> float:
    """How many datagrams a second a link is asked with: few enough for its rate and for the buffers at its ends."""
    limits = [float(_MOST_HZ)]
    if terms.delay_s:
        limits.append(_MOST_UNDER_WAY / (2 * terms.delay_s))
    if terms.rate_hz:
        limits.append(terms.rate_hz / _FRAME_BITS / 2)
    return min(limits)


def round_trip_s(terms: Terms) -> float:
    """What a datagram should need for its way there and back."""
    return 2 * (terms.delay_s + (_FRAME_BITS / terms.rate_hz if terms.rate_hz else 0.0))


def measure(link: Wan, terms: Terms) -> Measured:
    """Takes SENDING_S and a round trip or two. Raises NotAllowedError where no sockets can be had at its ends, or
    nothing can be sent any more."""
    try:
        at_server = link.server.datagram_socket(SERVER_ADDRESS)
        with at_server, link.load.datagram_socket(LOAD_ADDRESS) as at_load:
            at_load.connect(at_server.getsockname())
            return _Exchange(at_server, at_load, terms).run()
    except subprocess.CalledProcessError as error:
        raise NotAllowedError(f"the link cannot be measured: {str(error.stderr).strip()}") from error
    except OSError as error:  # of the sockets: its relay is gone, say, and with it the way to the other end
        raise NotAllowedError(f"the link cannot be measured: {error.strerror}") from error


class _Exchange:
    """One program at both ends, so that one clock has it all: it sends at one, returns what comes at the other, and
    notes what comes back."""

    def __init__(self, at_server: socket.socket, at_load: socket.socket, terms: Terms) -> None:
        self._server, self._load = at_server, at_load
        for end in (at_server, at_load):
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._gap_s = 1 / rate_hz(terms)
        self._count = max(_LEAST_DATAGRAMS, int(SENDING_S / self._gap_s))
        self._patience_s = round_trip_s(terms) * 1.5 + _PATIENCE_S
        self._sent_at: list[float] = []
        self._arrived = 0
        self._round_trips: list[float] = []

    def run(self) -> Measured:
        poll = select.poll()
        for end in (self._server, self._load):
            poll.register(end, select.POLLIN)
        start = time.monotonic()
        while (wait_s := self._wait(start)) > 0 and len(self._round_trips) < self._count:
            poll.poll(math.ceil(wait_s * 1000))
            self._return()
            self._note()
            self._send_due(start)
        return self._measured()

    def _wait(self, start: float) -> float:
        """Seconds until there is something to do whatever comes; none when all is over."""
        now = time.monotonic()
        sent = len(self._sent_at)
        if sent < self._count:
            return max(1e-9, start + sent * self._gap_s - now)
        return self._sent_at[-1] + self._patience_s - now

    def _send_due(self, start: float) -> None:
        while (sent := len(self._sent_at)) < self._count and (now := time.monotonic()) >= start + sent * self._gap_s:
            self._load.send(_NUMBER.pack(sent) + _PAYLOAD)
            self._sent_at.append(now)

    def _return(self) -> None:
        try:
            while True:
                datagram, sender = self._server.recvfrom(100)
                self._arrived += 1
                self._server.sendto(datagram, sender)
        except BlockingIOError:
            return

    def _note(self) -> None:
        try:
            while True:
                (number,) = _NUMBER.unpack_from(self._load.recv(100))
                self._round_trips.append(time.monotonic() - self._sent_at[number])
        except BlockingIOError:
            return

    def _measured(self) -> Measured:
        trips = sorted(self._round_trips)
        p50, p99 = (trips[math.ceil(share * len(trips)) - 1] if trips else None for share in (0.5, 0.99))
        return Measured(self._count, self._arrived, len(trips), p50, p99)


def judge(name: str, asked: Terms, measured: Callable[[], Measured]) -> tuple[str, str]:
    """What is said of a link, and why nothing is measured over it; that is empty where it is what was asked for."""
    try:
        found, wrong = _with_patience(asked, measured)
        how = wan.way()
    except NotAllowedError as error:
        return f"{name}: not available here", f"the link {name} is not available here: {error}"
    by = "netem" if how.by == "netem" else f"the project's relay, because there is no netem ({how.why})"
    line = f"{name}, by {by}: {in_words(found)}"
    if not wrong:
        return line, ""
    return line, f"the link {name} is not as requested, in {ATTEMPTS} attempts: {'; '.join(wrong)}; {in_words(found)}"


def _with_patience(
    asked: Terms, measured: Callable[[], Measured], attempts: int = ATTEMPTS
) -> tuple[Measured, list[str]]:
    """The first measurement in which nothing was wrong, or the last, and what was wrong in it."""
    found = measured()
    wrong = faults(asked, found)
    return (found, wrong) if not wrong or attempts == 1 else _with_patience(asked, measured, attempts - 1)


def faults(asked: Terms, found: Measured) -> list[str]:
    """In which ways a link is not what was asked for; none where it is. Pure."""
    said: list[str] = []
    expected = round_trip_s(asked)
    tolerance = max(DELAY_TOLERANCE * expected, DELAY_TOLERANCE_S)
    trip = found.round_trip_p50_s
    # A token bucket lets a few frames go at once, so a rate sets no lower bound.
    if trip is None or not 2 * asked.delay_s <= trip <= expected + tolerance:
        took = "none came back" if trip is None else f"it took {quantities.duration(trip * 1e9)}"
        said.append(f"a round trip should take {quantities.duration(expected * 1e9)} and {took}")
    for where, share, of in (("there", found.lost_there, found.sent), ("back", found.lost_back, found.arrived)):
        deviation = math.sqrt(asked.loss * (1 - asked.loss) / max(of, 1))
        if abs(share - asked.loss) > _DEVIATIONS * deviation + _LOSS_TOLERANCE:
            said.append(
                f"it should lose {quantities.share(asked.loss)} and lost {quantities.share(share)} on the way {where}"
            )
    return said


def in_words(found: Measured) -> str:
    """What was measured, for people."""
    if found.round_trip_p50_s is None or found.round_trip_p99_s is None:
        return f"measured no round trip, of {found.sent} datagrams"
    return (
        f"measured {quantities.duration(found.round_trip_p50_s * 1e9)} round trip "
        f"(99% within {quantities.duration(found.round_trip_p99_s * 1e9)}), "
        f"{quantities.share(found.lost_there)} lost there and {quantities.share(found.lost_back)} back, of "
        f"{found.sent} datagrams"
    )

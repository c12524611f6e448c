"""The check of a link: the round trip of small datagrams and the share of them that is lost each way, measured before
it is used, and compared with its terms."""

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

import msgspec

from netdyno.kit import quantities
from netdyno.measure.machine.links import wan
from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.measure.machine.links.network import derive_terms
from netdyno.measure.machine.links.wan import Terms, Wan
from netdyno.measure.machine.pinning import describe_relay_cores
from netdyno.measure.machine.trial_log import TrialLog
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
"""The time for which datagrams are sent; the round trip of the last and some patience come on top."""
_PATIENCE_S = 0.1
_MOST_HZ = 8000
_MOST_UNDER_WAY = 400
"""Datagrams on the link at a time: they fit into a socket's buffer of the default size when they come all at once."""
_LEAST_DATAGRAMS = 20
_BUFFER_BYTES = 4 << 20

DELAY_TOLERANCE = 0.1
DELAY_TOLERANCE_S = 0.001
"""A round trip may take longer than requested by the larger of both tolerances. It may never be shorter than the
delays."""
_LOSS_TOLERANCE = 0.001
_DEVIATIONS = 4.0
"""The tolerance of the loss, in standard deviations of a share of so many datagrams, beside _LOSS_TOLERANCE."""


class LinkMeasurement(msgspec.Struct, frozen=True):
    """The result of a measurement: of `sent` datagrams `arrived` came to the server's end, and `returned` of these came
    back. The round trips are those of the returned datagrams, None where none came back."""

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
    """The result for a run's links: `environment` is recorded with the run, `bad` has, by a link's words, the reason
    why nothing is measured over it."""

    environment: Environment
    bad: dict[str, str]


ATTEMPTS = 3
"""A machine that was delayed for a moment gets another chance; a link that is wrong stays so."""


def check(experiment: Experiment, pinning: Pinning, folder: Path) -> Checked:
    """Make each different wan of an experiment, measure it and compare it with its terms."""
    requested = {
        cell_settings.link_words: derive_terms(cell_settings, experiment.seed)
        for scenario in experiment.scenarios
        for cell_settings in (settings(scenario, levels) for levels in levels.combinations(scenario))
        if cell_settings.is_impaired
    }
    lines: list[str] = []
    bad: dict[str, str] = {}
    for number, (name, link_terms) in enumerate(requested.items(), 1):
        log = TrialLog(folder / "logs" / f"link-{number}.log")
        line, fault = judge_link(name, link_terms, partial(probe, link_terms, pinning, log))
        lines.append(line)
        if fault:
            bad[name] = fault
            log.note(fault)
    recorded: Environment = {"link.wan": list(lines)} if lines else {}
    if len(bad) < len(requested) and wan.choose_way().by == "relay":
        recorded["pinning.relay"] = describe_relay_cores(pinning)
    return Checked(recorded, bad)


def probe(terms: Terms, pinning: Pinning, log: TrialLog) -> LinkMeasurement:
    """Make a link for the purpose and measure it. Raises NotAllowedError."""
    with wan.make_link(terms, log, pinning) as link:
        return measure(link, terms)


def choose_rate_hz(terms: Terms) -> float:
    """Return the datagrams per second for a measurement: few enough for a link's rate and for the buffers at its
    ends."""
    limits = [float(_MOST_HZ)]
    if terms.delay_s:
        limits.append(_MOST_UNDER_WAY / (2 * terms.delay_s))
    if terms.rate_hz:
        limits.append(terms.rate_hz / _FRAME_BITS / 2)
    return min(limits)


def round_trip_s(terms: Terms) -> float:
    """Return the time that a datagram should need there and back."""
    return 2 * (terms.delay_s + (_FRAME_BITS / terms.rate_hz if terms.rate_hz else 0.0))


def measure(link: Wan, terms: Terms) -> LinkMeasurement:
    """Measure a link, in SENDING_S and a round trip or two. Raises NotAllowedError where no sockets can be made at its
    ends, or nothing can be sent any more."""
    try:
        at_server = link.server.open_datagram_socket(SERVER_ADDRESS)
        with at_server, link.load.open_datagram_socket(LOAD_ADDRESS) as at_load:
            at_load.connect(at_server.getsockname())
            return _Exchange(at_server, at_load, terms).run()
    except subprocess.CalledProcessError as error:
        raise NotAllowedError(f"the link cannot be measured: {str(error.stderr).strip()}") from error
    except OSError as error:  # from the sockets: the relay is gone, for example, and with it the way to the other end
        raise NotAllowedError(f"the link cannot be measured: {error.strerror}") from error


class _Exchange:
    """An exchange of datagrams by one program at both ends, so that one clock times it all: it sends at one end,
    returns what arrives at the other, and notes what comes back."""

    def __init__(self, at_server: socket.socket, at_load: socket.socket, terms: Terms) -> None:
        self._server, self._load = at_server, at_load
        for end in (at_server, at_load):
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self._gap_s = 1 / choose_rate_hz(terms)
        self._count = max(_LEAST_DATAGRAMS, int(SENDING_S / self._gap_s))
        self._patience_s = round_trip_s(terms) * 1.5 + _PATIENCE_S
        self._sent_at: list[float] = []
        self._arrived = 0
        self._round_trips: list[float] = []

    def run(self) -> LinkMeasurement:
        poll = select.poll()
        for end in (self._server, self._load):
            poll.register(end, select.POLLIN)
        start = time.monotonic()
        while (wait_s := self._wait(start)) > 0 and len(self._round_trips) < self._count:
            poll.poll(math.ceil(wait_s * 1000))
            self._return()
            self._note()
            self._send_due(start)
        return self._summarise()

    def _wait(self, start: float) -> float:
        """Return the seconds until there is something to do even if nothing arrives; 0 or less when all is over."""
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

    def _summarise(self) -> LinkMeasurement:
        trips = sorted(self._round_trips)
        p50, p99 = (trips[math.ceil(share * len(trips)) - 1] if trips else None for share in (0.5, 0.99))
        return LinkMeasurement(self._count, self._arrived, len(trips), p50, p99)


def judge_link(name: str, terms: Terms, take_measurement: Callable[[], LinkMeasurement]) -> tuple[str, str]:
    """Describe a link, and return with it the reason why nothing is measured over it; empty where the link has its
    terms."""
    try:
        measurement, attempts = take_measurement(), 1
        while (problems := find_faults(terms, measurement)) and attempts < ATTEMPTS:
            measurement, attempts = take_measurement(), attempts + 1
        way = wan.choose_way()
    except NotAllowedError as error:
        return f"{name}: not available here", f"the link {name} is not available here: {error}"
    means = "netem" if way.by == "netem" else f"the project's relay, because there is no netem ({way.why})"
    measured = describe_measurement(measurement)
    line = f"{name}, by {means}: {measured}"
    if not problems:
        return line, ""
    return line, f"the link {name} is not as requested, in {ATTEMPTS} tries: {'; '.join(problems)}; {measured}"


def find_faults(terms: Terms, measurement: LinkMeasurement) -> list[str]:
    """List the deviations of a link from its terms; none where it meets them. Pure."""
    problems: list[str] = []
    expected = round_trip_s(terms)
    tolerance = max(DELAY_TOLERANCE * expected, DELAY_TOLERANCE_S)
    trip = measurement.round_trip_p50_s
    # A token bucket sends a few frames at once, so a rate sets no lower bound.
    if trip is None or not 2 * terms.delay_s <= trip <= expected + tolerance:
        took = "none came back" if trip is None else f"it took {quantities.duration(trip * 1e9)}"
        problems.append(f"a round trip should take {quantities.duration(expected * 1e9)} and {took}")
    for where, share, count in (
        ("there", measurement.lost_there, measurement.sent),
        ("back", measurement.lost_back, measurement.arrived),
    ):
        deviation = math.sqrt(terms.loss * (1 - terms.loss) / max(count, 1))
        if abs(share - terms.loss) > _DEVIATIONS * deviation + _LOSS_TOLERANCE:
            problems.append(
                f"on the way {where} the link should lose {quantities.share(terms.loss)} and it lost "
                f"{quantities.share(share)}"
            )
    return problems


def describe_measurement(measurement: LinkMeasurement) -> str:
    """Describe a measurement, for people."""
    if measurement.round_trip_p50_s is None or measurement.round_trip_p99_s is None:
        return f"measured no round trip, of {measurement.sent} datagrams"
    return (
        f"measured {quantities.duration(measurement.round_trip_p50_s * 1e9)} round trip "
        f"(99% within {quantities.duration(measurement.round_trip_p99_s * 1e9)}), "
        f"{quantities.share(measurement.lost_there)} lost there and {quantities.share(measurement.lost_back)} back, of "
        f"{measurement.sent} datagrams"
    )

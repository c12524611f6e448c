"""What was counted of a server in its measured window, per message: a closed list, for the table of work and for
what goes along with a ranking. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netdyno.base import quantities
from netdyno.machine.links import lan
from netdyno.model.load_result import Bytes, LoadResult
from netdyno.model.observation import ServerObservation
from netdyno.model.trial import Trial

Figure = Callable[[Trial, LoadResult], float | None]
"""Of one trial; None where it was not counted."""


@dataclass(frozen=True)
class Counter:
    """A figure of one trial. `says` is the end of a sentence about a contestant, with the figures of it and of another
    for {} and {}, each in the words of `speak`; `title` heads it in a table."""

    of: Figure
    says: str = ""
    speak: Callable[[float], str] = quantities.three_digits
    title: str = ""


def _per_message(amount: Figure, messages: int = 1) -> Figure:
    """The amount of a whole window as that of one message, or of so many."""

    def figure(trial: Trial, load: LoadResult) -> float | None:
        found = amount(trial, load)
        return None if found is None or not load.requests.completed else messages * found / load.requests.completed

    return figure


def _server(amount: Callable[[ServerObservation], float], messages: int = 1) -> Figure:
    return _per_message(lambda trial, _: None if trial.server is None else amount(trial.server), messages)


def _kernel(*names: str, messages: int = 1) -> Figure:
    """The sum of counters of the kernel over the window; None where one of them was not read."""
    return _per_message(lambda trial, _: _counted(trial, names), messages)


def _counted(trial: Trial, names: tuple[str, ...]) -> float | None:
    found = [trial.kernel[name] for name in names if name in trial.kernel]
    return float(sum(found)) if len(found) == len(names) else None


def _packets(trial: Trial, load: LoadResult) -> float | None:
    """TCP segments and UDP datagrams between both ends, in both directions. Where both ends are counted in one
    namespace, what is sent there is all there is; over a link the counters are those of the server's end, and what
    comes in is the rest."""
    sent, received = ("OutSegs", "UdpOutDatagrams"), ("InSegs", "UdpInDatagrams")
    server_alone = f"//{lan.SERVER_ADDRESS}:" in load.plan.url
    return _counted(trial, (*sent, *received) if server_alone else sent)


def _softirq(trial: Trial, _: LoadResult) -> float | None:
    """Nanoseconds on the server's cores, or on all where it was not bound to some."""
    seen = trial.machine.softirq_s if trial.machine is not None else {}
    cores = trial.pinning.server if trial.pinning is not None and trial.pinning.server else tuple(seen)
    if not cores or any(core not in seen for core in cores):
        return None
    return 1e9 * sum(seen[core] for core in cores)


def _bytes(way: Callable[[Bytes], int]) -> Figure:
    """Of the load's whole life, per message that it sent; the audit `server_totals` holds the server's own count
    against it."""
    return lambda _, load: way(load.bytes) / load.messages.sent if load.messages.sent else None


USER = Counter(_server(lambda server: 1e9 * server.cpu_user_s), speak=quantities.duration)
SYSTEM = Counter(_server(lambda server: 1e9 * server.cpu_system_s), speak=quantities.duration)
"""How CPU time divides is known by ticks of 10 ms only; their sum is exact."""
BYTES_IN = Counter(_bytes(lambda both: both.sent))
BYTES_OUT = Counter(_bytes(lambda both: both.received))
CPU = Counter(
    _server(lambda server: 1e9 * (server.cpu_user_s + server.cpu_system_s)),
    "needs {} of server CPU a message against {}",
    quantities.duration,
    "server CPU per message",
)
SOFTIRQ = Counter(
    _per_message(_softirq),
    "has the kernel in softirqs on its cores for {} a message against {}",
    quantities.duration,
    "softirqs on its cores per message",
)
VOLUNTARY = Counter(
    _server(lambda server: server.voluntary_switches),
    "gives up its core {} times a message against {}",
    title="voluntary switches per message",
)
INVOLUNTARY = Counter(
    _server(lambda server: server.involuntary_switches, messages=1000),
    "is taken off its core {} times in 1,000 messages against {}",
    title="involuntary switches per 1,000 messages",
)
WAIT = Counter(
    _server(lambda server: 1e9 * server.run_queue_wait_s),
    "waits {} a message for a core against {}",
    quantities.duration,
    "wait for a core per message",
)
PACKETS = Counter(
    _per_message(_packets),
    "takes {} segments or datagrams a message against {}",
    title="segments and datagrams per message",
)

COUNTERS: Mapping[str, Counter] = {
    "cpu": CPU,
    "softirq": SOFTIRQ,
    "voluntary": VOLUNTARY,
    "involuntary": INVOLUNTARY,
    "run-queue": WAIT,
    "packets": PACKETS,
    "delayed-acks": Counter(
        _kernel("DelayedACKs", messages=1000),
        "goes with {} delayed ACKs in 1,000 messages against {}",
        title="delayed ACKs per 1,000 messages",
    ),
    "retransmits": Counter(
        _kernel("RetransSegs", messages=1000),
        "goes with {} segments sent again in 1,000 messages against {}",
        title="segments sent again per 1,000 messages",
    ),
    "timeouts": Counter(
        _kernel("TCPTimeouts", messages=1000),
        "goes with {} timeouts of TCP in 1,000 messages against {}",
        title="timeouts of TCP per 1,000 messages",
    ),
    "no-room": Counter(
        _kernel("UdpRcvbufErrors", messages=1000),
        "goes with {} datagrams that found no room in a socket in 1,000 messages against {}",
        title="datagrams without room in a socket per 1,000 messages",
    ),
}
"""What may be told to go along with a ranking, in its order. The kernel's counters are those of the network namespace:
over the loopback, of everybody in it."""

"""The losses of a cell over a transport that may lose messages, and their places. Pure functions.

Shares are those of protocol/load-result.md, over the whole life of a trial: losses of the warm-up count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from netdyno.analysis.found.cells import Drops, Loss, LossOfTrial
from netdyno.model import transports
from netdyno.model.experiment import Scenario
from netdyno.model.links import LINKS, Link
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import SERVER_DROPS
from netdyno.model.options import settings
from netdyno.model.trial import Trial

PHASES = ("setup.", "", "drain.")
"""The phases of a trial, as its kernel counters are named (watch.Watch.kernel): together the life of the load."""


def summarise_cell(trials: Sequence[tuple[Trial, LoadResult]], scenario: Scenario) -> Loss | None:
    """Return the loss of one contestant at one level; None over a stream, where a loss makes a trial invalid. `trials`
    is not empty. A trial that lost more of its messages than the scenario's bound is marked."""
    loads = [load for _, load in trials]
    if not all(transports.may_lose(load) for load in loads):
        return None
    return Loss(
        messages=sum(load.messages.lost for load in loads),
        drops=_add([count_drops(trial, load, _read_link(trial, scenario)) for trial, load in trials]),
        trials=tuple(_summarise_trial(trial, load, scenario) for trial, load in trials),
    )


def _summarise_trial(trial: Trial, load: LoadResult, scenario: Scenario) -> LossOfTrial:
    messages, response = load.messages, load.latency.response_ns
    received = max(messages.received, 1)
    lost = transports.share_lost(load) or 0.0
    return LossOfTrial(
        block=trial.block,
        above=lost > scenario.loss_bound,
        lost=lost,
        late=messages.late / max(messages.sent, 1),
        duplicated=messages.duplicated / received,
        reordered=messages.reordered / received,
        mean_ns=response.mean if response.count else math.nan,
        p50_ns=float(response.p50) if response.count else math.nan,
        p99_ns=float(response.p99) if response.count else math.nan,
        drops=count_drops(trial, load, _read_link(trial, scenario)),
    )


def _read_link(trial: Trial, scenario: Scenario) -> Link:
    return settings(scenario, trial.levels).link


def count_drops(trial: Trial, load: LoadResult, link: Link) -> Drops:
    """Count the dropped messages of a trial by place, as far as the kernel and the programs do. The kernel's counters
    are those of the server's network namespace, which over a link other than the loopback is not the generator's."""
    server = _count_whole_life(trial.kernel, SERVER_DROPS)
    generator = None if server is None else load.generator.socket_drops  # there are sockets of datagrams on both sides
    no_room = _count_whole_life(trial.kernel, "UdpRcvbufErrors")
    reported = (server or 0) + (0 if LINKS[link].apart else generator or 0)
    return Drops(
        server=server,
        generator=generator,
        elsewhere=None if server is None or no_room is None else max(0, no_room - reported),
        unsent=trial.server.totals.get("send_dropped") if trial.server else None,
        unserved=trial.server.totals.get("receive_dropped") if trial.server else None,
        recipients=load.messages.expected / load.messages.sent if load.messages.sent else 0.0,
    )


def _count_whole_life(kernel: Mapping[str, int], counter: str) -> int | None:
    """Return a counter over the life of a load; None where it was not read."""
    counts = [kernel[phase + counter] for phase in PHASES if phase + counter in kernel]
    return sum(counts) if counts else None


def _add(trial_drops: Sequence[Drops]) -> Drops:
    def total(name: str) -> int | None:
        known = [value for drops_of_trial in trial_drops if (value := getattr(drops_of_trial, name)) is not None]
        return sum(known) if known else None

    return Drops(
        server=total("server"),
        generator=total("generator"),
        elsewhere=total("elsewhere"),
        unsent=total("unsent"),
        unserved=total("unserved"),
        recipients=max(drops_of_trial.recipients for drops_of_trial in trial_drops),
    )

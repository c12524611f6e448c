"""What is asked: an experiment, its scenarios, and a search for a capacity."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, type_level
from netdyno.model.claim import Claim
from netdyno.model.contestant import GENERATOR
from netdyno.model.figure import Figure

Link = Literal["loopback", "lan", "wan"]
"""What lies between load and server (network.py)."""


Budget = Literal["smoke", "normal", "full"]
"""How much of an experiment is run: some of its grid, what the file says, or as published."""


MOST_AA_SHARE = 0.5
"""Of the time of all trials: then everything is run twice."""


class CapacityPlan(Frozen):
    """What a search for the highest rate that meets an objective was asked for (capacity/search.py). Rates in messages
    per second: it starts at `start_hz` and goes nowhere below `least_hz` or above `most_hz`; `resolution` is the ratio
    of neighbouring rates less 1; at the boundary each of two rates has its outcome `needed` times."""

    slo: str
    start_hz: float
    least_hz: float
    most_hz: float
    resolution: float = 0.05
    needed: int = 3


class Scenario(Frozen):
    """One workload under one load; `factors` maps an option to the levels it takes (options.whose says which options
    there are), `server` holds the server's own options, `where_possible` those that only some servers can have.
    `contestants` are names and patterns in the file, and names when it is run. What the file says once for all of its
    scenarios stands in each; `slo` is the objective that the metric `capacity` is about. docs/experiments.md explains
    every key."""

    name: str
    workload: str
    contestants: tuple[str, ...] = ()
    blocks: int = 1
    precision: float | None = None
    most_blocks: int | None = None
    warmup_s: float = 0.0
    warmup_per_connection_s: float = 0.0
    duration_s: float = 1.0
    timeout_s: float = 10.0
    loss_bound: float = 0.001
    link: Link = "loopback"
    link_rate: str | None = None
    link_delay_s: float = 0.0
    link_loss: float = 0.0
    factors: dict[str, tuple[type_level, ...]] = msgspec.field(default_factory=dict)
    arrivals: Literal["closed", "constant", "poisson"] = "closed"
    metric: Literal["throughput", "p50", "p99", "mean", "capacity"] = "throughput"
    slo: str = ""
    client: str = GENERATOR
    connections: int = 100
    depth: int = 1
    round_s: float = 0.0
    look_every_s: float = 0.0
    rate: float | None = None
    rate_per_connection: float | None = None
    size: int = 31
    nodelay: Literal["on", "off"] = "on"
    write_mode: Literal["gathered", "split"] = "gathered"
    service_time_s: float = 0.0
    generator_threads: int = 1
    connect_rate: float | Literal["burst"] = "burst"
    connect_timeout_s: float = 5.0
    failed_connects: Literal["strike-out", "count"] = "strike-out"
    server: dict[str, type_level] = msgspec.field(default_factory=dict)
    where_possible: dict[str, type_level] = msgspec.field(default_factory=dict)

    @property
    def scheduled(self) -> bool:
        """Whether messages have a time of their own to be sent at, an open loop's or that of a round, which the
        generator can miss. Without one an answer is at once the time of the next message."""
        return self.arrivals != "closed" or self.round_s > 0 or "round" in self.factors


class Experiment(Frozen):
    """A question as data (experiments/<name>.toml), at one of its sizes."""

    name: str
    question: str
    scenarios: tuple[Scenario, ...]
    seed: int = 1
    budget: Budget = "normal"
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    parts: tuple[str, ...] = ()
    """The experiments that it is made of, by name; none where it is one by itself."""
    aa_share: float = 0.0
    """Of the time of all trials, what the A/A control may take (docs/adr/aa-control.md); a run that was stored before
    there was one gave it none."""
    time_budget_s: float | None = None
    """No block beyond the planned ones begins that would end later (schedule.py)."""
    time_limit_s: float | None = None
    """Where the machine disturbs, the planned blocks go on up to here, and end."""
    capacity: CapacityPlan | None = None
    """Of a run that is a search, whose rates follow from what it finds."""

    @property
    def blocks(self) -> int:
        """The most that any scenario has."""
        return max(scenario.blocks for scenario in self.scenarios)

    def with_each(self, **fields: object) -> Experiment:
        """The same with these fields in each scenario."""
        scenarios = tuple(msgspec.structs.replace(scenario, **fields) for scenario in self.scenarios)
        return msgspec.structs.replace(self, scenarios=scenarios)

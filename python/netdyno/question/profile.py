"""The options of a profile by the command line. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.model.options import SCENARIO, SERVER
from netdyno.model.values import Option

LOAD: tuple[Option, ...] = (
    SCENARIO["workload"],
    replace(SCENARIO["connections"], default=20),
    SCENARIO["depth"],
    replace(SCENARIO["size"], default=64),
    replace(SCENARIO["rate"], default=None),
    replace(SCENARIO["warmup"], default=0.2),
    replace(SCENARIO["duration"], default=2.0),
    SERVER["threads"],
    SERVER["service-time"],
    SERVER["service-kind"],
    SERVER["pool"],
    SERVER["tls"],
)
"""The options of the load, with their own defaults."""

"""The command lines of one trial. Pure: a cell in, argument lists out."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.model import Contestant, Experiment
from netdyno.options import Settings
from netdyno.units import format_duration

CHECK_DURATION_S = 0.02
"""Window of the closing check: it only asks whether a fresh connection still gets true answers."""


def server_command(contestant: Contestant, settings: Settings) -> list[str]:
    """The server on a free port of the loopback, with the options of the cell."""
    arguments = [*contestant.command, "--listen", "tcp://127.0.0.1:0", "--workload", settings.workload]
    for name, value in settings.server.items():
        arguments += [f"--{name}", str(value)]
    return arguments


def load_command(
    generator: Sequence[str], endpoint: str, settings: Settings, experiment: Experiment, seed: int
) -> list[str]:
    """The generator with the load of the cell; the files it writes to are the caller's to add."""
    return [
        *_common(generator, endpoint, settings, experiment),
        *("-c", str(settings.connections)),
        *("--arrivals", settings.arrivals),
        *(("--rate", _number(settings.rate)) if settings.rate is not None else ("--depth", str(settings.depth))),
        *("--connect-rate", _number(settings.connect_rate), "--threads", str(settings.generator_threads)),
        *("--warmup", format_duration(experiment.warmup_s), "--duration", format_duration(experiment.duration_s)),
        *("--seed", str(seed)),
    ]


def check_command(generator: Sequence[str], endpoint: str, settings: Settings, experiment: Experiment) -> list[str]:
    """The closing check: as few fresh connections as the workload allows, one verified message after the other.

    Two in `chat`, where a sender alone in the room would be answered by nobody."""
    connections = 2 if settings.workload == "chat" else 1
    return [
        *_common(generator, endpoint, settings, experiment),
        *("-c", str(connections), "--arrivals", "closed"),
        *("--warmup", "0ms", "--duration", format_duration(CHECK_DURATION_S)),
    ]


def _common(generator: Sequence[str], endpoint: str, settings: Settings, experiment: Experiment) -> list[str]:
    audience = settings.server.get("audience")
    return [
        *generator,
        endpoint,
        *("--workload", settings.workload, "--size", str(settings.size)),
        *("--timeout", format_duration(experiment.timeout_s)),
        *(("--audience", str(audience)) if audience is not None else ()),
    ]


def _number(value: float | str) -> str:
    """A rate without a needless fraction: 20000, not 20000.0."""
    return value if isinstance(value, str) else f"{value:.12g}"

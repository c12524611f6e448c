"""What all trials of a run have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from netdyno.model.contestant import Contestant
from netdyno.model.observation import ForeignLoad, Pinning


def unwatched(_completed: int, _seconds: float) -> None:
    """The progress of a window that nobody looks at."""


class Bench(NamedTuple):
    """`seed` is the experiment's, `folder` the run's; `clients` are the client contestants by name; `bad_links`
    says of links, by their words, why nothing is measured over them; `progress` takes the completions of the window so
    far and its seconds so far; `foreign_load` says whether steal and foreign load strike a trial out. The times are
    what is waited for beyond what the plan and the contracts foresee."""

    seed: int
    generator: tuple[str, ...]
    pinning: Pinning
    folder: Path
    clients: Mapping[str, Contestant] = MappingProxyType({})
    bad_links: Mapping[str, str] = MappingProxyType({})
    progress: Callable[[int, float], None] = unwatched
    foreign_load: ForeignLoad = "strike-out"
    ready_timeout_s: float = 10.0
    shutdown_timeout_s: float = 5.0
    slack_s: float = 10.0

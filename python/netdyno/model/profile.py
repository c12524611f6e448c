"""The profile of a server: stacks with the time that was seen in each."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, Name, Quoted

Sort = Literal["on-cpu", "off-cpu"]
"""The kind of a profile: time on the CPU, or time in waits."""
Runtime = Literal["native", "go", "java", "node", "python"]
"""The runtime of the server's code: whether its frames have names depends on it."""
Stack = tuple[Name, ...]
"""Frames, from a thread's beginning to the place where it was sampled."""


class Profile(Frozen):
    """The profile of a server in a window. `stacks` are in microseconds; off the CPU those of all threads add up.
    `samples` were taken, off the CPU one in `every` switches; the recorder lost `lost` of them. `unnamed_us` is the
    time, in microseconds, in stacks with a frame without a name, and `unnamed` the files of such frames, the most
    frequent first; `cut_us` is the time in stacks that do not go back to the beginning of their thread. `missing`: why
    there is no profile at all; empty otherwise."""

    server: Name
    sort: Sort
    window_s: float = 0.0
    stacks: dict[Stack, float] = msgspec.field(default_factory=dict)
    samples: int = 0
    every: int = 1
    lost: int = 0
    unnamed_us: float = 0.0
    unnamed: tuple[Name, ...] = ()
    cut_us: float = 0.0
    with_kernel: bool = True
    runtime: Runtime = "native"
    missing: Quoted = ""

    @property
    def total_us(self) -> float:
        """The sum of the times of all stacks."""
        return sum(self.stacks.values())


class Profiled(Frozen):
    """Servers profiled under one load, that of a question of a run or a separate one, each on and off the CPU."""

    load: Quoted
    profiles: tuple[Profile, ...]
    question: Name = ""

    @property
    def servers(self) -> list[Name]:
        """The names of the servers, each once, in their order."""
        return list(dict.fromkeys(profile.server for profile in self.profiles))

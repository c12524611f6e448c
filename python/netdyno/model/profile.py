"""Where a server spends its time: stacks with the time that was seen in each."""

from __future__ import annotations

from typing import Literal

import msgspec

from netdyno.model.base import Frozen, Name, Quoted

Sort = Literal["on-cpu", "off-cpu"]
"""What it computes, and what it waits for."""
Runtime = Literal["native", "go", "java", "node", "python"]
"""What runs the server's code: whether its frames have names depends on it."""
Stack = tuple[Name, ...]
"""Frames, from a thread's beginning to where it was seen."""


class Profile(Frozen):
    """What was seen of a server in a window. `stacks` are in microseconds; off the CPU those of all threads add up.
    `samples` are what was looked at, one in `every` switches where it waits; the recorder lost `lost` of them. Time in
    microseconds: `unnamed_us` is that in stacks with a frame that has no name, `unnamed` the files such frames are in,
    the most frequent first; `cut_us` is that in stacks that do not go back to the beginning of their thread. `missing`
    says why there is nothing at all; it is empty otherwise."""

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
        """All of the time that was seen."""
        return sum(self.stacks.values())


class Profiled(Frozen):
    """Servers looked at under one load, that of a question of a run or one by itself; what each computes, and what it
    waits for."""

    load: Quoted
    profiles: tuple[Profile, ...]
    question: Name = ""

    @property
    def servers(self) -> list[Name]:
        """Each once, in their order."""
        return list(dict.fromkeys(one.server for one in self.profiles))

"""A tree of frames as boxes: what is called hangs below its caller, and is as wide as its share of the time. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from netdyno.analysis.flames import Change, Flame
from netdyno.base import quantities
from netdyno.machine.perf import KERNEL

ROW = 18
"""Pixels of a frame's height."""
LEAST_SHARE = 0.001
"""A frame below is narrower than a pixel."""
MOST_FRAMES = 2500
MOST_ROWS = 200
STEPS = (0.005, 0.02, 0.05, 0.15)
"""From which change of its share, of all time, a frame has how much colour."""


class Box(NamedTuple):
    """A frame as it is drawn. `x` and `width` are in per cent of the drawing; `look` is its class in the style sheet;
    `parent` is the number of the box above it, -1 for the first."""

    name: str
    tip: str
    x: float
    y: int
    width: float
    depth: int
    parent: int
    look: str


@dataclass(frozen=True)
class Figure:
    """A drawing, and how many frames were too narrow for it."""

    title: str
    boxes: list[Box]
    height: int
    left_out: int
    compares: bool


Told = Callable[[Flame], tuple[str, str]]
"""Of a frame, its class in the style sheet and its figures in words."""


def figure(title: str, root: Flame) -> Figure:
    """A profile by itself."""

    def told(flame: Flame) -> tuple[str, str]:
        own = f", {quantities.share(flame.own)} in itself" if flame.own and flame.called else ""
        return _look(flame.name), f"{quantities.share(flame.share)} of the time{own}"

    return _drawn(title, root, told, compares=False)


def difference(title: str, root: Flame, changes: Sequence[Change]) -> Figure:
    """A profile of two: each frame has the colour of its function, wherever that is called from, for two servers seldom
    come to the same function by the same way."""
    by_name = {one.name: one for one in changes}

    def told(flame: Flame) -> tuple[str, str]:
        one = by_name.get(flame.name, Change(flame.name, 1.0, 1.0))
        said = (
            f"from {quantities.share(one.before)} to {quantities.share(one.after)} of the time, wherever it is called"
        )
        return _change(one.after - one.before), f"{quantities.share(flame.share)} here; {said}"

    return _drawn(title, root, told, compares=True)


def _drawn(title: str, root: Flame, told: Told, *, compares: bool) -> Figure:
    boxes: list[Box] = []
    left_out = 0
    waiting: deque[tuple[Flame, float, int, int]] = deque([(root, 0.0, 0, -1)])
    while waiting:
        flame, x, depth, parent = waiting.popleft()
        if flame.share < LEAST_SHARE or len(boxes) >= MOST_FRAMES or depth >= MOST_ROWS:
            left_out += 1
            continue
        look, said = told(flame)
        box = Box(
            name=flame.name,
            tip=f"{flame.name}: {said}",
            x=round(100 * x, 3),
            y=ROW * depth,
            width=round(100 * flame.share, 3),
            depth=depth,
            parent=parent,
            look=look,
        )
        number = len(boxes)
        boxes.append(box)
        for child in flame.called.values():
            waiting.append((child, x, depth + 1, number))
            x += child.share
    height = ROW * (1 + max((box.depth for box in boxes), default=0))
    return Figure(title, boxes, height, left_out, compares)


def _look(name: str) -> str:
    if name.endswith(KERNEL):
        return "kernel"
    return "nameless" if name.startswith("[") else "user"


def _change(change: float) -> str:
    step = sum(abs(change) >= least for least in STEPS)
    return f"more{step}" if change > 0 and step else f"less{step}" if step else "same"

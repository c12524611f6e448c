"""Profiles as the numbers that the page's script draws: as much of them as there is room for. Pure."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from netdyno.analysis.notices import flames
from netdyno.analysis.notices.flames import Flame
from netdyno.measure.machine.perf import KERNEL
from netdyno.model.profile import Profile, Profiled, Sort
from netdyno.present.prose import profile as prose

WHOLE = 100_000
"""Shares are whole numbers of it."""
LEAST_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
"""A frame below the first is narrower than a pixel; the others are for more profiles than there is room for."""
FUNCTIONS_TO = 0.2
"""Functions are listed down to this part of the least share of a frame: many frames may be one function's."""
MOST_FRAMES = 2500
MOST_ROWS = 200
SORTS: tuple[Sort, ...] = ("on-cpu", "off-cpu")


class Packed(NamedTuple):
    """Each frame that is drawn, callers first: the number of its name, its depth, its share, and the share in which it
    called no other. `left_out` were too narrow, or too many."""

    frames: list[int]
    left_out: int


class _Names:
    """The number of each name."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def pack_loads(loads: Sequence[Profiled], most: int) -> dict[str, object]:
    """Return the input of the script; below `most` characters as JSON, if leaving out narrow frames achieves that."""
    trees = [[flames.build_tree(profile.stacks) for profile in load.profiles] for load in loads]
    all_functions = [[flames.sum_by_function(profile) for profile in load.profiles] for load in loads]
    content: dict[str, object] = {}
    for least in LEAST_SHARES:
        names = _Names()
        questions = [
            _pack_question(load, own_trees, own_functions, names, least)
            for load, own_trees, own_functions in zip(loads, trees, all_functions, strict=True)
        ]
        content = {"names": list(names.numbers), "questions": questions, "least": least, "kernel": KERNEL}
        if len(json.dumps(content, separators=(",", ":"))) < most:
            break
    return content


def _pack_question(
    load: Profiled, trees: Sequence[Flame], all_functions: Sequence[dict[str, float]], names: _Names, least: float
) -> dict[str, object]:
    servers = load.servers
    parts: list[dict[str, object]] = []
    for sort in SORTS:
        by_server: list[dict[str, object] | None] = [None] * len(servers)
        for profile, tree, functions in zip(load.profiles, trees, all_functions, strict=True):
            if profile.sort == sort:
                by_server[servers.index(profile.server)] = _pack_profile(profile, tree, functions, names, least)
        nothing = {"notes": ["no profile is stored"], "frames": [], "functions": [], "left_out": 0}
        parts.append({"title": prose.TITLES[sort], "profiles": [packed or nothing for packed in by_server]})
    return {"servers": servers, "parts": parts}


def _pack_profile(
    profile: Profile, tree: Flame, functions: dict[str, float], names: _Names, least: float
) -> dict[str, object]:
    packed = pack(tree, names, least) if profile.stacks else Packed([], 0)
    shares = {names.number(name): share for name, share in functions.items() if share >= FUNCTIONS_TO * least}
    return {
        "notes": prose.list_notes(profile),
        "frames": packed.frames,
        "functions": [number for name, share in shares.items() for number in (name, round(WHOLE * share))],
        "left_out": packed.left_out,
    }


def pack(root: Flame, names: _Names, least: float) -> Packed:
    """Pack a tree; where there are too many frames, those far from the root are left out."""
    drawn: set[int] = set()
    left_out = 0
    waiting: deque[tuple[Flame, int]] = deque([(root, 0)])
    while waiting:
        flame, depth = waiting.popleft()
        if flame.share < least or len(drawn) >= MOST_FRAMES or depth >= MOST_ROWS:
            left_out += 1
            continue
        drawn.add(id(flame))
        waiting.extend((child, depth + 1) for child in flame.called.values())
    frames: list[int] = []
    ahead = [(root, 0)]
    while ahead:
        flame, depth = ahead.pop()
        if id(flame) in drawn:
            frames += (names.number(flame.name), depth, round(WHOLE * flame.share), round(WHOLE * flame.own))
            ahead.extend((child, depth + 1) for child in reversed(flame.called.values()))
    return Packed(frames, left_out)

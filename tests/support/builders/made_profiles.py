"""Profiles of made-up servers whose difference is known: what two of them compute and wait for under one load."""

from __future__ import annotations

from netdyno.model.profile import Profile, Profiled, Stack
from tests.support.builders.made_run import CALLBACKS, COROUTINES, EPOLL, FOLLY

SENDS: Stack = ("main", "loop", "send_[k]")
COMPUTES: dict[str, dict[Stack, float]] = {
    EPOLL: {SENDS: 60.0, ("main", "loop", "read_[k]"): 20.0, ("main", "<b>start</b>"): 15.0, ("[libc.so]",): 5.0},
    COROUTINES: {SENDS: 30.0, ("main", "loop", "copy"): 50.0, ("main", "loop", "read_[k]"): 20.0},
    CALLBACKS: {SENDS: 100.0},
}


def profiled(question: str = "echo") -> Profiled:
    """The servers in an order of their own; the last has no profile."""
    profiles: list[Profile] = []
    for name in (CALLBACKS, COROUTINES, EPOLL):
        profiles.append(Profile(server=name, sort="on-cpu", window_s=1.0, stacks=COMPUTES[name], samples=100))
        profiles.append(
            Profile(server=name, sort="off-cpu", stacks={("main", "loop", "wait"): 9.0}, samples=9, every=3)
        )
    missing = [Profile(server=FOLLY, sort=sort, missing="Folly not found") for sort in ("on-cpu", "off-cpu")]
    return Profiled(question=question, load="echo, connections 100, 1 s", profiles=(*profiles, *missing))

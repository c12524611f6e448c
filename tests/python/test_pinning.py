"""Half the cores each, and never one physical core on both sides unless there is no other."""

from __future__ import annotations

import os

from netdyno.pinning import choose, split


def test_one_core_is_shared_and_that_is_said() -> None:
    pinning = split({3: "3"})
    assert (pinning.server, pinning.generator) == ((), ())
    assert "not pinned" in pinning.note


def test_two_cores_are_one_each() -> None:
    pinning = split({0: "0", 1: "1"})
    assert (pinning.server, pinning.generator) == ((0,), (1,))
    assert pinning.note == "server pinned to core 0, generator to core 1; the harness is not pinned"


def test_the_odd_core_goes_to_the_generator() -> None:
    pinning = split({2: "2", 4: "4", 6: "6"})
    assert (pinning.server, pinning.generator) == ((2,), (4, 6))


def test_hardware_threads_of_one_core_stay_together() -> None:
    # as numbered on most Intel machines: CPU n and n + cores/2 share a core
    pinning = split({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    assert (pinning.server, pinning.generator) == ((0, 2), (1, 3))


def test_two_threads_of_the_only_core_are_said_to_be_that() -> None:
    pinning = split({0: "0-1", 1: "0-1"})
    assert (pinning.server, pinning.generator) == ((0,), (1,))
    assert "same physical core" in pinning.note


def test_only_allowed_cores_are_used() -> None:
    pinning = choose()
    assert {*pinning.server, *pinning.generator} <= os.sched_getaffinity(0)

"""Stacks as a tree, and as functions."""

from __future__ import annotations

import pytest

from netdyno.analysis.notices import flames
from netdyno.model.profile import Profile, Stack


def profile(stacks: dict[Stack, float]) -> Profile:
    return Profile(server="s", sort="on-cpu", stacks=stacks)


def test_a_frame_has_all_that_it_called_and_what_it_did_itself() -> None:
    root = flames.build_tree({("main", "b"): 30.0, ("main", "a", "c"): 50.0, ("main",): 20.0})
    main = root.called["main"]
    assert root.share == main.share == pytest.approx(1)
    assert main.own == pytest.approx(0.2)
    assert [(name, round(frame.share, 9), round(frame.own, 9)) for name, frame in main.called.items()] == [
        ("a", 0.5, 0.0),
        ("b", 0.3, 0.3),
    ]


def test_of_nothing_there_is_a_root() -> None:
    assert flames.build_tree({}).called == {}


def test_a_function_that_calls_itself_counts_once() -> None:
    assert flames.sum_by_function(profile({("f", "g", "f"): 1.0, ("g",): 3.0})) == {"f": 0.25, "g": 1.0}

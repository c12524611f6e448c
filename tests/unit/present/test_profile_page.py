"""The notes on a profile, and the data that the page's script draws: names are data, and the size is limited."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from netdyno.model.profile import Profile, Profiled, Sort, Stack
from netdyno.present import profile
from netdyno.present.profile import packing
from netdyno.present.prose.profile import list_notes

EVIL = "</script><script>alert(1)</script>\x1b[2J\u202e\" onload='x'"
MUCH = 10**9


def make_profile(server: str, sort: Sort, stacks: dict[Stack, float], **more: object) -> Profile:
    return Profile(server=server, sort=sort, window_s=2.0, stacks=stacks, samples=len(stacks), **more)  # type: ignore[arg-type]


def profiled(*profiles: Profile) -> Profiled:
    return Profiled(load="echo", profiles=profiles)


def drawn(*profiles: Profile, most: int = MUCH) -> Any:
    """Return the script's data, and the frames of the first profile as rows: name, depth, share, own."""
    page_data: Any = packing.pack_loads([profiled(*profiles)], most)
    numbers = page_data["questions"][0]["parts"][0]["profiles"][0]["frames"]
    rows = zip(*(iter(numbers),) * 4, strict=True)
    return page_data, [(page_data["names"][name], depth, share, own) for name, depth, share, own in rows]


def test_what_a_stack_says_is_text() -> None:
    page = profile.render_page(profiled(make_profile(EVIL, "on-cpu", {("main", EVIL): 1.0})))
    assert "alert(1)" in page
    assert page.count("<script>") == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page)
    assert '" onload' not in page.replace('\\"', "")


def test_frames_follow_their_caller_with_their_share() -> None:
    data, frames = drawn(
        make_profile(
            "s", "on-cpu", {("main", "a"): 20.0, ("main", "b", "c_[k]"): 75.0, ("main",): 5.0, ("main", "z"): 0.01}
        ),
        make_profile("s", "off-cpu", {}, missing="no luck"),
        make_profile("t", "on-cpu", {("main", "b", "main"): 1.0}),
    )
    assert frames == [
        ("all", 0, 100_000, 0),
        ("main", 1, 100_000, pytest.approx(5_000, abs=1)),
        ("a", 2, pytest.approx(20_000, abs=3), pytest.approx(20_000, abs=3)),
        ("b", 2, pytest.approx(75_000, abs=9), 0),
        ("c_[k]", 3, pytest.approx(75_000, abs=9), pytest.approx(75_000, abs=9)),
    ]
    (question,) = data["questions"]
    assert question["servers"] == ["s", "t"]
    on, off = (part["profiles"] for part in question["parts"])
    assert on[0]["left_out"] == 1
    assert (off[0]["notes"], off[0]["frames"]) == (["no luck"], [])
    assert off[1]["notes"] == ["no profile is stored"]
    functions = dict(zip(*(iter(on[1]["functions"]),) * 2, strict=True))
    assert {data["names"][name]: share for name, share in functions.items()} == {"main": 100_000, "b": 100_000}


def test_a_drawing_has_an_end() -> None:
    deep = make_profile("s", "on-cpu", {tuple(str(number) for number in range(5000)): 1.0})
    wide = make_profile("s", "on-cpu", {(str(number), str(leaf)): 1.0 for number in range(90) for leaf in range(90)})
    assert len(drawn(deep)[1]) == packing.MOST_ROWS
    assert len(drawn(wide)[1]) <= packing.MOST_FRAMES


def test_where_there_is_little_room_narrow_frames_are_left_out_of_all() -> None:
    stacks: dict[Stack, float] = {("main", f"function {number}"): number for number in range(1, 40)}
    many = [make_profile(f"server {number}", "on-cpu", stacks) for number in range(30)]
    all_frames, _ = drawn(*many)
    assert all_frames["least"] == packing.LEAST_SHARES[0]
    room = len(json.dumps(all_frames)) // 3
    less, frames = drawn(*many, most=room)
    assert len(json.dumps(less, separators=(",", ":"))) < room
    assert less["least"] > all_frames["least"]
    assert 1 < len(frames) < 40
    assert len(drawn(*many, most=1)[1]) == 2


def test_which_frames_are_missing_is_stated_with_why() -> None:
    incomplete = make_profile(
        "s",
        "on-cpu",
        {("main",): 100.0},
        unnamed_us=50.0,
        unnamed=("libz.so",),
        cut_us=30.0,
        lost=3,
        with_kernel=False,
        runtime="python",
    )
    text = "; ".join(list_notes(incomplete))
    for words in (
        "50% of the time is in frames without a name, in libz.so",
        "30% of the time is in stacks",
        "3 events",
    ):
        assert words in text
    assert "kernel.perf_event_paranoid=1" in text
    assert "CPython 3.12" in text
    assert list_notes(make_profile("s", "on-cpu", {("main",): 100.0}, unnamed_us=1.0, cut_us=1.0)) == [
        "100 µs of CPU time in 1 sample over 2 s",
        "few samples: a longer --duration, or more load, gives more",
    ]
    waits = make_profile("s", "off-cpu", {("main",): 100.0}, every=7)
    assert "one switch in 7" in list_notes(waits)[0]

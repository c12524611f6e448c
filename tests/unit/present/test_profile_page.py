"""A profile as folded stacks and as a page: what stands in it, and that names are data."""

from __future__ import annotations

import re

import pytest

from netdyno.analysis.flames import tree
from netdyno.model.profile import Profile, Sort, Stack
from netdyno.present import profile
from netdyno.present.profile import drawing
from netdyno.present.prose.profile import notes

EVIL = "</script><script>alert(1)</script>\x1b[2J\u202e\" onload='x'"


def made(server: str, sort: Sort, stacks: dict[Stack, float], **more: object) -> Profile:
    return Profile(server=server, sort=sort, window_s=2.0, stacks=stacks, samples=len(stacks), **more)  # type: ignore[arg-type]


def both(server: str, stacks: dict[Stack, float]) -> list[Profile]:
    return [made(server, "on-cpu", stacks), made(server, "off-cpu", {("main", "sleep"): 5.0})]


def test_folded_stacks_are_a_line_each_with_whole_microseconds() -> None:
    found = made("s", "on-cpu", {("main", "a b"): 10.6, ("main", "x\ny\x1b"): 3.0})
    assert profile.folded(found) == "main;a b 11\nmain;x\\ny\\x1b 3\n"


def test_what_a_stack_says_is_text() -> None:
    page = profile.page(both(EVIL, {("main", EVIL): 1.0}), "echo")
    assert "alert(1)" in page
    assert page.count("<script>") == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page)
    assert '" onload' not in page


def test_two_servers_are_held_against_each_other() -> None:
    slow: dict[Stack, float] = {("main", "send"): 50.0, ("main", "copy"): 50.0}
    page = profile.page([*both("quick", {("main", "send"): 100.0}), *both("slow", slow)], "echo")
    assert "slow, coloured by the difference" in page
    assert '<tr><th scope="row" class="function">copy</th><td>0%</td><td>50%</td></tr>' in page
    assert re.search(r'class="frame more4"[^>]*aria-label="copy: 50% here; from 0% to 50% of the time', page)
    assert re.search(r'class="frame less4"[^>]*aria-label="send: 50% here; from 100% to 50% of the time', page)
    assert "main</th>" not in page


def test_where_one_has_no_profile_the_other_stands_alone() -> None:
    gone = [Profile(server="gone", sort=sort, missing="no luck") for sort in ("on-cpu", "off-cpu")]
    page = profile.page([*both("s", {("main",): 1.0}), *gone], "echo")
    assert page.count("no luck") == 2
    assert "coloured by the difference" not in page


def test_frames_hang_below_their_caller_and_are_as_wide_as_their_share() -> None:
    found = drawing.figure("s", tree({("main", "a"): 25.0, ("main", "b", "c_[k]"): 75.0, ("main", "[so]"): 0.01}))
    assert [(box.name, box.look, box.x, box.width, box.depth, box.parent) for box in found.boxes] == [
        ("all", "user", 0, 100, 0, -1),
        ("main", "user", 0, 100, 1, 0),
        ("a", "user", pytest.approx(0.01, abs=0.01), pytest.approx(25, abs=0.01), 2, 1),
        ("b", "user", pytest.approx(25, abs=0.02), pytest.approx(75, abs=0.02), 2, 1),
        ("c_[k]", "kernel", pytest.approx(25, abs=0.02), pytest.approx(75, abs=0.02), 3, 3),
    ]
    assert found.left_out == 1
    assert found.height == 4 * drawing.ROW


def test_a_drawing_has_an_end() -> None:
    deep = tree({tuple(str(number) for number in range(5000)): 1.0})
    wide = tree({(str(number), str(other)): 1.0 for number in range(90) for other in range(90)})
    assert len(drawing.figure("deep", deep).boxes) == drawing.MOST_ROWS
    assert len(drawing.figure("wide", wide).boxes) <= drawing.MOST_FRAMES


def test_which_frames_are_missing_is_said_with_why() -> None:
    found = made(
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
    said = "; ".join(notes(found))
    for words in ("50% of the time has a frame without a name, in libz.so", "30% of the time is in stacks", "3 events"):
        assert words in said
    assert "kernel.perf_event_paranoid=1" in said
    assert "CPython 3.12" in said
    assert notes(made("s", "on-cpu", {("main",): 100.0}, unnamed_us=1.0, cut_us=1.0)) == [
        "100 µs of CPU time in 1 sample over 2 s",
        "these are few: a longer --duration, or more load, shows more",
    ]
    waits = made("s", "off-cpu", {("main",): 100.0}, every=7)
    assert "one switch in 7" in notes(waits)[0]

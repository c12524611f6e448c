"""The notes on a profile and its functions: names are text, and the size is limited."""

from __future__ import annotations

import io
import re

import pytest

from netdyno.analysis.analysis import analyse
from netdyno.analysis.notices.functions import MOST_FUNCTIONS, sum_by_function
from netdyno.kit import quantities
from netdyno.model.profile import Profile, Profiled, Sort, Stack
from netdyno.present.prose.profile import list_notes, view_profiles
from netdyno.present.terminal.profile import render
from netdyno.store.profiles import StoredProfiles
from tests.support.builders.made_profiles import profiled as profiled_by_name
from tests.support.builders.made_run import CALLBACKS, COROUTINES, EPOLL, FOLLY, made_run, with_only
from tests.support.undrawn import page_without_panels

EVIL = "</script><script>alert(1)</script>\x1b[2J\u202e\" onload='x'"


def make_profile(server: str, sort: Sort, stacks: dict[Stack, float], **more: object) -> Profile:
    return Profile(server=server, sort=sort, window_s=2.0, stacks=stacks, samples=len(stacks), **more)  # type: ignore[arg-type]


def profiled(*profiles: Profile) -> Profiled:
    return Profiled(load="echo", profiles=profiles)


def test_of_one_server_a_function_has_its_time_in_itself_and_with_what_it_calls() -> None:
    stacks: dict[Stack, float] = {("main", "a"): 20.0, ("main", "b", "a"): 75.0, ("main",): 5.0, ("main", "z"): 0.01}
    computes, waits = view_profiles(
        profiled(make_profile("s", "on-cpu", stacks), make_profile("s", "off-cpu", {}, missing="no luck"))
    )
    assert computes.headings == ("function", "in itself", "with what it calls")
    assert [tuple(row) for row in computes.functions] == [
        ("a", (pytest.approx(0.95, abs=1e-3), pytest.approx(0.95, abs=1e-3))),
        ("main", (pytest.approx(0.05, abs=1e-3), pytest.approx(1))),
        ("b", (0, pytest.approx(0.75, abs=1e-3))),
    ]
    assert (waits.notes, waits.functions) == ((("s", "no luck"),), ())


def test_of_several_servers_the_functions_that_differ_most_come_first() -> None:
    computes, waits = view_profiles(profiled_by_name())
    assert waits.functions[0] == ("loop", (1, 1, 1)), "they wait for the same"
    assert computes.headings == ("function", CALLBACKS, COROUTINES, EPOLL)
    assert [(name, [quantities.share(part) for part in shares]) for name, shares in computes.functions[:3]] == [
        ("send_[k]", ["100%", "30%", "60%"]),
        ("copy", ["0%", "50%", "0%"]),
        ("read_[k]", ["0%", "20%", "20%"]),
    ]
    assert computes.notes[-1] == (FOLLY, "Folly not found")


def test_the_list_has_an_end() -> None:
    wide = make_profile("s", "on-cpu", {(str(number),): 1.0 for number in range(90)})
    assert len(view_profiles(profiled(wide))[0].functions) == MOST_FUNCTIONS


def test_a_function_that_calls_itself_counts_once() -> None:
    stacks: dict[Stack, float] = {("f", "g", "f"): 1.0, ("g",): 3.0}
    assert sum_by_function(make_profile("s", "on-cpu", stacks)) == {"f": 0.25, "g": 1.0}


def test_a_name_moves_no_cursor_of_a_terminal() -> None:
    output = io.StringIO()
    render(profiled(make_profile("s", "on-cpu", {("main", EVIL): 1.0})), output)
    assert "alert(1)" in output.getvalue()
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", output.getvalue())


def test_however_long_a_name_is_its_shares_are_printed() -> None:
    output = io.StringIO()
    name = "run(" + "".join(f"asio::handler<{number}>, " for number in range(20)) + ")"
    render(profiled(make_profile("s", "on-cpu", {("main", name): 3.0, ("main",): 1.0})), output)
    assert "".join(name.split()) in "".join(re.sub(r"\d+%", "", output.getvalue()).split())
    assert re.search(r"75% +75%", output.getvalue())


def test_a_name_is_text_in_a_report() -> None:
    load = Profiled(load="echo", question="echo", profiles=(make_profile(EVIL, "on-cpu", {("main", EVIL): 1.0}),))
    damaged = "profile-http.json is damaged: <i>line 3"
    page = page_without_panels(analyse(with_only(made_run(), "echo")), StoredProfiles((load,), (damaged,)))
    assert "alert(1)" in page
    assert page.count("<script>") == 1
    assert "\u202e" not in page
    assert "profile-http.json is damaged: &lt;i&gt;line 3" in page


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
        "50% of the time is in stacks with a frame without a name, in libz.so",
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

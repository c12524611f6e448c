"""Flame graphs in a real browser: made wider, searched, walked through by keyboard, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from netdyno.model.profile import Profile, Stack
from netdyno.present import profile
from tests.support.watched import LEAST_CONTRAST_OF_TEXT, WIDE, Watched, contrast, opened

STACKS: dict[Stack, float] = {
    ("main", "loop", "send_[k]"): 60.0,
    ("main", "loop", "read_[k]"): 20.0,
    ("main", "<b>start</b>"): 15.0,
    ("[libc.so]", "memcpy"): 5.0,
}


@pytest.fixture(params=["light", "dark"])
def flames(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    found = [
        Profile(server="s", sort="on-cpu", window_s=1, stacks=STACKS, samples=100),
        Profile(server="s", sort="off-cpu", missing="kernel.perf_event_paranoid is 2"),
    ]
    path = tmp_path / "profile.html"
    path.write_text(profile.page(found, "echo over 20 connections"))
    yield from opened(browser, path, WIDE, request.param)


STROKE = 4
"""Pixels that the line round a chosen frame is wider than the frame."""


def width(frame: Locator) -> float:
    box = frame.bounding_box()
    return box["width"] if box else 0


def test_a_frame_is_made_as_wide_as_the_page_and_found(flames: Watched) -> None:
    page = flames.page
    loop = page.get_by_role("treeitem", name="loop: 80% of the time")
    send, start = page.get_by_role("treeitem", name="send"), page.locator(".frame", has_text="<b>start</b>")
    all_of_it = width(page.locator(".flame"))
    assert width(loop) == pytest.approx(0.8 * all_of_it, abs=STROKE)
    loop.locator("rect").click(position={"x": 5, "y": 5})
    assert width(loop) == pytest.approx(all_of_it, abs=STROKE)
    assert width(send) == pytest.approx(0.75 * all_of_it, abs=STROKE)
    assert not start.is_visible()
    page.get_by_role("button", name="Show all").click()
    assert start.is_visible()
    page.get_by_role("searchbox").fill("_[K]")
    assert page.locator(".frame.found").count() == 2
    assert "80.0% of the time" in page.locator(".said").inner_text()
    assert page.get_by_text("kernel.perf_event_paranoid is 2").is_visible()
    assert flames.complaints == []
    assert [url for url in flames.requests if not url.startswith("data:")] == [page.url]


def test_all_is_reached_by_keyboard(flames: Watched) -> None:
    page = flames.page
    page.get_by_role("button", name="Show all").focus()
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Tab")

    def at() -> str:
        return str(page.evaluate("document.activeElement.querySelector('text').textContent"))

    assert at() == "all"
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        walked.append(at())
    assert walked == ["main", "loop", "send_[k]", "read_[k]", "loop", "main", "[libc.so]"]
    page.keyboard.press("Enter")
    assert not page.get_by_role("treeitem", name="main").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("treeitem", name="main").is_visible()


def test_names_can_be_read_on_every_colour(flames: Watched) -> None:
    pairs = flames.page.evaluate(
        """[...document.querySelectorAll('.frame')].map(frame => ['rect', 'text'].map(
           name => getComputedStyle(frame.querySelector(name)).fill))"""
    )
    steps = flames.page.evaluate(
        """['more1', 'more2', 'more3', 'more4', 'less1', 'less2', 'less3', 'less4', 'same'].map(look => {
           const frame = document.querySelector('.frame'); frame.setAttribute('class', `frame ${look}`);
           return ['rect', 'text'].map(name => getComputedStyle(frame.querySelector(name)).fill); })"""
    )
    assert min(contrast(*pair) for pair in pairs + steps) >= LEAST_CONTRAST_OF_TEXT

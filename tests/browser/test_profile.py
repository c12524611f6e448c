"""Flame graphs in a real browser, on their own page and in a report: drawn when they are unfolded, held against each
other, made wider, searched, walked through by keyboard, readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from netdyno.analysis.analysis import analyse
from netdyno.model.profile import Profile, Profiled
from netdyno.present import profile, report
from tests.support.builders.made_profiles import COMPUTES, stored_profiles
from tests.support.builders.made_run import CALLBACKS, COROUTINES, EPOLL, FOLLY, made_run, with_only
from tests.support.undrawn import without_panels
from tests.support.watched import LEAST_CONTRAST_OF_TEXT, PHONE, WIDE, Watched, contrast, opened


@pytest.fixture
def flames(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    profiles = (
        Profile(server="s", sort="on-cpu", window_s=1, stacks=COMPUTES[EPOLL], samples=100),
        Profile(server="s", sort="off-cpu", missing="kernel.perf_event_paranoid is 2"),
    )
    path = tmp_path / "profile.html"
    path.write_text(profile.render_page(Profiled(load="echo over 20 connections", profiles=profiles)))
    yield from opened(browser, path, WIDE, getattr(request, "param", "light"))


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profiled") / "report.html"
    stored = stored_profiles("profile-http.json is damaged: <i>line 3")
    with without_panels():
        report.write_page(analyse(with_only(made_run(), "echo")), path, (), stored)
    return path


@pytest.fixture
def wide(browser: Browser, report_file: Path) -> Iterator[Watched]:
    yield from opened(browser, report_file, WIDE, "light")


@pytest.fixture
def phone(browser: Browser, report_file: Path) -> Iterator[Watched]:
    yield from opened(browser, report_file, PHONE, "dark")


def unfolded(watched: Watched) -> Locator:
    """Unfold the flame graphs of echo by keyboard, and return them."""
    section = watched.page.get_by_role("region", name="Where the time goes")
    assert watched.page.locator(".frame").count() == 0
    section.locator("summary").first.focus()
    watched.page.keyboard.press("Enter")
    section.locator(".frame").first.wait_for()
    return section


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
    assert "80.0% of the time" in page.locator(".frame-said").inner_text()
    assert page.get_by_text("kernel.perf_event_paranoid is 2").is_visible()
    assert page.get_by_role("combobox").count() == 0
    assert [url for url in flames.requests if not url.startswith("data:")] == [page.url]


def test_all_is_reached_by_keyboard(flames: Watched) -> None:
    page = flames.page
    page.get_by_role("button", name="Show all").focus()
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Tab")

    def focused() -> str:
        return str(page.evaluate("document.activeElement.querySelector('text').textContent"))

    assert focused() == "all"
    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        walked.append(focused())
    assert walked == ["main", "loop", "send_[k]", "read_[k]", "loop", "main", "[libc.so]"]
    page.keyboard.press("Enter")
    assert not page.get_by_role("treeitem", name="main").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("treeitem", name="main").is_visible()


@pytest.mark.parametrize("flames", ["light", "dark"], indirect=True)
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
    assert len({rect for rect, _ in steps}) == len(steps)
    assert min(contrast(*pair) for pair in pairs + steps) >= LEAST_CONTRAST_OF_TEXT


def test_a_report_holds_the_first_two_ranked_against_each_other_and_says_what_is_damaged(wide: Watched) -> None:
    damaged = wide.page.get_by_role("region", name="Profiles that cannot be shown")
    assert damaged.get_by_text("profile-http.json is damaged: <i>line 3").is_visible()
    section = unfolded(wide)
    assert section.get_by_text(f"takes more of the time in {COROUTINES} than in {EPOLL}").first.is_visible()
    titles = section.locator("figcaption").all_inner_texts()
    assert titles == [f"{name}, coloured by the difference" for name in (EPOLL, COROUTINES)] * 2
    rows = section.get_by_role("region", name="What it computes: what differs most").locator("tbody tr")
    assert [row.split("\t") for row in rows.all_inner_texts()][:4] == [
        ["copy", "0%", "50%"],
        ["send_[k]", "60%", "30%"],
        ["loop", "80%", "100%"],
        ["<b>start</b>", "15%", "0%"],
    ]
    copy = section.get_by_role("treeitem", name="copy: 50% here; from 0% to 50% of the time, wherever it is called")
    assert copy.get_attribute("class") == "frame more4"
    assert [url for url in wide.requests if not url.startswith("data:")] == [wide.page.url]


def test_the_reader_chooses_which_to_compare(wide: Watched) -> None:
    section = unfolded(wide)
    section.get_by_role("combobox", name="held against").select_option(CALLBACKS)
    assert section.get_by_text(f"takes more of the time in {CALLBACKS} than in {EPOLL}").first.is_visible()
    send = section.get_by_role("treeitem", name="send_[k]: 100% here; from 60% to 100%")
    assert send.get_attribute("class") == "frame more4"
    section.get_by_role("combobox", name="held against").select_option("nobody")
    assert section.locator("figcaption").all_inner_texts() == [EPOLL, EPOLL]
    assert section.get_by_role("treeitem", name="send_[k]: 60% of the time").get_attribute("class") == "frame kernel"
    section.get_by_role("combobox", name="Server").select_option(f"{FOLLY} (no profile)")
    assert section.locator("figure").count() == 0
    assert section.get_by_text("Folly not found").first.is_visible()


def test_a_flame_graph_is_saved_as_it_is_seen(wide: Watched, tmp_path: Path) -> None:
    section = unfolded(wide)
    section.locator(".frame", has_text="loop").first.click()
    section.locator(".save").first.locator("summary").click()
    with wide.page.expect_download() as download:
        section.get_by_role("button", name="SVG").first.click()
    download.value.save_as(tmp_path / "figure.svg")
    picture = (tmp_path / "figure.svg").read_text()
    assert "send_[k]" in picture
    assert "start" not in picture
    assert "var(" not in picture


def test_it_takes_on_the_theme_and_fits_a_phone(phone: Watched) -> None:
    section = unfolded(phone)
    page = phone.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def colour() -> str:
        return str(section.locator(".frame.more4 rect").first.evaluate("rect => getComputedStyle(rect).fill"))

    dark = colour()
    page.get_by_role("button", name="Theme").click()
    assert colour() != dark

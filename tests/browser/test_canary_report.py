"""The machine over the run in a real browser: on paper and in the dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from netdyno.analysis.analysis import analyse
from netdyno.present import report
from tests.support.builders.made_canary import drifting_run
from tests.support.builders.made_run import with_only
from tests.support.undrawn import without_panels
from tests.support.watched import (
    LEAST_CONTRAST_OF_SHAPES,
    PHONE,
    WIDE,
    Watched,
    colour_of,
    contrast,
    open_all_details,
    opened,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("canary") / "report.html"
    with without_panels():
        report.write_page(analyse(with_only(drifting_run(), "echo")), path)
    return path


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"], scope="module")
def page(request: pytest.FixtureRequest, browser: Browser, file: Path) -> Iterator[Watched]:
    """Each size and each scheme once: a scheme changes colours only, and a size none of them."""
    yield from opened(browser, file, *request.param)


def test_it_is_seen_whole_and_fits(page: Watched) -> None:
    section = page.page.locator("#machine")
    open_all_details(page.page)
    assert section.get_by_role("heading", name="The machine over the run").is_visible()
    assert "the machine drifted by a factor of 2.00 (round trips" in section.inner_text()
    figures = section.locator("figure svg")
    assert figures.count() == 3
    width = page.page.evaluate("innerWidth")
    for figure in figures.all():
        box = figure.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert any("per second" in text for text in figure.locator("text").all_text_contents())
    widths = page.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_what_is_drawn_stands_out_from_the_paper(page: Watched) -> None:
    paper = colour_of(page.page, "--paper")
    for variable in ("--ink", "--bad"):
        assert contrast(colour_of(page.page, variable), paper) >= LEAST_CONTRAST_OF_SHAPES
    drawn = page.page.locator("#machine figure svg").first.inner_html()
    assert "var(--ink)" in drawn
    assert "var(--bad)" in drawn


def test_a_table_says_the_same_by_block(page: Watched) -> None:
    open_all_details(page.page)
    table = page.page.get_by_role("region", name="The canary by block")
    rows = [text.split("\t") for text in table.locator("tbody tr").all_inner_texts()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert rows[0][3] == "20.0k/s"
    assert rows[-1][3] == "10.0k/s"
    assert rows[1][-1] != "0"
    assert {row[-1] for number, row in enumerate(rows) if number != 1} == {"0"}

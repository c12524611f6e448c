"""The figures of an experiment in a real browser: each kind in light and wide, and in dark on a phone, with all of its
marks and the same as a table. Its pages are large: each is opened once, and nothing here changes it but what is
unfolded.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.model.metrics import METRICS
from netdyno.model.run import Run
from netdyno.present import report
from netdyno.present.prose import figures
from netdyno.present.report import charts as views
from netdyno.present.report import panels as scenario_panels
from netdyno.present.report import theme
from netdyno.present.report.drawing import Panel
from tests.support.builders.analysed import analysed
from tests.support.builders.made_charts import (
    ASIO,
    BARS,
    FOLLY,
    GRID,
    LADDER,
    NAMES,
    PAIRS,
    REALTIME,
    SNAPSHOT,
    TAKING_PART,
    TRUTH,
    charts_run,
    made,
)
from tests.support.undrawn import without_panels
from tests.support.watched import (
    LEAST_CONTRAST_OF_TEXT,
    PHONE,
    WIDE,
    Pages,
    Watched,
    colour_of,
    contrast,
    labels,
    open_all_details,
    opened,
    resize,
)

TITLES = tuple(figure.title for figure in charts_run().experiment.figures)
BARS_TITLE, SPEED_TITLE, CONNECTED_TITLE, LADDER_TITLE, CURVES_TITLE = TITLES


def write_figures(analysis: Analysis, path: Path) -> Path:
    """Write the page with one scenario beside the figures, and none of its panels, which take longer than those."""
    with without_panels():
        report.write_page(replace(analysis, scenarios=analysis.scenarios[:1]), path)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_figures(analysed(charts_run()), tmp_path_factory.mktemp("figures") / "report.html")


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"], scope="module")
def shown(request: pytest.FixtureRequest, pages: Pages, file: Path) -> Watched:
    """Each size and each scheme once: a scheme changes colours only, and a size none of them."""
    return pages(file, *request.param)


@pytest.fixture(scope="module")
def light(pages: Pages, file: Path) -> Watched:
    return pages(file, WIDE, "light")


def section(watched: Watched, title: str) -> Locator:
    return watched.page.locator(".chart-of", has=watched.page.get_by_role("heading", name=title, exact=True))


def panels(watched: Watched, title: str) -> list[Locator]:
    return section(watched, title).locator("figure").all()


def painted(panel: Locator, colour: str) -> int:
    """Count the shapes of a panel that have an outline or a filling of a colour."""
    script = """(e, colour) => [...e.querySelectorAll('svg[role] path, svg[role] use')].filter(e => !e.closest('defs')
        && [getComputedStyle(e).stroke, getComputedStyle(e).fill].includes(colour)).length"""
    return int(panel.evaluate(script, colour))


# --- the page ----------------------------------------------------------------------------------------------------


def test_a_page_full_of_figures_is_quiet_alone_and_no_wider_than_its_window(shown: Watched, file: Path) -> None:
    open_all_details(shown.page)
    assert [url for url in shown.requests if not url.startswith("data:")] == [file.as_uri()]
    width = shown.page.evaluate("innerWidth")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width
    outside = """width => [...document.querySelectorAll('.chart-of figure > *')].map(e => e.getBoundingClientRect())
        .filter(box => box.left < 0 || box.right > width).length"""
    assert shown.page.evaluate(outside, width) == 0


def test_a_page_full_of_figures_stays_below_four_megabytes(file: Path) -> None:
    assert file.stat().st_size < 5 * 2**18  # the panels of the scenarios, which are left out here, take 1 MB
    assert report.theme.HEAT_STEPS == len(theme.HEAT_LIGHT) == len(theme.HEAT_DARK)


def test_a_scenario_of_many_levels_draws_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_panels, "finish", lambda _axes, title, alt, _name: Panel(title, "", alt))
    grid, styles = analysed(charts_run()).scenarios[-1], theme.assign_styles(NAMES)
    assert len(scenario_panels.list_measured_sweeps(grid)) == 7
    assert len(scenario_panels.draw_performance(grid, styles, "s")) == 3 * 6
    assert len(scenario_panels.draw_curves(grid, styles, "s")) == 3


def test_figures_stand_between_the_verdicts_and_the_answers_in_their_order(light: Watched) -> None:
    assert light.page.locator(".chart-of h2").all_inner_texts() == list(TITLES)
    order = light.page.evaluate("[...document.querySelectorAll('main > section')].map(e => e.id)")
    assert order[:6] == ["f1", "f2", "f3", "f4", "f5", "answers"]


def test_ids_are_unique_and_every_inner_link_leads_somewhere(light: Watched) -> None:
    ids = light.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    links = light.page.evaluate("[...document.querySelectorAll('a, use')].map(e => e.getAttribute('href'))")
    assert {link.removeprefix("#") for link in links if link} <= set(ids)


def test_the_table_of_each_figure_is_its_data(light: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    open_all_details(light.page)
    monkeypatch.setattr(views, "_DRAW", {})  # the tables alone
    for chart in analysed(charts_run()).charts:
        table = views.make_view(chart, theme.assign_styles(NAMES), "f").table
        region = light.page.get_by_role("region", name=f"Values of {chart.figure.title}", exact=True)
        cells = "e => [...e.rows].map(row => [...row.cells].map(cell => cell.textContent))"
        headings, *rows = region.locator("table").evaluate(cells)
        assert [headings, *rows] == [list(table.headings), *map(list, table.rows)]
        speak, width = METRICS[chart.figure.metric].speak, len(chart.figure.drawn)
        values = [speak(spot.value.value) if spot.value else figures.explain_missing(spot) for spot in chart.spots]
        assert all(row[width].startswith(text) for row, text in zip(rows, values, strict=False))
        assert len(rows) == len(values) + sum(row[-1] == "not run" for row in rows)


def test_every_drawing_reads_aloud_and_every_table_can_be_scrolled_by_keyboard(light: Watched) -> None:
    open_all_details(light.page)
    spoken = labels(light.page.locator(".chart-of svg[role=img]"))
    assert len(spoken) == 4 + 2 + 7
    assert all(any(title in text for title in TITLES) for text in spoken)
    assert f"{BARS_TITLE}, {ASIO}. Throughput: " in spoken[0]
    assert "1.60k/s (asio-callbacks, nodelay off on both sides)" in spoken[0]
    regions = light.page.locator(".chart-of .scroll").all()
    assert len(regions) == 5 + 4
    assert all(region.get_attribute("tabindex") == "0" and region.get_attribute("aria-label") for region in regions)


OVERLAPS = """() => [...document.querySelectorAll('.chart-of svg[role=img]')].flatMap(drawing => {
    const boxes = [...drawing.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    const meet = (p, q) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2;
    return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) => meet(p, q)).map(([b]) => `${a} / ${b}`));
})"""
TOO_WIDE = """() => [...document.querySelectorAll('.heat td')].filter(e => e.scrollWidth > e.clientWidth + 12)
    .map(e => e.textContent)"""


def test_no_words_of_a_figure_lie_on_one_another(shown: Watched) -> None:
    assert shown.page.evaluate(OVERLAPS) == []
    assert shown.page.evaluate(TOO_WIDE) == []


# --- each kind ---------------------------------------------------------------------------------------------------


def test_bars_are_in_groups_with_intervals_and_hollow_marks(shown: Watched) -> None:
    bars = panels(shown, BARS_TITLE)
    assert [panel.locator("figcaption").inner_text() for panel in bars] == [*TAKING_PART["pairs"]]
    ink, first = (
        colour_of(shown.page, "--ink"),
        colour_of(shown.page, f"--c{theme.assign_styles(sorted(NAMES))[ASIO].colour}"),
    )
    assert painted(bars[0], first) == 2 * 6  # each bar is filled, and has an outline
    hollow = [painted(panel, colour_of(shown.page, "--paper")) for panel in bars]
    assert hollow[0] == hollow[1] + 2  # beside the light behind each whisker
    assert painted(bars[1], ink) >= 6
    for label in ("netdyno-load", "asio-callbacks", "qt-signals", "1.60k/s", "16.0k/s"):
        assert bars[0].locator("text", has_text=re.compile(f"^{label}$")).count() >= 1
    legend = section(shown, BARS_TITLE).locator(".legend").inner_text()
    for text in ("nodelay off on both sides", "nodelay on on both sides", "published (their machine)"):
        assert text in legend


def test_a_surface_has_a_cell_for_each_value_hatches_rings_and_one_scale(shown: Watched) -> None:
    left, right = panels(shown, SPEED_TITLE)
    for panel, name in ((left, ASIO), (right, SNAPSHOT)):
        assert panel.locator("figcaption").inner_text() == name
        assert panel.locator(".heat td[title]").count() == 50
        assert panel.locator(".heat .hatched").count() == 10
    hatched = right.locator(".heat .hatched").last
    assert hatched.get_attribute("title") == "400 connections, backlog 10: faulty (connections)"
    assert "repeating-linear-gradient" in hatched.evaluate("e => getComputedStyle(e).backgroundImage")
    assert right.locator(".heat .ringed").count() == 2
    assert right.locator(".heat .published").inner_text().split() == ["52.0k", "36.0k"]
    assert "36.0k/s at 325 connections and backlog 300" in right.inner_text()
    least = [panel.locator(".heat tbody tr").first.locator("td").first for panel in (left, right)]
    colours = [cell.evaluate("e => getComputedStyle(e).backgroundColor") for cell in least]
    assert colours[0] == colours[1] == colour_of(shown.page, "--h0")
    assert section(shown, SPEED_TITLE).locator(".ramp b").count() == theme.HEAT_STEPS
    assert section(shown, SPEED_TITLE).locator(".ramp").inner_text().split() == ["8.00k/s", "64.0k/s"]
    assert left.locator(".heat tbody th").first.inner_text() == "300"  # y rises


def test_excluded_trials_show_where_their_figure_counts(shown: Watched) -> None:
    excluded = section(shown, CONNECTED_TITLE).locator(".heat .excluded")
    assert excluded.count() == 20
    assert (excluded.last.get_attribute("title") or "").endswith("28.6%, 6 of 6 trials, 6 invalid or faulty")
    assert section(shown, CONNECTED_TITLE).locator(".heat .hatched").count() == 0
    assert "includes invalid or faulty trials" in section(shown, CONNECTED_TITLE).locator(".legend").inner_text()


def test_every_cell_of_a_surface_can_be_read(shown: Watched) -> None:
    for step in range(theme.HEAT_STEPS):
        colours = [colour_of(shown.page, f"--{kind}{step}") for kind in "th"]
        assert contrast(*colours) >= LEAST_CONTRAST_OF_TEXT, step


def test_the_colours_of_a_surface_go_one_way_so_that_no_hue_is_needed() -> None:
    for steps, sign in ((theme.HEAT_LIGHT, -1), (theme.HEAT_DARK, 1)):
        grey = [
            sum(weight * int(step[start : start + 2], 16) for weight, start in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))
            for step in steps
        ]
        assert all(sign * (after - before) > 0 for before, after in itertools.pairwise(grey))


def test_a_surface_is_saved_as_a_drawing_of_its_cells(light: Watched, tmp_path: Path) -> None:
    panel = panels(light, SPEED_TITLE)[0]
    panel.locator(".save").evaluate("menu => menu.open = true")  # another test may have opened it on this page
    with light.page.expect_download() as drawn:
        panel.get_by_role("button", name="SVG").click()
    drawn.value.save_as(tmp_path / "surface.svg")
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.parse(tmp_path / "surface.svg").getroot()
    assert len(root.findall(f"{space}rect")) == 1 + panel.locator(".heat td").count()
    texts = [element.text for element in root.iter(f"{space}text")]
    assert set(panel.locator(".heat tbody th").all_inner_texts()) <= set(texts)


def test_a_ladder_names_each_rung_and_its_loss_and_marks_what_is_above_the_bound(shown: Watched) -> None:
    few, many = panels(shown, LADDER_TITLE)
    texts = many.locator("svg text").all_text_contents()
    assert [text for text in texts if text in NAMES] == [*NAMES]
    assert "12.5% lost !" in texts
    assert "0% lost" in few.locator("svg text").all_text_contents()
    bad = colour_of(shown.page, "--bad")
    assert (painted(few, bad), painted(many, bad)) == (0, 1)
    words = many.locator("svg text", has_text="12.5% lost !")
    assert words.evaluate("e => getComputedStyle(e).fill") == bad
    paper = colour_of(shown.page, "--paper")
    assert (painted(few, paper), painted(many, paper)) == (1, 2)
    gaps = section(shown, LADDER_TITLE).locator(".gaps").inner_text()
    assert f"{FOLLY}: skipped (Folly not found: see its README)" in gaps
    assert "lost more than 0.1%" in section(shown, LADDER_TITLE).locator(".legend").inner_text()


def test_curves_have_their_lines_and_what_stands_below_in_colours_of_the_contestants(shown: Watched) -> None:
    curves = panels(shown, CURVES_TITLE)
    captions = [panel.locator("figcaption").inner_text() for panel in curves]
    assert captions == [f"threads {threads}" for threads in (1, 2, 3, 4, 6, 8, 12)]
    styles = theme.assign_styles(sorted(NAMES))
    for name in (ASIO, FOLLY):
        # In each of three rows: a line, its blocks, its intervals, and a marker for each of eight levels.
        assert painted(curves[1], colour_of(shown.page, f"--c{styles[name].colour}")) == 3 * (3 + 8)
    texts = curves[0].locator("svg text").all_text_contents()
    for text in ("median response time (log scale)", "server CPU per message", "peak memory of the server"):
        assert text in texts
    assert "connections (log scale)" in texts
    paper = colour_of(shown.page, "--paper")
    assert (painted(curves[0], paper), painted(curves[1], paper)) == (3, 0)
    legend = section(shown, CURVES_TITLE).locator(".legend li").all_inner_texts()
    assert [text.strip() for text in legend] == [ASIO, FOLLY, "published (their machine)"]


VARIANTS = f"""
[[figure]]
kind = "bars"
title = "Bars on a log scale, a contestant each"
scenario = "pairs"
metric = "throughput"
cells = {{ both.nodelay = "off" }}
along = "contestant"
across = "client"
scale = "log"
[[figure]]
kind = "bars"
title = "Bars by contestant"
scenario = "pairs"
metric = "cpu"
cells = {{ client = "qt-signals" }}
along = "both.nodelay"
across = "contestant"
[[figure]]
kind = "bars"
title = "Lost"
scenario = ["100 clients", "1000 clients"]
metric = "lost"
along = "contestant"
across = "scenario"
[[figure]]
kind = "curves"
title = "Lines by a factor"
scenario = "grid"
metric = "memory"
cells = {{ contestant = "{ASIO}", threads = [1, 2, 4] }}
along = "connections"
across = "threads"
[[figure]]
kind = "curves"
title = "A single line"
scenario = "grid"
metric = "throughput"
cells = {{ contestant = "{ASIO}", connections = 100 }}
along = "threads"
[[figure]]
kind = "surface"
title = "On a log scale, by client"
scenario = "pairs"
metric = "throughput"
along = "client"
across = "contestant"
panels = "both.nodelay"
scale = "log"
"""


def few_blocks() -> Run:
    """The other ways to draw work with a single block."""
    return made(PAIRS + REALTIME + GRID + BARS + LADDER + VARIANTS, TRUTH, TAKING_PART, blocks=1)


def test_every_other_way_to_draw_works_from_a_single_block(browser: Browser, tmp_path: Path) -> None:
    file = write_figures(analyse(few_blocks()), tmp_path / "report.html")
    for watched in opened(browser, file, WIDE, "dark"):
        notes = [figure.locator(".note").first.inner_text() for figure in watched.page.locator(".chart-of").all()]
        assert all("One block: no interval." in note for note in notes)
        texts = section(watched, "Lines by a factor").locator(".legend").inner_text()
        assert re.sub(r"\s+", " ", texts).strip() == "threads 1 threads 2 threads 4"
        assert section(watched, "Lost").locator("text", has_text=re.compile("^12.5% !$")).count() == 1
        for size in (WIDE, PHONE):
            resize(watched.page, size)
            assert watched.page.evaluate("document.documentElement.scrollWidth") == size[0]
            assert watched.page.evaluate(OVERLAPS) == []
            assert watched.page.evaluate(TOO_WIDE) == []

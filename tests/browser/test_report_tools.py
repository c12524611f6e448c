"""The tools of a report in a real browser: filter, sort, link, copy, save. All tests share one page, which each
reloads; it shows the two scenarios that they need, and no others."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, expect

from netdyno.analysis.analysis import analyse
from netdyno.analysis.compare.run_comparison import compare_runs
from netdyno.model.load_result import LoadResult
from netdyno.model.run import Run
from netdyno.present import report
from tests.support.builders.analysed import analysed, exported
from tests.support.builders.made_run import CALLBACKS, EPOLL, FOLLY, LOCK, MEASURED, SNAPSHOT, made_run, with_only
from tests.support.undrawn import without_panels
from tests.support.watched import PATIENCE_MS, WIDE, Watched, opened

SPACE = "{http://www.w3.org/2000/svg}"


@lru_cache
def shown_run() -> Run:
    return with_only(made_run(), "echo", "chat")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tools") / "report.html"
    report.write_page(analysed(shown_run()), path)
    return path


@pytest.fixture(scope="module")
def shown(browser: Browser, file: Path) -> Iterator[Watched]:
    for watched in opened(browser, file, WIDE, "light"):
        watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield watched


@pytest.fixture
def go(shown: Watched, file: Path) -> Watched:
    """The page as it is opened."""
    go_to(shown, file.as_uri())
    return shown


def go_to(watched: Watched, address: str) -> None:
    """Load the page of an address, which may be that of the page as it is, or differ in what follows its #."""
    watched.page.goto("about:blank")
    watched.page.goto(address)


def ranked(watched: Watched) -> list[str]:
    cells = watched.page.locator("#s1 .ranking tbody tr:visible th").all_inner_texts()
    return [text.split()[0] for text in cells]


def choice(watched: Watched, name: str) -> Locator:
    return watched.page.get_by_role("checkbox", name=name, exact=True)


def copied(watched: Watched) -> str:
    return str(watched.page.evaluate("navigator.clipboard.readText()"))


def fill_of(watched: Watched, contestant: str) -> str:
    """Return the fill of a contestant's points in the first figure of the first question."""
    number = watched.page.evaluate("name => netdyno.numberOf(name)", contestant)
    script = """(svg, number) => { const e = document.createElement('i'); e.style.color = `var(--k${number})`;
                svg.parentNode.append(e); const c = getComputedStyle(e).color; e.remove(); return c; }"""
    return str(watched.page.locator("#s1 figure svg").first.evaluate(script, number))


def test_a_filter_leaves_out_rows_lines_sections_and_a_link_to_it_shows_the_same(go: Watched) -> None:
    page = go.page
    before = ranked(go)
    page.locator("#filter summary").click()
    choice(go, CALLBACKS).uncheck()
    choice(go, "chat").uncheck()
    choice(go, "100 connections").uncheck()
    page.get_by_role("button", name="Copy a link to this view").click()
    expect(page.get_by_role("status")).to_have_text("Link copied", timeout=PATIENCE_MS)
    link = copied(go)
    for _ in range(2):
        assert ranked(go) == [name for name in before if name != CALLBACKS]
        assert page.locator("#s1 .legend li:visible", has_text=CALLBACKS).count() == 0
        assert fill_of(go, CALLBACKS) == "rgba(0, 0, 0, 0)" != fill_of(go, EPOLL)
        legend = page.locator("#s1 .uplot .u-legend").inner_text()
        assert EPOLL in legend
        assert CALLBACKS not in legend
        assert not page.locator("#s2").is_visible()
        assert page.locator(".card:visible h2").all_inner_texts() == ["echo"]
        captions = page.locator("#s1 figcaption:visible").all_inner_texts()
        assert "At 10 connections" in captions
        assert "At 100 connections" not in captions
        assert (
            page.locator("#filter summary").inner_text()
            == "Filter: 1 of 2 workloads, 5 of 6 contestants, 3 of 4 levels"
        )
        rows = page.locator("#s1 details .data tbody tr:not([hidden])").all_text_contents()
        assert rows
        assert not [row for row in rows if CALLBACKS in row or "100 connections" in row]
        go_to(go, link)
    page.locator("#filter summary").click()
    for name in (CALLBACKS, "chat", "100 connections"):
        choice(go, name).check()
    assert ranked(go) == before
    assert "contestant" not in page.url


def test_none_is_a_view_too_and_the_button_says_what_it_does(go: Watched) -> None:
    page = go.page
    page.locator("#filter summary").click()
    turned = page.locator("#choices button[name=contestant]")
    turned.click()
    page.get_by_role("button", name="Copy a link to this view").click()
    expect(page.get_by_role("status")).to_have_text("Link copied", timeout=PATIENCE_MS)
    link = copied(go)
    go_to(go, link)
    assert ranked(go) == []
    page.locator("#filter summary").click()
    assert turned.inner_text() == "all of these"
    choice(go, EPOLL).check()
    assert turned.inner_text() == "all of these"
    turned.click()
    assert len(ranked(go)) > 2
    assert turned.inner_text() == "none of these"
    choice(go, EPOLL).uncheck()
    assert turned.inner_text() == "all of these"


@pytest.mark.parametrize("address", ["100%", "table=toString", "sort=99.x&order=y&contestant=nobody&at=%"])
def test_an_address_that_says_nothing_shows_the_page(shown: Watched, file: Path, address: str) -> None:
    go_to(shown, f"{file.as_uri()}#{address}")
    assert len(ranked(shown)) > 2
    assert shown.page.locator("#s1 .uplot").count() == 1


def test_any_table_is_sorted_by_figures_both_ways_and_back_by_keyboard_too(go: Watched) -> None:
    table = go.page.locator("#s1 .ranking")
    heading = table.get_by_role("columnheader", name="throughput")
    before = ranked(go)
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    rates = [
        float(text.rstrip("k/s")) for text in table.locator("tbody tr:not(.apart) td:nth-child(3)").all_inner_texts()
    ]
    apart = len(rates) - 1  # who failed is ranked apart, and stays there
    assert table.locator("tbody tr").nth(apart).get_attribute("class") == "apart"
    assert rates[:apart] == sorted(rates[:apart])
    assert "sort=" in go.page.url
    go.page.goto("about:blank")
    go.page.go_back()
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert ranked(go) == before
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") is None
    assert "sort=" not in go.page.url
    table.get_by_role("columnheader", name="contestant").get_by_role("button").click()
    assert ranked(go) == [*sorted(before[:apart]), before[apart]]


def test_a_column_is_sorted_by_its_numbers_whatever_its_cells_say(go: Watched) -> None:
    table = go.page.locator("#s1 .ranking")
    cells = table.locator("tbody tr:not(.apart) td:nth-child(3)")
    changes = {"×2.40": 2.4, "+89%": 1.89, "−72%": 0.28, "0%": 1.0}  # noqa: RUF001
    fill = "(cell, [text, number]) => { cell.textContent = text; cell.dataset.number = number; }"
    for number, change in enumerate(changes.items()):
        cells.nth(number).evaluate(fill, change)
    table.get_by_role("columnheader", name="throughput").get_by_role("button").click()
    texts = [text for text in cells.all_inner_texts() if text in changes]
    assert texts == sorted(changes, key=changes.__getitem__)


def test_a_cell_has_the_number_that_it_shows(go: Watched) -> None:
    (findings,) = (found for found in analysed(shown_run()).scenarios if found.scenario.name == "echo")
    by_name = {
        standing.contestant: standing.over_loads.own if standing.over_loads else standing.value
        for standing in findings.standings
    }
    rows = go.page.locator("#s1 .ranking tbody tr:not(.apart)")
    for row in rows.all():
        number = row.locator("td:nth-child(3)").get_attribute("data-number")
        assert math.isclose(float(number or "nan"), by_name[row.locator("th").inner_text().split()[0]], rel_tol=1e-4)


def test_every_cell_with_a_figure_has_its_number(go: Watched) -> None:
    cells = go.page.locator(".data:not(.environment, .reasons) td, .ranking td.figure, .scores td")
    figure = r"^[≥≤×+−<>]*\d[\d.,]*(%| ?(ns|µs|ms|s|B|[KMG]iB)|[kMG]?/s)(?![\w/])"  # noqa: RUF001
    shown = cells.evaluate_all("(cells) => cells.map((cell) => [cell.textContent.trim(), cell.dataset.number ?? null])")
    assert [text for text, number in shown if number is None and re.search(figure, text)] == []
    assert sum(number is not None for _, number in shown) > 100


def test_every_figure_stands_in_a_table_that_is_copied_as_it_is_filtered_and_sorted(go: Watched) -> None:
    page = go.page
    page.goto(f"{page.url.split('#')[0]}#contestant={EPOLL}&contestant={LOCK}&workload=echo&table=blocks&order=5.down")
    page.get_by_role("button", name="Copy as CSV").click()
    expect(page.get_by_role("status")).to_have_text("Table copied", timeout=PATIENCE_MS)
    rows = list(csv.DictReader(io.StringIO(copied(go), newline="")))
    export = exported(shown_run())
    cells = [cell for cell in export.cells if cell.question == "echo" and cell.contestant in (EPOLL, LOCK)]
    cells.sort(key=lambda cell: -cell.figures["throughput"].value)
    assert [(row["contestant"], row["level"]) for row in rows] == [
        (cell.contestant, cell.level.replace("connections=", "") + " connections") for cell in cells
    ]
    for row, cell in zip(rows, cells, strict=True):
        for name, figure in cell.figures.items():
            unit = export.metrics[name].unit
            assert math.isclose(float(row[f"{name} [{unit}]"]), figure.value, rel_tol=1e-4)
            if figure.low is not None:
                assert math.isclose(float(row[f"{name} low [{unit}]"]), figure.low, rel_tol=1e-4)
    assert page.locator("#all-table tbody tr").count() == len(cells)


def test_a_figure_is_saved_with_title_and_legend_and_colours_of_its_own(go: Watched, tmp_path: Path) -> None:
    page = go.page
    page.goto(f"{page.url.split('#')[0]}#contestant={EPOLL}&contestant={SNAPSHOT}")
    figure = page.locator("#s1 figure").first
    figure.locator(".save summary").click()
    with page.expect_download() as drawn:
        figure.get_by_role("button", name="SVG").click()
    drawn.value.save_as(tmp_path / "figure.svg")
    assert drawn.value.suggested_filename == "echo-throughput.svg"
    text = (tmp_path / "figure.svg").read_text()
    assert "var(" not in text
    words = [element.text for element in ElementTree.fromstring(text).iter(f"{SPACE}text")]
    assert words[0] == "echo: Throughput"
    assert words[-2:] == [EPOLL, SNAPSHOT]
    assert re.search(r"#[0-9a-f]{6}", text)
    with page.expect_download() as painted:
        figure.get_by_role("button", name="PNG").click()
    painted.value.save_as(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def saved(watched: Watched, box: Locator, file: Path) -> ElementTree.Element:
    box.locator(".save").evaluate("menu => menu.open = true")  # another test may have opened it on this page
    with watched.page.expect_download() as drawn:
        box.get_by_role("button", name="SVG").click()
    drawn.value.save_as(file)
    return ElementTree.fromstring(file.read_text())


def test_throughput_over_time_is_saved_with_the_lines_that_are_shown(go: Watched, tmp_path: Path) -> None:
    go.page.goto(f"{go.page.url.split('#')[0]}#contestant={EPOLL}&contestant={SNAPSHOT}")
    drawn = saved(go, go.page.locator("#s1 .timeline"), tmp_path / "figure.svg")
    polylines = drawn.findall(f"{SPACE}polyline")
    assert len(polylines) == 2
    assert all(len((polyline.get("points") or "").split()) == 20 for polyline in polylines)
    assert [element.text for element in drawn.iter(f"{SPACE}text")][-2:] == [EPOLL, SNAPSHOT]


# --- runs laid over each other -----------------------------------------------------------------------------------


def _faster(load: LoadResult, times: float) -> LoadResult:
    return replace(load, requests=replace(load.requests, per_second=times * load.requests.per_second))


def faster(run: Run, times: float) -> Run:
    """Return the same run under another name, with every contestant so much faster."""
    trials = tuple(replace(trial, load=_faster(trial.load, times)) if trial.load else trial for trial in run.trials)
    return replace(run, run_id="later", trials=trials)


def test_two_runs_of_three_thousand_trials_lie_over_each_other_and_rows_come_on_demand(
    browser: Browser, tmp_path: Path
) -> None:
    first, file = with_only(made_run(), "echo"), tmp_path / "report.html"
    later, blocks = faster(first, 1.25), max(trial.block for trial in first.trials)
    times = range(-(-3_000 // len(first.trials)))
    # Beside all the trials, the figures of a few blocks are enough: test_report_everything.py has those of all.
    runs = [
        replace(
            analyse(run),
            trials=tuple(replace(trial, block=trial.block + time * blocks) for time in times for trial in run.trials),
        )
        for run in (first, later)
    ]
    with without_panels():
        report.write_page(runs[0], file, [report.Overlaid(runs[1], compare_runs(first, later))])
    assert min(len(run.trials) for run in runs) >= 3_000
    assert file.stat().st_size < 2 * 2**20  # the figures that are left out here take 1.3 MB
    for watched in opened(browser, file, WIDE, "light"):
        page = watched.page
        before = ranked(watched)
        section = page.locator("#overlay")
        assert section.get_by_role("list", name="Runs").get_by_role("listitem").count() == 2
        assert section.locator("h3").all_inner_texts() == ["echo"]
        label = section.locator("figure svg").first.get_attribute("aria-label") or ""
        assert f"{EPOLL} in {first.run_id} 146k/s" in label
        assert f"{EPOLL} in later 182k/s" in label
        section.locator("details > summary", has_text="What changed").click()
        rows = section.get_by_role("region", name="What changed since the first run")
        changes = rows.locator("tbody tr", has_text=EPOLL)
        assert changes.first.inner_text().split("\t")[-2].rstrip("*") == "+25%"
        page.locator("#filter summary").first.click()
        choice(watched, CALLBACKS).uncheck()
        assert ranked(watched) == [name for name in before if name != CALLBACKS]
        choice(watched, "later").uncheck()
        assert changes.first.is_hidden()
        colours = "getComputedStyle(document.documentElement).getPropertyValue('--k{}')"
        assert page.evaluate(colours.format(2 + len({*MEASURED, FOLLY}))) == "transparent"
        assert page.evaluate(colours.format(2)) != "transparent"
        page.locator("#all > summary").click()
        page.locator("#all-table tbody tr").first.wait_for()
        page.locator("#sheet").select_option("trials")
        assert "table=trials" in page.url
        shown = set(page.locator("#all-table tbody td:first-child").all_inner_texts())
        assert shown == {first.run_id}
        assert CALLBACKS not in page.locator("#all-table tbody").inner_text()
        choice(watched, "later").check()
        assert changes.first.is_visible()
        choice(watched, CALLBACKS).check()
        trials = sum(len(run.trials) for run in runs)
        assert page.locator("#all-count").inner_text() == f"200 of {trials} rows"
        choice(watched, "later").uncheck()
        page.locator("#choices button[name=contestant]").click()
        choice(watched, EPOLL).check()
        page.get_by_role("button", name="Show all rows").click()
        chosen = [trial for trial in runs[0].trials if trial.contestant == EPOLL]
        assert page.locator("#all-table tbody tr").count() == len(chosen) > 200
        assert not page.get_by_role("button", name="Show all rows").is_visible()

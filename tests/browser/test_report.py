"""The report in a real browser: complete, offline, without an error, in light and dark, narrow, by keyboard.

Each page is opened once for all tests that read it, or only unfold what is on it; a test that changes more puts back
what it changed.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser

from netdyno.analysis.analysis import analyse
from netdyno.kit import quantities as words
from netdyno.model.metrics import METRICS
from netdyno.present import report
from netdyno.present.prose.verdict import WHAT_HOLDS, answer
from tests.support.builders.analysed import analysed
from tests.support.builders.made_claims import claims_run
from tests.support.builders.made_run import (
    EPOLL,
    FOLLY,
    MEASURED,
    REUSEPORT,
    UDP,
    made_run,
    messages_run,
    one_of_each_kind,
    paired_run,
    troubled_run,
    unsafe_run,
    with_only,
)
from tests.support.undrawn import undrawn, without_panels
from tests.support.watched import (
    LEAST_CONTRAST_OF_SHAPES,
    LEAST_CONTRAST_OF_TEXT,
    PHONE,
    WIDE,
    Pages,
    Viewport,
    Watched,
    colour_of,
    contrast,
    labels,
    open_all_details,
    opened,
    resize,
)

A4 = (718, 1046)
"""The inside of a page in CSS pixels, with Chromium's margins."""
VIEWPORTS = pytest.mark.parametrize("viewport", [(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"])
"""Each size and each scheme once: a scheme changes colours only, and a size none of them."""


@pytest.fixture(scope="module")
def light(pages: Pages, page_file: Path) -> Watched:
    return pages(page_file, WIDE, "light")


@pytest.fixture(scope="module")
def phone(pages: Pages, page_file: Path) -> Watched:
    return pages(page_file, PHONE, "dark")


# --- complete and alone ------------------------------------------------------------------------------------------


def test_every_answer_is_seen_before_any_scrolling(light: Watched) -> None:
    for scenario in analysed(one_of_each_kind()).scenarios:
        card = light.page.locator(
            ".card", has=light.page.get_by_role("heading", name=scenario.scenario.name, exact=True)
        )
        sentence = card.locator(".sentence")
        assert re.sub(r"\s+", " ", sentence.inner_text()) == answer(scenario).short
        box = sentence.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= WIDE[1]


def test_tab_goes_first_to_the_skip_link_then_down_the_page(light: Watched) -> None:
    """Before any test that clicks on its page: where a Tab goes depends on what was clicked."""
    light.page.keyboard.press("Tab")
    skip = light.page.locator(":focus")
    assert skip.inner_text() == "Skip to the answers"
    light.page.keyboard.press("Enter")
    assert light.page.evaluate("document.activeElement.id") == "answers"
    where = """(() => { const e = document.activeElement, style = getComputedStyle(e);
               const top = e.getBoundingClientRect().top + scrollY;
               return { top, end: e === document.body, outline: style.outlineStyle }; })()"""
    tops: list[float] = []
    for _ in range(60):
        light.page.keyboard.press("Tab")
        place = light.page.evaluate(where)
        if place["end"]:
            break
        assert place["outline"] != "none"
        tops.append(place["top"])
    assert len(tops) >= 20
    # Cards stand two in a row, so a step may go up a little within one row of them, never further.
    assert all(later >= earlier - 60 for earlier, later in itertools.pairwise(tops))


def test_it_asks_for_nothing_and_complains_about_nothing(light: Watched, page_file: Path) -> None:
    open_all_details(light.page)
    for _ in range(3):  # the last is the first theme again
        light.page.locator("#theme").click()
    for select in light.page.locator("select").all():
        chosen = select.input_value()
        select.select_option(index=0)
        select.select_option(chosen)
    assert [url for url in light.requests if not url.startswith("data:")] == [page_file.as_uri()]


def test_it_is_one_file_below_two_megabytes(page_file: Path) -> None:
    assert page_file.stat().st_size < 2_000_000
    assert [path.name for path in page_file.parent.iterdir()] == [page_file.name]


def test_a_run_in_which_everything_failed_noisily_stays_small(tmp_path: Path) -> None:
    run = made_run()
    trials = tuple(replace(trial, status="failed", reason="died", log="x" * 100_000, load=None) for trial in run.trials)
    file = tmp_path / "report.html"
    report.write_page(analyse(replace(run, trials=trials)), file)
    assert file.stat().st_size < 2_000_000


def test_every_scenario_has_its_figures_and_the_same_in_words(light: Watched) -> None:
    for number, scenario in enumerate(analysed(one_of_each_kind()).scenarios, 1):
        section = light.page.locator(f"#s{number}")
        assert re.sub(r"\s+", " ", section.locator(".sentence").inner_text()) == answer(scenario).sentence
        texts = labels(section.locator("figure svg"))
        assert len(texts) >= 7
        assert all(EPOLL in text for text in texts)
        assert section.locator(".chart canvas").count() == 1
        rows = section.locator(f"[aria-label='All figures of {scenario.scenario.name}'] tbody tr")
        assert rows.count() == len(scenario.cells) == len(MEASURED) * len(scenario.levels)


def test_each_figure_has_units_on_its_axes(light: Watched) -> None:
    units = ("per second", "(log scale)", "µs of CPU", "per message", "MiB", "connections", "contestants")
    texts = "figures => figures.map(figure => [...figure.querySelectorAll('text')].map(text => text.textContent))"
    drawings = light.page.locator("figure svg").evaluate_all(texts)
    assert drawings
    for drawn in drawings:
        assert any(unit in text for unit in units for text in drawn), drawn


def test_ids_are_unique_and_every_inner_link_leads_somewhere(light: Watched) -> None:
    ids = light.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    links = light.page.evaluate("[...document.querySelectorAll('a, use')].map(e => e.getAttribute('href'))")
    assert {link.removeprefix("#") for link in links if link} <= set(ids)


def test_excluded_trials_stand_there_with_reason_and_log_as_text(light: Watched) -> None:
    text = light.page.locator("#excluded").inner_text()
    for expected in ("invalid", "3 of 212000 replies corrupt", "failed", "skipped", FOLLY, "42 trials"):
        assert expected in text
    open_all_details(light.page)
    assert "<script>alert(1)</script>" in light.page.locator("#excluded pre").first.inner_text()


def test_a_server_that_is_unsafe_stands_apart_and_in_no_ranking_or_figure(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    with undrawn():
        report.write_page(analyse(with_only(unsafe_run(), "echo", "chat")), file)
    for watched in opened(browser, file, WIDE, "light"):
        page = watched.page
        section = page.locator("#s1")
        assert section.get_by_role("heading", name="Unsafe, and in no ranking").is_visible()
        apart = page.get_by_role("region", name="Unsafe contestants in echo")
        assert "3,000 (25%)" in apart.inner_text()
        assert EPOLL in apart.inner_text()
        texts = labels(page.locator("figure svg"))
        assert len(texts) >= 14
        places = [*texts, *page.locator(".ranking, .intervals, .legend").all_inner_texts()]
        assert not [text for text in places if EPOLL in text]
        for size in (WIDE, PHONE):
            resize(page, size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_no_name_is_broken_in_a_card(light: Watched) -> None:
    broken = """names => names.filter(name => {
        const text = document.createRange();
        text.selectNodeContents(name.lastChild);
        return new Set([...text.getClientRects()].map(box => Math.round(box.top))).size > 1;
    }).map(name => name.textContent.trim())"""
    resize(light.page, (1096, 900))  # two cards in a row, as narrow as they can be
    names = light.page.locator(".intervals tbody th:not([colspan])")
    assert names.count() > 10
    assert names.evaluate_all(broken) == []
    assert light.page.evaluate("document.documentElement.scrollWidth") == 1096
    resize(light.page, WIDE)


def test_how_far_the_machine_was_busy_otherwise_stands_beside_the_audits(light: Watched) -> None:
    text = light.page.locator("#excluded").inner_text()
    assert "the hypervisor took a median 0% and at most 0% of the cores' time (steal)" in text
    assert "other programs a median 1% and at most 1% (foreign load)" in text


def test_commands_and_environment_are_there(light: Watched) -> None:
    open_all_details(light.page)
    assert "./netdyno run quick" in light.page.locator("#reproduce").inner_text()
    assert "AMD EPYC 7B13" in light.page.locator("#environment").inner_text()


@pytest.fixture(scope="module")
def pairs(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    file = tmp_path_factory.mktemp("pairs") / "report.html"
    with undrawn():
        report.write_page(analysed(paired_run()), file)
    yield from opened(browser, file, WIDE, "light")


def test_every_pair_of_server_and_client_stands_in_one_table(pairs: Watched) -> None:
    table = pairs.page.get_by_role("region", name="Pairs of pairs")
    rows = [text.split("\t") for text in table.locator("tr").all_inner_texts()]
    assert rows[0] == ["server", "netdyno-load", "asio-callbacks", "qt-signals"]
    assert [[name, *cells] for name, _, *cells in rows[3:]] == [["threads-global-lock", "invalid", "skipped"]]
    assert (rows[2][0], rows[2][3]) == (EPOLL, "skipped")
    shown = [float(rate.removesuffix("k/s")) for rate in (*rows[2][1:3], rows[3][1])]
    assert shown == pytest.approx([157, 78, 61], rel=0.02)
    assert rows[1][2].endswith("k/s (1/2)")
    assert "Qt 6 not found: install qt6-base-dev" in pairs.page.locator("#excluded").inner_text()


def test_what_was_measured_nowhere_is_drawn_nowhere(pairs: Watched) -> None:
    titles = pairs.page.locator("#s1 figcaption").all_inner_texts()
    assert any("client asio-callbacks" in title for title in titles)
    assert not any("qt-signals" in title for title in titles)


def test_a_client_tells_its_cost_and_its_loops_lag(pairs: Watched) -> None:
    open_all_details(pairs.page)
    table = pairs.page.get_by_role("region", name="All figures of pairs")
    headings = table.locator("thead th").all_inner_texts()
    assert headings[-4:] == ["client cores", "client CPU per message", "client peak memory", "client loop lag p99"]
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert headings[-5] == "server loop lag p99"
    for lags in ([row[-1] for row in rows], [row[-5] for row in rows]):
        assert sorted(set(lags))[0].endswith("µs")
        assert lags.count(words.DASH) == 6  # only beside the client contestant do both have the loop of an application


def test_the_code_of_each_contestant_stands_there_and_what_they_share_last(light: Watched) -> None:
    open_all_details(light.page)
    section = light.page.locator("#code")
    table = section.get_by_role("region", name="Code", exact=True)
    rows = [text.split("\t") for text in table.locator("tbody tr").all_inner_texts()]
    headings = table.locator("thead th").all_inner_texts()
    who, figures = headings[:4], headings[4:]
    assert (who[-1], figures[1:3]) == ("family", ["lines", "lines with family"])
    assert rows[0][:4] == [EPOLL, "server", "coroutines on an own epoll loop", "servers/_shared/epoll"]
    assert rows[0][4:] == ["2", "120", "520", "14", "42", "152", "9"]
    assert rows[1][3:7] == [words.DASH, "1", "147", "147"]
    assert [row[:2] for row in rows[-2:]] == [["lib/net", "shared code"], ["servers/_shared/epoll", "shared code"]]
    assert rows[-2][3:7] == [words.DASH, "23", "1,097", words.DASH]
    text = section.inner_text()
    assert "Not counted: qt-signals (main.cpp cannot be counted)" in text
    assert "a service time that burns CPU holds up every other connection while it lasts" in text


# --- transports that lose messages -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lossy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lossy") / "report.html"
    report.write_page(analysed(messages_run()), path)
    return path


@pytest.fixture(scope="module")
def lossy(pages: Pages, lossy_file: Path) -> Watched:
    return pages(lossy_file, WIDE, "light")


def test_loss_stands_beside_the_answer_and_each_rank_and_those_apart_come_last(lossy: Watched) -> None:
    assert lossy.page.locator(".card .sentence strong").inner_text() == f"{UDP} (0.02% lost)"
    for table in (".intervals", ".ranking"):
        rows = lossy.page.locator(f"{table} tbody tr").all_inner_texts()
        assert UDP in rows[0]
        assert "0.02%" in rows[0]
        assert re.search(r"ranked separately.*more than 0\.1%", rows[4], re.IGNORECASE)
        assert REUSEPORT in rows[5]
        assert re.search(r"12%( lost)? !", rows[5])
    assert lossy.page.locator(".intervals .apart .ring").count() == 1


@VIEWPORTS
def test_every_figure_rings_what_lost_too_much_and_nothing_else(
    pages: Pages, lossy_file: Path, viewport: Viewport
) -> None:
    lossy = pages(lossy_file, *viewport)
    bad = colour_of(lossy.page, "--bad")
    rings = "(svg, bad) => [...svg.querySelectorAll('use')].filter(e => getComputedStyle(e).stroke === bad).length"
    counts = {
        figure.locator("figcaption").inner_text(): figure.locator("svg").first.evaluate(rings, bad)
        for figure in lossy.page.locator("#s1 figure").all()
    }
    assert counts.pop("At 100 connections") == 0
    assert set(counts) >= {
        "Throughput",
        "Mean response time",
        "99th-percentile response time",
        "Share of messages lost",
    }
    assert all(count > 0 for count in counts.values()), counts
    assert counts["Mean response time"] == 1 + 5  # the figure, and each of its five trials


def test_each_legend_says_what_the_ring_is_and_what_each_contestant_lost(lossy: Watched) -> None:
    legends = lossy.page.locator("ul.legend").all()
    assert len(legends) == 2
    for legend in legends:
        assert f"{REUSEPORT} 12% lost !" in re.sub(r"\s+", " ", legend.inner_text())
    losses = lossy.page.locator("p.legend.loss").all_inner_texts()
    assert len(losses) == 2
    assert all("lost more than 0.1% of the messages" in text for text in losses)


def test_the_chart_over_time_names_the_loss_of_what_is_chosen(lossy: Watched) -> None:
    legend, level = lossy.page.locator(".uplot .u-legend"), lossy.page.locator("select.level")
    assert f"{REUSEPORT} (12% lost !)" in legend.inner_text()
    chosen = level.input_value()
    level.select_option(index=0)
    assert f"{REUSEPORT} (0% lost)" in legend.inner_text()
    assert f"{EPOLL} (" not in legend.inner_text()  # a stream loses nothing
    level.select_option(chosen)


def test_figures_in_words_tell_the_loss_beside_each_latency(lossy: Watched) -> None:
    texts = labels(lossy.page.locator("#s1 figure svg"))
    spoken = [text for text in texts if "response time" in text.lower() and "1000 connections" in text]
    assert len(spoken) >= 4
    assert all(re.search(rf"{REUSEPORT} [\d.]+ m?s \(12% lost !\)", text) for text in spoken), spoken


def test_every_trial_over_messages_stands_there_with_its_loss_and_its_places(lossy: Watched) -> None:
    open_all_details(lossy.page)
    rows = lossy.page.get_by_role("region", name="Trials of realtime").locator("tbody tr")
    cells = [text.split("\t") for text in rows.all_inner_texts()]
    assert len(cells) == 5 * 2 * 3  # blocks, loads, contestants that do not speak tcp
    marked = [row for row in cells if row[3].endswith("!")]
    assert {(row[0], row[1]) for row in marked} == {("1000 connections", REUSEPORT)}
    assert all(int(row[10].replace(",", "")) > 0 for row in marked)  # dropped at the server's sockets
    headings = lossy.page.get_by_role("region", name="All figures of realtime").locator("thead th").all_inner_texts()
    assert headings[3:9] == ["lost", "late", "duplicated", "reordered", "throughput", "response mean"]


def test_a_server_that_leads_only_among_the_lossy_is_no_plain_winner(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    with undrawn():
        report.write_page(analyse(messages_run(5, everybody=True)), file)
    for watched in opened(browser, file, WIDE, "light"):
        assert watched.page.locator(".card .verdict").inner_text() == "udp-reuseport (25% lost), with loss"
        assert "though all of them lost more than 0.1%" in watched.page.locator(".card .sentence").inner_text()
        assert watched.page.locator("tr.apart").count() == 0  # there is no group to stand apart from


def test_a_report_of_losses_fits_a_phone(pages: Pages, lossy_file: Path) -> None:
    page = pages(lossy_file, PHONE, "dark").page
    open_all_details(page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert "12%" in page.locator(".intervals tbody tr").last.inner_text()


def test_over_streams_nothing_is_ringed_and_no_loss_is_reported(light: Watched) -> None:
    assert light.page.locator(".ring, .lost").count() == 0
    assert "Share of messages lost" not in light.page.locator("main").inner_text()


def test_a_hostile_name_or_question_stays_text(browser: Browser, tmp_path: Path) -> None:
    run = made_run()
    bad = "</script><img src=x onerror=alert(1)>"
    chat = [trial for trial in run.trials if trial.scenario == "chat"]
    trials = tuple(replace(trial, contestant=bad) if trial.contestant == EPOLL else trial for trial in chat)
    file = tmp_path / "report.html"
    report.write_page(analyse(replace(run, trials=trials, experiment=replace(run.experiment, question=bad))), file)
    for watched in opened(browser, file, WIDE, "light"):
        assert watched.page.locator("img").count() == 0
        assert watched.page.locator("h1").inner_text() == bad


def test_an_empty_run_still_has_a_page(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    report.write_page(analyse(replace(made_run(), trials=(), about=())), file)
    for watched in opened(browser, file, WIDE, "light"):
        assert watched.page.locator(".card.no_data").count() == 4
        assert watched.page.locator("#code").count() == 0  # nor has a run that was stored before code was counted


# --- claims ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def claims_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("claims") / "report.html"
    with without_panels():
        report.write_page(analysed(claims_run()), path)
    return path


@pytest.fixture(scope="module")
def claims(pages: Pages, claims_file: Path) -> Watched:
    return pages(claims_file, WIDE, "light")


def test_the_verdicts_stand_first_each_with_effect_published_figure_and_why(claims: Watched) -> None:
    assert claims.page.locator("main > section").first.get_attribute("id") == "claims"
    assert claims.page.locator("#claims h2").inner_text() == (
        "4 claims: 1 confirmed, 1 refuted, 1 undecided, 1 not testable here"
    )
    rows = claims.page.locator(".verdicts > tbody > tr").all_inner_texts()
    assert [re.findall(r"confirmed|refuted|undecided|not testable here", row)[0] for row in rows] == [
        *("confirmed", "refuted", "undecided", "not testable here")
    ]
    assert "Coroutines <b>win</b> (K1)" in rows[0]
    assert "\N{MULTIPLICATION SIGN}3.00 [" in rows[0]
    assert "coroutines, requests in 10 s: 91,281.5" in rows[0]
    assert "Delayed ACKs per 1,000 messages: 4.00" in rows[0]
    assert "Of 6 comparisons 6 fail" in rows[1]
    assert "not proven different from the threshold" in rows[2]
    assert "it needs 4 cores, and there were 2" in rows[3]


def test_every_comparison_of_a_claim_can_be_looked_up(claims: Watched) -> None:
    open_all_details(claims.page)
    rows = claims.page.get_by_role("region", name="Comparisons of claim K2").locator("tbody tr")
    assert rows.count() == 6
    assert "10 connections" in rows.first.inner_text()


def test_a_report_of_claims_fits_a_phone(pages: Pages, claims_file: Path) -> None:
    page = pages(claims_file, PHONE, "dark").page
    open_all_details(page)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]


@VIEWPORTS
def test_words_on_verdicts_stand_out(pages: Pages, claims_file: Path, viewport: Viewport) -> None:
    for pill in pages(claims_file, *viewport).page.locator("#claims .status").all():
        colours = pill.evaluate("e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor]; }")
        assert contrast(*colours) >= LEAST_CONTRAST_OF_TEXT, pill.inner_text()


def test_without_claims_and_figures_there_is_no_section_of_them(light: Watched) -> None:
    assert light.page.locator("#claims, .chart-of").count() == 0
    assert light.page.locator(".skip").get_attribute("href") == "#answers"


# --- themes ------------------------------------------------------------------------------------------------------


@VIEWPORTS
def test_text_and_shapes_stand_out_from_the_paper(pages: Pages, page_file: Path, viewport: Viewport) -> None:
    shown = pages(page_file, *viewport)
    for paper in ("--paper", "--raised"):
        behind = colour_of(shown.page, paper)
        for name in ("--ink", "--muted", "--link"):
            assert contrast(colour_of(shown.page, name), behind) >= LEAST_CONTRAST_OF_TEXT, name
        for number in range(8):
            assert contrast(colour_of(shown.page, f"--c{number}"), behind) >= LEAST_CONTRAST_OF_SHAPES, number
    for name in ("--good", "--even", "--open", "--bad"):
        soft = colour_of(shown.page, f"{name}-soft")
        assert contrast(colour_of(shown.page, name), soft) >= LEAST_CONTRAST_OF_TEXT, name


def test_figures_follow_the_theme(light: Watched) -> None:
    text, theme = light.page.locator("figure svg text").first, light.page.locator("#theme")
    before = text.evaluate("e => getComputedStyle(e).fill")
    theme.click()
    theme.click()
    assert theme.inner_text() == "Theme: dark"
    assert text.evaluate("e => getComputedStyle(e).fill") != before
    theme.click()
    assert text.evaluate("e => getComputedStyle(e).fill") == before


def test_no_stand_in_colour_is_left_in_the_page(page_file: Path) -> None:
    assert not re.search(r"#0[234]00[0-9a-f]{2}\b|#01020[0-9]\b", page_file.read_text(encoding="utf-8"))


def test_a_contestant_looks_the_same_everywhere_and_like_no_other(light: Watched) -> None:
    styles: dict[str, set[tuple[str, str]]] = {name: set() for name in MEASURED}
    items = light.page.locator(".legend li, .ranking tbody th").evaluate_all(
        """items => items.map(item => [item.innerText, item.querySelector('svg use').getAttribute('href'),
           getComputedStyle(item.querySelector('svg')).color])"""
    )
    for text, shape, colour in items:
        styles[text.split()[0]].add((shape, colour))
    assert all(len(variants) == 1 for variants in styles.values())
    assert len({colour for variants in styles.values() for _, colour in variants}) == len(MEASURED)
    assert len({shape for variants in styles.values() for shape, _ in variants}) == len(MEASURED)


# --- narrow, and by keyboard -------------------------------------------------------------------------------------


def test_a_phone_never_scrolls_the_page_sideways(phone: Watched) -> None:
    open_all_details(phone.page)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    boxes = phone.page.locator("figure svg").evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert boxes
    assert all(box["width"] > 0 and box["right"] <= PHONE[0] for box in boxes)


def test_the_chart_over_time_shrinks_with_the_window(light: Watched) -> None:
    resize(light.page, PHONE)
    light.page.wait_for_function("[...document.querySelectorAll('.uplot')].every(e => e.clientWidth <= innerWidth)")
    resize(light.page, WIDE)


def test_a_phone_shows_all_that_a_ranking_says_of_a_contestant(pages: Pages, troubled_file: Path) -> None:
    rankings = pages(troubled_file, PHONE, "dark").page.locator(".ranking")
    assert rankings.count() > 1
    assert rankings.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth).length") == 0


def test_whatever_scrolls_sideways_can_be_scrolled_by_keyboard(phone: Watched) -> None:
    open_all_details(phone.page)
    stuck = phone.page.evaluate(
        """[...document.querySelectorAll('body *')]
           .filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0)
           .filter(e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
           .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert stuck == []


# --- the scoreboard ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def troubled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("troubled") / "report.html"
    with without_panels():
        report.write_page(analysed(troubled_run()), path)
    return path


@pytest.fixture(params=[(WIDE, "light"), (PHONE, "dark")], ids=["wide", "phone"], scope="module")
def troubled(request: pytest.FixtureRequest, pages: Pages, troubled_file: Path) -> Watched:
    """Each size and each scheme once: a scheme changes colours only, and a size none of them."""
    return pages(troubled_file, *request.param)


def test_every_card_has_all_contestants_and_every_section_the_scoreboard(troubled: Watched) -> None:
    """On a phone the same table is laid out by contestant; to a screen reader it stays a table."""
    scenarios = analysed(troubled_run()).scenarios
    for number, scenario in enumerate(scenarios, 1):
        for table in (
            troubled.page.locator(".card").nth(number - 1).get_by_role("table"),
            troubled.page.locator(f"#s{number}").get_by_role("table").first,
        ):
            names = [" ".join(text.split()) for text in table.locator("th[scope=row]").all_inner_texts()]
            assert names[: len(scenario.standings)] == [standing.contestant for standing in scenario.standings]
            if number == 1 and table.get_by_role("columnheader").count():  # all are of one template
                assert table.get_by_role("columnheader").count() == 1 + len(scenario.axes)
                first = table.get_by_role("row").nth(1)
                assert first.get_by_role("rowheader").count() == 1
                assert first.get_by_role("cell").count() == len(scenario.axes)
            box = table.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= troubled.page.evaluate("innerWidth")
    widths = troubled.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_every_card_draws_the_interval_of_each_contestant_on_the_axis_of_its_question(light: Watched) -> None:
    for number, scenario in enumerate(analysed(one_of_each_kind()).scenarios):
        card = light.page.locator(".card").nth(number)
        assert card.locator("table, figure").count() == 1
        assert card.locator("caption").inner_text().lower().startswith(METRICS[scenario.scenario.metric].title)
        first = [standing for standing in scenario.standings if standing.peers == scenario.standings[0].peers]
        assert card.locator("tbody .forest use").count() == len(first) > 1
        assert card.locator(".whisker").count() == len(first) - 1
        ends = card.locator(".whisker").evaluate_all("all => all.map(e => [e.x1.baseVal.value, e.x2.baseVal.value])")
        assert all(low < high for low, high in ends)


@pytest.mark.parametrize("width", [400, 500, 700, 1096])
def test_nothing_in_a_card_leaves_it(troubled: Watched, width: int) -> None:
    before = troubled.page.viewport_size
    assert before is not None
    resize(troubled.page, (width, 800))
    outside = troubled.page.evaluate(
        """[...document.querySelectorAll('.card')].flatMap(card => {
             const { left, right } = card.getBoundingClientRect();
             return [...card.querySelectorAll('*:not(.unseen, svg *)')]
               .filter(e => e.getBoundingClientRect().right > right || e.getBoundingClientRect().left < left)
               .map(e => e.outerHTML.slice(0, 80));
           })"""
    )
    resize(troubled.page, (before["width"], before["height"]))
    assert outside == []


def test_a_phone_loses_neither_the_scale_of_bars_nor_a_heading(light: Watched, claims: Watched) -> None:
    for watched in (light, claims):
        resize(watched.page, (400, 800))
    open_all_details(light.page)
    ticks = light.page.locator(".counters tfoot text")
    assert ticks.count() > 1
    assert all(tick.is_visible() for tick in ticks.all())
    heading = claims.page.locator(".verdicts > tbody > tr > td").nth(1)
    assert heading.evaluate("cell => getComputedStyle(cell, '::before').content") == '"found here: "'
    for watched in (light, claims):
        resize(watched.page, (1280, 900))


def test_printed_nothing_is_cut(light: Watched) -> None:
    """To print, the browser lays the page out again and tells no script: all is measured before one could hear."""
    open_all_details(light.page)
    light.page.emulate_media(media="print")
    cut = light.page.evaluate(
        """width => {
           document.body.style.width = `${width}px`;
           const found = [...document.querySelectorAll('table, pre, canvas')]
             .filter(e => e.getBoundingClientRect().right > width + 1 || e.scrollWidth > e.clientWidth + 1)
             .map(e => (e.parentElement.ariaLabel ?? '') + e.outerHTML.slice(0, 60));
           const range = document.createRange();
           const broken = [...document.querySelectorAll('.ranking .rank')]
             .filter(e => (range.selectNodeContents(e), range.getClientRects().length > 1)).map(e => e.textContent);
           document.body.style.width = '';
           return [...found, ...broken];
        }""",
        A4[0],
    )
    light.page.emulate_media(media="screen")
    assert cut == []


def test_nothing_in_a_scoreboard_lies_on_top_of_another_or_is_cut(troubled: Watched) -> None:
    style = troubled.page.add_style_tag(content=".scores .unseen { display: none !important; }")
    overlaps = troubled.page.evaluate(
        """[...document.querySelectorAll('.scores tbody tr')].flatMap(row => {
             const boxes = [...row.children].map(cell => {
               const range = document.createRange();
               range.selectNodeContents(cell);
               const { left, right, top, bottom } = range.getBoundingClientRect();
               return { left, right, top, bottom, text: cell.textContent.trim() };
             });
             const beside = (a, b) => a.left >= b.right - 1 || b.left >= a.right - 1;
             const below = (a, b) => a.top >= b.bottom - 4 || b.top >= a.bottom - 4;
             return boxes.flatMap((a, i) => boxes.slice(i + 1)
               .filter(b => !beside(a, b) && !below(a, b)).map(b => [a.text, b.text]));
           })"""
    )
    style.evaluate("e => e.remove()")
    assert overlaps == []


def test_bounds_ranks_and_the_best_are_stated_in_words_and_seen(troubled: Watched) -> None:
    names = [scenario.scenario.name for scenario in analysed(troubled_run()).scenarios]
    board = troubled.page.locator(f"#s{1 + names.index('http')} .scores")
    cells = board.locator("tbody tr").first.locator("td")
    spoken = [re.sub(r"\s+", " ", text) for text in cells.evaluate_all(SPOKEN)]
    assert re.fullmatch(r"at least [\d.]+k/s, rank 1, shared", spoken[0])
    assert re.fullmatch(r"at most [\d.]+ [mµ]s, rank 1, shared", spoken[1])
    assert re.fullmatch(r"[\d.]+ µs, rank \d(, shared)?", spoken[3])
    assert cells.nth(0).locator("sup").inner_text() == "1="
    assert cells.nth(0).locator(".bound").inner_text().strip() == "≥"
    ranks = {
        cell.locator("sup").inner_text().rstrip("="): "best" in (cell.get_attribute("class") or "")
        for cell in board.locator("td:first-of-type").all()
    }
    assert ranks.pop("1")
    assert ranks
    assert not any(ranks.values())
    best, paper = cells.nth(0), colour_of(troubled.page, "--paper")
    assert contrast(best.evaluate("e => getComputedStyle(e).color"), paper) >= LEAST_CONTRAST_OF_TEXT
    assert int(best.evaluate("e => getComputedStyle(e).fontWeight")) >= 600


SPOKEN = """cells => cells.map(cell => { const copy = cell.cloneNode(true);
            copy.querySelectorAll('[aria-hidden=true]').forEach(e => e.remove()); return copy.textContent.trim(); })"""
"""What a screen reader has of elements."""


def test_a_server_that_failed_is_ranked_apart_with_its_fault(troubled: Watched) -> None:
    card = troubled.page.locator(".card", has=troubled.page.get_by_role("heading", name="echo", exact=True))
    rows = [" ".join(text.split()) for text in card.locator("tbody tr").all_inner_texts()]
    place = next(number for number, row in enumerate(rows) if "SIGSEGV" in row)
    assert rows[place].startswith("Ranked separately: ended by itself in 2 of 18 trials: signal SIGSEGV")
    assert rows[place + 1].startswith("threads-global-lock")
    open_loop = troubled.page.locator(".card", has=troubled.page.get_by_role("heading", name="rpc-open", exact=True))
    assert "No valid trial: ended by itself in 18 of 18 trials: signal SIGSEGV" in open_loop.inner_text()
    assert troubled.page.locator(".ring").count() == 0  # that is the mark of losses


# --- what goes along, comparisons, the machine -------------------------------------------------------------------


def test_what_goes_along_is_a_table_with_a_bar_for_each_counter(light: Watched) -> None:
    scenario = analysed(one_of_each_kind()).scenarios[0]
    tables = light.page.locator("#s1 .along")
    assert tables.count() == len(scenario.whys)
    for number, why in enumerate(scenario.whys):
        text = tables.nth(number).locator("p").first.inner_text()
        assert text.startswith(f"{why.worse} against {why.better} (throughput ")
        assert len(text) < 200
        rows = tables.nth(number).locator("tbody tr")
        assert rows.count() == len(why.differences)
        bars = [bar.bounding_box() for bar in tables.nth(number).locator("rect").all()]
        lengths = [bar["width"] for bar in bars if bar]
        ratios = [abs(math.log(difference.comparison.ratio)) for difference in why.differences]
        assert [sorted(lengths).index(length) for length in lengths] == [
            sorted(ratios).index(ratio) for ratio in ratios
        ]
        assert all(length > 1 for length in lengths)


def test_every_comparison_of_every_axis_can_be_looked_up(light: Watched) -> None:
    open_all_details(light.page)
    scenario = analysed(one_of_each_kind()).scenarios[0]
    table = light.page.get_by_role("region", name="Comparisons of echo")
    assert table.locator("thead th").all_inner_texts() == [
        *("axis", "first", "second", "first / second", "95% interval, corrected", "blocks", "different")
    ]
    rows = [text.split("\t") for text in table.locator("tbody tr").all_inner_texts()]
    assert len(rows) == sum(len(axis.comparisons) for axis in scenario.axes)
    assert list(dict.fromkeys(row[0] for row in rows)) == ["throughput", "p50", "p99", "CPU", "memory"]


def test_what_the_machine_disturbed_stands_in_the_header_and_in_its_section(troubled: Watched) -> None:
    counts = analysed(troubled_run()).counts
    header = troubled.page.locator(".sure").inner_text()
    assert f"{counts.invalid} invalid, {counts.faulty} faulty" in header
    troubled.page.get_by_role("link", name=f"{counts.retried} retried").click()
    section = troubled.page.locator("#machine")
    assert "No retry depends on a figure" in section.inner_text()
    by_contestant = troubled.page.get_by_role("region", name="Retries by contestant")
    assert "asio-callbacks 4" in " ".join(by_contestant.inner_text().split())
    by_cause = troubled.page.get_by_role("region", name="Retried trials by cause")
    assert "steal 16" in " ".join(by_cause.inner_text().split())


def test_at_most_two_lines_come_before_the_answer(light: Watched) -> None:
    sure = light.page.locator(".sure")
    height = sure.evaluate("e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)")
    assert round(height) <= 2, sure.inner_text()


def test_the_page_promises_what_holds_and_nothing_of_methods_that_are_gone(light: Watched) -> None:
    light.page.get_by_role("link", name="How to read this").click()  # which unfolds it
    assert WHAT_HOLDS in re.sub(r"\s+", " ", light.page.locator("#reading").inner_text())
    text = light.page.locator("body").inner_text()
    for gone in ("Holm", "sign-flip", "at most 5%", "pairs"):
        assert gone not in text

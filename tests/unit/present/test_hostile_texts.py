"""Stored text is shown on a terminal and on a page, and does nothing. No file is opened because a run names it."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.table import Table
from rich.text import Text

from netdyno.analysis.analysis import analyse
from netdyno.analysis.compare.run_comparison import compare_runs
from netdyno.kit.escape import harmless, harmless_json, harmless_lines, harmless_markdown
from netdyno.measure.run.hosts import GoneError
from netdyno.measure.run.progress import LostHosts, MeasuredWarmup, Progress
from netdyno.model.run import Run
from netdyno.model.trial import Warmup
from netdyno.present import report
from netdyno.present.export import tables
from netdyno.present.export.collect import collect
from netdyno.present.published import site
from netdyno.present.published.site import Site
from netdyno.present.report.drawing import embed_svg
from netdyno.present.terminal.console import Console, open_for_sentences
from netdyno.present.terminal.display import LiveDisplay, PlainDisplay
from netdyno.present.terminal.table import render
from netdyno.question.plan import Cell
from netdyno.verbs import cli, compare, listing
from tests.support.builders.hostile_run import hostile
from tests.support.builders.made_run import paired_run

EVIL = (
    "\x1b]0;mine\x07\x9b2J\r\b\u202e\u2028\x00\x7f"
    "<script>alert(1)</script>'\"&{{ 7 * 7 }}$\\frac$\\g<1>[bold][/i]:smile:%s"
)
TEXTS = st.one_of(
    st.text(max_size=40),
    st.text("\x00\x07\x08\x0b\x1b\x7f\x9b\r\n\t\u200e\u202e\u2066\u2028\ufeff[]/;0mJ<>&\"'$\\{}%é漢", max_size=40),
    st.just(EVIL),
)
SEQUENCE = re.compile(r"\x1b\[[\d;]*m")


def is_seen(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@settings(deadline=None, max_examples=60)
@given(st.text() | TEXTS)
def test_what_is_harmless_can_be_seen_and_what_could_be_seen_is_as_it_was(text: str) -> None:
    assert harmless(text).isprintable()
    assert is_seen(harmless_lines(text))
    assert harmless_lines(text).count("\n") == text.count("\n")
    if text.isprintable():
        assert harmless(text) == text


@settings(deadline=None, max_examples=60)
@given(TEXTS, TEXTS, st.booleans())
def test_a_console_shows_it_and_obeys_only_rich(text: str, second: str, colours: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=60, force_terminal=colours, color_system="truecolor" if colours else None)
    table = Table(text, "heading")
    table.add_row(Text(second, style="bold red"), text)
    console.print(table)
    console.print(text)
    assert is_seen(SEQUENCE.sub("", out.getvalue()))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_sentence_is_wrapped_between_words_on_a_terminal_and_a_line_elsewhere(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    sentence = "CPU is 3.2% to 7.1% worse (95% interval) than before, which is more than the margin of the gate. " * 3
    open_for_sentences(out).print(sentence.strip())
    lines = SEQUENCE.sub("", out.getvalue()).splitlines()
    assert " ".join(line.strip() for line in lines) == sentence.strip()
    assert len(lines) == (4 if is_terminal else 1)


def test_a_bracket_is_a_bracket() -> None:
    out = io.StringIO()
    Console(file=out, width=60).print("[bold]:smile:[/i]")
    assert out.getvalue() == "[bold]:smile:[/i]\n"


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_trials_and_notes_are_shown_as_they_come(text: str) -> None:
    (trial, *_) = paired_run().trials
    trial = replace(trial, status="failed", reason=text, scenario=text, contestant=text, levels={text: text})
    cell = Cell(block=1, position=0, scenario=text, contestant=text, levels={text: text})
    progress = Progress((cell,), 1.0, None)
    plain, live = io.StringIO(), io.StringIO()
    for display in (PlainDisplay(plain), LiveDisplay(Console(file=live, width=80))):
        display.begin(LostHosts(GoneError(text)))
        display.trial_started(cell, progress)
        display.trial_done(trial, progress)
        display.note(MeasuredWarmup(text, text, Warmup(seconds=1.0, measured_s=1.0, steady=True)))
        display.close()
    assert is_seen(plain.getvalue())
    assert is_seen(live.getvalue())


@settings(deadline=None, max_examples=60)
@given(TEXTS, TEXTS)
def test_a_row_of_a_list_ends_with_its_notes(text: str, second: str) -> None:
    shown = listing.as_text("runs", [{"id": text, "error": second}, {"id": "b", "trials": {text: 1}}])
    assert is_seen(shown)
    heading, _, *others = shown.split("\n")
    assert heading.split() == ["id", "trials"]
    assert sum(line.startswith("b ") for line in others) == 1


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_a_complaint_is_one_line(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", printed := io.StringIO())
        assert cli.main(["list", f"x{text}"]) == 2
    assert is_seen(printed.getvalue())
    assert printed.getvalue().count("\n") == 1


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_a_drawing_says_it_for_readers_that_cannot_see_it(text: str) -> None:
    drawn = embed_svg(
        '<?xml version="1.0"?>\n<svg width="1" viewBox="0 0 1 1" xmlns="x">\n<g id="x" class="y"/>\n</svg>', text, "one"
    )
    assert is_seen(drawn)
    assert drawn.count("<") == 3
    assert "#clients url(#x)" in embed_svg('<svg viewBox="0 0 1 1"/>', "#clients url(#x)", "one"), "no id of a picture"
    assert tags(drawn) == Counter(["svg", "g"])


def tags(page: str) -> Counter[str]:
    counts: Counter[str] = Counter()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
            counts[tag] += 1
            assert {name for name, _ in attrs if name.startswith("on")} == set()

    Reader().feed(page)
    return counts


@pytest.fixture(scope="module")
def evil_run() -> Run:
    return hostile(paired_run(), EVIL)


def test_a_whole_run_of_it_does_nothing_to_a_page(evil_run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours to read")
    failed = replace(evil_run.trials[0], status="failed", reason=EVIL, log=str(secret), load=None)
    page = report.render_html(analyse(replace(evil_run, trials=(failed, *evil_run.trials[1:]))))
    assert is_seen(page)
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert tags(page)["script"] == 3
    assert "not yours" not in page


def test_a_whole_run_of_it_does_nothing_to_a_terminal(evil_run: Run) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100)
    console.print(render(analyse(evil_run)))
    console.print(compare.render(compare_runs(evil_run, evil_run)))
    assert is_seen(out.getvalue())
    assert "\\x1b" in out.getvalue()


MARKDOWN = "![x](http://evil.example) [see](www.evil.example) **passes** `a` @user #1 &#64;x $x$ ~~x~~ !1 |"
ACTIVE = re.compile(r"[\[\]|*~]|<|://|@|\$|#\d|&#|www\.|!\d")
"""What Markdown acts on, outside of code, where no backslash stops it."""


def remove_inert(page: str) -> str:
    """The Markdown without what it shows as it is: escaped signs, and code."""
    return re.sub(r"\\.|(`+).+?(?<!`)\1(?!`)", " ", page)


@settings(deadline=None, max_examples=60)
@given(st.one_of(TEXTS, st.text("[]()!<>&#@:/.w*_~`\\|$% \na1-+=", max_size=30), st.just(MARKDOWN)))
def test_markdown_shows_it_and_does_nothing(text: str) -> None:
    shown = harmless_markdown(text)
    assert shown.isprintable()
    assert not ACTIVE.search(remove_inert(shown))
    assert not re.match(r"[-+]( |-|$)|[>#=~*]|\d+[.)]", shown)


def test_a_whole_run_of_it_does_nothing_in_an_export(evil_run: Run) -> None:
    failed = replace(evil_run.trials[0], status="failed", reason=EVIL + MARKDOWN, load=None)
    collected = collect(analyse(replace(evil_run, trials=(failed, *evil_run.trials[1:]))))
    summary = site.render_summary(Site(runs=(site.make_entry(collected.findings, {"kernel": EVIL}, 1, ""),)))
    pages = [tables.format_markdown(collected), summary]
    table = tables.format_csv(collected).replace("\r\n", "\n")
    assert all(is_seen(text) for text in (*pages, table, tables.format_json(collected)))
    assert "alert(1)" in table
    for line in "".join(pages).splitlines():
        assert not ACTIVE.search(remove_inert(re.sub(r"^\* |^\| | \|$|\*\*", "", line).replace(" | ", " ")))


def test_json_keeps_what_it_does_not_show() -> None:
    text = json.dumps({"log": f"{EVIL}\U000e0001é"}, ensure_ascii=False, indent=1)
    assert is_seen(harmless_json(text))
    assert json.loads(harmless_json(text)) == json.loads(text)

"""A contestant that is unsafe on purpose is in no ranking, and stands apart with what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from netdyno.analysis import analysis
from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.charts import Chart
from netdyno.analysis.found.run import Analysis
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.kit import quantities
from netdyno.model.contestant import About
from netdyno.model.figure import Figure
from netdyno.model.verdicts import Refused
from netdyno.present.prose import unranked as words
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.verdict import answer
from tests.support.builders.analysed import analysed
from tests.support.builders.made_claims import RATIO, judged, made
from tests.support.builders.made_run import (
    ABOUT,
    COROUTINES,
    EPOLL,
    LOCK,
    MEASURED,
    WHY_UNSAFE,
    made_run,
    unsafe_run,
)
from tests.support.printed import print_in_one_line, print_table
from tests.support.undrawn import page_without_panels


@pytest.fixture(scope="module")
def unsafe_analysis() -> Analysis:
    return analysed(unsafe_run())


def test_every_answer_is_that_of_a_run_without_it(unsafe_analysis: Analysis) -> None:
    run = made_run()
    without = analyse(
        replace(run, trials=tuple(trial for trial in run.trials if trial.contestant != EPOLL), about=ABOUT[1:])
    )
    assert unsafe_analysis.contestants == without.contestants
    assert EPOLL not in unsafe_analysis.contestants
    for findings, expected in zip(unsafe_analysis.scenarios, without.scenarios, strict=True):
        assert findings.standings == expected.standings
        assert findings.comparisons == expected.comparisons
        assert findings.cells == expected.cells
        assert answer(findings).headline == answer(expected).headline
        assert answer(findings).sentence == f"{answer(expected).sentence} Left out as unsafe: {EPOLL}."
        assert list_caveats(findings)[0] == f"{EPOLL} is UNSAFE and in no ranking: {WHY_UNSAFE}."
        assert list_caveats(findings)[1:] == list_caveats(expected)


def test_what_verification_found_stands_apart_level_by_level(unsafe_analysis: Analysis) -> None:
    echo = unsafe_analysis.scenarios[0]
    assert [cell.level for cell in echo.unsafe] == [level.label for level in echo.levels]
    right, last = echo.unsafe[0], echo.unsafe[-1]
    assert (right.trials, right.wrong, right.lost, right.corrupt) == (6, 0, 0, 0)
    assert (last.trials, last.wrong, last.expected, last.lost) == (6, 6, 12_000, 3000)
    assert (last.corrupt, last.streams) == (42, 18)
    assert words.make_row(last)[2:] == ("6", "6", "3,000 (25%)", "0", "0", "42", "18")
    assert "12 trials without a fault prove no safety" in words.explain_columns(echo.unsafe)
    assert "without a fault" not in words.explain_columns([last])


def test_its_trials_are_counted_and_listed_like_any_other(unsafe_analysis: Analysis) -> None:
    assert unsafe_analysis.counts.faulty == 7
    assert [note.contestant for note in unsafe_analysis.excluded if note.cause.audits == ("verification",)].count(
        EPOLL
    ) == 6


def test_the_table_marks_it_and_never_ranks_it(unsafe_analysis: Analysis) -> None:
    text, lines = print_in_one_line(unsafe_analysis), print_table(unsafe_analysis).splitlines()
    assert f"{EPOLL} is UNSAFE and in no ranking: {WHY_UNSAFE}." in text
    assert not [line for line in lines if re.match(rf" ?(\d+=?|{quantities.DASH}) +{EPOLL}", line)]
    assert [line for line in lines if re.search(r"6 of 6 +3,000 \(25%\) +42 +18", line)]
    assert max(map(len, lines)) <= 80


def test_the_report_marks_it_and_never_ranks_it(unsafe_analysis: Analysis) -> None:
    page = page_without_panels(unsafe_analysis)
    assert page.count("Unsafe, and in no ranking") == 4
    assert '<td data-number="3000">3,000 (25%)</td>' in page
    assert "server, UNSAFE" in page
    assert "frames mix &lt;b&gt;" in page
    assert "<b>" not in page
    for table in re.findall(r'<table class="(?:intervals|ranking).*?</table>', page, re.DOTALL):
        assert EPOLL not in table
        assert LOCK in table


def test_where_none_is_unsafe_nothing_is_stated() -> None:
    analysis = analysed(made_run())
    assert all(findings.unsafe == () for findings in analysis.scenarios)
    page = page_without_panels(analysis)
    assert "nsafe" not in page.replace("unsafe-inline", "")
    assert "nsafe" not in print_table(analysis)


def test_where_everybody_is_unsafe_none_is_ranked() -> None:
    about = tuple(About(kind="server", name=name, unsafe=WHY_UNSAFE) for name in MEASURED)
    run = made_run()
    run = replace(run, trials=tuple(trial for trial in run.trials if trial.contestant in MEASURED), about=about)
    analysis = analyse(run)
    assert analysis.contestants == ()
    assert {findings.verdict for findings in analysis.scenarios} == {"no_data"}
    assert all(findings.standings == () for findings in analysis.scenarios)
    assert "Unsafe, and in no ranking" in page_without_panels(analysis)


def test_no_claim_stands_on_it() -> None:
    def fast(name: str, _: object) -> float:
        return 300 if name == COROUTINES else 100

    run = made(f"[claim.test]{RATIO}above = 2", "throughput", fast)
    assert judged(run).verdict == "confirmed"
    unsafe = judged(replace(run, about=(About(kind="server", name=LOCK, unsafe=WHY_UNSAFE),)))
    assert (unsafe.verdict, unsafe.lacking) == ("not_testable", Refused({LOCK: "unsafe"}))
    unranked = judged(replace(run, about=(About(kind="server", name=LOCK, unranked="an instrument"),)))
    assert (unranked.verdict, unranked.lacking) == ("not_testable", Refused({LOCK: "not ranked"}))


def test_a_claim_about_all_contestants_leaves_it_out() -> None:
    below = '[claim.test]\nkind = "bound"\nmetric = "throughput"\nbelow = 200\nevery = true'
    run = made(below, "throughput", lambda name, _: 300 if name == COROUTINES else 100)
    assert judged(run).verdict != "confirmed"
    assert (
        judged(replace(run, about=(About(kind="server", name=COROUTINES, unsafe=WHY_UNSAFE),))).verdict == "confirmed"
    )


def test_a_claim_on_code_leaves_its_code_out() -> None:
    run = made(
        '[claim.test]\nkind = "bound"\nmetric = "lines"\nbelow = 200\nevery = true',
        "lines",
        lambda name, _: 300 if name == COROUTINES else 100,
    )
    assert judged(run).verdict == "refuted"
    unsafe_one = tuple(replace(entry, unsafe=WHY_UNSAFE if entry.name == COROUTINES else "") for entry in run.about)
    assert judged(replace(run, about=unsafe_one)).verdict == "confirmed"


# --- what is no contestant at all ---------------------------------------------------------------------------------


def test_what_is_not_ranked_is_in_no_answer_and_is_named() -> None:
    run = made_run()
    about = (replace(ABOUT[0], unranked="an instrument"), *ABOUT[1:])
    result = analyse(replace(run, about=about))
    without = analyse(
        replace(run, trials=tuple(trial for trial in run.trials if trial.contestant != EPOLL), about=ABOUT[1:])
    )
    assert result.contestants == without.contestants
    for findings, expected in zip(result.scenarios, without.scenarios, strict=True):
        assert (findings.standings, findings.cells, answer(findings).sentence, findings.unsafe) == (
            expected.standings,
            expected.cells,
            answer(expected).sentence,
            (),
        )
        assert list_caveats(findings) == (
            f"{EPOLL} is in no ranking or claim: it is an instrument.",
            *list_caveats(expected),
        )


def test_a_figure_draws_unsafe_servers_and_none_that_is_no_contestant(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[set[str]] = []

    def charts(figures: Sequence[Figure], parts: Sequence[ScenarioTrials]) -> tuple[Chart, ...]:
        drawn.append({trial.contestant for part in parts for trial in part.drawn()})
        return ()

    monkeypatch.setattr(analysis, "build_charts", charts)
    analyse(unsafe_run())
    run = made_run()
    analyse(replace(run, about=(replace(ABOUT[0], unranked="an instrument"), *ABOUT[1:])))
    assert [EPOLL in contestants for contestants in drawn] == [True, False]

"""What more code gains stands in the findings and in the report, and nothing where no question compares it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.notices import CodeGain
from netdyno.model.contestant import About, CodeSize
from netdyno.model.run import Run
from netdyno.present.prose.code_gains import EXPLANATION, HEADLINE
from netdyno.present.report import render_html
from netdyno.present.report.code_gains import choose_ticks
from tests.support.builders.made_claims import RATIO, made
from tests.support.builders.made_run import COROUTINES, LOCK, SNAPSHOT

LINES = {LOCK: 100, SNAPSHOT: 150, COROUTINES: 400}
SPEED = {LOCK: 1000.0, SNAPSHOT: 1000.0, COROUTINES: 3000.0}


def measured(metric: str = "throughput", lines: dict[str, int] | None = None) -> Run:
    """Coroutines have three times the figure of the two others."""
    run = made(f"[claim.test]{RATIO}above = 2", metric, lambda name, _: SPEED[name])
    (scenario,) = run.experiment.scenarios
    experiment = replace(run.experiment, scenarios=(replace(scenario, metric=metric),))
    return replace(run, experiment=experiment, about=tuple(map(describe, (lines or LINES).items())))


def describe(line: tuple[str, int]) -> About:
    name, lines = line
    size = CodeSize(files=1, lines=lines, functions=9, complexity=lines // 5, complexity_max=9)
    return About(kind="server", name=name, code=size)


def list_gains(run: Run) -> dict[str, CodeGain]:
    return {gain.contestant: gain for gain in analyse(run).code_gains}


def test_each_server_stands_against_the_one_with_the_fewest_lines() -> None:
    gains = list_gains(measured())
    assert list(gains) == [LOCK, SNAPSHOT, COROUTINES]
    assert [(gain.lines, gain.complexity) for gain in gains.values()] == [(100, 20), (150, 30), (400, 80)]
    assert [gain.gain for gain in gains.values()] == pytest.approx([1, 1, 3], rel=0.05)
    assert [gain.different for gain in gains.values()] == [False, False, True]
    interval = gains[COROUTINES].interval
    assert interval is not None
    assert 2 < interval.low < gains[COROUTINES].gain < interval.high < 4


def test_a_gain_is_more_where_less_is_better() -> None:
    gains = list_gains(measured("p50"))
    assert gains[COROUTINES].gain == pytest.approx(1 / 3, rel=0.05)
    interval = gains[COROUTINES].interval
    assert interval is not None
    assert interval.low < gains[COROUTINES].gain < interval.high


def test_the_simplest_is_the_reference_whatever_its_name() -> None:
    gains = list_gains(measured(lines={COROUTINES: 50, LOCK: 100, SNAPSHOT: 100}))
    assert list(gains) == [COROUTINES, *sorted((LOCK, SNAPSHOT))]
    assert gains[LOCK].gain == pytest.approx(1 / 3, rel=0.05)


def test_shared_code_counts_with_each_that_shares_it() -> None:
    run = measured()
    shared = replace(describe(("epoll", 1000)), kind="shared")
    about = tuple(replace(server, family=("epoll",)) if server.name == LOCK else server for server in run.about)
    gains = list_gains(replace(run, about=(*about, shared)))
    assert list(gains) == [SNAPSHOT, COROUTINES, LOCK]
    assert gains[LOCK].lines == 1100


@pytest.mark.parametrize("lines", [{}, {LOCK: 100}, {LOCK: 100, COROUTINES: 100}])
def test_there_is_nothing_to_show_without_servers_of_different_length(lines: dict[str, int]) -> None:
    run = replace(measured(), about=tuple(map(describe, lines.items())))
    assert analyse(run).code_gains == ()
    assert HEADLINE not in render_html(analyse(run))


def test_the_ticks_are_round_gains_with_room_between() -> None:
    assert choose_ticks(0.85, 1.25) == [0.9, 0.95, 1, 1.05, 1.1, 1.2]
    assert choose_ticks(0.05, 40) == [0.1, 0.2, 0.5, 1, 2, 5, 10, 30]


def test_the_report_has_it_as_two_panels_and_as_a_table() -> None:
    page = render_html(analyse(measured()))
    assert page.count(EXPLANATION) == 1
    section = page.partition(f">{HEADLINE}</h3>")[2].partition("</details>")[0]
    assert section.count("<svg viewBox") >= 2
    assert f'aria-label="{HEADLINE}, by lines of code: 3 marks, from' in section
    assert f'aria-label="{HEADLINE}, by cyclomatic complexity: 3 marks, from' in section
    assert section.count("<tr>") == 4

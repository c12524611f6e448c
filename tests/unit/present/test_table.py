"""The terminal table: says what the findings say, fits 80 columns, is plain on a pipe."""

from __future__ import annotations

import io
import re

import pytest
from msgspec.structs import replace
from rich.console import Console

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis
from netdyno.present.prose.verdict import answer
from netdyno.present.terminal.console import Console as NetdynoConsole
from netdyno.present.terminal.table import _Scores, render
from tests.support.builders.analysed import analysed
from tests.support.builders.made_claims import claims_run
from tests.support.builders.made_run import made_run, messages_run, paired_run, unsafe_run


def text(analysis: Analysis, width: int = 80, terminal: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal).print(render(analysis))
    return out.getvalue()


def test_every_answer_stands_in_it_word_for_word(analysis: Analysis) -> None:
    flat = re.sub(r"\s+", " ", text(analysis))
    for findings in analysis.scenarios:
        assert answer(findings).headline in flat
        assert answer(findings).sentence in flat


def test_it_fits_eighty_columns_and_cuts_no_name(analysis: Analysis) -> None:
    lines = text(analysis).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert "…" not in text(analysis)
    assert sum("threads-global-lock" in line for line in lines) >= len(analysis.scenarios)


@pytest.mark.parametrize("width", [60, 80])
def test_a_name_is_never_broken_nor_cut_however_narrow_the_console_is(width: int) -> None:
    """Neither that of a contestant nor that of a client: the row becomes wider."""
    longest = "threads-snapshot-unlocked-of-ones-own"
    for run in (made_run(), paired_run(), messages_run(), unsafe_run()):
        names = {trial.contestant for trial in run.trials}
        trials = tuple(
            replace(trial, contestant=longest if trial.contestant == min(names) else trial.contestant)
            for trial in run.trials
        )
        out = io.StringIO()
        NetdynoConsole(file=out, width=width).print(render(analyse(replace(run, trials=trials))))
        shown = out.getvalue()
        for question in shown.split("\n\n"):
            head = next((line for line in question.splitlines() if re.match(r" *(# |server  )", line)), None)
            if head is None:
                continue
            rows = question.split(head)[1].splitlines()
            assert any(longest in row for row in rows)
            assert not any(re.match(r" {4}[a-z-]+ *$", row) for row in rows), "the rest of a broken name"


def test_bounds_and_ranks_of_two_digits_fit_eighty_columns_beside_a_name_of_twenty_letters(analysis: Analysis) -> None:
    """So many has a table of 23 web frameworks."""
    findings = analysis.scenarios[0]
    longest, name = "java-virtual-threads", findings.standings[0].contestant
    axes = tuple(
        replace(
            axis,
            bound="at least",
            scores=tuple(
                replace(score, rank=12, contestant=longest if score.contestant == name else score.contestant)
                for score in axis.scores
            ),
        )
        for axis in findings.axes
    )
    standings = tuple(
        replace(standing, contestant=longest if standing.contestant == name else standing.contestant)
        for standing in findings.standings
    )
    out = io.StringIO()
    NetdynoConsole(file=out, width=80).print(_Scores(replace(findings, axes=axes, standings=standings)))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert all(line.count("¹²") == len(axes) for line in out.getvalue().splitlines() if "≥" in line)
    assert out.getvalue().count(longest) == 1


@pytest.mark.parametrize("width", [40, 60, 80])
def test_each_figure_keeps_its_rank_and_no_word_breaks_however_narrow_the_console_is(width: int) -> None:
    for run in (made_run(), paired_run(), messages_run(), unsafe_run(), claims_run()):
        out, narrow = io.StringIO(), io.StringIO()
        NetdynoConsole(file=out, width=1000).print(render(analysed(run)))
        NetdynoConsole(file=narrow, width=width).print(render(analysed(run)))
        assert "…" not in narrow.getvalue()
        pattern = r"[⁰¹²³⁴-⁹]|[+−]?\d+(?:\.\d+)?%"  # ranks and changes  # noqa: RUF001
        assert sorted(re.findall(pattern, narrow.getvalue())) == sorted(re.findall(pattern, out.getvalue()))


def test_on_a_pipe_there_is_no_escape_sequence(analysis: Analysis) -> None:
    assert "\x1b" not in text(analysis)
    assert "\x1b" in text(analysis, terminal=True)


def test_ties_share_a_marked_rank_and_the_undecidable_have_none(analysis: Analysis) -> None:
    assert re.search(r"^ ?1=\s+asio-callbacks", text(analysis), re.MULTILINE)
    few = text(analysed(made_run(4))).split("\nchat ")[1]
    assert not re.search(r"^ ?1=? ", few, re.MULTILINE)


def test_excluded_trials_are_reported_with_their_reason(analysis: Analysis) -> None:
    flat = re.sub(r"\s+", " ", text(analysis))
    assert (
        "Ranked separately, for their faults: threads-snapshot gave wrong or lost replies in 1 of 18 trials: 3 "
        "of 212000" in flat
    )
    assert "faulty 1 verification threads-snapshot" in flat
    assert "failed 1 the server ended before it was ready threads-global-lock" in flat
    assert "skipped 60 Folly not found: install it from source, folly-fibers" in flat


def test_an_excluded_trial_is_one_line_of_at_most_120_characters() -> None:
    run = made_run()
    long = tuple(replace(trial, reason="x y " * 200) if trial.status == "failed" else trial for trial in run.trials)
    wide = text(analyse(replace(run, trials=long)), width=200).split("excluded")[1]
    assert max(len(line.rstrip()) for line in wide.splitlines()[:6]) <= 120


def test_the_link_is_stated() -> None:
    run = paired_run()
    assert " over loopback in 1 block, " in re.sub(r"\s+", " ", text(analyse(run)))
    lan = replace(run, experiment=run.experiment.with_each(link="lan", link_rate="1gbit"))
    assert " over lan at 1gbit in 1 block, " in re.sub(r"\s+", " ", text(analyse(lan)))


def test_open_loop_latency_stands_beside_its_send_lag(analysis: Analysis) -> None:
    rpc = re.sub(r"\s+", " ", text(analysis).split("\nrpc-open ")[1].split("\nchat ")[0])
    assert "send lag p99 at most" in rpc


def test_pairs_of_server_and_client_stand_in_a_table_with_what_came_of_each() -> None:
    shown = text(analysed(paired_run()))
    assert max(len(line) for line in shown.splitlines()) <= 80
    rows = {
        line.split()[0]: line.split(maxsplit=1)[1].strip() for line in shown.split("\nserver ")[1].splitlines()[2:5]
    }
    assert re.fullmatch(r"157k/s +78\.3k/s +skipped", rows["epoll-coroutines"])
    assert re.fullmatch(r"131k/s +55\.2k/s \(1/2\) +skipped", rows["asio-callbacks"])
    assert re.fullmatch(r"61\.4k/s +invalid +skipped", rows["threads-global-lock"])
    flat = re.sub(r"\s+", " ", shown)
    assert "9 pairs of server and client, 4 with valid trials only" in flat
    assert re.search(r"invalid 3 verification asio-callbacks with", flat)
    assert re.search(
        r"skipped 6 client qt-signals: Qt 6 not asio-callbacks with qt-signals found: install qt6-base-dev", flat
    )


def test_many_pairs_that_share_a_cause_are_counted() -> None:
    run = paired_run()
    trials = [replace(trial, contestant=f"{trial.contestant}-{copy}") for copy in (1, 2) for trial in run.trials]
    flat = re.sub(r"\s+", " ", text(analyse(replace(run, trials=tuple(trials)))))
    assert "skipped 12 client qt-signals: Qt 6 not found: install 6 pairs" in flat


def test_it_says_which_loads_its_figures_are_of() -> None:
    """Those at which all were measured, by name where that is not all; the heaviest where there is no second."""
    run = paired_run()
    with_both = [trial for trial in run.trials if trial.levels["client"] == "netdyno-load"]
    name = with_both[0].contestant
    fewer = [trial for trial in with_both if (trial.contestant, trial.levels["connections"]) != (name, 10)]
    for trials, caption in (
        (run.trials, "figures over client netdyno-load, 10 connections and client netdyno-load, 100 connections"),
        (with_both, "figures over 2 loads (geometric means)"),
        (fewer, "figures at client netdyno-load, 100 connections"),
    ):
        assert caption in re.sub(r"\s+", " ", text(analyse(replace(run, trials=tuple(trials)))))


def test_loss_stands_beside_every_latency_and_one_that_lost_too_much_stands_last() -> None:
    shown = text(analysed(messages_run()))
    assert max(len(line) for line in shown.splitlines()) <= 80
    lines = shown.splitlines()
    (heading,) = [line for line in lines if line.startswith("#")]
    assert heading.split() == ["#", "contestant", "mean", "lost", "throughput", "p50", "p99"]
    rows = [line.split() for line in lines if re.match(r"\d ", line)]
    assert rows[0][1] == "udp-coroutines"
    assert rows[0][2:6] == ["5.19", "ms", "¹", "0.02%"]
    assert "0%" in rows[1]
    assert rows[-1][:2] == ["5", "udp-reuseport"]
    assert rows[-1][rows[-1].index("12%") :][:2] == ["12%", "!"]
    flat = re.sub(r"\s+", " ", shown)
    assert "! above 0.1% in some trial: ranked separately, against the first of its group" in flat


def test_over_streams_there_is_no_column_of_losses(analysis: Analysis) -> None:
    assert " lost " not in next(line for line in text(analysis).splitlines() if line.startswith(" #"))


def test_the_verdicts_on_claims_stand_before_the_rankings() -> None:
    shown = text(analysed(claims_run()))
    assert max(len(line) for line in shown.splitlines()) <= 80
    flat = re.sub(r"\s+", " ", shown)
    assert flat.index("4 claims: 1 confirmed, 1 refuted, 1 undecided, 1 not testable here") < flat.index("echo asio")
    assert "K1 confirmed Coroutines <b>win</b> (K1) here: throughput of asio-coroutines against thr" in flat
    assert "(means of the trials: 324/s against 108/s); claimed above \N{MULTIPLICATION SIGN}2 published: co" in flat
    assert "in 10 s: 91,281.5 Delayed ACKs per 1,000 messages: 4.00" in flat
    assert re.search(r"K2 refuted .* Of 6 comparisons 6 fail K3 undecided", flat)
    assert "K4 not testable here Coroutines <b>win</b> (K4) here: it needs 4 cores, and there were 2" in flat


def test_where_there_are_no_claims_nothing_is_stated_of_them(analysis: Analysis) -> None:
    assert "claim" not in text(analysis).replace("claims any difference", "")


def test_without_a_factor_of_clients_there_are_no_pairs(analysis: Analysis) -> None:
    assert all(findings.pairs == () for findings in analysis.scenarios)
    assert "server and client" not in text(analysis)


def test_markup_in_a_reason_is_text() -> None:
    run = made_run()
    trials = tuple(
        replace(trial, reason="[bold]x[/nonsense]") if trial.status == "failed" else trial for trial in run.trials
    )
    assert "[bold]x[/nonsense]" in text(analyse(replace(run, trials=trials)))

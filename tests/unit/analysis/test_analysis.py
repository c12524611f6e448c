"""The analysis of a run whose truth is known, and of runs with nothing, little or broken things in them."""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import Analysis, ScenarioFindings
from netdyno.analysis.ranking import answers, cells
from netdyno.kit import quantities
from netdyno.kit.statistics import hdr
from netdyno.model.levels import level_words
from netdyno.model.observation import MachineObservation
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.verdict import answer
from tests.support.builders.analysed import analysed, findings_of
from tests.support.builders.made_run import (
    CALLBACKS,
    COROUTINES,
    EPOLL,
    LOCK,
    QT,
    REUSEPORT,
    SNAPSHOT,
    UDP,
    ZMQ,
    made_run,
    messages_run,
    paired_run,
)


def ranks(findings: ScenarioFindings) -> dict[str, int | None]:
    return {standing.contestant: standing.rank for standing in findings.standings}


def with_trials(run: Run, keep: object) -> Run:
    assert callable(keep)
    return replace(run, trials=tuple(trial for trial in run.trials if keep(trial)))


# --- servers with clients ----------------------------------------------------------------------------------------


def test_servers_are_compared_with_the_same_client_only() -> None:
    run = paired_run()
    (findings,) = analyse(run).scenarios
    assert {level.values["client"] for level in findings.levels} == {"netdyno-load", CALLBACKS, QT}
    (epoll_lock,) = [comparison for comparison in findings.comparisons if {comparison.a, comparison.b} == {EPOLL, LOCK}]
    assert epoll_lock.pairs == 2  # with netdyno-load at two loads: with the other clients one of the two is missing
    halved = tuple(
        replace(
            trial,
            load=replace(
                trial.load, requests=replace(trial.load.requests, per_second=trial.load.requests.per_second / 2)
            ),
        )
        if trial.load and trial.levels["client"] == "netdyno-load"
        else trial
        for trial in run.trials
    )
    (slower,) = analyse(replace(run, trials=halved)).scenarios
    ratios = {(comparison.a, comparison.b): comparison.ratio for comparison in findings.comparisons}
    assert {(comparison.a, comparison.b): comparison.ratio for comparison in slower.comparisons} == pytest.approx(
        ratios
    )


def test_a_pair_says_how_many_of_its_trials_count_and_why_others_do_not() -> None:
    pairs = {(pair.contestant, pair.client): pair for pair in analysed(paired_run()).scenarios[0].pairs}
    assert len(pairs) == 9
    assert pairs[EPOLL, CALLBACKS].valid == pairs[EPOLL, CALLBACKS].trials == 2
    half = pairs[CALLBACKS, CALLBACKS]
    assert (half.valid, half.trials, half.statuses) == (1, 2, ("struck_out",))
    assert (pairs[LOCK, CALLBACKS].figure, pairs[LOCK, CALLBACKS].statuses) == (None, ("struck_out",))
    assert (pairs[LOCK, QT].figure, pairs[LOCK, QT].statuses) == (None, ("skipped",))


def test_a_levels_words_say_whose_an_option_is() -> None:
    printed = [level_words(name, "on") for name in ("nodelay", "server.nodelay", "both.nodelay", "client")]
    assert printed == ["client nodelay on", "server nodelay on", "nodelay on on both sides", "client on"]
    assert [level_words("connections", number) for number in (1, 2)] == ["1 connection", "2 connections"]
    assert level_words("threads", 2) == "threads 2"


# --- the answers -------------------------------------------------------------------------------------------------


def test_the_known_winner_wins_by_the_known_margin(analysis: Analysis) -> None:
    echo = findings_of(analysis, "echo")
    assert echo.verdict == "winner"
    assert echo.decision.recommended == (EPOLL,)
    comparison = answers.find_comparison(EPOLL, CALLBACKS, echo.comparisons)
    assert comparison is not None
    assert comparison.interval is not None
    assert comparison.interval.low < 1.12 < comparison.interval.high


def test_contestants_that_do_not_differ_share_a_rank(analysis: Analysis) -> None:
    assert ranks(findings_of(analysis, "echo"))[CALLBACKS] == ranks(findings_of(analysis, "echo"))[COROUTINES] == 2
    http = findings_of(analysis, "http")
    assert http.verdict == "equal"
    assert ranks(http)[EPOLL] == ranks(http)[CALLBACKS] == 1
    assert ranks(http)[COROUTINES] == 3
    assert set(http.decision.near) == {EPOLL, CALLBACKS}
    assert http.decision.within is not None
    assert 1.01 < http.decision.within < 1.05


def test_for_response_time_the_lowest_wins(analysis: Analysis) -> None:
    rpc = findings_of(analysis, "rpc-open")
    assert rpc.verdict == "winner"
    assert rpc.standings[0].contestant == EPOLL
    assert (
        "lowest 99th-percentile response time over 3 loads (open loop at the offered rates, poisson arrivals)"
        in answer(rpc).sentence
    )
    assert "below asio-callbacks" in answer(rpc).sentence
    assert rpc.standings[-1].relative is not None
    assert rpc.standings[-1].relative.value == pytest.approx(2.5, rel=0.05)


def test_too_few_blocks_give_no_verdict() -> None:
    chat = findings_of(analysed(made_run(blocks=4)), "chat")
    assert chat.verdict == "not_enough_blocks"
    assert not any(comparison.different for comparison in chat.comparisons)
    assert len(set(ranks(chat).values())) == 1


def test_the_own_metric_is_a_family_with_its_best_and_the_other_axes_are_another(analysis: Analysis) -> None:
    for findings in analysis.scenarios:
        rivals = sum(standing.kind == 0 for standing in findings.standings)
        assert len(findings.comparisons) == math.comb(rivals, 2)
        decided = [comparison for comparison in findings.comparisons if comparison.decidable]
        assert len(decided) >= len(findings.comparisons) - 1
        own, *other_axes = (axis.comparisons for axis in findings.axes)
        for family in (own, tuple(itertools.chain.from_iterable(other_axes))):
            decidable = sum(comparison.decidable for comparison in family)
            best = findings.decision.recommended if findings.verdict == "winner" and family is own else ()
            for comparison in family:
                counted = rivals - 1 if {comparison.a, comparison.b} & {*best} else decidable
                assert comparison.p_corrected == pytest.approx(
                    min(1, counted * comparison.p) if comparison.decidable else 1
                )


# --- transports that lose messages -------------------------------------------------------------------------------


def test_a_server_that_lost_more_than_the_bound_is_ranked_apart_after_those_that_delivered(
    lossy: ScenarioFindings,
) -> None:
    order = [(standing.contestant, standing.rank, standing.kind > 0) for standing in lossy.standings]
    assert order == [(UDP, 1, False), (EPOLL, 2, False), (ZMQ, 3, False), (LOCK, 4, False), (REUSEPORT, 5, True)]
    last = lossy.standings[-1]
    assert last.value < lossy.standings[0].value  # it has the lowest figure of all, and does not win for it
    assert last.against_leader is None
    assert not any(REUSEPORT in (comparison.a, comparison.b) for comparison in lossy.comparisons)


def test_one_trial_above_the_bound_is_enough_and_the_bound_is_the_experiments() -> None:
    run = messages_run()
    strict = replace(run, experiment=run.experiment.with_each(loss_bound=0.0001))
    assert {standing.contestant for standing in analyse(strict).scenarios[0].standings if standing.kind > 0} == {
        UDP,
        REUSEPORT,
    }
    mild = analyse(replace(run, experiment=run.experiment.with_each(loss_bound=0.5))).scenarios[0]
    assert not any(standing.kind > 0 for standing in mild.standings)
    assert answer(mild).headline == f"{REUSEPORT} (12% lost)"
    assert "of those that lost" not in answer(mild).sentence

    def spoiled(trial: Trial) -> Trial:
        if (trial.contestant, trial.block, trial.levels) != (ZMQ, 1, {"connections": 100}) or trial.load is None:
            return trial
        messages = trial.load.messages
        return replace(trial, load=replace(trial.load, messages=replace(messages, lost=messages.expected // 50)))

    once = analyse(replace(run, trials=tuple(map(spoiled, run.trials)))).scenarios[0]
    assert {standing.contestant for standing in once.standings if standing.kind > 0} == {ZMQ, REUSEPORT}
    cell = once.cell(ZMQ, "connections=100")
    assert cell is not None
    assert cell.loss is not None
    assert [trial.above for trial in cell.loss.trials] == [True, False, False, False, False]


def test_the_mean_is_that_of_all_messages_of_all_trials(lossy: ScenarioFindings) -> None:
    cell = lossy.cell(LOCK, "connections=100")
    assert cell is not None
    responses = [
        trial.load.latency.response_ns
        for trial in messages_run().trials
        if (trial.contestant, trial.levels) == (LOCK, {"connections": 100}) and trial.load
    ]
    total = sum(response.count for response in responses)
    assert cell.value("mean") == pytest.approx(sum(response.mean * response.count for response in responses) / total)


# --- the figures -------------------------------------------------------------------------------------------------


def test_percentiles_are_those_of_the_merged_histogram_never_an_average(analysis: Analysis) -> None:
    cell = findings_of(analysis, "rpc-open").cell(EPOLL, "rate=20000")
    assert cell is not None
    loads = [
        trial.load
        for trial in made_run().trials
        if trial.scenario == "rpc-open" and trial.contestant == EPOLL and trial.levels == {"rate": 20_000}
    ]
    texts = [load.latency.response_ns.histogram for load in loads if load is not None]
    merged = hdr.merge([hdr.decode(text) for text in texts])
    p99 = cell.values["p99"]
    assert p99.value == hdr.percentile(merged, 99)
    averaged = float(np.mean([hdr.percentile(hdr.decode(text), 99) for text in texts]))
    assert p99.value != averaged
    assert p99.interval is not None
    assert p99.interval.low < p99.value < p99.interval.high


def test_the_percentile_curve_rises_and_ends_where_too_few_messages_lie_beyond(analysis: Analysis) -> None:
    for findings in analysis.scenarios:
        for cell in findings.cells:
            percents, values = zip(*cell.curve, strict=True)
            assert list(percents) == sorted(percents)
            assert list(values) == sorted(values)
            assert percents[-1] <= 99.99
    assert analyse_curve(count=1000)[-1][0] == pytest.approx(99.0)


def analyse_curve(count: int) -> tuple[tuple[float, float], ...]:
    return cells.sample_curve(hdr.DecodedHistogram(np.array([7, 9]), np.array([count - 1.0, 1.0])))


def test_cost_is_sum_over_sum(analysis: Analysis) -> None:
    cell = findings_of(analysis, "echo").cell(LOCK, "connections=1000")
    assert cell is not None
    observed = [
        (trial.server, trial.load.requests.completed)
        for trial in made_run().trials
        if (trial.scenario, trial.contestant, trial.levels) == ("echo", LOCK, {"connections": 1000}) and trial.load
    ]
    spent = sum(server.cpu_system_s for server, _ in observed if server is not None)
    assert cell.value("cpu-system") == pytest.approx(1e9 * spent / sum(completed for _, completed in observed))
    assert cell.value("threads") == 1001


def test_memory_per_connection_is_what_comes_on_top_of_a_server_without_any() -> None:
    def read(trial: Trial) -> Trial:
        return replace(trial, server=replace(trial.server, rss_ready_bytes=4 << 20)) if trial.server else trial

    run = made_run()
    echo = findings_of(analyse(replace(run, trials=tuple(map(read, run.trials)))), "echo")
    sizes = {cell.contestant: cell.value("connection-memory") for cell in echo.cells}
    assert sizes == {name: pytest.approx(11_000 if name in (SNAPSHOT, LOCK) else 1_700) for name in sizes}
    silent = findings_of(analyse(run), "echo")
    assert not any("connection-memory" in cell.values for cell in silent.cells)


def test_only_valid_trials_enter_a_figure(analysis: Analysis) -> None:
    """An invalid trial with an absurd figure changes no number."""
    run = made_run()
    invalid = next(trial for trial in run.trials if trial.status == "struck_out")  # for what the server did
    assert invalid.load is not None
    absurd = replace(invalid, load=replace(invalid.load, requests=replace(invalid.load.requests, per_second=1e12)))
    again = analyse(replace(run, trials=tuple(absurd if trial is invalid else trial for trial in run.trials)))
    assert again.scenarios == analysis.scenarios
    assert analysis.counts.valid + len(analysis.excluded) == len(run.trials)
    assert {note.status for note in analysis.excluded} == {"faulty", "failed", "skipped"}


def test_the_drift_of_the_machine_is_reported(analysis: Analysis) -> None:
    assert 1.3 < findings_of(analysis, "echo").drift < 3


def test_the_same_run_gives_the_same_findings(analysis: Analysis) -> None:
    assert msgspec.json.encode(analyse(made_run())) == msgspec.json.encode(analysis)


# --- runs at the edge --------------------------------------------------------------------------------------------


def test_a_run_without_trials_says_so() -> None:
    empty = analyse(replace(made_run(), trials=()))
    assert {findings.verdict for findings in empty.scenarios} == {"no_data"}
    assert empty.counts.valid == 0


def test_one_contestant_alone_is_compared_with_none() -> None:
    alone = analyse(with_trials(made_run(), lambda trial: trial.contestant == EPOLL))
    assert {findings.verdict for findings in alone.scenarios} == {"unopposed"}
    assert not any(findings.comparisons for findings in alone.scenarios)


def test_one_block_gives_figures_without_intervals_and_no_verdict() -> None:
    once = analyse(with_trials(made_run(), lambda trial: trial.block == 1))
    assert {findings.verdict for findings in once.scenarios} == {"not_enough_blocks"}
    assert all(cell.values["throughput"].interval is None for findings in once.scenarios for cell in findings.cells)
    assert "no interval from 1 block" in answer(once.scenarios[0]).sentence


def test_losing_the_slowest_level_does_not_make_a_contestant_look_fast() -> None:
    """10 connections are the slowest level: a plain mean over what is left would rise by a tenth."""

    def keep(trial: Trial) -> bool:
        return trial.contestant != COROUTINES or trial.levels.get("connections") != 10

    partial = findings_of(analyse(with_trials(made_run(), keep)), "echo")
    value = {standing.contestant: standing.value for standing in partial.standings}
    assert value[COROUTINES] == pytest.approx(value[CALLBACKS], rel=0.05)
    assert ranks(partial)[COROUTINES] == ranks(partial)[CALLBACKS]
    assert any(f"{COROUTINES} has no valid trial at 10 connections" in text for text in list_caveats(partial))


def test_a_repeated_cell_counts_once_with_its_first_value() -> None:
    run = made_run()
    first = run.trials[0]
    assert first.load is not None
    better = replace(first, load=replace(first.load, requests=replace(first.load.requests, per_second=1e9)))
    assert analyse(replace(run, trials=(*run.trials, better))).scenarios == analysed(run).scenarios


# --- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((1.123, "+12%"), (0.966, "−3.4%"), (1.0, "0.0%"), (2.5, "×2.50"), (math.nan, "–"), (0.4, "−60%")),  # noqa: RUF001
        *((0.001, "−99.9%"), (0.00004, "−99.996%"), (1e-9, "<−99.9999%"), (0.0, "−100%")),  # noqa: RUF001
        *((1.0001, "<+0.1%"), (0.9999, ">−0.1%")),  # noqa: RUF001
    ],
)
def test_changes_read_as_people_say_them(ratio: float, text: str) -> None:
    assert quantities.percent_change(ratio) == text


def test_figures_keep_three_digits_and_a_unit() -> None:
    assert [quantities.rate(value) for value in (999.9, 12_345, 123_456, 1_234_567)] == [
        "1.00k/s",
        "12.3k/s",
        "123k/s",
        "1.23M/s",
    ]
    assert [quantities.duration(value) for value in (7, 1234, 5.6e6, 2e9)] == [
        "7.00 ns",
        "1.23 µs",
        "5.60 ms",
        "2.00 s",
    ]
    assert quantities.memory(5_900_000) == "5.63 MiB"
    assert [quantities.share(value) for value in (0, 0.12, 0.001, 0.000_02, 1e-9, 0.99996, 1 - 1e-9, 1)] == [
        "0%",
        "12%",
        "0.1%",
        "0.002%",
        "<0.0001%",
        "99.996%",
        ">99.9999%",
        "100%",
    ]
    assert [quantities.three_digits(value) for value in (0, 0.00123, 2e-5, -2e-5)] == [
        "0",
        "0.0012",
        "<0.0001",
        ">−0.0001",  # noqa: RUF001
    ]
    assert [quantities.margin(value) for value in (0.001, 0.5, 1.0001, 1.2, 3)] == [
        "99.9%",
        "50%",
        "<0.1%",
        "20%",
        "3.00 times",
    ]
    assert quantities.listed(["a", "b", "c"]) == "a, b and c"


def test_how_far_the_machine_was_not_the_runs_own_is_reported_of_valid_trials(analysis: Analysis) -> None:
    assert analysis.machine is not None
    assert analysis.machine.trials == analysis.counts.valid
    assert analysis.machine.foreign_median == analysis.machine.foreign_most == pytest.approx(0.01)  # of two cores
    run = made_run()
    valid = [trial for trial in run.trials if trial.status == "valid"][:3]
    nothing = MachineObservation(cores=2, window_s=1.0, steal_s=0.0, own_s=1.0, foreign_s=0.0, switches=0)
    stolen = [replace(nothing, steal_s=steal) for steal in (0.0, 0.02, 0.04)]
    few = [replace(trial, machine=machine) for trial, machine in zip(valid, stolen, strict=True)]
    invalid = replace(few[0], status="struck_out", machine=replace(nothing, steal_s=1.0))
    machine = analyse(replace(run, trials=(*few, invalid))).machine
    assert machine is not None
    assert (machine.trials, machine.foreign_most) == (3, 0.0)
    assert (machine.steal_median, machine.steal_most) == (0.01, 0.02)


def test_a_run_stored_before_the_machine_was_watched_says_nothing_of_it() -> None:
    run = made_run()
    assert analyse(replace(run, trials=tuple(replace(trial, machine=None) for trial in run.trials))).machine is None

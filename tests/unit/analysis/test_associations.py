"""What is said to go along with a ranking: on made-up runs in which it is known what differs, and what does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from netdyno.analysis import answers, associations, message_cost
from netdyno.analysis.analysis import analyse
from netdyno.analysis.findings import Analysis, ScenarioFindings, Why
from netdyno.analysis.split import part_of
from netdyno.model.observation import ServerObservation
from netdyno.model.run import Run
from netdyno.model.trial import SystemCall, Traced, Trial
from netdyno.present.prose import associations as words
from netdyno.present.prose import verdict
from netdyno.statistics import stats
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import CALLBACKS, COROUTINES, EPOLL, LOCK, made_run

Change = Callable[[Trial, ServerObservation], ServerObservation]


@lru_cache
def made() -> Analysis:
    return analysed(made_run())


def echo(analysis: Analysis) -> ScenarioFindings:
    return next(one for one in analysis.scenarios if one.scenario.name == "echo")


def whys(run: Run) -> tuple[Why, ...]:
    """Of the scenario echo of a run in which the metric is that of the made run, so that nothing else has to be
    analysed anew."""
    known = echo(made())
    names = [one.contestant for one in known.standings]
    part = part_of(run, known.scenario)
    behind = message_cost.rows(part, names)
    families = {
        str(known.scenario.metric): known.comparisons
    }  # without the axes that are counters, which are tested here
    return associations.whys(part.ranked, known.standings, families, known.scenario.metric, behind)


def why(run: Run, worse: str = LOCK, better: str = EPOLL) -> Why:
    return next(one for one in whys(run) if (one.worse, one.better) == (worse, better))


def text_of(one: Why) -> str:
    return words.paragraph(one, echo(made()).scenario)


def short_of(one: Why) -> str:
    return words.short(one, echo(made()).scenario)


def said(one: Why) -> dict[str, float]:
    """The effect of each counter that is named."""
    return {difference.counter: difference.comparison.ratio for difference in one.differences}


def changed(change: Change, run: Run | None = None) -> Run:
    """The made run with other observations of the servers; the rates stay as they are."""
    run = run or made_run()
    trials = tuple(
        one if one.server is None else replace(one, server=change(one, one.server), kernel=dict(one.kernel))
        for one in run.trials
    )
    return replace(run, trials=trials)


def alike() -> Run:
    """Everybody spends the same on a message, but for noise that is nobody's."""
    random = np.random.default_rng(5)

    def same(trial: Trial, server: ServerObservation) -> ServerObservation:
        assert trial.load is not None
        completed, noise = trial.load.requests.completed, random.normal(1, 0.05, size=5)
        return replace(
            server,
            cpu_user_s=completed * 1e-6 * noise[0],
            cpu_system_s=completed * 4e-6 * noise[1],
            voluntary_switches=int(completed * 0.5 * noise[2]),
            involuntary_switches=int(completed * 0.01 * noise[3]),
            run_queue_wait_s=completed * 1e-6 * noise[4],
        )

    return changed(same)


def of(name: str, change: Callable[[ServerObservation, int], ServerObservation]) -> Change:
    """A change of one contestant's observations; it is given the messages, too."""

    def only(trial: Trial, server: ServerObservation) -> ServerObservation:
        assert trial.load is not None
        return change(server, trial.load.requests.completed) if trial.contestant == name else server

    return only


# --- what differs ------------------------------------------------------------------------------------------------


def test_what_differs_beyond_chance_is_named_with_its_figures_and_its_interval() -> None:
    """In the made run, LOCK needs 7.6 us of CPU a message and EPOLL 4.9, and switches 0.98 times against 0.02."""
    one = why(made_run())
    effects = said(one)
    assert effects["cpu"] == pytest.approx(7.6 / 4.9, rel=0.03)
    assert effects["voluntary"] == pytest.approx(0.98 / 0.02, rel=0.03)
    assert effects["run-queue"] == pytest.approx(2.1 / 0.08, rel=0.03)
    assert "involuntary" not in effects, "the same in all"
    cpu = next(one for one in one.differences if one.counter == "cpu")
    assert cpu.worse / cpu.better == pytest.approx(cpu.comparison.ratio)
    assert cpu.comparison.interval is not None
    assert cpu.comparison.interval.low < 7.6 / 4.9 < cpu.comparison.interval.high
    assert cpu.comparison.p_corrected <= stats.LEVEL
    assert text_of(one).startswith(f"{LOCK} against {EPOLL} (throughput \N{MINUS SIGN}")
    assert re.search(r"Of its CPU time 7\d(\.\d)?% was in the kernel against 8\d(\.\d)?%\.$", text_of(one))
    assert "it uses " in short_of(one)
    assert " of server CPU per message against " in short_of(one)
    assert "gives up its core " in short_of(one)


def test_a_counter_that_is_ranked_differs_where_its_ranks_do() -> None:
    """The CPU of a message is an axis: the line below a table says no difference that the table does not."""
    for findings in made().scenarios:
        cpu = next(axis for axis in findings.axes if axis.metric == "cpu")
        for one in findings.whys:
            proven = answers.against(one.worse, one.better, cpu.comparisons)
            named = [each.comparison for each in one.differences if each.counter == "cpu"]
            assert named == ([proven] if proven is not None and proven.different else [])
            worse, better = (cpu.score(name) for name in (one.worse, one.better))
            assert worse is not None
            assert better is not None
            assert not named or worse.rank != better.rank


def test_the_other_way_round_it_is_said_the_other_way_round() -> None:
    """A slower server that needs less CPU: fewer, not more."""
    half = changed(of(LOCK, lambda server, n: replace(server, cpu_user_s=n * 0.5e-6, cpu_system_s=n * 1.5e-6)))
    one = why(half)
    assert said(one)["cpu"] == pytest.approx(2.0 / 4.9, rel=0.03)
    assert "(\N{MULTIPLICATION SIGN}0.4" in short_of(one)
    assert "[\N{MULTIPLICATION SIGN}0." in short_of(one)


def test_where_nothing_differs_nothing_is_named() -> None:
    for one in whys(alike()):
        assert one.differences == ()
        assert text_of(one).endswith("No counter is proven different between the two.")
        assert "cpu" in one.considered


def test_a_single_counter_that_differs_is_the_only_one_named() -> None:
    more = changed(of(LOCK, lambda server, n: replace(server, run_queue_wait_s=3 * server.run_queue_wait_s)), alike())
    assert said(why(more)).keys() == {"run-queue"}
    assert all(one.differences == () for one in whys(more) if LOCK not in (one.worse, one.better))


def test_a_counter_that_is_0_somewhere_is_compared_by_its_difference() -> None:
    once = changed(of(LOCK, lambda server, n: replace(server, voluntary_switches=n)))
    none = changed(of(EPOLL, lambda server, n: replace(server, voluntary_switches=0)), once)
    one = next(one for one in why(none).differences if one.counter == "voluntary")
    assert not one.relative
    assert one.better == 0.0
    assert one.comparison.ratio == 1.0
    assert "1.00 times per message against 0 (+1.00 [+1.00 to +1.00])" in short_of(why(none))


def test_a_counter_that_counted_nothing_is_no_hypothesis() -> None:
    """In the made run nothing is sent again; if it were among the tests, all others would be harder to pass."""
    assert "retransmits" not in why(made_run()).considered
    random = np.random.default_rng(3)

    def sent_again(trial: Trial) -> Trial:
        return replace(trial, kernel=trial.kernel | {"RetransSegs": int(random.integers(1, 50))})

    run = made_run()
    one = why(replace(run, trials=tuple(sent_again(trial) for trial in run.trials)))
    assert "retransmits" in one.considered
    assert "retransmits" not in said(one), "it is chance"


def test_all_counters_of_all_paragraphs_are_corrected_as_one_family() -> None:
    found = whys(made_run())
    tested = sum(len(one.considered) for one in found)
    least = min(difference.comparison.p for one in found for difference in one.differences)
    assert (
        max(difference.comparison.p_corrected for one in found for difference in one.differences) >= tested * least / 2
    )
    assert tested == 4 * len(found)


def test_false_findings_are_rare_where_all_servers_spend_the_same() -> None:
    """Of paragraphs on servers that differ in rank and in nothing counted: at most 5% of rankings name anything."""
    run = made_run()
    found = 0
    for seed in range(25):
        random = np.random.default_rng(seed)

        def noise(trial: Trial, server: ServerObservation, random: np.random.Generator = random) -> ServerObservation:
            assert trial.load is not None
            messages, factor = trial.load.requests.completed, np.exp(random.normal(0, 0.1, size=4))
            return replace(
                server,
                cpu_user_s=messages * 1e-6 * factor[0],
                cpu_system_s=messages * 4e-6 * factor[0],
                voluntary_switches=int(messages * 0.5 * factor[1]),
                involuntary_switches=int(messages * 0.1 * factor[2]),
                run_queue_wait_s=messages * 1e-6 * factor[3],
            )

        found += any(one.differences for one in whys(changed(noise, run)))
    assert found <= 4, "of 25; at a rate of 5% more than 4 come once in 130 times, and the seeds are fixed"


# --- who and how much --------------------------------------------------------------------------------------------


def test_each_is_compared_with_the_first_and_with_the_one_above_where_they_are_proven_different() -> None:
    findings = echo(made())
    names = [one.contestant for one in findings.standings if not one.apart]
    pairs = [(one.worse, one.better) for one in findings.whys]
    assert len(set(pairs)) == len(pairs)
    assert {(name, names[0]) for name in names[1:]} <= set(pairs)
    proven = {frozenset((one.a, one.b)) for one in findings.comparisons if one.different}
    assert all(frozenset(pair) in proven for pair in pairs)
    assert {CALLBACKS, COROUTINES} not in [set(pair) for pair in pairs], "they cannot be told apart"


def test_of_those_that_tie_nothing_is_said() -> None:
    assert all(one.whys == () for one in analysed(made_run(blocks=4)).scenarios), "too few blocks for any verdict"


def test_with_too_few_blocks_for_the_counters_it_says_how_many_it_takes() -> None:
    """Two servers and six blocks prove a rank; where only four of them were observed, no counter can be proven."""
    run = made_run()
    scenario = replace(run.experiment.scenarios[0], factors={}, contestants=(EPOLL, LOCK))
    trials = tuple(
        replace(one, levels={}) if one.block <= 4 else replace(one, levels={}, server=None, machine=None, kernel={})
        for one in run.trials
        if one.scenario == "echo" and one.contestant in (EPOLL, LOCK) and one.levels["connections"] == 100
    )
    small = replace(run, experiment=replace(run.experiment, scenarios=(scenario,)), trials=trials)
    (findings,) = analyse(small).scenarios
    assert findings.comparisons[0].different
    (one,) = findings.whys
    assert one.differences == ()
    assert "4 blocks are too few to prove that a counter differs: 5 are needed." in text_of(one)


def test_a_run_without_observations_says_that_nothing_was_counted() -> None:
    run = made_run()
    bare = replace(run, trials=tuple(replace(one, server=None, machine=None, kernel={}) for one in run.trials))
    assert "No counter was recorded for both." in text_of(why(bare))


# --- what was traced ---------------------------------------------------------------------------------------------


def traced(name: str, **calls: int) -> Traced:
    counted = tuple(SystemCall(name=call, calls=count, again=0, failed=0, time_s=0.0) for call, count in calls.items())
    return Traced(
        scenario="echo", contestant=name, levels={"connections": 100}, window_s=0.3, messages=1000, calls=counted
    )


def test_system_calls_stand_beside_it_as_traced_and_untested() -> None:
    both = (traced(EPOLL, recvfrom=1000, sendto=1000), traced(LOCK, recvfrom=1000, sendto=1000, futex=1040))
    text = text_of(why(replace(made_run(), traced=both)))
    assert text.endswith(
        " Traced at 100 connections, once each, so not tested: 3.04 system calls per message against 2.00; "
        "most of the difference is futex, 1.04 against 0."
    )


def test_the_same_calls_are_no_difference_and_one_trace_alone_says_nothing() -> None:
    same = (traced(EPOLL, recvfrom=1000), traced(LOCK, recvfrom=1010))
    assert text_of(why(replace(made_run(), traced=same))).endswith("1.01 system calls per message against 1.00.")
    assert "Traced" not in text_of(why(replace(made_run(), traced=same[:1])))


def test_what_was_traced_changes_no_figure_and_no_verdict() -> None:
    absurd = (traced(EPOLL, recvfrom=10**9), traced(LOCK, recvfrom=1))
    plain, beside = echo(made()), echo(analyse(replace(made_run(), traced=absurd)))
    for field in ("cells", "comparisons", "standings", "decision"):
        assert msgspec.to_builtins(getattr(plain, field)) == msgspec.to_builtins(getattr(beside, field))
    for words_of in (verdict.answer, verdict.evidence, verdict.caveats):
        assert words_of(plain) == words_of(beside)
    assert [one.differences for one in plain.whys] == [one.differences for one in beside.whys]

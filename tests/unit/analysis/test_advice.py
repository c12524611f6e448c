"""The server to take: which are left out on the way, how far it may be from the best, and what an objective changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from netdyno.analysis.advice import judge_advice
from netdyno.analysis.advice.judge_advice import choose_significance, read_margin, select_remaining
from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.advice import LeftOut
from netdyno.analysis.found.ranking import Censored
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.ranking.answers import compute_deficit_bound
from netdyno.analysis.trials.split import ScenarioTrials, split
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.kit.statistics.stats import Comparison
from netdyno.model import outcomes
from netdyno.model.contestant import About
from netdyno.model.experiment import Advise
from netdyno.model.levels import level_key
from netdyno.model.observation import Pinning
from netdyno.model.outcomes import Saturated
from netdyno.model.run import Run
from netdyno.present.prose.advice import describe_advice
from tests.support.builders.made_advice import SCENARIO, advice, made

FIRST = ADVICE_LOOKS[0]


def goes_on(run: Run) -> tuple[str, ...]:
    (part,) = split(outcomes.judge_run(run))
    assert run.experiment.advise is not None
    return select_remaining(run.experiment.advise, part)


def test_a_winner_is_taken_and_none_is_better() -> None:
    recommendation = advice(made({"a": 10.0, "b": 13.0, "c": 20.0}))
    assert recommendation.take == ("a",)
    assert recommendation.behind == 1
    assert recommendation.settled
    first, certainty, *_ = describe_advice(recommendation)
    assert first.startswith("Take a: it has the lowest server CPU per message (open loop at 5.00k/s offered")
    assert certainty.startswith("Every other server is shown to be worse in server CPU per message")


def test_a_single_candidate_is_not_compared_with_others() -> None:
    _, certainty, *_ = describe_advice(advice(made({"a": 10.0})))
    assert certainty == "a is the only candidate: name another, or a knob (--vary)."


def test_a_server_that_could_use_fewer_cores_is_not_held_against_the_others_and_is_named() -> None:
    """However little it costs, and from the first look on."""
    run = made({"a": 10.0, "b": 13.0, "loop": 5.0})
    four = Pinning(server=(0, 1, 2, 3), generator=(4, 5, 6, 7), note="")
    about = tuple(
        About(kind="server", name=name, threads="one" if name == "loop" else "per-connection")
        for name in ["a", "b", "loop"]
    )
    run = replace(run, about=about, trials=tuple(replace(trial, pinning=four) for trial in run.trials))
    recommendation = advice(run)
    assert recommendation.take == ("a",)
    assert recommendation.settled
    assert "Not ranked here: loop, which could use one core." in describe_advice(recommendation)[0]
    assert "loop" not in goes_on(replace(run, trials=tuple(trial for trial in run.trials if trial.block <= FIRST)))


def test_a_close_tie_is_settled_and_the_bound_is_small() -> None:
    recommendation = advice(made({"a": 10.0, "b": 10.0}, blocks=18, spread=0.02))
    assert set(recommendation.take) == {"a", "b"}
    assert recommendation.settled
    assert recommendation.behind is not None
    assert 1 < recommendation.behind <= read_margin(SCENARIO)


def test_of_a_tie_that_is_none_yet_the_best_that_was_seen_is_taken_whatever_other_axes_say() -> None:
    """The second has the smaller memory, and may yet cost far more of what was asked about."""
    run = made({"a": 10.0, "b": 11.0}, blocks=8, spread=0.3)
    lighter = tuple(
        replace(trial, server=replace(trial.server, rss_peak_bytes=trial.server.rss_peak_bytes // 3))
        for trial in run.trials
        if trial.server is not None and trial.contestant == "b"
    )
    run = replace(run, trials=(*(trial for trial in run.trials if trial.contestant == "a"), *lighter))
    recommendation = advice(run)
    assert recommendation.findings.verdict == "undecided"
    assert recommendation.take == recommendation.findings.decision.front[:1] == ("a",)
    assert not recommendation.settled
    text = describe_advice(recommendation)[0]
    assert text.startswith("Take a, the best measured in server CPU per message")
    assert "; b is not proven worse" in text
    assert "Better than a: b in memory" in text


def test_of_a_tie_only_those_are_taken_that_are_shown_to_be_close() -> None:
    """The third scatters so much that nothing is proven; that it is the lightest does not count."""
    run = made({"a": 10.0, "b": 10.0}, blocks=18, spread=0.02)
    third = made({"c": 10.0}, blocks=18, spread=0.2)
    lighter = tuple(
        replace(trial, server=replace(trial.server, rss_peak_bytes=trial.server.rss_peak_bytes // 3))
        for trial in third.trials
        if trial.server is not None
    )
    recommendation = advice(replace(run, trials=(*run.trials, *lighter)))
    assert set(recommendation.findings.decision.front) == {"a", "b", "c"}
    assert recommendation.findings.verdict == "undecided"
    assert recommendation.by_metric
    assert recommendation.take == recommendation.findings.decision.front[:1]
    assert "decides" not in describe_advice(recommendation)[0]


@pytest.mark.parametrize("blocks", ADVICE_LOOKS[:2])
def test_a_server_that_is_beaten_gets_no_further_block_after_a_look(blocks: int) -> None:
    costs = {"a": 10.0, "b": 9.5, "c": 30.0}
    assert goes_on(made(costs, blocks, spread=0.1)) == ("a", "b")


def test_between_two_looks_everybody_goes_on() -> None:
    costs = {"a": 10.0, "b": 10.1, "c": 30.0}
    assert FIRST + 1 not in ADVICE_LOOKS
    assert goes_on(made(costs, FIRST + 1, spread=0.05)) == ("a", "b", "c")


def test_a_server_that_was_left_out_stays_out_and_is_named() -> None:
    second, costs = ADVICE_LOOKS[1], {"a": 10.0, "b": 10.1, "c": 30.0}
    assert goes_on(made(costs, {"a": FIRST + 1, "b": FIRST + 1, "c": FIRST}, spread=0.15)) == ("a", "b")
    run = made(costs, {"a": second, "b": second, "c": FIRST}, spread=0.15)
    assert goes_on(run) == ("a", "b")
    recommendation = advice(run)
    assert recommendation.left_out == (LeftOut("c", FIRST),)
    assert f"Servers dropped because they cannot be the best: c after {FIRST} blocks." in describe_advice(
        recommendation
    )


def test_a_server_that_missed_the_end_of_the_time_was_not_left_out() -> None:
    """Not beaten; or beaten, but not at a look."""
    last = ADVICE_LOOKS[1] + 1
    costs = {"a": 10.0, "b": 10.1, "c": 30.0}
    assert advice(made(costs, {"a": last, "b": last - 1, "c": last}, spread=0.05)).left_out == ()
    assert advice(made(costs, {"a": last, "b": last, "c": FIRST + 1}, spread=0.05)).left_out == ()


def test_it_ends_when_none_can_be_much_better() -> None:
    assert goes_on(made({"a": 10.0, "b": 20.0}, FIRST, spread=0.01)) == ()
    assert goes_on(made({"a": 10.0, "b": 10.0}, ADVICE_LOOKS[3], spread=0.01)) == ()
    assert goes_on(made({"a": 10.0, "b": 10.0}, FIRST, spread=0.2)) == ("a", "b")


def test_a_server_that_cannot_be_run_gets_no_further_block() -> None:
    run = made({"a": 10.0, "b": 10.1, "c": 10.0}, FIRST + 1, spread=0.2)
    skipped = tuple(
        replace(trial, status="skipped", load=None, server=None) if trial.contestant == "c" else trial
        for trial in run.trials
    )
    assert goes_on(replace(run, trials=skipped)) == ("a", "b")


def test_each_look_has_its_share_of_the_level() -> None:
    assert choose_significance(Advise()) * (len(ADVICE_LOOKS) + 1) == pytest.approx(0.05)
    assert choose_significance(Advise(objective="p99<5ms")) == choose_significance(Advise()) / 2
    run = made({"a": 10.0, "b": 10.1, "c": 10.2}, spread=0.1)
    wide, narrow = (analyse(variant).scenarios[0].comparisons[0].interval for variant in (run, _without_looks(run)))
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def _without_looks(run: Run) -> Run:
    return replace(run, experiment=replace(run.experiment, advise=None))


# --- how far from the best ------------------------------------------------------------------------------------------


def compared(first: str, second: str, ratio: float, error: float) -> Comparison:
    """With so many degrees of freedom that a one-sided interval of 95% reaches 1.645 standard errors."""
    return Comparison(
        first, second, pairs=5, blocks=5, ratio=ratio, interval=None, p=0.5, decidable=True, error=error, freedom=1e9
    )


def test_how_much_better_another_may_be_depends_on_the_direction() -> None:
    family = [compared("a", "b", 1.1, 0.1)]
    most, least = 1.1 * math.exp(0.16449), 1 / 1.1 * math.exp(0.16449)
    assert compute_deficit_bound("a", ["a", "b"], family, "higher", 0.05) == pytest.approx(least, rel=1e-4)
    assert compute_deficit_bound("a", ["a", "b"], family, "lower", 0.05) == pytest.approx(most, rel=1e-4)
    assert compute_deficit_bound("b", ["a", "b"], family, "lower", 0.05) == pytest.approx(least, rel=1e-4)
    assert compute_deficit_bound("b", ["a", "b"], [compared("a", "b", 0.5, 0.1)], "higher", 0.05) == 1


def test_the_bound_is_corrected_for_as_many_as_may_be_the_best() -> None:
    two, three = (
        compute_deficit_bound("a", names, [compared("a", rival, 1.0, 0.1) for rival in "bc"], "higher", 0.05)
        for names in ("ab", "abc")
    )
    assert math.log(two) == pytest.approx(0.1645, rel=1e-3)
    assert math.log(three) == pytest.approx(0.1960, rel=1e-3)


def test_a_server_that_was_not_compared_leaves_it_unknown() -> None:
    assert compute_deficit_bound("a", ["a", "b"], [], "lower", 0.05) == math.inf
    assert compute_deficit_bound("a", ["a"], [], "lower", 0.05) == 1


# --- objectives ----------------------------------------------------------------------------------------------------


def with_objective(p99_ms: Mapping[str, float], blocks: int = 8) -> Run:
    costs = dict(zip(p99_ms, (10.0, 12.0, 14.0), strict=False))
    return made(costs, blocks, spread=0.05, objective="p99<5ms", p99_ms=p99_ms)


def test_a_server_that_does_not_meet_the_objective_is_not_taken_though_it_costs_least() -> None:
    recommendation = advice(with_objective({"a": 50.0, "b": 2.0, "c": 1.0}))
    assert recommendation.take == ("b",)
    assert [kept.outcome for kept in recommendation.kept] == ["breaks", "meets", "meets"]
    assert recommendation.behind == 1  # the cheaper one is no rival
    text = " ".join(describe_advice(recommendation))
    assert text.startswith(
        "Of those that are shown to meet p99 < 5 ms: Take b: it has the lowest server CPU per message"
    )
    assert "p99 < 5 ms is met by b and c. Not met by a." in text
    assert "Every other server that may meet p99 < 5 ms is shown to be worse in server CPU per message" in text
    assert re.search(r"b: p99 (1\.9|2\.0)\d ms \(95% interval 1\.\d+ ms to 2\.\d+ ms\), over 8 blocks\.", text)


def test_a_server_that_may_yet_meet_it_is_a_rival() -> None:
    recommendation = advice(with_objective({"a": 5.0, "b": 1.0, "c": 1.0}))
    assert recommendation.kept[0].outcome == "open"
    assert recommendation.take == ("b",)
    assert recommendation.behind is not None
    assert recommendation.behind > 1.1
    assert not recommendation.settled
    assert "Undecided: a." in " ".join(describe_advice(recommendation))


def test_a_server_that_alone_meets_it_is_not_called_the_only_one_measured() -> None:
    first, second, *_ = describe_advice(advice(with_objective({"a": 50.0, "b": 1.0})))
    assert first == "Take b: it is the only server that is shown to meet p99 < 5 ms."
    assert second == "No other server that may meet p99 < 5 ms is left after 8 blocks."


def test_where_none_is_shown_to_meet_it_that_is_stated() -> None:
    recommendation = advice(with_objective({"a": 5.0, "b": 5.0}))
    assert recommendation.outcome == "open"
    assert "No server is shown to meet p99 < 5 ms." in " ".join(describe_advice(recommendation))


def test_where_none_meets_it_the_nearest_is_named() -> None:
    recommendation = advice(with_objective({"a": 60.0, "b": 20.0}))
    assert recommendation.outcome == "breaks"
    text = " ".join(describe_advice(recommendation))
    assert "No server meets p99 < 5 ms" in text
    assert "b: p99 20" in text
    assert recommendation.settled  # more blocks would not let any server meet it


def test_where_none_meets_it_all_are_compared_and_one_that_could_not_run_hides_nothing() -> None:
    run = made({"a": 10.0, "b": 10.0, "c": 10.0}, spread=0.2, objective="p99<5ms", p99_ms=dict.fromkeys("abc", 50.0))
    skipped = tuple(
        replace(trial, status="skipped", load=None, server=None) if trial.contestant == "c" else trial
        for trial in run.trials
    )
    recommendation = advice(replace(run, trials=skipped))
    assert (recommendation.outcome, len(recommendation.take)) == ("breaks", 1)
    assert recommendation.behind is not None
    assert recommendation.behind > 1.1


# --- bounds --------------------------------------------------------------------------------------------------------


def at_limit(run: Run, name: str, metric: str = "throughput") -> tuple[Advise, ScenarioFindings, ScenarioTrials]:
    """With one of them the generator was at its limit."""
    (part,) = split(outcomes.judge_run(run))
    scenario = replace(part.scenario, metric=metric)
    part = replace(part, scenario=scenario, saturated=(Saturated(scenario.name, level_key({}), name, 1.0),))
    (findings,) = analyse(run).scenarios
    findings = replace(findings, censored=(Censored(level_key({}), name, 1.0),))
    assert run.experiment.advise is not None
    return run.experiment.advise, findings, part


def test_of_a_rate_that_is_a_bound_none_knows_how_much_better_it_is() -> None:
    run = made({"a": 10.0, "b": 13.0})
    for name, metric, bound in (("b", "throughput", None), ("a", "throughput", 1), ("b", "cpu", 1)):
        recommendation = judge_advice.judge_advice(*at_limit(run, name, metric))
        assert (recommendation.take, recommendation.behind) == (("a",), bound)
        assert recommendation.settled  # the generator is not quicker in another block
    text = " ".join(describe_advice(judge_advice.judge_advice(*at_limit(run, "b"))))
    assert "How far a is from the best in server CPU per message is unknown, and more time would not show it: " in text
    assert "show it: the generator is at its limit with b. " in text
    assert "The generator was at its limit with b: figures are bounds" in text


def test_more_time_is_only_named_where_it_would_tell_more() -> None:
    """Not where the generator hides how good another is, whatever the blocks; nor after the most that there are."""
    run = made({"a": 10.0, "b": 13.0}, spread=0.3)
    advise, findings, part = at_limit(run, "b")
    hidden = judge_advice.judge_advice(advise, findings, part)
    assert (hidden.settled, hidden.behind, hidden.hidden) == (False, None, ("b",))
    assert "would show more" not in " ".join(describe_advice(hidden))
    assert "A longer --time-budget would show more." in " ".join(describe_advice(advice(run)))
    widest = advice(made({"a": 10.0, "b": 10.1}, blocks=ADVICE_LOOKS[-1], spread=1.0))
    assert not widest.settled
    assert "would show more" not in " ".join(describe_advice(widest))


def test_a_time_that_is_a_bound_shows_that_a_limit_is_kept_and_not_that_it_is_broken() -> None:
    requested, _, part = at_limit(with_objective({"a": 50.0, "b": 2.0}), "a")
    assert [kept.outcome for kept in judge_advice.check_objective(requested, part)] == ["open", "meets"]
    elsewhere = replace(part, saturated=(Saturated(SCENARIO.name, "elsewhere", "a", 1.0),))
    assert [kept.outcome for kept in judge_advice.check_objective(requested, elsewhere)] == ["breaks", "meets"]


def test_the_objective_decides_which_get_further_blocks() -> None:
    assert goes_on(with_objective({"a": 500.0, "b": 4.8, "c": 4.9})) == ("b", "c")
    assert goes_on(with_objective({"a": 500.0, "b": 500.0})) == ()
    assert goes_on(with_objective({"a": 5.0, "b": 0.1, "c": 0.1})) == ("a", "b")


def test_below_five_blocks_there_is_no_interval() -> None:
    recommendation = advice(with_objective({"a": 1.0, "b": 1.0}, blocks=4))
    assert recommendation.outcome == "open"
    assert recommendation.behind is None
    assert "is unknown after 4 blocks" in " ".join(describe_advice(recommendation))

"""From stored trials to capacities: a block's, a search's, their ranking, and where a curve bends."""

from __future__ import annotations

import math
import re

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.capacity import fill
from netdyno.analysis.found.capacity import Overload
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.trials.split import select_part
from netdyno.kit.statistics.threshold import Capacity, RateResult, capacity, knee
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present import report
from netdyno.present.prose.capacity import describe_search
from netdyno.present.prose.caveats import list_caveats
from netdyno.present.prose.verdict import answer
from tests.support.builders.made_capacity import (
    OBJECTIVE,
    PLAN,
    RATES,
    experiment_run,
    load,
    search_run,
    trial,
    truth_hz,
)
from tests.support.printed import print_table


def block(outcomes: str) -> list[RateResult]:
    """Rates 100, 200, ...: H held, F failed, with no latency to tell where between them."""
    return [RateResult(100.0 * number, outcome == "H") for number, outcome in enumerate(outcomes, 1) if outcome != "-"]


# --- one block --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("HHHFF", Capacity(300)),
        ("HFHHFFF", Capacity(400)),
        ("HHHFFFHF", Capacity(300)),
        ("HHFHFF", Capacity(200)),
        ("HH-FF", Capacity(200)),
        ("HHHHH", Capacity(500, "at least")),
        ("FFFFF", Capacity(100, "below")),
        ("FFFHF", Capacity(100, "below")),
        ("HHFHH", Capacity(500, "at least")),
    ],
)
def test_the_boundary_of_a_block_is_where_fewest_outcomes_speak_against_it(outcomes: str, expected: Capacity) -> None:
    assert capacity(block(outcomes), None) == expected


def test_the_latency_tells_where_between_two_rates_its_limit_was_crossed() -> None:
    two = [RateResult(100, True, 1e6), RateResult(400, False, 1e8)]
    assert capacity(two, 1e7).rate_hz == pytest.approx(200)  # half of the way on both logarithmic scales
    assert capacity(two, 1.01e6).rate_hz == pytest.approx(100, rel=0.01)
    assert capacity(two, 0.99e8).rate_hz == pytest.approx(400, rel=0.01)


def test_a_latency_at_its_limit_has_crossed_it() -> None:
    assert capacity([RateResult(100, True, 1e6), RateResult(400, False, 1e7)], 1e7).rate_hz == pytest.approx(400)
    assert capacity([RateResult(100, True, 1e7), RateResult(400, False, 1e8)], 1e7).rate_hz == 100


def test_where_the_latency_did_not_cross_the_limit_the_lower_rate_stands() -> None:
    assert capacity([RateResult(100, True, 1e6), RateResult(400, False, 2e6)], 1e7).rate_hz == 100


# --- the knee ---------------------------------------------------------------------------------------------------------


def test_the_knee_is_where_a_curve_bends_most() -> None:
    rates = [10.0 * number for number in range(1, 13)]
    hockey_stick = [(rate, 1e6 if rate <= 90 else 1e6 * 10 ** ((rate - 90) / 10)) for rate in rates]
    assert knee(hockey_stick) == 90


@pytest.mark.parametrize(
    "points",
    [
        [(1.0, 1.0), (2.0, 2.0), (3.0, 900.0)],
        [(float(rate), math.exp(rate)) for rate in range(1, 9)],
        [(float(rate), 5.0) for rate in range(1, 9)],
    ],
)
def test_what_is_short_straight_or_level_has_no_knee(points: list[tuple[float, float]]) -> None:
    assert knee(points) is None


# --- all contestants --------------------------------------------------------------------------------------------------


def scenario(run: Run) -> ScenarioFindings:
    return analyse(run).scenarios[0]


def test_contestants_are_ranked_by_their_capacity_and_distinguished() -> None:
    findings = scenario(experiment_run())
    assert [standing.contestant for standing in findings.standings] == ["fast", "middle", "slow"]
    assert (findings.verdict, answer(findings).headline, findings.better) == ("winner", "fast", "higher")
    assert (
        "Take fast: it has the highest capacity under p99<5ms (open loop at the offered rates, constant arrivals)"
        in answer(findings).sentence
    )
    for standing in findings.standings:
        assert standing.value == pytest.approx(truth_hz(standing.contestant), rel=0.12)
    assert {comparison.pairs for comparison in findings.comparisons} == {9}
    assert all(comparison.different for comparison in findings.comparisons)


def test_two_that_do_not_differ_are_equal_within_a_bound() -> None:
    run = experiment_run(("fast",))
    twin = tuple(replace(attempt, contestant="twin") for attempt in experiment_run(("fast",)).trials)
    findings = scenario(replace(run, trials=(*run.trials, *twin)))
    assert findings.verdict == "equal"
    assert set(findings.decision.recommended) == {"fast", "twin"}
    assert findings.decision.within is not None
    assert findings.decision.within <= 1.05


def test_a_capacity_beyond_the_rates_is_only_a_bound_and_called_one() -> None:
    findings = scenario(experiment_run(("strong", "fast", "weak")))
    bounds = [(standing.contestant, standing.bound) for standing in findings.standings]
    assert bounds == [("strong", "at least"), ("fast", ""), ("weak", "at most")]
    assert [findings.standings[0].value, findings.standings[2].value] == pytest.approx([RATES[-1], RATES[0]])
    text = " ".join(list_caveats(findings))
    assert "In 9 of 9 blocks strong held at every rate: its capacity is the highest rate or more" in text
    assert "In 9 of 9 blocks weak held at no rate: its capacity is below the lowest rate" in text


def test_what_the_machine_spoils_is_missing_and_lowers_no_capacity() -> None:
    run = experiment_run(("fast", "slow"))

    def spoilt(attempt: Trial) -> Trial:
        if (attempt.contestant, attempt.block) != ("fast", 3) or attempt.levels["rate"] != RATES[0]:
            return attempt
        assert attempt.load is not None
        return trial(attempt.contestant, attempt.block, attempt.position, attempt.load, "foreign_load")

    before, after = scenario(run), scenario(replace(run, trials=tuple(map(spoilt, run.trials))))
    assert [standing.value for standing in after.standings] == [standing.value for standing in before.standings]
    assert (before.standings[0].missing, after.standings[0].missing) == (0, 1)


def test_an_overload_that_was_invalid_still_bounds_the_capacity() -> None:
    run = experiment_run(("fast", "slow"))

    def make_invalid(attempt: Trial) -> Trial:
        assert attempt.load is not None
        beyond = float(attempt.levels["rate"]) > 20_000
        return (
            trial(attempt.contestant, attempt.block, attempt.position, attempt.load, "verification")
            if beyond
            else attempt
        )

    findings = scenario(replace(run, trials=tuple(map(make_invalid, run.trials))))
    assert [standing.bound for standing in findings.standings] == ["", ""]
    assert findings.standings[0].missing == 0


def test_the_pairs_that_are_needed_are_counted_by_blocks_and_not_by_rates() -> None:
    findings = scenario(experiment_run(("fast", "slow"), blocks=2))
    assert findings.verdict == "not_enough_blocks"
    assert "shares 2 blocks with a rival, and 5 are needed" in answer(findings).sentence


# --- one search -------------------------------------------------------------------------------------------------------


def test_a_stored_search_gives_its_answer_again() -> None:
    findings = scenario(search_run())
    assert findings.capacity is not None
    assert answer(findings).sentence == describe_search(findings.capacity)
    numbers = re.fullmatch(
        r"fast meets p99 < 5 ms up to ([\d,]+) messages/s \(held in 3 of 3 trials\); at ([\d,]+) it failed in 3 of 3 "
        r"trials\.",
        answer(findings).sentence,
    )
    assert numbers
    low, high = (float(figure.replace(",", "")) for figure in numbers.groups())
    assert low < truth_hz("fast") <= high
    (standing,) = findings.standings
    assert standing.value == pytest.approx(low)
    assert standing.bound == ""


def test_a_search_that_ended_early_has_no_answer_and_no_ranking() -> None:
    run = search_run()
    findings = scenario(replace(run, trials=run.trials[:5], finished_at=None))
    assert findings.capacity is not None
    assert (answer(findings).sentence, findings.standings) == (
        "The search for the capacity of fast did not finish.",
        (),
    )


def test_disturbed_trials_that_were_retried_change_no_answer() -> None:
    """However many there were in a row: the search waited for the machine."""
    run = search_run()
    fifth = run.trials[4]
    assert fifth.load is not None
    lost = trial("fast", 99, 0, fifth.load, "foreign_load")
    trials = (*run.trials[:4], *(replace(lost, block=99 + number) for number in range(5)), *run.trials[4:])
    numbered = tuple(replace(attempt, position=number) for number, attempt in enumerate(trials))
    assert answer(scenario(replace(run, trials=numbered))) == answer(scenario(run))
    ended = scenario(replace(run, trials=numbered[:9]))
    assert answer(ended).sentence.startswith("no answer, because the machine was disturbed in every trial at")


def test_a_search_that_nothing_passes_has_no_capacity() -> None:
    findings = scenario(search_run("weak", replace(PLAN, objective="p99<1us")))
    assert findings.standings == ()
    assert "weak does not meet p99 < 1 µs at 50 messages/s, the lowest rate to be tried" in answer(findings).sentence


def test_a_generator_at_its_limit_gives_no_capacity() -> None:
    findings = scenario(search_run("fast", PLAN, "generator"))
    assert findings.standings == ()
    assert answer(findings).sentence.startswith("the generator was at its limit at 50 messages/s: it is unknown")


def test_the_points_of_a_curve_count_what_held_and_say_why_not() -> None:
    result = scenario(search_run()).capacity
    assert result is not None
    (curve,) = result.curves
    assert [point.rate_hz for point in curve.points] == sorted(point.rate_hz for point in curve.points)
    below, above = curve.points[0], curve.points[-1]
    assert (below.held, below.failed, below.silent, below.whys) == (1, 0, 0, ())
    assert (above.held, above.silent) == (0, 0)
    assert len(above.whys) == above.failed
    for why in above.whys:
        assert isinstance(why, Overload)
        assert why.answered_hz < 0.99 * why.offered_hz
    assert below.latency_ns == below.p99_ns
    assert curve.knee_hz is not None
    assert 0.5 * truth_hz("fast") < curve.knee_hz <= truth_hz("fast")


def test_an_experiment_of_another_metric_has_no_capacity() -> None:
    run = experiment_run(("fast", "slow"))
    throughput = replace(run.experiment.scenarios[0], metric="throughput", objective="")
    changed = replace(run, experiment=replace(run.experiment, scenarios=(throughput,)))
    assert scenario(changed).capacity is None
    assert fill.find_bound(select_part(changed, throughput), "fast") == ""
    assert scenario(changed).ranked_levels == len(RATES)


# --- what is shown ----------------------------------------------------------------------------------------------------


def body(run: Run) -> str:
    return report.render_html(analyse(run)).partition("<body>")[2].partition('<script id="data"')[0]


def test_the_report_draws_the_curve_with_objective_capacity_and_knee() -> None:
    page = body(search_run())
    assert "<h3>Rate and latency</h3>" in page
    (spoken,) = re.findall(r'aria-label="(Response time over the offered rate[^"]*)"', page)
    assert "objective p99 &lt; 5 ms" in spoken
    assert re.search(
        r"fast: p99 [\d.]+ µs at 1,000 to [\d.]+ s at [\d,]+, capacity [\d.]+k/s, knee at [\d,]+\.", spoken
    )
    panel = page.partition(spoken)[2].partition("</svg>")[0]
    for label in ("p50", "p99", "p99.9", "p99 &lt; 5 ms", "offered rate, messages per second (log scale)"):
        assert f">{label}<" in panel
    assert page.count("(knee)") == 1
    assert '<p class="verdict">Capacity</p>' in page
    assert "./netdyno capacity fast --objective" in page


def test_the_report_of_all_has_one_panel_with_everybody() -> None:
    page = body(experiment_run())
    (spoken,) = re.findall(r'aria-label="(Response time over the offered rate[^"]*)"', page)
    assert all(f"{name}: p99" in spoken for name in ("fast", "middle", "slow"))
    assert "geometric mean over" not in page.partition("<caption>Ranking by capacity")[2].partition("</caption>")[0]
    assert "./netdyno run capacity" in page


def test_a_report_of_trials_without_any_figure_can_be_written() -> None:
    run = search_run()
    silent = tuple(
        replace(attempt, status="failed", reason="it died", load=None, audits=())
        for attempt in run.trials[: len(RATES)]
    )
    page = body(replace(run, trials=silent))
    assert "it died" in page


def test_the_table_shows_a_bound_before_the_value() -> None:
    assert re.search(r"strong +≥24\.4k/s", print_table(analyse(experiment_run(("strong", "fast"))), 100))


def test_a_trial_at_a_rate_is_what_the_queue_makes_of_it() -> None:
    """The made-up servers are what the tests say they are."""
    import numpy as np

    from netdyno.model.objective import parse as parse_objective

    objective = parse_objective(OBJECTIVE, "")
    for share, meets in ((0.97, True), (1.03, False)):
        result = load("fast", share * truth_hz("fast"), 1.0, np.random.default_rng(1))
        assert (objective.broken(result) == ()) == meets

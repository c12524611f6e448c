"""The search against made-up servers: a queue whose latency is known, with noise of a known kind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from netdyno.analysis.capacity.search import MOST_RETRIES, Search, SearchOutcome
from netdyno.analysis.found.capacity import Answer
from netdyno.model.experiment import CapacityPlan

LIMIT_MS = 5.0
PLAN = CapacityPlan(objective="p99<5ms", start_hz=1000, least_hz=50, most_hz=1_000_000)
MOST_AT_THE_BOUNDARY = 4
"""Trials at the end of a search without noise that only confirm its two rates."""
SimulatedServer = Callable[[float, np.random.Generator], SearchOutcome]


def p99_ms(rate_hz: float, service_hz: float) -> float:
    """Of M/M/1: the response time is exponential with the rate that is left over."""
    return math.inf if rate_hz >= service_hz else 1e3 * math.log(100) / (service_hz - rate_hz)


def truth_hz(service_hz: float) -> float:
    """Where that is the limit."""
    return service_hz - 1e3 * math.log(100) / LIMIT_MS


def noisy(service_hz: float, sigma: float, spikes: float = 0.0) -> SimulatedServer:
    """Log-normal noise on the latency of a trial; a spike is a trial in which the machine was slow at any rate."""

    def trial(rate_hz: float, random: np.random.Generator) -> SearchOutcome:
        seen = p99_ms(rate_hz, service_hz) * math.exp(sigma * random.normal())
        return "failed" if seen >= LIMIT_MS or random.random() < spikes else "held"

    return trial


def search(
    server: SimulatedServer, seed: int = 1, plan: CapacityPlan = PLAN
) -> tuple[Answer, list[tuple[float, SearchOutcome]]]:
    """The answer, and every trial on the way."""
    random, progress, trials = np.random.default_rng(seed), Search(plan), []
    while (rate := progress.choose_rate()) is not None:
        assert plan.least_hz <= rate <= plan.most_hz
        trials.append((rate, server(rate, random)))
        progress.tell(trials[-1][1])
        assert len(trials) < 500, "the search does not end"
    assert progress.answer is not None
    return progress.answer, trials


@pytest.mark.parametrize("service_hz", [1_500.0, 7_000.0, 42_000.0, 650_000.0])
def test_without_noise_the_truth_lies_between_the_two_rates_of_the_answer(service_hz: float) -> None:
    answer, trials = search(noisy(service_hz, sigma=0))
    assert answer.ending == "capacity"
    assert answer.holds
    assert answer.fails
    assert answer.holds.rate_hz < truth_hz(service_hz) <= answer.fails.rate_hz
    assert answer.fails.rate_hz <= answer.holds.rate_hz * (1 + PLAN.resolution) * 1.01
    assert (answer.holds.held, answer.holds.failed) == (PLAN.needed, 0)
    assert (answer.fails.held, answer.fails.failed) == (0, PLAN.needed)
    assert len(trials) <= 35


@pytest.mark.parametrize(("sigma", "spikes"), [(0.1, 0.0), (0.3, 0.0), (0.1, 0.05), (0.3, 0.1)])
def test_with_noise_the_answer_is_within_one_step_of_the_truth_in_19_of_20_searches(
    sigma: float, spikes: float
) -> None:
    service_hz, seeds = 20_000.0, 400
    step = 1 + PLAN.resolution
    right = 0
    for seed in range(seeds):
        answer, _ = search(noisy(service_hz, sigma, spikes), seed)
        assert answer.ending == "capacity"
        assert answer.holds
        assert answer.fails
        right += answer.holds.rate_hz / step <= truth_hz(service_hz) <= answer.fails.rate_hz * step
    assert right >= 0.95 * seeds


def failing_at(server: SimulatedServer, number: int) -> SimulatedServer:
    """The same server, but for one trial that fails whatever its rate."""
    count = -1

    def spiked(rate_hz: float, random: np.random.Generator) -> SearchOutcome:
        nonlocal count
        count += 1
        return "failed" if count == number else server(rate_hz, random)

    return spiked


def test_a_single_failure_wherever_it_falls_changes_no_answer() -> None:
    server = noisy(20_000, sigma=0)
    quiet, trials = search(server)
    assert quiet.holds
    for number in range(len(trials)):
        answer, spiked = search(failing_at(server, number))
        assert answer.holds
        assert answer.holds.rate_hz == quiet.holds.rate_hz
        if trials[number][1] == "held" and number < len(trials) - MOST_AT_THE_BOUNDARY:
            assert spiked[number + 1][0] == spiked[number][0], "what failed is tried again at once"


def test_a_rate_that_held_once_by_luck_is_given_up_at_the_boundary() -> None:
    seen: dict[float, int] = {}

    def lucky(rate_hz: float, random: np.random.Generator) -> SearchOutcome:
        """Beyond the truth, the first trial at each rate up to 10% above it holds."""
        seen[rate_hz] = seen.get(rate_hz, 0) + 1
        truth = truth_hz(20_000)
        return "held" if rate_hz < truth or (rate_hz < 1.1 * truth and seen[rate_hz] == 1) else "failed"

    answer, _ = search(lucky)
    assert answer.holds
    assert answer.fails
    assert answer.holds.rate_hz < truth_hz(20_000) <= answer.fails.rate_hz
    assert answer.fails.held == 1


def test_trials_at_the_boundary_alternate_between_the_two_rates() -> None:
    needed = CapacityPlan(objective="p99<5ms", start_hz=1000, least_hz=50, most_hz=1_000_000, needed=5)
    answer, trials = search(noisy(20_000, sigma=0), plan=needed)
    assert answer.holds
    assert answer.fails
    last = [rate for rate, _ in trials[-5:]]
    assert set(last) == {answer.holds.rate_hz, answer.fails.rate_hz}
    assert all(rate != following for rate, following in itertools.pairwise(last))


def test_an_objective_that_nothing_meets_is_called_met_by_nothing() -> None:
    answer, trials = search(lambda *_: "failed")
    assert answer.ending == "none"
    assert answer.holds is None
    assert answer.fails
    assert (answer.fails.rate_hz, answer.fails.failed) == (PLAN.least_hz, PLAN.needed)
    assert min(rate for rate, _ in trials) == PLAN.least_hz


def test_an_objective_that_is_met_at_the_most_is_called_met_there() -> None:
    answer, trials = search(lambda *_: "held")
    assert answer.ending == "at_most"
    assert answer.holds
    assert (answer.holds.rate_hz, answer.holds.held) == (PLAN.most_hz, PLAN.needed)
    assert answer.fails is None
    assert max(rate for rate, _ in trials) == PLAN.most_hz


def test_the_generators_limit_is_a_bound_and_never_a_capacity() -> None:
    limit_hz = 60_000.0
    answer, _ = search(lambda rate, _: "generator" if rate > limit_hz else "held")
    assert answer.ending == "generator"
    assert answer.holds
    assert answer.fails is None
    assert limit_hz / 1.06 <= answer.holds.rate_hz <= limit_hz < (answer.stopped_at or 0)
    assert answer.holds.held == PLAN.needed


def test_a_capacity_below_the_generators_limit_is_found() -> None:
    server = noisy(40_000, sigma=0)
    answer, _ = search(lambda rate, random: "generator" if rate > 60_000 else server(rate, random))
    assert answer.ending == "capacity"
    assert answer.holds
    assert answer.fails
    assert answer.holds.rate_hz < truth_hz(40_000) <= answer.fails.rate_hz


def test_a_generator_that_cannot_even_start_is_no_capacity() -> None:
    answer, _ = search(lambda *_: "generator")
    assert (answer.ending, answer.holds, answer.fails) == ("generator", None, None)
    assert answer.stopped_at == PLAN.least_hz


@pytest.mark.parametrize("silence", ["disturbed", "broken"])
def test_a_trial_that_says_nothing_is_retried_at_the_same_rate(silence: SearchOutcome) -> None:
    server, count = noisy(20_000, sigma=0), 0

    def every_third(rate_hz: float, random: np.random.Generator) -> SearchOutcome:
        nonlocal count
        count += 1
        return silence if count % 3 == 0 else server(rate_hz, random)

    answer, trials = search(every_third)
    assert answer == search(server)[0]
    assert all(after[0] == before[0] for before, after in itertools.pairwise(trials) if before[1] == silence)


@pytest.mark.parametrize("silence", ["disturbed", "broken"])
def test_a_machine_that_is_never_free_ends_the_search_with_what_held_before(silence: SearchOutcome) -> None:
    answer, trials = search(lambda rate, _: "held" if rate < 5_000 else silence)
    assert answer.ending == silence
    assert answer.holds
    assert answer.holds.rate_hz < 5_000 < (answer.stopped_at or 0)
    assert [outcome for _, outcome in trials[-MOST_RETRIES:]] == [silence] * MOST_RETRIES


def test_a_start_that_is_also_the_most_and_the_least_is_measured_there() -> None:
    alone = CapacityPlan(objective="p99<5ms", start_hz=500, least_hz=500, most_hz=500)
    assert search(lambda *_: "held", plan=alone)[0].ending == "at_most"
    assert search(lambda *_: "failed", plan=alone)[0].ending == "none"


def test_rates_are_written_as_a_person_would() -> None:
    rates = [rate for rate, _ in search(noisy(20_000, sigma=0))[1]]
    assert all(rate == float(f"{rate:.3g}") for rate in rates)


def test_nothing_can_be_decided_before_a_rate_was_requested() -> None:
    with pytest.raises(ValueError, match="no rate"):
        Search(PLAN).tell("held")

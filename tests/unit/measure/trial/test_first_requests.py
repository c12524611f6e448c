"""What follows from the first requests: the rate of the slowest, and servers that answer some connections only."""

from __future__ import annotations

import msgspec
import pytest

from netdyno.measure.trial.first_requests import (
    FirstBodies,
    _describe_difference,
    _measure_closed_loops,
    choose_wait_s,
    count_served,
    find_enough_hz,
    lower_rate,
)
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings, settings
from netdyno.present.prose.replies import describe_rate
from tests.support.builders.made_load import changed, distribution, load

SAME_RATE = Scenario(name="s", workload="http", arrivals="poisson", rate=2000, rate_share=0.6, path=("/",))


def test_one_rate_for_all_follows_from_the_slowest() -> None:
    lowered = lower_rate(SAME_RATE, {"fast": 9000.0, "slow": 417.0, "mute": 0.0})
    assert (lowered.rate, lowered.rate_for) == (250.0, "slow")
    assert describe_rate(lowered) == (
        "The rate is 250/s: 60% of what slow, the slowest, answered before the first trial (--rate sets another)."
    )


@pytest.mark.parametrize("closed_hz", [{"fast": 3400.0}, {"mute": 0.0}, {}])
def test_a_rate_that_all_can_carry_stays(closed_hz: dict[str, float]) -> None:
    assert lower_rate(SAME_RATE, closed_hz) == SAME_RATE
    assert describe_rate(SAME_RATE) == ""


@pytest.mark.parametrize(
    ("sent", "most_hz"),
    [
        pytest.param((40.0, 900.0, 850.0), 900.0, id="slow"),
        pytest.param((40.0, 9000.0), 9000.0, id="disturbed once"),
        pytest.param((9000.0,), 9000.0, id="fast"),
    ],
)
def test_a_neighbour_of_one_load_does_not_lower_the_rate(sent: tuple[float, ...], most_hz: float) -> None:
    rates_hz = iter(sent)

    def send(cell_settings: Settings, *, connections: int | None = None) -> LoadResult:
        result: LoadResult = changed(load(), "requests.per_second", next(rates_hz))
        return result

    cells = [("most", settings(SAME_RATE, {})), ("same rate", settings(SAME_RATE, {}))]
    enough_hz = find_enough_hz(Experiment(name="e", question="?", scenarios=(SAME_RATE,)))
    closed_hz = _measure_closed_loops(send, cells, enough_hz)
    assert closed_hz == {"most": most_hz, "same rate": most_hz}
    assert next(rates_hz, None) is None


@pytest.mark.parametrize(("timeout_s", "wait_s"), [(0.0001, 2.0), (3.0, 3.0), (30.0, 5.0)])
def test_a_short_timeout_does_not_end_the_first_requests(timeout_s: float, wait_s: float) -> None:
    assert choose_wait_s(msgspec.structs.replace(settings(SAME_RATE, {}), timeout_s=timeout_s)) == wait_s


def test_a_rate_stays_that_was_given() -> None:
    given = msgspec.structs.replace(SAME_RATE, rate_share=None)
    assert lower_rate(given, {"slow": 1.0}) == given


@pytest.mark.parametrize(
    ("answered", "received", "lost", "established", "closed", "is_held"),
    [
        pytest.param(4, 80, 16, 20, 0, True, id="held"),
        pytest.param(4, 80, 16, 7, 0, True, id="held, and its listen queue is full"),
        pytest.param(20, 80, 0, 20, 0, False, id="all answered"),
        pytest.param(4, 80, 15, 20, 0, False, id="answered afterwards"),
        pytest.param(4, 7, 16, 20, 0, False, id="slow for all"),
        pytest.param(0, 0, 20, 20, 0, False, id="mute"),
        pytest.param(4, 80, 16, 4, 0, False, id="the others are not connected"),
        pytest.param(4, 80, 16, 84, 80, False, id="each connection is closed"),
    ],
)
def test_a_server_that_answers_only_some_connections_is_named(
    answered: int, received: int, lost: int, established: int, closed: int, is_held: bool
) -> None:
    result = changed(load(), "connection_mean_ns", distribution(answered, 1000))
    result = changed(changed(result, "connections.established", established), "connections.closed_after_reply", closed)
    result = changed(changed(result, "messages.received", received), "messages.lost", lost)
    assert count_served(result, 20) == (4 if is_held else 0)


@pytest.mark.parametrize(
    ("before", "after", "varying", "differ"),
    [
        ("900", "900", (False, False), False),
        ("900", "901", (False, False), True),
        ("900", "950", (True, True), False),
        ("900", "30", (True, False), True),  # as an error that comes with status 200
        ("900", "30", (True, True), True),
    ],
)
def test_a_gate_compares_replies_of_varying_length_by_their_size(
    before: str, after: str, varying: tuple[bool, bool], differ: bool
) -> None:
    first = {
        name: FirstBodies({"/": body}, varies)
        for name, body, varies in zip(("before", "after"), (before, after), varying, strict=True)
    }
    assert bool(_describe_difference(first)) == differ

"""Which contestants take turns with each other, and in which slices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdyno.measure.audits.turn_audits import backlog, compute_thread_slice_s, rotation, side_by_side, turns
from netdyno.measure.trial.prepared import record_skip
from netdyno.model.base import type_level
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import Audit
from netdyno.model.options import Settings, settings
from netdyno.question.plan import Cell
from netdyno.question.side_by_side import (
    LONGEST_S,
    MOST_CONNECTIONS,
    MOST_IN_FLIGHT,
    SHORTEST_S,
    SKIPPED_IN_A_ROOM_S,
    SKIPPED_S,
    STEP_S,
    divide,
    divide_into_groups,
    explain_alone,
    find_busy,
    find_lagging,
    find_rotating,
)

PLAIN = Scenario(name="s", workload="echo", duration_s=0.4)


def why(contestants: int, contestant: Contestant, scenario: Scenario) -> str:
    return explain_alone(scenario, settings(scenario, {}), (contestant,) * contestants)


def test_contestants_take_turns_where_nothing_is_in_the_way(contestant: Contestant) -> None:
    assert why(2, contestant, PLAIN) == ""


@pytest.mark.parametrize(
    ("reason", "changed"),
    [
        (" off", {"turns": "off"}),
        ("clients are compared", {"client": "qt"}),
        ("a link lies between", {"link": "lan"}),
        ("several hosts make the load", {"client_hosts": 2}),
        ("the rate changes", {"arrivals": "poisson", "rate": 6000.0, "burst_rate": 20_000.0}),
        ("a control group limits each server", {"cpu_quota": 0.5}),
        ("a control group limits each server", {"memory_limit": 64 << 20}),
        ("a capacity is searched", {"objective": "p99<5ms"}),
        ("failed connects are counted", {"failed_connects": "count"}),
        ("some clients read slowly", {"workload": "chat", "slow_readers": 1}),
        ("clients speak while others connect", {"workload": "chat", "start": "at-once"}),
        ("each connection's mean", {"metric": "connection-spread"}),
        ("each start needs the cores", {"then_by": ("ready-cpu",)}),
        ("a request takes too much", {"workload": "rpc", "service_time_s": 0.02}),
        ("a request takes too much", {"workload": "web", "chunks": 2, "every_s": 0.02}),
        ("a request takes too much", {"workload": "rpc", "server": {"service-time": "20ms"}}),
        ("each server has a backend", {"workload": "rpc", "server": {"service-kind": "backend"}}),
        ("a round takes too much", {"workload": "chat", "round_s": 0.03}),
        ("too few messages", {"arrivals": "constant", "rate": 100.0}),
        ("too few messages", {"arrivals": "constant", "rate_per_connection": 2.0, "connections": 50}),
        (
            "too few messages",
            {"arrivals": "constant", "rate_per_connection": 2.0, "connections": 5000, "busy_connections": 50},
        ),
        ("too many connections", {"connections": MOST_CONNECTIONS // 2 + 1}),
        ("too many messages are in flight", {"connections": 10, "depth": MOST_IN_FLIGHT // 10 + 1}),
    ],
)
def test_what_cannot_stand_side_by_side_says_why(reason: str, changed: dict[str, Any], contestant: Contestant) -> None:
    assert reason in why(2, contestant, msgspec.structs.replace(PLAIN, **changed))


def test_a_single_contestant_takes_no_turns(contestant: Contestant) -> None:
    assert "only" in why(1, contestant, PLAIN) or "single" in why(1, contestant, PLAIN)


@pytest.mark.parametrize(
    "within",
    [
        {"workload": "rpc", "service_time_s": 0.001},
        {"arrivals": "constant", "rate": 1000.0},
        {"connections": MOST_CONNECTIONS // 2, "arrivals": "constant", "rate": 1000.0},
        {"connections": 10, "depth": MOST_IN_FLIGHT // 10},
        {"connections": MOST_CONNECTIONS // 2, "busy_connections": 10, "depth": MOST_IN_FLIGHT // 10},
    ],
)
def test_what_is_just_possible_is_no_reason(within: dict[str, Any], contestant: Contestant) -> None:
    assert why(2, contestant, msgspec.structs.replace(PLAIN, **within)) == ""


def last(window_s: float) -> Settings:
    """Return a plain load whose window lasts so long."""
    return settings(msgspec.structs.replace(PLAIN, duration_s=window_s), {})


@given(window_s=st.floats(min_value=0.1, max_value=60.0))
def test_the_slices_of_a_window_are_whole_steps_and_measure_it(window_s: float) -> None:
    """A time series has whole intervals, and the figures are of a window of the requested length."""
    turns_of_window, measured_s, skipped_s = divide(last(window_s))
    steps = measured_s / STEP_S
    assert abs(steps - round(steps)) < 1e-9
    assert SHORTEST_S - 1e-9 <= measured_s <= LONGEST_S + 1e-9
    assert abs(turns_of_window * measured_s - window_s) <= measured_s / 2 + 1e-9
    assert divide(last(window_s)).length_s == pytest.approx(measured_s + skipped_s)


def test_the_slices_of_a_usual_window_are_the_longest_and_those_of_a_short_one_shorter() -> None:
    assert divide(last(0.6)) == (4, LONGEST_S, SKIPPED_S)
    assert divide(last(10.0)) == (69, LONGEST_S, SKIPPED_S)
    assert divide(last(0.2)) == (2, 0.1, SKIPPED_S)
    assert divide(last(0.01)) == (2, SHORTEST_S, SKIPPED_S)


def test_a_room_has_a_longer_beginning_than_a_service() -> None:
    room = msgspec.structs.replace(last(0.6), workload="chat")
    assert divide(room) == (4, LONGEST_S, SKIPPED_IN_A_ROOM_S)
    assert divide(room).length_s > divide(last(0.6)).length_s


def cell(position: int, contestant: str, scenario: str = "s", block: int = 1, **levels: type_level) -> Cell:
    return Cell(block=block, position=position, scenario=scenario, contestant=contestant, levels=levels)


def test_a_group_is_what_follows_each_other_and_differs_in_its_contestant_only() -> None:
    cells = [
        cell(0, "b", connections=1),
        cell(1, "a", connections=1),
        cell(2, "a", connections=2),
        cell(3, "a", "t", connections=2),
        cell(4, "a", connections=2),
        cell(0, "b", block=2, connections=2),
        cell(1, "b", block=2, connections=2),
    ]
    groups = [[cell.position for cell in group] for group in divide_into_groups(cells)]
    assert groups == [[0, 1], [2], [3], [4], [0, 1]]
    assert list(divide_into_groups([])) == []


def test_a_server_that_was_busy_beside_others_is_so_elsewhere_until_it_was_quiet_there() -> None:
    def judged(contestant: str, scenario: str, *audits: Audit) -> Any:
        return msgspec.structs.replace(record_skip(cell(0, contestant, scenario), ""), audits=audits)

    calm, busy = side_by_side("x", 0.001, 1.0), side_by_side("x", 0.02, 1.0)
    assert (calm.passed, busy.passed) == (True, False)
    few = turns(1, 8, 17)
    trials = [judged("a", "s", calm), judged("a", "t", calm, busy), judged("b", "s", few), judged("b", "t")]
    assert find_busy(trials, "t") == {"a"}
    assert not find_busy(trials, "s"), "it was quiet there"
    assert not find_busy(trials, "new"), "once may be chance"
    trials.append(judged("a", "u", busy))
    assert find_busy(trials, "new") == {"a"}
    assert not find_busy(trials, "s")


def test_a_server_that_was_behind_is_known_by_scenario_and_levels() -> None:
    def judged(scenario: str, connections: int, *audits: Audit) -> Any:
        return msgspec.structs.replace(record_skip(cell(0, "a", scenario, connections=connections), ""), audits=audits)

    kept_up, late = backlog([0.001], 0.05, 0.0), backlog([0.011], 0.05, 0.0)
    assert (kept_up.passed, late.passed) == (True, False)
    trials = [judged("s", 1, kept_up), judged("s", 2, late), judged("t", 1, kept_up)]
    trials.append(judged("t", 2, late, turns(1, 8, 17)))  # what others took may be why
    assert find_lagging(trials) == {("s", level_key({"connections": 2}))}


def test_more_threads_than_go_first_once_within_a_slice_are_known_by_scenario_and_levels() -> None:
    def judged(connections: int, audit: Audit) -> Any:
        return msgspec.structs.replace(record_skip(cell(0, "a", connections=connections), ""), audits=(audit,))

    few, many = rotation(101, 1, 2, LONGEST_S), rotation(201, 1, 2, LONGEST_S)
    assert (few.passed, many.passed) == (True, False)
    assert many.detail == "201 threads on 1 of 2 cores run once each within 281 ms (limit 145 ms, a slice)"
    assert find_rotating([judged(100, few), judged(200, many)]) == {("s", level_key({"connections": 200}))}


def test_a_thread_goes_first_for_longer_on_more_cores() -> None:
    assert [compute_thread_slice_s(cores) for cores in (1, 2, 3, 4, 8, 64)] == pytest.approx(
        [0.0007, 0.0014, 0.0014, 0.0021, 0.0028, 0.0028]
    )
    assert rotation(201, 4, 4, LONGEST_S).passed


@pytest.mark.parametrize(("failures", "passes", "is_known"), [(1, 0, True), (1, 1, False), (1, 2, False), (2, 1, True)])
def test_a_failure_in_half_of_the_trials_may_be_chance(failures: int, passes: int, is_known: bool) -> None:
    def judged(*audits: Audit) -> Any:
        return msgspec.structs.replace(record_skip(cell(0, "a", "s", connections=1), ""), audits=audits)

    kept_up, late = backlog([0.001], 0.05, 0.0), backlog([0.011], 0.05, 0.0)
    calm, busy = side_by_side("a", 0.001, 0.1), side_by_side("a", 0.009, 0.1)
    trials = [judged(calm, kept_up)] * passes + [judged(busy, late)] * failures
    assert bool(find_lagging(trials)) == bool(find_busy(trials, "s")) == is_known

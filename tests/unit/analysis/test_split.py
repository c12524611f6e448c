"""What each scenario of a run may use, and which contestants are ranked together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from netdyno.analysis.ranking.stopping import find_ending
from netdyno.analysis.trials.peers import Peers, group_peers
from netdyno.analysis.trials.split import ScenarioTrials, select_part, split
from netdyno.model import outcomes
from netdyno.model.run import Run
from tests.support.builders import made_capacity, made_twins
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import (
    ABOUT,
    EPOLL,
    LOCK,
    REUSEPORT,
    made_run,
    messages_run,
    troubled_run,
    unsafe_run,
)


def parts(run: Run) -> dict[str, ScenarioTrials]:
    return {part.scenario.name: part for part in split(outcomes.judge_run(run))}


def test_every_trial_is_in_its_scenarios_part_and_in_no_other() -> None:
    run = outcomes.judge_run(made_run())
    parts_of_run = split(run)
    assert [part.scenario for part in parts_of_run] == list(run.experiment.scenarios)
    assert sum((part.trials for part in parts_of_run), ()) == tuple(
        trial for part in parts_of_run for trial in run.trials if trial.scenario == part.scenario.name
    )
    for part in parts_of_run:
        assert {trial.scenario for trial in part.trials} == {part.scenario.name}
        assert {trial.status for trial, _ in part.ranked} <= set(outcomes.RANKED)
        assert part.contestants == tuple(sorted({trial.contestant for trial in part.trials}))


def test_of_a_cell_that_was_measured_twice_the_first_is_ranked() -> None:
    run = made_run()
    first = next(trial for trial in run.trials if trial.load is not None and trial.scenario == "echo")
    part = parts(replace(run, trials=(*run.trials, replace(first, position=10_000))))["echo"]
    assert len(part.trials) == len(parts(run)["echo"].trials) + 1
    assert [trial for trial, _ in part.ranked] == [trial for trial, _ in parts(run)["echo"].ranked]


def test_a_server_that_is_unsafe_or_no_contestant_is_in_nothing_else() -> None:
    unsafe = parts(unsafe_run())["echo"]
    assert EPOLL not in unsafe.contestants
    assert {trial.contestant for trial in unsafe.unsafe[EPOLL]} == {EPOLL}
    about = (replace(ABOUT[0], unranked="an instrument"), *ABOUT[1:])
    for part in parts(replace(made_run(), about=about)).values():
        assert EPOLL not in {trial.contestant for trial in part.trials}
        assert (part.unranked, part.unsafe) == ({EPOLL: "an instrument"}, {})


def test_a_twin_is_no_trial_and_can_be_read_as_one() -> None:
    experiment = made_twins.experiment(3)
    part = split(made_twins.measured(experiment, made_twins.everything_twice(experiment)))[0]
    assert part.twins
    assert not any(trial.twin for trial in part.trials)
    again = part.select_twins()
    assert (len(again.trials), again.twins) == (len(part.twins), ())
    assert {(trial.contestant, trial.block) for trial, _ in again.ranked} == {
        (trial.contestant, trial.block) for trial in part.twins
    }


# --- which contestants are ranked together -----------------------------------------------------------------------


def test_the_lossy_and_the_faulty_are_each_ranked_among_themselves() -> None:
    (lossy,) = parts(messages_run()).values()
    (of_lossy,) = group_peers(lossy)
    assert of_lossy.lossy == (REUSEPORT,)
    echo = parts(troubled_run())["echo"]
    (of_echo,) = group_peers(echo)
    assert LOCK in of_echo.faulty
    assert sorted(sum(of_echo, ())) == list(echo.contestants)


def test_a_server_that_lost_and_failed_is_faulty() -> None:
    (part,) = parts(messages_run()).values()
    failed = next(trial for trial in part.trials if trial.contestant == REUSEPORT)
    (group,) = group_peers(replace(part, trials=(*part.trials, replace(failed, status="faulty"))))
    assert (group.lossy, group.faulty) == ((), (REUSEPORT,))


def test_of_a_capacity_all_are_peers() -> None:
    (part,) = parts(made_capacity.experiment_run()).values()
    failed = replace(part.trials[0], status="faulty")
    assert group_peers(replace(part, trials=(failed, *part.trials[1:]))) == (Peers(part.contestants),)


@pytest.mark.parametrize("make", [made_run, troubled_run, messages_run], ids=["made", "troubled", "messages"])
def test_the_ranking_compares_peers_and_no_other(make: Callable[[], Run]) -> None:
    run = make()
    groups = {name: only for name, part in parts(run).items() for (only,) in [group_peers(part)]}
    group_of = {
        (name, contestant): kind for name in groups for kind, group in enumerate(groups[name]) for contestant in group
    }
    for findings in analysed(run).scenarios:
        assert all(
            standing.kind == group_of[findings.scenario.name, standing.contestant] for standing in findings.standings
        )
        for comparison in (comparison for axis in findings.axes for comparison in axis.comparisons):
            assert group_of[findings.scenario.name, comparison.a] == group_of[findings.scenario.name, comparison.b]


def test_the_precision_is_requested_of_the_comparisons_of_the_ranking() -> None:
    """A faulty contestant is not ranked with the others, and nothing waits for an interval to it."""
    run = outcomes.judge_run(made_run())
    part = select_part(run, replace(run.experiment.scenarios[0], precision=0.05))
    faulty = group_peers(part)[0].faulty
    assert len(faulty) == 1
    result = find_ending(part, finished=True, time_budget_s=None)
    assert result is not None
    assert result.widest is not None
    assert result.widest < 0.05
    assert not set(result.pair) & set(faulty)

"""Which trials the canary makes invalid, which it does not, and what becomes of blocks that are small or cut short."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from netdyno.measure.audits.canary_audit import FACTOR, FEWEST_TRIALS, CanaryJudge, median_of
from netdyno.model.load_result import Audit
from netdyno.model.outcomes import CANARY
from netdyno.model.trial import Trial
from tests.support.builders.made_canary import beside, judge_canary, of_speeds, reading, trial


def list_invalid(trials: Sequence[Trial]) -> list[tuple[int, int]]:
    """Return block and position of the trials whose canary audit failed."""
    return [
        (judged_trial.block, judged_trial.position)
        for judged_trial in trials
        if any(not check.passed and check.name == CANARY for check in judged_trial.audits)
    ]


def audit(judged_trial: Trial) -> Audit:
    (canary_audit,) = [check for check in judged_trial.audits if check.name == CANARY]
    return canary_audit


def test_a_machine_that_stays_the_same_makes_no_trial_invalid() -> None:
    judged = judge_canary(of_speeds([[1.0, 1.05, 0.95, 1.1, 0.9, 1.0]]))
    assert list_invalid(judged) == []
    assert all(judged_trial.status == "valid" and judged_trial.reason == "" for judged_trial in judged)
    assert len([audit(judged_trial) for judged_trial in judged]) == 6


def test_a_trial_whose_machine_was_not_that_of_its_block_is_invalid() -> None:
    trials = of_speeds([[1.0] * 4 + [0.5, 0.5] + [1.0] * 4])
    judged = judge_canary(trials)
    assert list_invalid(judged) == [(1, 3), (1, 4), (1, 5)]  # the reading after 3 is the one before 4
    assert judged[4].status == "struck_out"
    assert judged[4].reason == (
        "canary: before the trial, the canary read 10.0k/s (round trips), a factor of 2.00 off the median of its "
        "block, "
        "20.0k/s (bound 1.5)"
    )
    assert judged[3].reason.startswith("canary: after the trial, ")


@pytest.mark.parametrize("which", ["server", "generator"])
def test_one_core_is_enough(which: str) -> None:
    trials = of_speeds([[1.0] * 8])
    half = reading(**{which: 0.5})
    trials[3] = trial(1, 3, 1.0, half)
    judged = judge_canary(trials)
    assert list_invalid(judged) == [(1, 3)]
    assert f"after the trial, the canary read 450M/s ({which}'s core), a factor of 2.00 off" in judged[3].reason


def test_a_faster_machine_is_another_one_too() -> None:
    assert list_invalid(judge_canary(of_speeds([[1.0] * 4 + [2.0] + [1.0] * 4]))) == [(1, 3), (1, 4)]


def test_the_bound_is_a_factor_either_way() -> None:
    for speed, passed in ((1 / FACTOR + 0.001, True), (1 / FACTOR - 0.001, False), (FACTOR, True), (1.501, False)):
        trials = [trial(1, position) for position in range(6)]
        trials[2] = trial(1, 2, speed)
        assert audit(judge_canary(trials)[2]).passed is passed, speed


def test_each_host_of_the_load_is_held_against_itself() -> None:
    """A host of the load may be slower than the server's, but not slower than before."""
    hosts = {"tls://a": [0.5] * 8, "tls://b": [1.0] * 3 + [0.4] + [1.0] * 4}
    trials = [
        replace(trial(1, number), canaries=tuple(beside(host, speeds[number]) for host, speeds in hosts.items()))
        for number in range(8)
    ]
    judged = judge_canary(trials)
    assert list_invalid(judged) == [(1, 3)]
    assert judged[3].reason.startswith(
        "canary: tls://b: before the trial, the canary read 8.00k/s (round trips), a factor of"
    )
    for judged_trial in judged:
        assert [check.detail[:8] for check in judged_trial.audits if check.name == CANARY][1:] == [
            "tls://a:",
            "tls://b:",
        ]


def test_a_host_that_makes_some_of_the_loads_is_judged_by_these() -> None:
    trials = [trial(1, number) for number in range(10)]
    for number in range(0, 10, 2):
        trials[number] = replace(trials[number], canaries=(beside("tls://b", 0.5 if number == 4 else 1.0),))
    assert list_invalid(judge_canary(trials)) == [(1, 4)]


def test_a_machine_that_drifts_between_blocks_makes_no_trial_invalid() -> None:
    assert list_invalid(judge_canary(of_speeds([[1.0] * 6, [0.5] * 6, [2.0] * 6]))) == [
        (1, 5),
        (2, 5),
    ]  # where it changed
    apart = [trial(block, position, speed) for block, speed in ((1, 1.0), (2, 0.4), (3, 2.5)) for position in range(6)]
    assert list_invalid(judge_canary(apart)) == []


# --- small blocks ------------------------------------------------------------------------------------------------


def test_a_small_block_that_agrees_with_itself_is_one_machine() -> None:
    blocks = [(1, 1.0), (2, 0.3), (3, 1.0), (4, 3.0)]
    assert (
        list_invalid(judge_canary([trial(block, position, speed) for block, speed in blocks for position in (0, 1)]))
        == []
    )


def test_in_a_small_block_that_does_not_the_neighbours_say_which_stands_apart() -> None:
    trials = [trial(block, position) for block in (1, 2, 3, 4) for position in (0, 1)]
    trials[5] = trial(3, 1, 0.5)
    judged = judge_canary(trials)
    assert list_invalid(judged) == [(3, 1)]
    assert "off the median of its block and its neighbours, 20.0k/s" in judged[5].reason


def test_the_first_of_small_blocks_waits_for_its_neighbours() -> None:
    revised: list[Trial] = []
    judging = CanaryJudge("strike-out", revised.extend)
    for first_trial in (trial(1, 0, 0.5), trial(1, 1)):
        judging.add(first_trial)
    judging.judge()
    assert revised == []
    for block in (2, 3):
        for position in (0, 1):
            judging.add(trial(block, position))
        judging.judge()
    assert list_invalid(revised) == [(1, 0)]
    assert [(entry.block, entry.position) for entry in revised] == [(2, 0), (2, 1), (1, 0), (1, 1), (3, 0), (3, 1)]


def test_a_run_of_too_few_trials_does_not_know_its_machine() -> None:
    judged = judge_canary([trial(1, 0), trial(1, 1, 0.4)])
    assert list_invalid(judged) == []
    assert audit(judged[0]).detail == "not judged, because there are too few trials to compare with"


def test_neighbours_are_those_that_ran_nearest() -> None:
    """Three trials in the middle of nine borrow one from each side; each reading between two trials counts once."""
    read = [
        (1 + number // 3, measured.canary) for number, measured in enumerate(of_speeds([[9, 9, 3, 1, 2, 1, 3, 9, 9]]))
    ]
    readings_of_blocks = [(block, readings) for block, readings in read if readings is not None]
    assert FEWEST_TRIALS == 5
    median = median_of(readings_of_blocks, 2)
    assert median is not None
    assert median.basis == "of its block and its neighbours"
    assert median.speeds["round trips"] == 20_000 * 2.5  # of 3 1 2 1 3 9


def test_a_reading_of_its_own_before_a_trial_counts_too() -> None:
    """A reading is retaken after a pause, for example."""
    median = median_of(
        [(1, readings) for number in range(5) if (readings := trial(1, number, 1.2, 1.0).canary) is not None], 1
    )
    assert median is not None
    assert median.speeds["round trips"] == pytest.approx(20_000 * 1.1)


# --- what is reported, and what is not judged --------------------------------------------------------------------


def test_where_it_is_only_counted_nothing_is_invalid_and_the_figures_stand() -> None:
    judged = judge_canary(of_speeds([[1.0] * 4 + [0.25] + [1.0] * 4]), "count")
    assert list_invalid(judged) == []
    assert {judged_trial.status for judged_trial in judged} == {"valid"}
    assert audit(judged[4]).detail.startswith(
        "not judged, because it is only counted: before the trial, the canary read 5.00k/s (round trips), a "
        "factor of 4.00 off"
    )


def test_a_trial_beside_which_it_could_not_be_read_is_invalid() -> None:
    trials = [trial(1, position) for position in range(6)]
    readings = trials[2].canary
    assert readings is not None
    trials[2] = replace(trials[2], canary=replace(readings, after=None, unread="the canary ended with exit code 1"))
    judged = judge_canary(trials)
    assert list_invalid(judged) == [(1, 2)]
    assert judged[2].reason == ("canary: the speed of the machine is unknown: the canary ended with exit code 1")


def test_other_audits_stay_and_keep_their_reasons() -> None:
    trials = [trial(1, position) for position in range(6)]
    lost = Audit(name="verification", passed=False, detail="lost 3")
    trials[1] = replace(trials[1], status="struck_out", reason="verification: lost 3", audits=(lost,))
    trials[2] = replace(trial(1, 2, 0.5), status="struck_out", reason="verification: lost 3", audits=(lost,))
    judged = judge_canary(trials)
    assert (judged[1].status, judged[1].reason) == ("struck_out", "verification: lost 3")
    assert judged[1].audits[0] == lost
    assert judged[2].reason.startswith("verification: lost 3; canary: before the trial, ")


def test_a_trial_that_failed_stays_as_it_is_and_its_readings_count() -> None:
    trials = [trial(1, position, 0.5, status="failed") for position in range(6)]
    trials.append(trial(1, 6))
    judged = judge_canary(trials)
    assert judged[:6] == trials[:6]
    assert list_invalid(judged) == [(1, 6)]


def test_a_trial_that_was_skipped_has_no_reading_and_is_not_judged() -> None:
    skipped = replace(trial(1, 3, status="skipped"), canary=None)
    judged = judge_canary([*(trial(1, position) for position in range(3)), skipped, trial(1, 4), trial(1, 5)])
    assert judged[3] == skipped


def test_a_run_interrupted_while_storing_finds_the_block_still_waiting() -> None:
    revised: list[Trial] = []
    interruptions = [KeyboardInterrupt()]

    def revise(judged: Sequence[Trial]) -> None:
        if interruptions:
            raise interruptions.pop()
        revised.extend(judged)

    judging = CanaryJudge("strike-out", revise)
    for measured in of_speeds([[1.0] * 6]):
        judging.add(measured)
    with pytest.raises(KeyboardInterrupt):
        judging.judge()
    judging.judge(run_ended=True)
    assert len(revised) == 6
    judging.judge(run_ended=True)
    assert len(revised) == 6

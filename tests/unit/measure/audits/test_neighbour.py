"""Lost tries distinguish a neighbour that stays from a burst; nothing that a load measured does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from netdyno.measure.audits import neighbour
from netdyno.measure.audits.neighbour import DOZEN, UNLIKE_DOZENS
from netdyno.measure.audits.of_trial import NEIGHBOUR_FACTOR, allowed, foreign_load, is_lost
from netdyno.model import outcomes
from netdyno.model.experiment import Scenario
from netdyno.model.observation import Neighbour, ProgramShare
from netdyno.model.trial import Trial
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_load import machine, named

CLANG = ProgramShare(name="clang++", cores=1.7)
STAYING = Neighbour(cores=2, foreign_cores=1.8, steal_cores=0.0, most_cores=1.8, programs=(CLANG,))
HALF = Neighbour(cores=2, foreign_cores=0.5, steal_cores=0.0, most_cores=0.5)


def tried(
    foreign_s: float = 0.0,
    own_s: float = 0.2,
    steal_s: float = 0.0,
    throttled_s: float = 0.0,
    beside: Neighbour | None = None,
) -> Trial:
    """A trial of a second on two cores, judged."""
    observation = machine(foreign_s=foreign_s, own_s=own_s, steal_s=steal_s, throttled_s=throttled_s)
    judged = foreign_load(observation, "strike-out", neighbour=beside)
    status, reason = outcomes.verdict(judged)
    trial = made_trial(Scenario(name="echo", workload="echo"), 1, "epoll-reactor", {}, {})
    return replace(trial, machine=observation, audits=judged, status=status, reason=reason, neighbour=beside)


def is_staying(trials: Sequence[Trial]) -> bool:
    return neighbour.stays(neighbour.latest_streak(trials))


def test_a_dozen_tries_lost_alike_is_a_neighbour_and_fewer_may_be_a_burst() -> None:
    lost = [tried(foreign_s=0.9 + 0.01 * number) for number in range(DOZEN)]
    assert is_staying(lost)
    assert not is_staying(lost[1:])


def test_one_that_takes_what_the_trials_leave_is_constant_whatever_they_use() -> None:
    """At nice 10 a neighbour gets a fifth of a core beside an echo, and nearly two beside requests that wait."""
    assert is_staying([tried(foreign_s=2.0 - own_s, own_s=own_s) for own_s in (0.1, 1.8) * (DOZEN // 2)])


def test_bursts_are_no_neighbour() -> None:
    """One try of a dozen was left alone, or nearly so."""
    lost = [tried(foreign_s=0.9)] * DOZEN
    assert not is_staying([*lost[:6], tried(), *lost[6:11]])
    assert not is_staying([*lost[:6], tried(foreign_s=0.1), *lost[7:]])


def test_after_three_dozen_in_a_row_it_stays_however_its_shares_vary() -> None:
    unlike = [tried(foreign_s=0.9), tried(foreign_s=0.1)] * (UNLIKE_DOZENS * DOZEN // 2)
    assert is_staying(unlike)
    assert not is_staying(unlike[1:])


def test_tries_without_a_window_say_nothing() -> None:
    failed = replace(tried(), status="failed", machine=None)
    assert is_staying([*[tried(foreign_s=0.9)] * 6, failed, *[tried(foreign_s=0.9)] * 6])


@pytest.mark.parametrize(
    ("taken", "programs", "steal_s", "name"),
    [
        (1.8, (CLANG,), 0.0, "1.8 cores of clang++"),
        (
            1.8,
            (replace(CLANG, cores=0.9), replace(CLANG, name="ld", cores=0.5)),
            0.0,
            "1.8 cores of clang++, ld and others",
        ),
        (1.8, (CLANG, replace(CLANG, name="sshd", cores=0.01)), 0.0, "1.8 cores of clang++"),
        (1.8, (), 0.0, "1.8 cores of programs that cannot be seen from here"),
        (0.0, (), 0.4, "0.4 cores that the hypervisor took"),
        (0.5, (replace(CLANG, cores=0.5),), 0.4, "0.5 cores of clang++ and 0.4 cores that the hypervisor took"),
    ],
)
def test_it_is_named_with_its_share(
    taken: float, programs: tuple[ProgramShare, ...], steal_s: float, name: str
) -> None:
    streak = [tried(foreign_s=taken, steal_s=steal_s)] * DOZEN
    described = neighbour.describe(streak, taken, programs, cores=2)
    assert described is not None
    assert neighbour.name(described) == name


def test_a_quota_stays_that_stopped_each_of_a_dozen_tries() -> None:
    held = [tried(throttled_s=lost_s) for lost_s in (0.1, 0.9) * (DOZEN // 2)]
    assert neighbour.find_quota_cores(held) == 0.5
    assert neighbour.find_quota_cores(held[1:]) == 0.0
    assert neighbour.find_quota_cores([*held, tried(throttled_s=0.0)]) == 0.0
    assert neighbour.latest_streak(held) == ()


def test_beside_a_quota_it_makes_no_trial_invalid_and_a_burst_does() -> None:
    quota = neighbour.make_quota(0.5, cores=2)
    assert tried(throttled_s=1.5).status == "struck_out"
    held = tried(throttled_s=2.5, beside=quota)
    assert held.status == "valid"
    assert named(held.audits, "throttled").detail.startswith("not judged, because the quota stays: ")
    assert tried(throttled_s=1.5, foreign_s=0.9, beside=quota).status == "struck_out"
    assert is_lost(machine(throttled_s=0.5), 1.0, "strike-out", paced=False)
    assert not is_lost(machine(throttled_s=0.5), 1.0, "strike-out", paced=False, neighbour=quota)


def test_a_quota_is_named_after_the_programs() -> None:
    assert neighbour.name(neighbour.make_quota(0.5, cores=2)) == "0.5 cores that a CPU quota withheld"
    both = replace(STAYING, quota_cores=0.5)
    assert neighbour.name(both) == "1.8 cores of clang++ and 0.5 cores that a CPU quota withheld"


def test_what_comes_with_the_trials_alone_is_no_neighbour_until_no_try_is_left() -> None:
    """The kernel's work on a link looks foreign, but no program runs between two trials."""
    lost = [tried(foreign_s=0.6)] * (UNLIKE_DOZENS * DOZEN)
    assert neighbour.describe(lost[:DOZEN], 0.01, (), cores=2) is None
    counted = [replace(trial, audits=foreign_load(trial.machine, "count"), status="valid") for trial in lost]
    assert neighbour.describe(counted, 0.01, (), cores=2) is None
    described = neighbour.describe(lost, 0.01, (CLANG,), cores=2)
    assert described is not None
    assert neighbour.name(described) == "0.6 cores of programs that cannot be seen from here"


def test_beside_a_neighbour_its_share_makes_no_trial_invalid_and_a_burst_does() -> None:
    assert tried(foreign_s=0.5, beside=HALF).status == "valid"
    assert tried(foreign_s=0.5).status == "struck_out"
    burst = tried(foreign_s=1.5, beside=HALF)
    assert (burst.status, [audit.name for audit in outcomes.disturbances(burst)]) == ("struck_out", ["foreign_load"])
    assert named(burst.audits, "foreign_load").detail.endswith("(limit 685 ms)")
    assert not is_lost(machine(foreign_s=0.5), 1.0, "strike-out", paced=False, neighbour=HALF)
    assert is_lost(machine(foreign_s=1.5), 1.0, "strike-out", paced=False, neighbour=HALF)


def test_one_that_takes_all_that_is_left_can_take_no_more() -> None:
    assert tried(foreign_s=1.99, own_s=0.01, beside=STAYING).status == "valid"


def test_a_neighbour_that_grows_beats_again() -> None:
    assert is_staying([tried(foreign_s=1.5, beside=HALF)] * DOZEN)
    assert not is_staying([tried(foreign_s=0.5, beside=HALF)] * DOZEN)


def test_it_has_gone_when_a_dozen_tries_had_the_machine_for_themselves() -> None:
    alone = [tried(beside=HALF)] * DOZEN
    assert neighbour.has_gone(alone)
    assert not neighbour.has_gone(alone[1:])
    assert not neighbour.has_gone([*alone[1:], tried(foreign_s=0.5, beside=HALF)])


def test_what_a_neighbour_may_take_grows_with_the_window() -> None:
    for window_s in (0.5, 2.0):
        beside, alone = allowed(machine(), window_s, HALF), allowed(machine(), window_s)
        more_s = NEIGHBOUR_FACTOR * HALF.most_cores * window_s
        assert (beside.foreign_s - alone.foreign_s, beside.steal_s - alone.steal_s) == pytest.approx((more_s, more_s))

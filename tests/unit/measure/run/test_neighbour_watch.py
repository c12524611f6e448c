"""The run asks after each trial, and learns once that a neighbour stays and once that it has gone."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.measure.audits.neighbour import DOZEN, make_quota
from netdyno.measure.machine.cpu_users import CpuUse
from netdyno.measure.run.neighbour_watch import NeighbourWatch
from netdyno.measure.run.progress import NeighbourChange
from netdyno.model.trial import Trial
from tests.unit.measure.audits.test_neighbour import CLANG, HALF, tried


def watch(*trials: Trial) -> NeighbourWatch:
    return NeighbourWatch(trials, "strike-out", lambda: CpuUse(1.8, (CLANG,)))


def test_it_names_itself_at_the_dozenth_try_and_only_then() -> None:
    watched = watch()
    changes = [watched.add(tried(foreign_s=1.8)) for _ in range(DOZEN)]
    assert watched.present is not None
    assert changes == [None] * (DOZEN - 1) + [NeighbourChange("programs", watched.present, DOZEN, "strike-out")]
    assert [watched.add(tried(foreign_s=1.8, beside=watched.present)) for _ in range(3 * DOZEN)] == [None] * 3 * DOZEN


def test_it_says_that_it_has_gone() -> None:
    watched = watch(tried(foreign_s=0.5, beside=HALF))
    changes = [watched.add(tried(beside=HALF)) for _ in range(DOZEN)]
    assert changes == [None] * (DOZEN - 1) + [NeighbourChange("gone", HALF, 0, "strike-out")]
    assert watched.present is None


def test_a_run_that_goes_on_keeps_its_neighbour() -> None:
    """The last try in time counts, not the last in the order of blocks; skipped trials do not count."""
    first = tried(foreign_s=1.8)
    later = replace(tried(beside=HALF), started_at="2025-01-01T12:00:05Z", attempt=2)
    skipped = replace(first, status="skipped", started_at="2025-01-01T12:00:09Z", block=2)
    assert watch(later, first, skipped).present == HALF
    assert watch(first, skipped).present is None


def test_none_watches_the_machine_while_trials_come_out_well() -> None:
    def watch_now() -> CpuUse:
        raise AssertionError("the machine was watched for nothing")

    watched = NeighbourWatch((), "strike-out", watch_now)
    assert {watched.add(tried(foreign_s=0.9 * (number % 3 > 0))) for number in range(5 * DOZEN)} == {None}
    assert not watched.may_stay or watched.present is None


def test_a_quota_is_named_once_and_stays() -> None:
    watched = watch()
    changes = [watched.add(tried(throttled_s=0.6)) for _ in range(DOZEN)]
    quota = watched.present
    assert quota is not None
    assert changes == [None] * (DOZEN - 1) + [NeighbourChange("quota", quota, DOZEN, "strike-out")]
    assert [watched.add(tried(throttled_s=0.0, beside=quota)) for _ in range(2 * DOZEN)] == [None] * 2 * DOZEN
    assert watched.present == quota


def test_programs_come_and_go_beside_a_quota() -> None:
    watched = watch(tried(beside=make_quota(0.6, cores=2)))
    came = [watched.add(tried(foreign_s=1.8, throttled_s=0.6, beside=watched.present)) for _ in range(DOZEN)]
    assert [change.change for change in came if change] == ["programs"]
    assert watched.present is not None
    assert (watched.present.foreign_cores, watched.present.quota_cores) == (1.8, 0.6)
    gone = [watched.add(tried(throttled_s=0.6, beside=watched.present)) for _ in range(DOZEN)]
    assert [change.change for change in gone if change] == ["gone"]
    assert watched.present is not None
    assert (watched.present.most_cores, watched.present.quota_cores) == (0.0, 0.6)

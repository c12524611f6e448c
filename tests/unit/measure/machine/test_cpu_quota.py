"""The quota of a process's control groups, on trees as kernels show them: version 1, version 2, both beside each other,
and a container's."""

from __future__ import annotations

import pytest

from netdyno.measure.machine import cpu_quota
from netdyno.measure.machine.cpu_quota import Throttled

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = """31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
STAT_V1 = "nr_periods 40\nnr_throttled 12\nthrottled_time 345000000\nnr_bursts 0\nburst_time 0"
STAT_V2 = "usage_usec 900\nuser_usec 600\nsystem_usec 300\nnr_periods 9\nnr_throttled 3\nthrottled_usec 70000"


def read(files: dict[str, str]) -> cpu_quota.ReadText:
    return lambda path: files.get(path, "")


def of_v2(group: str = "/a/b", **levels: str) -> cpu_quota.ReadText:
    """A tree of version 2 with these cpu.max; `root`, `a` and `b` are its levels."""
    folders = {"root": "", "a": "/a", "b": "/a/b"}
    files = {f"/sys/fs/cgroup{folders[name]}/cpu.max": text for name, text in levels.items()}
    return read({"/proc/self/mountinfo": V2, "/proc/self/cgroup": f"0::{group}", **files})


@pytest.mark.parametrize("level", ["root", "a", "b"])
def test_every_level_up_to_the_root_is_read(level: str) -> None:
    assert cpu_quota.find_tightest_quota(of_v2(**{level: "60000 100000"})) == 0.6


def test_the_tightest_level_counts() -> None:
    assert cpu_quota.find_tightest_quota(of_v2(a="150000 100000", b="400000 100000")) == 1.5
    assert cpu_quota.find_tightest_quota(of_v2(a="400000 100000", b="50000 50000")) == 1.0


def test_no_quota_is_none() -> None:
    assert cpu_quota.find_tightest_quota(of_v2(a="max 100000", b="max 100000")) is None
    assert cpu_quota.find_tightest_quota(read({})) is None


def test_a_sibling_does_not_count() -> None:
    assert cpu_quota.find_tightest_quota(of_v2(group="/a", b="60000 100000")) is None


def test_version_1_is_read_where_it_is_mounted() -> None:
    folder = "/sys/fs/cgroup/cpu,cpuacct"
    files = {
        "/proc/self/mountinfo": HYBRID,
        "/proc/self/cgroup": "4:memory:/elsewhere\n2:cpu,cpuacct:/box/inner\n0::/",
        f"{folder}/box/inner/cpu.cfs_quota_us": "-1",
        f"{folder}/box/inner/cpu.cfs_period_us": "100000",
        f"{folder}/box/cpu.cfs_quota_us": "60000",
        f"{folder}/box/cpu.cfs_period_us": "100000",
        f"{folder}/box/cpu.stat": STAT_V1,
        "/sys/fs/cgroup/unified/cpu.stat": "usage_usec 5\nuser_usec 3\nsystem_usec 2",
    }
    assert cpu_quota.find_tightest_quota(read(files)) == 0.6
    assert cpu_quota.find_stat_files(read(files)) == (f"{folder}/box/cpu.stat",)


def test_both_versions_bind() -> None:
    files = {
        "/proc/self/mountinfo": HYBRID,
        "/proc/self/cgroup": "2:cpu,cpuacct:/\n0::/box",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
        "/sys/fs/cgroup/unified/box/cpu.max": "70000 100000",
    }
    assert cpu_quota.find_tightest_quota(read(files)) == 0.7


@pytest.mark.parametrize("group", ["/docker/abc/job", "/docker/abc", "/", "/../other"])
def test_a_container_sees_its_own_group_at_the_root_of_the_mount(group: str) -> None:
    files = {
        "/proc/self/mountinfo": V2.replace(" / /sys/fs/cgroup ", " /docker/abc /sys/fs/cgroup "),
        "/proc/self/cgroup": f"0::{group}",
        "/sys/fs/cgroup/cpu.max": "60000 100000",
    }
    assert cpu_quota.find_tightest_quota(read(files)) == 0.6


def test_a_mount_point_may_have_a_blank() -> None:
    files = {
        "/proc/self/mountinfo": V2.replace("/sys/fs/cgroup", "/my\\040groups"),
        "/proc/self/cgroup": "0::/",
        "/my groups/cpu.max": "60000 100000",
    }
    assert cpu_quota.find_tightest_quota(read(files)) == 0.6


def test_throttled_time_is_in_seconds_in_both_versions() -> None:
    assert cpu_quota.parse_stat(STAT_V1) == Throttled(12, 0.345)
    assert cpu_quota.parse_stat(STAT_V2) == Throttled(3, 0.07)


def test_a_group_that_nothing_can_hold_back_has_no_counter() -> None:
    assert cpu_quota.parse_stat("usage_usec 5\nuser_usec 3\nsystem_usec 2") is None
    assert cpu_quota.sum_throttling((), read({})) is None


def test_levels_are_added_up() -> None:
    files = {"/one": STAT_V1, "/two": STAT_V2}
    throttling = cpu_quota.sum_throttling(("/one", "/two"), read(files))
    assert throttling is not None
    assert throttling.periods == 15
    assert throttling.seconds == pytest.approx(0.415)

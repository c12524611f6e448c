"""The CPU time that the control groups of this process leave it (cgroups(7)), of version 1 and 2, and the time for
which they have held it back. A group is bound by those above it, so every level up to the root of the mount is read."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from netdyno.kit.files import read_if_there

ReadText = Callable[[str], str]
"""A function that reads a small file by its path; empty where it is missing or may not be read."""

_CPU = "cpu"
"""The controller. A hierarchy of version 2 has no name in /proc/PID/cgroup."""


class Throttled(NamedTuple):
    """The number of periods, since a group was made, in which it was held back, and the time, in CPU seconds of all
    cores on which its programs were to run."""

    periods: int
    seconds: float


def find_tightest_quota(read: ReadText = read_if_there) -> float | None:
    """Return the cores' worth of CPU time that the tightest level leaves; None where none of them limits it."""
    quotas = [quota for folder in group_folders(read) if (quota := _read_quota(folder, read)) is not None]
    return min(quotas, default=None)


def find_stat_files(read: ReadText = read_if_there) -> tuple[str, ...]:
    """Return the paths of cpu.stat of the levels that count how they are held back."""
    files = (f"{folder}/cpu.stat" for folder in group_folders(read))
    return tuple(file for file in files if parse_stat(read(file)) is not None)


@functools.cache
def find_own_stat_files() -> tuple[str, ...]:
    """Return those of this process, looked up once: it stays in its groups."""
    return find_stat_files()


def sum_throttling(files: Sequence[str], read: ReadText = read_if_there) -> Throttled | None:
    """Add up the counters of these levels; None where there is none. A moment at which two of them hold it back counts
    twice."""
    counted = [stat for file in files if (stat := parse_stat(read(file))) is not None]
    if not counted:
        return None
    return Throttled(sum(stat.periods for stat in counted), sum(stat.seconds for stat in counted))


def parse_stat(text: str) -> Throttled | None:
    """Parse cpu.stat: `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1 (the kernel's
    admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst); None where the group has no counter. Pure."""
    counters = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
    for name, per_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
        if name in counters and "nr_throttled" in counters:
            return Throttled(int(counters["nr_throttled"]), int(counters[name]) / per_second)
    return None


def group_folders(read: ReadText = read_if_there) -> tuple[str, ...]:
    """Find the folders of this process's groups that may limit its CPU time, from its own up to the root of each mount.
    Of several mounts of a hierarchy the first counts."""
    return tuple(folder for folders in list_levels(_CPU, read).values() for folder in folders)


def list_levels(controller: str, read: ReadText = read_if_there) -> dict[str, list[str]]:
    """List the folders of this process's groups by hierarchy: the controller of version 1, or "" of version 2."""
    folders_of: dict[str, list[str]] = {}
    for hierarchy, root, mounted in _parse_mounts(read("/proc/self/mountinfo"), controller):
        if hierarchy not in folders_of:
            folders_of[hierarchy] = _list_upwards(_find_own_group(hierarchy, read("/proc/self/cgroup")), root, mounted)
    return folders_of


def _parse_mounts(mountinfo: str, controller: str) -> Iterator[tuple[str, str, str]]:
    """Parse each mount: its hierarchy ("" or the controller), the mounted group, and the folder
    (proc_pid_mountinfo(5))."""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        places, kind = left.split(), right.split()
        if len(places) < 5 or len(kind) < 3:
            continue
        is_v1 = kind[0] == "cgroup" and controller in kind[2].split(",")
        if is_v1 or kind[0] == "cgroup2":
            yield (controller if is_v1 else ""), _unescape(places[3]), _unescape(places[4])


def _find_own_group(hierarchy: str, cgroup: str) -> str:
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if hierarchy in controllers.split(","):
            return path
    return "/"


def _list_upwards(group: str, root: str, mounted: str) -> list[str]:
    """List the folders from a group up to the root of its mount. A container may see another's group as that root, and
    is then below it, or in it."""
    path = PurePosixPath(group)
    inside = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()
    if ".." in inside.parts:  # above the root of this cgroup namespace
        inside = PurePosixPath()
    top = PurePosixPath(mounted)
    return [str(top / level) for level in (inside, *inside.parents)]


def _read_quota(folder: str, read: ReadText) -> float | None:
    """Read cpu.max of version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1; "max" and -1 are no quota."""
    quota, _, period = read(f"{folder}/cpu.max").partition(" ")
    if not quota:
        quota, period = read(f"{folder}/cpu.cfs_quota_us"), read(f"{folder}/cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _unescape(path: str) -> str:
    """Decode blanks and the like, which are octal in mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), path)

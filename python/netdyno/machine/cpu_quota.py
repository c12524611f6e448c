"""How much CPU time the control groups of this process leave it (cgroups(7)), of version 1 and 2, and how long they
have held it back. A group is bound by those above it, so every level up to the root of what is mounted is read."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

Read = Callable[[str], str]
"""A small file by its path; empty where it is missing or not for us to read."""

_V1 = "cpu"
"""The controller of version 1. A hierarchy of version 2 has no name in /proc/PID/cgroup."""


class Throttled(NamedTuple):
    """Since a group was made: in how many of its periods it was held back, and for how long, in CPU seconds of all
    cores on which something of it was to run."""

    periods: int
    seconds: float


def read_file(path: str) -> str:
    """Read a file of this machine."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def quota_cores(read: Read = read_file) -> float | None:
    """The cores' worth of CPU time that the tightest level leaves; None where none of them limits it."""
    quotas = [quota for folder in group_folders(read) if (quota := _quota(folder, read)) is not None]
    return min(quotas, default=None)


def stat_files(read: Read = read_file) -> tuple[str, ...]:
    """The cpu.stat of each level that counts how it is held back."""
    files = (f"{folder}/cpu.stat" for folder in group_folders(read))
    return tuple(file for file in files if parse_stat(read(file)) is not None)


@functools.cache
def own_stat_files() -> tuple[str, ...]:
    """Those of this process, looked up once: it stays in its groups."""
    return stat_files()


def throttled(files: Sequence[str], read: Read = read_file) -> Throttled | None:
    """What these levels count, together; None where there is none. A moment at which two of them hold it back counts
    twice."""
    counted = [stat for file in files if (stat := parse_stat(read(file))) is not None]
    if not counted:
        return None
    return Throttled(sum(stat.periods for stat in counted), sum(stat.seconds for stat in counted))


def parse_stat(text: str) -> Throttled | None:
    """cpu.stat: `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1 (the kernel's
    admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst); None where the group has no counter. Pure."""
    counters = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
    for name, per_second in (("throttled_usec", 1e6), ("throttled_time", 1e9)):
        if name in counters and "nr_throttled" in counters:
            return Throttled(int(counters["nr_throttled"]), int(counters[name]) / per_second)
    return None


def group_folders(read: Read = read_file) -> tuple[str, ...]:
    """The folders of this process's groups that may limit its CPU time, from its own up to the root of each mount. Of
    several mounts of a hierarchy the first counts."""
    found: dict[str, list[str]] = {}
    for hierarchy, root, mounted in _mounts(read("/proc/self/mountinfo")):
        if hierarchy not in found:
            found[hierarchy] = _upwards(_own_group(hierarchy, read("/proc/self/cgroup")), root, mounted)
    return tuple(folder for folders in found.values() for folder in folders)


def _mounts(mountinfo: str) -> Iterator[tuple[str, str, str]]:
    """Hierarchy ("" or the controller), its group that is mounted, and where (proc_pid_mountinfo(5))."""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        places, kind = left.split(), right.split()
        if len(places) < 5 or len(kind) < 3:
            continue
        is_v1 = kind[0] == "cgroup" and _V1 in kind[2].split(",")
        if is_v1 or kind[0] == "cgroup2":
            yield (_V1 if is_v1 else ""), _unescape(places[3]), _unescape(places[4])


def _own_group(hierarchy: str, cgroup: str) -> str:
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if hierarchy in controllers.split(","):
            return path
    return "/"


def _upwards(group: str, root: str, mounted: str) -> list[str]:
    """A container may see another's group as the root of what is mounted, and is then somewhere below it, or there."""
    path = PurePosixPath(group)
    inside = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()
    if ".." in inside.parts:  # above the root of this cgroup namespace
        inside = PurePosixPath()
    top = PurePosixPath(mounted)
    return [str(top / level) for level in (inside, *inside.parents)]


def _quota(folder: str, read: Read) -> float | None:
    """cpu.max of version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1; "max" and -1 are none."""
    quota, _, period = read(f"{folder}/cpu.max").partition(" ")
    if not quota:
        quota, period = read(f"{folder}/cpu.cfs_quota_us"), read(f"{folder}/cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _unescape(path: str) -> str:
    """Blanks and the like are octal in mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)

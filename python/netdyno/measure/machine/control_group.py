"""Control groups that limit the CPU time and the memory of a server, as a container's do (cgroups(7)), of version 1 and
2."""

from __future__ import annotations

import errno
import itertools
import os
import re
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from netdyno.kit.files import read_if_there
from netdyno.measure.machine import cpu_quota
from netdyno.measure.machine.cpu_quota import ReadText
from netdyno.model.observation import QuotaUse

PERIOD_US = 100_000
"""The period of a quota, which is that of container engines: the kernel's default (scheduler/sched-bwc.rst)."""
REMOVAL_S = 2.0
"""The time in which the kernel must have let go of the last process of a group that was killed."""
WAY_OUT = "run as root, or where control groups are delegated (systemd-run --user --scope -p Delegate=yes)"
_numbers = itertools.count(1)
_OWNED = re.compile(r"netdyno-(\d+)-\d+")
"""The name of a group, with the process that made it."""


class NoControlGroupError(Exception):
    """A control group cannot be made; the text is the reason."""


class Limits(NamedTuple):
    """The limits of a server: cores' worth of CPU time, and bytes of memory; None where there is none."""

    cpu_quota: float | None = None
    memory_limit: int | None = None

    def list_files(self, version: int) -> Mapping[str, Mapping[str, str]]:
        """Return the files of a group with their contents, by controller (admin-guide/cgroup-v2.rst and cgroup-v1/). A
        limit of version 1 that the kernel may lack begins with "?"."""
        files: dict[str, dict[str, str]] = {}
        if self.cpu_quota is not None:
            quota_us = round(self.cpu_quota * PERIOD_US)
            files["cpu"] = (
                {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
                if version == 1
                else {"cpu.max": f"{quota_us} {PERIOD_US}"}
            )
        if self.memory_limit is not None:
            files["memory"] = (
                {f"{name}.limit_in_bytes": f"{self.memory_limit}" for name in ("memory", "?memory.memsw")}
                if version == 1
                else {"memory.max": f"{self.memory_limit}", "?memory.swap.max": "0"}
            )
        return files


class ControlGroup:
    """The groups of one server: a folder of version 2, or one of version 1 for each controller."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    @property
    def entry(self) -> tuple[str, ...]:
        """The words in front of a command that make it begin inside of the groups."""
        if not self._folders:
            return ()
        joins = [f"echo $$ >{shlex.quote(str(folder / 'cgroup.procs'))}" for folder in self._folders]
        return ("sh", "-c", " && ".join([*joins, 'exec "$@"']), "sh")

    def read_quota_use(self) -> QuotaUse | None:
        """Return what its quota has done so far; None without one."""
        texts = (read_if_there(folder / "cpu.stat") for folder in self._folders)
        return next((use for text in texts if (use := parse_quota_use(text)) is not None), None)

    def count_killed(self) -> int:
        """Count the processes that the kernel has killed at its memory limit: `oom_kill` of memory.events, or of
        memory.oom_control in version 1."""
        files = [folder / name for folder in self._folders for name in ("memory.events", "memory.oom_control")]
        lines = [line.split() for file in files for line in read_if_there(file).splitlines()]
        return sum(int(words[1]) for words in lines if words[0] == "oom_kill")

    def remove(self) -> None:
        """End what is left in the groups and remove them."""
        deadline = time.monotonic() + REMOVAL_S
        for folder in self._folders:
            while not _try_remove(folder) and time.monotonic() < deadline:
                for pid in read_if_there(folder / "cgroup.procs").split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                time.sleep(0.001)


def parse_quota_use(text: str) -> QuotaUse | None:
    """Parse cpu.stat of a group of its own; None where it counts no periods. Pure."""
    throttled = cpu_quota.parse_stat(text)
    counted = [line.split()[1] for line in text.splitlines() if line.startswith("nr_periods ")]
    if throttled is None or not counted:
        return None
    return QuotaUse(periods=int(counted[0]), throttled_periods=throttled.periods, throttled_s=throttled.seconds)


def subtract(before: QuotaUse | None, after: QuotaUse | None) -> QuotaUse | None:
    """Return the use between two readings; None without a quota. Pure."""
    if before is None or after is None:
        return None
    return QuotaUse(
        periods=after.periods - before.periods,
        throttled_periods=after.throttled_periods - before.throttled_periods,
        throttled_s=after.throttled_s - before.throttled_s,
    )


@contextmanager
def make_group(limits: Limits, read: ReadText = read_if_there) -> Iterator[ControlGroup]:
    """Make the groups that have these limits, below those of this process; they are removed afterwards. Raises
    NoControlGroupError."""
    group = ControlGroup(_make_folders(limits, read))
    try:
        yield group
    finally:
        group.remove()


def _make_folders(limits: Limits, read: ReadText) -> list[Path]:
    """Make the folders: of version 1 where a controller is mounted so, else all in one of version 2."""
    name = f"netdyno-{os.getpid()}-{next(_numbers)}"
    levels = {controller: cpu_quota.list_levels(controller, read) for controller in limits.list_files(1)}
    of_version_1 = [controller for controller, folders in levels.items() if controller in folders]
    folders: list[Path] = []
    try:
        for controller in of_version_1:
            folders.append(_make_folder(Path(levels[controller][controller][0]) / name))
            _write_limits(folders[-1], limits.list_files(1)[controller])
        if others := [controller for controller in levels if controller not in of_version_1]:
            parent = _find_parent(levels[others[0]].get("", ()), others, read)
            folders.append(_make_folder(parent / name))
            for controller in others:
                _write_limits(folders[-1], limits.list_files(2)[controller])
    except OSError as error:
        ControlGroup(folders).remove()
        raise NoControlGroupError(
            f"no control group can be made: {error.filename}: {error.strerror}; {WAY_OUT}"
        ) from None
    return folders


def _find_parent(folders: Sequence[str], controllers: Sequence[str], read: ReadText) -> Path:
    """Return the nearest level whose groups can have all of these controllers. A level with processes of its own may
    hand down none, unless it is the root (cgroups(7), "no internal processes")."""
    for folder in folders:
        if set(controllers) <= set(read(f"{folder}/cgroup.controllers").split()):
            with suppress(OSError):
                control = Path(folder) / "cgroup.subtree_control"
                if not set(controllers) <= set(read(str(control)).split()):
                    control.write_text(" ".join(f"+{controller}" for controller in controllers), encoding="utf-8")
                return Path(folder)
    raise NoControlGroupError(
        f"no control group can be made: none of this process's has the controllers {' and '.join(controllers)} for "
        f"others; {WAY_OUT}"
    )


def _make_folder(folder: Path) -> Path:
    """Make a group; those that a killed run has left beside it go."""
    for left in folder.parent.glob("netdyno-*-*"):
        owner = _OWNED.fullmatch(left.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            _try_remove(left)
    folder.mkdir()
    return folder


def _write_limits(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        path = folder / name.removeprefix("?")
        if path.exists() or not name.startswith("?"):
            path.write_text(content, encoding="utf-8")


def _try_remove(folder: Path) -> bool:
    """Remove a group; return False where processes are still in it."""
    try:
        folder.rmdir()
    except OSError as error:
        return error.errno != errno.EBUSY
    return True

"""Control groups that limit a server, on trees as kernels show them: version 1, version 2, and neither."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from netdyno.kit.files import read_if_there
from netdyno.measure.machine import control_group, cpu_quota
from netdyno.measure.machine.control_group import ControlGroup, Limits, NoControlGroupError, make_group
from netdyno.model.observation import QuotaUse

HALF_AND_64 = Limits(0.5, 64 << 20)
STAT_V1 = "nr_periods 40\nnr_throttled 12\nthrottled_time 345000000\n"


def tree(tmp_path: Path, mounts: str, own: str) -> cpu_quota.ReadText:
    """A kernel's files, where {root} in the mounts is a folder."""
    made = {"/proc/self/mountinfo": mounts.replace("{root}", str(tmp_path)), "/proc/self/cgroup": own}
    return lambda path: made.get(path) or read_if_there(path)


def of_version_1(tmp_path: Path) -> cpu_quota.ReadText:
    for folder in ("cpu/mine", "memory/mine"):
        (tmp_path / folder).mkdir(parents=True)
    mounts = [f"32 31 0:29 / {{root}}/{name} rw - cgroup cgroup rw,{name}" for name in ("cpu", "memory")]
    return tree(tmp_path, "\n".join(mounts), "2:cpu:/mine\n3:memory:/mine\n0::/")


def of_version_2(tmp_path: Path, *, handed_down: str, controllers: str = "cpu memory io") -> cpu_quota.ReadText:
    (tmp_path / "mine").mkdir()
    for folder, down in (("", handed_down), ("mine", "")):
        (tmp_path / folder / "cgroup.controllers").write_text(controllers)
        (tmp_path / folder / "cgroup.subtree_control").write_text(down)
    return tree(tmp_path, "30 23 0:26 / {root} rw - cgroup2 cgroup2 rw", "0::/mine")


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("netdyno-*/*")}


@pytest.fixture
def keeps_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the files of a group, which a kernel takes away with it."""
    monkeypatch.setattr(ControlGroup, "remove", lambda _: None)


@pytest.mark.usefixtures("keeps_files")
def test_version_1_has_a_group_for_each_controller(tmp_path: Path) -> None:
    with make_group(HALF_AND_64, of_version_1(tmp_path)):
        pass
    assert written(tmp_path / "cpu" / "mine") == {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
    assert written(tmp_path / "memory" / "mine") == {"memory.limit_in_bytes": f"{64 << 20}"}


@pytest.mark.usefixtures("keeps_files")
def test_version_2_has_one_group_at_the_nearest_level_that_hands_its_controllers_down(tmp_path: Path) -> None:
    read = of_version_2(tmp_path, handed_down="cpu memory")
    control = tmp_path / "mine" / "cgroup.subtree_control"
    control.unlink()
    control.mkdir()  # it cannot be written, not even by root, as where the kernel says EBUSY
    with make_group(HALF_AND_64, read):
        pass
    assert written(tmp_path) == {"cpu.max": "50000 100000", "memory.max": f"{64 << 20}"}
    assert written(tmp_path / "mine") == {}


@pytest.mark.usefixtures("keeps_files")
def test_version_2_hands_controllers_down_on_request(tmp_path: Path) -> None:
    read = of_version_2(tmp_path, handed_down="")
    (tmp_path / "mine" / "cgroup.controllers").write_text("")
    with make_group(Limits(cpu_quota=1.5), read):
        pass
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert written(tmp_path) == {"cpu.max": "150000 100000"}


@pytest.mark.parametrize("controllers", ["", "memory"])
def test_where_none_can_be_made_that_is_stated(tmp_path: Path, controllers: str) -> None:
    read = of_version_2(tmp_path, handed_down="", controllers=controllers)
    with (
        pytest.raises(NoControlGroupError, match=r"no control group can be made: .*run as root"),
        make_group(HALF_AND_64, read),
    ):
        pass


def test_a_kernel_that_refuses_is_quoted(tmp_path: Path) -> None:
    read = of_version_1(tmp_path)
    (tmp_path / "cpu" / "mine").rmdir()
    with (
        pytest.raises(NoControlGroupError, match=r"cpu/mine/.*: No such file or directory"),
        make_group(HALF_AND_64, read),
    ):
        pass
    assert list((tmp_path / "memory" / "mine").iterdir()) == []


def test_without_a_limit_there_is_none(tmp_path: Path) -> None:
    with make_group(Limits(), of_version_1(tmp_path)) as group:
        assert (group.entry, group.read_quota_use(), group.count_killed()) == ((), None, 0)


def test_what_a_killed_run_has_left_goes(tmp_path: Path) -> None:
    read = of_version_1(tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    owners = (ended.pid, os.getppid(), "another")
    left, running, foreign = (tmp_path / "cpu" / "mine" / f"netdyno-{owner}-1" for owner in owners)
    for folder in (left, running, foreign):
        folder.mkdir()
    with make_group(Limits(cpu_quota=1), read):
        pass
    assert [folder.exists() for folder in (left, running, foreign)] == [False, True, True]


def test_its_counters_are_read(tmp_path: Path) -> None:
    group = ControlGroup([tmp_path])
    (tmp_path / "cpu.stat").write_text(STAT_V1)
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0")
    assert group.read_quota_use() == QuotaUse(periods=40, throttled_periods=12, throttled_s=0.345)
    assert group.count_killed() == 2


def test_a_program_begins_inside_of_it(tmp_path: Path) -> None:
    command = [*ControlGroup([tmp_path, tmp_path / "'b"]).entry, "sh", "-c", 'echo $$ "$0"', "x y"]
    (tmp_path / "'b").mkdir()
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pid = (tmp_path / "cgroup.procs").read_text().strip()
    assert printed == f"{pid} x y\n"
    assert (tmp_path / "'b" / "cgroup.procs").read_text().strip() == pid


def test_between_two_readings() -> None:
    before = QuotaUse(periods=1, throttled_periods=1, throttled_s=0.5)
    after = QuotaUse(periods=21, throttled_periods=4, throttled_s=0.75)
    assert control_group.subtract(before, after) == QuotaUse(periods=20, throttled_periods=3, throttled_s=0.25)
    assert control_group.subtract(None, after) is None

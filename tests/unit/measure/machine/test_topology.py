"""The cores that each side gets on recorded machines, and why."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from netdyno.measure.machine import topology
from netdyno.measure.machine.topology import Processor, Topology, format_list, parse_list, read, split, split_cores
from tests.support.recorded_machine import unpack


class ChosenCores(NamedTuple):
    """What is chosen on a recorded machine; `taskset`: the processors that it leaves, by default those of the
    record."""

    machine: str
    server: str
    generator: str
    harness: str
    why: str = ""
    taskset: str | None = None


ONLY = "not pinned: server and generator share the only core"
QUOTA = "a CPU quota leaves"
ROWS = (
    ChosenCores("vm-1", "", "", "", ONLY),
    ChosenCores("vm-2", "0", "1", ""),
    ChosenCores("vm-2-quota", "", "", "", f"{ONLY}; {QUOTA} 0.4 cores' time"),
    ChosenCores("vm-2-threads", "0", "1", "", "hardware threads of the same physical core"),
    ChosenCores("vm-4", "1", "2-3", "0"),
    ChosenCores("vm-4", "1", "2", "0", taskset="0-2"),
    ChosenCores("i7-8550u", "1,5", "2-3,6-7", "0,4"),
    ChosenCores("ryzen-5800x-smt-off", "1-3", "4-7", "0"),
    ChosenCores("rk3588", "4-5", "6-7", "0", "one kind of core: 4 slower ones left out"),
    ChosenCores("rk3588", "0", "1", "", taskset="0-1"),
    ChosenCores("rk3588", "3", "4", "", "cores of different kinds, as no kind has two", taskset="3-4"),
    ChosenCores("i5-1240p", "0-3", "4-7", "8", "one kind of core: 8 slower ones left out"),
    ChosenCores("i9-12900k", "0-7", "8-15", "16", "one kind of core: 8 slower ones left out"),
    ChosenCores(
        "ryzen-5800x-isolated",
        "1,9",
        "2-3,10-11",
        "0,8",
        "isolated cores 4-7,12-15 left out (taskset -c asks for them)",
    ),
    ChosenCores(
        "ryzen-5800x-isolated",
        "5,13",
        "6-7,14-15",
        "4,12",
        "isolated cores: threads stay where they begin",
        taskset="4-7,12-15",
    ),
    ChosenCores(
        "two-xeon-e5-2620v4",
        "2-14:2,18-30:2",
        "1-31:2",
        "0,16",
        "a NUMA node each, 0 and 1, of two packages",
    ),
    ChosenCores("two-xeon-e5-2620v4", "2,18", "4,6,20,22", "0,16", "both on NUMA node 0", taskset="0-6:2,16-22:2,1,17"),
    ChosenCores("epyc-7502p", "1-15,33-47", "16-31,48-63", "0,32"),
    ChosenCores("epyc-7502p-2-of-64", "10", "11", ""),
    ChosenCores("epyc-7502p-2-of-64", "10", "42", "", "hardware threads of the same physical core", taskset="10,42"),
    ChosenCores("epyc-7502p-quota-4", "1", "2-3", "0", f"{QUOTA} 4 cores' time"),
    ChosenCores("two-kunpeng-920", "64-95", "96-127", "0", "a NUMA node each, 2 and 3, of one package"),
    ChosenCores("two-kunpeng-920", "97-111", "112-127", "96", taskset="96-127"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.machine} {row.taskset or ''}".strip())
def test_cores_are_chosen_on_recorded_machines(row: ChosenCores, tmp_path: Path) -> None:
    pinning = split(read(unpack(row.machine, tmp_path, allowed=row.taskset)))
    assert pinning.server == parse_list(row.server)
    assert pinning.generator == parse_list(row.generator)
    assert pinning.harness == parse_list(row.harness)
    what = ""
    if row.server:
        what = f"server pinned to {topology.format_cores(pinning.server)}, "
        what += f"generator to {topology.format_cores(pinning.generator)}"
        what += (
            f", harness to {topology.format_cores(pinning.harness)}" if row.harness else "; the harness is not pinned"
        )
    assert pinning.note == "; ".join(part for part in (what, row.why) if part)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.machine} {row.taskset or ''}".strip())
def test_no_physical_core_is_on_two_sides_and_no_sibling_is_left(row: ChosenCores, tmp_path: Path) -> None:
    machine = read(unpack(row.machine, tmp_path, allowed=row.taskset))
    pinning = split(machine)
    core = {processor.cpu: processor.core for processor in machine.processors}
    sides = [{core[cpu] for cpu in side} for side in (pinning.server, pinning.generator, pinning.harness)]
    if len(set(core.values())) == 1:
        return
    assert sum(map(len, sides)) == len(set[tuple[int, ...]]().union(*sides))
    if machine.quota is None:
        for side in (pinning.server, pinning.generator):
            assert {sibling for cpu in side for sibling in core[cpu] if sibling in core} == set(side)


def test_where_the_kernel_names_no_kinds_the_highest_clocks_do(tmp_path: Path) -> None:
    """Favoured cores of a kind are a little faster than its others, and alike."""
    root = unpack("i9-12900k", tmp_path)
    described = read(root)
    for unit in ("cpu_core", "cpu_atom"):
        shutil.rmtree(root / "sys/devices" / unit)
    assert read(root) == described
    assert {processor.cpu for processor in described.processors if processor.kind == 1} == set(range(16, 24))


def test_capacity_says_the_kind_before_the_clock_does(tmp_path: Path) -> None:
    root = unpack("rk3588", tmp_path)
    for cpu in range(8):
        (root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq").write_text("2400000\n")
    assert [processor.kind for processor in read(root).processors] == [1, 1, 1, 1, 0, 0, 0, 0]


def test_a_machine_that_shows_nothing_has_the_processors_of_this_process(tmp_path: Path) -> None:
    machine = read(tmp_path)
    assert [processor.cpu for processor in machine.processors] == sorted(os.sched_getaffinity(0))
    assert {
        (processor.core == (processor.cpu,), processor.node, processor.kind) for processor in machine.processors
    } == {(True, 0, 0)}
    assert (machine.isolated, machine.quota) == (frozenset(), None)


def test_a_quota_leaves_as_many_cores_as_it_fills(tmp_path: Path) -> None:
    pairs = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}
    four = tuple(Processor(cpu, core, 0, 0, 0) for cpu, core in pairs.items())

    def usable(quota: float | None) -> list[int]:
        return [processor.cpu for processor in Topology(four, frozenset(), quota).usable]

    assert usable(None) == usable(8.0) == usable(4.0) == [0, 1, 2, 3]
    assert usable(2.5) == [0, 1], "hardware threads of two physical cores"
    assert usable(3.0) == [0, 1, 2]
    assert usable(0.4) == [0]


def test_fast_cores_come_first_under_a_quota(tmp_path: Path) -> None:
    machine = read(unpack("rk3588", tmp_path))._replace(quota=2.0)
    assert [processor.cpu for processor in machine.usable] == [4, 5]


def test_halves_of_a_node_go_before_a_node_of_fewer_cores() -> None:
    def core(cpu: int, node: int) -> tuple[Processor]:
        return (Processor(cpu, (cpu,), node, node, 0),)

    server, generator = split_cores([core(0, 0), *(core(cpu, 1) for cpu in range(1, 7))])
    assert [topology.list_cpus(side) for side in (server, generator)] == [(1, 2, 3), (4, 5, 6)]
    server, generator = split_cores([core(0, 0), *(core(cpu, 1) for cpu in range(1, 3)), core(3, 0)])
    assert [topology.list_cpus(side) for side in (server, generator)] == [(0, 3), (1, 2)]


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("3", (3,)),
        ("0,2-4,1023", (0, 2, 3, 4, 1023)),
        ("0-1,64-65", (0, 1, 64, 65)),
        ("0,3-9:2", (0, 3, 5, 7, 9)),
        ("0,3,7,9", (0, 3, 7, 9)),
    ],
)
def test_lists_are_read_and_written_as_the_kernel_does(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_list(text) == cpus
    assert format_list(cpus) == text

"""The programs that used the cores, from two readings of all processes."""

from __future__ import annotations

from netdyno.measure.machine.cpu_users import ProcessTime, compute_shares, parse_process

STAT = (
    b"4711 (clang) +\x1b+) R 1 4711 4711 0 -1 4194304 100 0 0 0 150 50 7 8 30 10 1 0 9000 1000 10 "
    b"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0"
)


def test_a_line_of_the_kernel_is_read_and_its_name_can_do_nothing() -> None:
    read = parse_process(STAT)
    assert (read.name, read.began_ticks, read.core) == ("clang) +?+", 9000, 1)
    assert read.used_s > 0


def process(name: str, used_s: float, began_ticks: int = 100, core: int = 0) -> ProcessTime:
    return ProcessTime(name, used_s, began_ticks, core)


def test_programs_of_one_name_count_together_and_the_largest_comes_first() -> None:
    first = {1: process("idle", 5.0), 2: process("clang++", 1.0), 3: process("clang++", 2.0)}
    last = {
        1: process("idle", 5.0),
        2: process("clang++", 2.0),
        3: process("clang++", 4.0),
        4: process("ld", 0.5, 1000),
    }
    users = [(user.name, user.cores) for user in compute_shares(first, last, {0, 1}, 2.0, 990)]
    assert users == [("clang++", 1.5), ("ld", 0.25)]


def test_a_number_that_came_again_is_another_process_and_other_cores_are_none_of_ours() -> None:
    first = {1: process("make", 50.0)}
    last = {1: process("clang++", 1.0, 1000), 2: process("far", 1.0, 1000, core=7)}
    assert [(user.name, user.cores) for user in compute_shares(first, last, {0, 1}, 1.0, 990)] == [("clang++", 1.0)]

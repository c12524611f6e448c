"""The comparison of two timer slacks pairs what it read within blocks."""

from __future__ import annotations

from tests.support import bench_script

timer_slack = bench_script.load("timer_slack")


def test_ratios_are_those_of_blocks() -> None:
    def read(us: float) -> object:
        return timer_slack.Read(us, us, us)

    # The machine is twice as slow in the second block: the ratio is the same in each.
    runs = {("a", 50_000): [read(100), read(200), read(100)], ("a", 1): [read(90), read(180), read(90)]}
    told = timer_slack.table(runs).splitlines()
    assert told[1].split() == ["a", "p50_us", "100.0", "90.0", "0.900", "[0.900", "to", "0.900]"]
    assert len(told) == 4

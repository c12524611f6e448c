"""The output of perf script, as stacks with the time that was spent in them."""

from __future__ import annotations

import pytest

from netdyno.measure.machine import perf
from netdyno.measure.machine.perf import Lost, StackSample, Switched

SCRIPT = """\
server   594/594   66141.015072779:    2004008 cpu-clock:
  ffffffff81e44d66 tcp_ack ([kernel.kallsyms])
             fde60 __GI___writev (/usr/lib/x86_64-linux-gnu/libc.so.6)
              f7d2 netdyno::(anonymous namespace)::Client::carry_out (/home/ada/build (new)/server)
              d72e main (/home/ada/build (new)/server)
  ffffffffffffffff [unknown] ([unknown])

server   594/594   66141.019332853: PERF_RECORD_LOST lost 12
C1 Compiler Thre   594/597   66141.020000000:       1000 cpu-clock:
             11111 [unknown] (/opt/java/libjvm.so (deleted))
             22222 a;b (/tmp/perf-594.map)

a thread
called so   594/598   66141.030000000: PERF_RECORD_SWITCH OUT preempt
server   594/594   66141.040000000: PERF_RECORD_SWITCH IN
"""


def test_samples_switches_and_what_was_lost_are_read() -> None:
    first, lost, second, out, back = perf.parse_events(SCRIPT.splitlines(keepends=True))
    assert first == StackSample(
        594,
        66141015072779,
        2004008,
        "server",
        ("main", "netdyno::(anonymous namespace)::Client::carry_out", "__GI___writev", "tcp_ack_[k]"),
    )
    assert lost == Lost(12)
    assert second == StackSample(597, 66141020000000, 1000, "C1 Compiler Thre", ("a:b", "[libjvm.so]"))
    assert out == Switched(598, 66141030000000, came=False, preempted=True)
    assert back == Switched(594, 66141040000000, came=True, preempted=False)


def test_a_sample_at_the_end_without_its_blank_line_counts() -> None:
    assert len(list(perf.parse_events(SCRIPT.splitlines()[:6]))) == 1


def test_a_long_name_is_cut() -> None:
    lines = [*SCRIPT.splitlines()[:1], f"  1 {'x' * 5000} (/server)"]
    (event,) = perf.parse_events(lines)
    assert isinstance(event, StackSample)
    assert event.stack == ("x" * perf.LONGEST_NAME,)


def sample(thread: int, at_ms: float, *stack: str, name: str = "server", period: int = 1) -> StackSample:
    return StackSample(thread, round(at_ms * 1e6), period, name, stack)


def switched(thread: int, at_ms: float, way: str) -> Switched:
    return Switched(thread, round(at_ms * 1e6), way == "in", way == "preempted")


def test_samples_of_the_same_stack_add_up_and_a_thread_of_another_name_stands_under_it() -> None:
    profile = perf.sum_samples(
        [
            sample(1, 0, "main", "a", period=2000),
            sample(1, 1, "main", "a", period=3000),
            sample(2, 2, "start_thread", "gc", name="GC;1", period=1000),
            sample(3, 3, "start_thread", name=":3", period=1000),
            Lost(4),
        ],
        "server",
    )
    assert profile.stacks == {("main", "a"): 5.0, ("GC:1", "start_thread", "gc"): 1.0, ("start_thread",): 1.0}
    assert (profile.samples, profile.lost) == (4, 4)
    assert (profile.unnamed_us, profile.cut_us) == (0.0, 0.0)


def test_time_without_names_and_without_a_beginning_is_distinguished() -> None:
    profile = perf.sum_samples(
        [
            sample(1, 0, "main", "[libz.so]", "[libz.so]", "crc", period=6000),
            sample(1, 1, "main", "[libq.so]", period=1000),
            sample(1, 2, "lock", "futex_[k]", period=2000),
        ],
        "server",
    )
    assert (profile.unnamed_us, profile.unnamed) == (7.0, ("libz.so", "libq.so"))
    assert profile.cut_us == 2.0


def test_a_thread_that_leaves_a_cpu_is_away_until_it_comes_back() -> None:
    profile = perf.sum_waits(
        [
            sample(1, 0, "main", "read"),
            switched(1, 0.01, "out"),
            sample(2, 1, "main", "sleep"),
            switched(2, 1.01, "out"),
            switched(2, 3, "in"),
            switched(1, 10, "in"),
            switched(1, 11, "out"),
            switched(1, 12, "in"),  # not one of those that were looked at
        ],
        "server",
        1,
        1.0,
    )
    assert profile.stacks == pytest.approx({("main", "read"): 10_000.0, ("main", "sleep"): 2_000.0})
    assert profile.samples == 2


def test_one_switch_of_several_stands_for_all_of_them() -> None:
    profile = perf.sum_waits([sample(1, 0, "main"), switched(1, 2, "in")], "server", 7, 1.0)
    assert profile.stacks == pytest.approx({("main",): 14_000.0})


def test_a_thread_that_was_only_preempted_waited_for_the_cpu() -> None:
    profile = perf.sum_waits(
        [sample(1, 0, "main", "burn"), switched(1, 0, "preempted"), switched(1, 5, "in")], "server", 1, 1.0
    )
    assert profile.stacks == pytest.approx({("main", "burn", perf.PREEMPTED): 5_000.0})
    assert profile.unnamed_us == 0


def test_a_thread_that_does_not_come_back_waits_to_the_end_of_the_window() -> None:
    profile = perf.sum_waits([switched(2, 0, "in"), sample(1, 400, "main", "accept")], "server", 1, 1.0)
    assert profile.stacks == pytest.approx({("main", "accept"): 600_000.0})


def test_over_a_gap_it_is_unknown_which_thread_came_back() -> None:
    profile = perf.sum_waits(
        [sample(1, 0, "main", "read"), switched(1, 0, "out"), Lost(3), switched(1, 90, "in")], "server", 1, 1.0
    )
    assert profile.stacks == {}
    assert profile.lost == 3

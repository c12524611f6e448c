"""The work behind a message: what is counted of it in a trial, and the tables of the report."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.analysis.notices import message_cost
from netdyno.analysis.trials.split import select_part
from netdyno.model.metrics import METRICS
from netdyno.model.observation import Pinning
from netdyno.model.run import Run
from netdyno.model.trial import SystemCall, Traced, Trial
from netdyno.present.report import work as report
from netdyno.present.report.report_table import ReportTable
from tests.support.builders.analysed import analysed, findings_of
from tests.support.builders.made_run import EPOLL, LOCK, SNAPSHOT, made_run, with_only
from tests.support.undrawn import page_without_panels


def call(name: str, calls: int, again: int = 0, time_s: float = 0.0) -> SystemCall:
    return SystemCall(name=name, calls=calls, again=again, failed=0, time_s=time_s)


def with_traces(*traced: Traced) -> Run:
    return replace(made_run(), traced=traced)


def traced(name: str, *calls: SystemCall, reason: str = "") -> Traced:
    messages = 1000 if calls else 0
    return Traced(
        scenario="echo",
        contestant=name,
        levels={"connections": 100},
        reason=reason,
        window_s=0.25,
        messages=messages,
        calls=calls,
    )


def echo() -> ScenarioFindings:
    return findings_of(analysed(made_run()), "echo")


def view(run: Run) -> report.WorkView:
    """The view of scenario echo; nothing else of the run is analysed again."""
    names = [standing.contestant for standing in echo().standings]
    work = report.make_view(replace(echo(), work=message_cost.build_rows(select_part(run, echo().scenario), names)))
    assert work is not None
    return work


def column(table: ReportTable, heading: str) -> dict[str, str]:
    index = table.headings.index(heading)
    return {row[0]: row[index] for row in table.rows}


# --- what a trial has counted ------------------------------------------------------------------------------------


def trial(url: str = "tcp://127.0.0.1:7000", **fields: object) -> Trial:
    sample = next(sample for sample in made_run().trials if sample.load is not None)
    assert sample.load is not None
    requests = replace(sample.load.requests, completed=1000)
    return replace(
        sample, load=replace(sample.load, requests=requests, plan=replace(sample.load.plan, url=url)), **fields
    )


def figure(metric: str, sample: Trial) -> float | None:
    assert sample.load is not None
    return METRICS[metric].value(sample, sample.load)


SEGMENTS = {"InSegs": 2010, "OutSegs": 2000, "UdpInDatagrams": 0, "UdpOutDatagrams": 30}


def test_where_both_ends_share_a_namespace_what_is_sent_is_all_that_crosses() -> None:
    assert figure("packets", trial(kernel=SEGMENTS)) == pytest.approx(2.03)


def test_over_a_link_the_server_counts_what_comes_as_well() -> None:
    assert figure("packets", trial("tcp://10.77.0.1:7000", kernel=SEGMENTS)) == pytest.approx(4.04)


def test_a_run_from_before_segments_were_counted_has_none() -> None:
    assert figure("packets", trial(kernel={"RetransSegs": 3})) is None


def test_softirqs_are_those_of_the_servers_cores() -> None:
    machine = trial().machine
    assert machine is not None
    seen = replace(machine, softirq_s={0: 0.02, 1: 0.5})
    bound = trial(machine=seen, pinning=Pinning(server=(0,), generator=(1,), note=""))
    assert figure("softirq", bound) == pytest.approx(20_000)
    anywhere = trial(machine=seen, pinning=Pinning(server=(), generator=(1,), note=""))
    assert figure("softirq", anywhere) == pytest.approx(520_000)
    for cores in ((), (0, 1)):
        shared = trial(machine=seen, pinning=Pinning(server=cores, generator=cores, note=""))
        assert figure("softirq", shared) is None, "nothing tells which were the load's"
    assert figure("softirq", trial(machine=replace(machine, softirq_s={1: 0.5}))) is None
    assert figure("softirq", trial()) is None, "a run from before it was counted"


def test_bytes_are_those_of_the_load_over_its_whole_life() -> None:
    sample = trial()
    assert sample.load is not None
    assert figure("bytes-in", sample) == sample.load.bytes.sent / sample.load.messages.sent
    both = replace(sample.load, bytes=replace(sample.load.bytes, received=3 * sample.load.bytes.sent))
    more = replace(sample, load=both)
    assert figure("bytes-out", more) == pytest.approx(3 * sample.load.bytes.sent / sample.load.messages.sent)


# --- the tables --------------------------------------------------------------------------------------------------


def test_calls_stand_by_name_the_most_frequent_first_and_the_rest_as_a_sum() -> None:
    calls = [call(name, 100 - number) for number, name in enumerate("abcdefgh")]
    shown = view(
        with_traces(
            traced(LOCK, *calls, call("futex", 1500, again=30, time_s=0.5)),
            traced(EPOLL, call("recvfrom", 1010), call("sendto", 1000)),
        )
    )
    assert shown.calls is not None
    assert shown.level == "100 connections"
    assert shown.calls.headings[:9] == (
        "contestant",
        "system calls per message",
        "futex",
        "recvfrom",
        "sendto",
        "a",
        "b",
        "c",
        "all others",
    )
    assert [row[0] for row in shown.calls.rows] == [EPOLL, LOCK], "in the order of the ranking"
    assert column(shown.calls, "system calls per message") == {EPOLL: "2.01", LOCK: "2.27"}
    assert column(shown.calls, "futex") == {EPOLL: "0", LOCK: "1.50"}
    assert column(shown.calls, "all others") == {EPOLL: "0", LOCK: "0.475"}
    assert column(shown.calls, "of them in vain (EAGAIN)") == {EPOLL: "0", LOCK: "0.0300"}
    assert column(shown.calls, "in futex per message, traced") == {EPOLL: "0 ns", LOCK: "500 µs"}
    assert column(shown.calls, "traced at") == dict.fromkeys((EPOLL, LOCK), "4.00k/s")
    assert column(shown.calls, "measured at")[EPOLL].endswith("k/s")


def test_a_server_that_was_not_traced_is_named_with_the_reason() -> None:
    reason = "strace is not installed (package strace)"
    shown = view(
        with_traces(traced(EPOLL, call("read", 1000)), *(traced(name, reason=reason) for name in (LOCK, SNAPSHOT)))
    )
    assert shown.untraced == (f"Not traced: {LOCK} and {SNAPSHOT} ({reason}).",)
    assert shown.calls is not None
    assert len(shown.calls.rows) == 1


def test_a_run_in_which_nothing_was_traced_says_so_and_has_what_was_counted() -> None:
    shown = view(made_run())
    assert shown.calls is None
    assert shown.untraced == ("No system calls were traced in this run.",)
    assert shown.level == "100 connections"
    assert column(shown.counted, "bytes in")[EPOLL] == "31.0"
    assert column(shown.counted, "CPU user")[EPOLL].endswith("ns")
    assert column(shown.counted, "segments and datagrams")[EPOLL] == "\N{EN DASH}"


def test_all_move_the_same_or_those_that_do_not_are_named() -> None:
    run = made_run()
    assert view(run).same_bytes == "All contestants move the same: 31.0 bytes in and 31.0 bytes out per message."

    def longer(sample: Trial) -> Trial:
        if sample.load is None or sample.contestant != LOCK:
            return sample
        moved = sample.load.bytes
        return replace(sample, load=replace(sample.load, bytes=replace(moved, received=moved.received * 2)))

    sentence = view(replace(run, trials=tuple(map(longer, run.trials)))).same_bytes
    assert sentence.startswith("Bytes per message differ: ")
    assert f"{LOCK} 31.0 in and 62.0 out" in sentence


def test_the_page_shows_the_work_and_what_goes_along_with_each_ranking() -> None:
    run = with_traces(traced(EPOLL, call("recvfrom", 1010)), traced(LOCK, call("<b>", 900)))
    about = (replace(run.about[0], copies="a reply once"), *run.about[1:])
    page = page_without_panels(analyse(with_only(replace(run, about=about), "echo")))
    assert "The work behind a message" in page
    assert "What correlates with the ranking" in page
    assert f"<p>{LOCK} against {EPOLL} (throughput" in page
    assert "that they cause it is not proven" in page
    assert '<th scope="col">recvfrom</th>' in page
    assert "<b></th>" not in page
    assert page.count("<dd>a reply once</dd>") == 1, "who says nothing of copies is not among those who do"

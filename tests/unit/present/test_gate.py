"""A gate in words, for a pull request and for a CI server."""

from __future__ import annotations

import json
import math
import re
from xml.etree import ElementTree

import msgspec
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.exclusions import Fault
from netdyno.analysis.found.gate import Faults, GatedMetric, GateFindings, NoFigures, Unmeasured
from netdyno.kit.statistics.stats import Interval
from netdyno.model.experiment import Gate, Scenario
from netdyno.model.load_result import FirstExchange
from netdyno.present import gate
from netdyno.present.plain import derive_type, make_plain
from netdyno.present.prose import gate as prose
from tests.support.builders.made_run import made_run

LINES = (
    GatedMetric("most", "throughput", 0.05, "worse", 20, 1000.0, 800.0, 0.8, Interval(0.78, 0.82)),
    GatedMetric("most", "cpu", 0.05, "within", 20, 20_000.0, 20_200.0, 1.01, Interval(0.99, 1.03)),
    GatedMetric("a|b <i>", "p99", 0.25, "open", 3, 1e6, 1e6, 1.0, None),
)
GATE = Gate(before="before", after="after", margins={})
FOUND = GateFindings(GATE, LINES, (Faults("most", 1, 2, 20),), "fails", may_go_on=False)


def test_the_terminal_has_a_line_for_each_metric_and_the_decision_last() -> None:
    lines = gate.format_text(FOUND).splitlines()
    assert lines[0] == (
        "most, throughput: worse. 1.00k/s before, 800/s after: −20% (−22% to −18%), margin −5%, 20 blocks"  # noqa: RUF001
    )
    assert lines[1].startswith("most, server CPU per message: within the margin. 20.0 µs before, 20.2 µs after: +1.0%")
    assert lines[1].endswith("margin +5%, 20 blocks")
    assert "not decided" in lines[2]
    assert "(no interval)" in lines[2]
    assert lines[3] == "most: of 20 blocks, the old server had a fault in 1 and the new server in 2"
    assert lines[4] == "The new server is worse by more than the margin."


def test_programs_get_its_lines_as_their_type_says() -> None:
    written = msgspec.convert(make_plain(FOUND), derive_type(GateFindings))
    assert [(line.question, line.outcome) for line in written.lines] == [
        ("most", "worse"),
        ("most", "within"),
        ("a|b <i>", "open"),
    ]
    assert (written.lines[0].interval, written.lines[2].interval) == ((0.78, 0.82), None)
    assert (written.faults[0].question, written.decision) == ("most", "fails")


def test_a_table_for_a_pull_request_has_as_many_cells_in_each_row() -> None:
    page = gate.format_markdown(FOUND, "run-1")
    assert page.startswith("**The new server is worse by more than the margin.**\n")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(LINES)
    assert {row.replace("\\|", "").count("|") for row in rows} == {len(gate.HEADINGS) + 1}
    assert "| **worse** |" in rows[2]
    assert "a\\|b &lt;i>" in rows[4]
    assert "of 20 blocks, the old server had a fault in 1" in page
    assert "Run `run-1`." in page


def test_what_a_server_printed_is_no_markdown() -> None:
    evil = "![x](http://evil.example/x.png) **passes** `a` <img src=x> @user #1 \x1b[31m\ufffe|"
    line = replace(LINES[0], outcome="faulty", faults=(Fault("died", 5, 5, evil),))
    page = gate.format_markdown(GateFindings(GATE, (line,), (), "fails", may_go_on=False), "run-1")
    shown = re.sub(r"`[^`]`", "", page).replace("**faulty", "").replace("``", "")
    assert not re.search(r"(?<!\\)[\[\]]|<|://|@|#1|\x1b|\ufffe|(?<!\\)`a", shown)
    assert "\\*\\*passes\\*\\*" in page


def test_a_ci_server_sees_what_fails_and_what_is_not_decided() -> None:
    suite = ElementTree.fromstring(gate.format_junit(FOUND, "run-1"))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }
    cases = {(case.get("classname"), case.get("name")): case for case in suite.iter("testcase")}
    assert [child.tag for child in cases["netdyno.most", "throughput"]] == ["failure", "system-out"]
    assert [child.tag for child in cases["netdyno.most", "cpu"]] == ["system-out"]
    assert [child.tag for child in cases["netdyno.a|b <i>", "p99"]] == ["skipped", "system-out"]


def test_a_history_has_a_line_of_json_for_each_gate() -> None:
    lines = [gate.format_history(FOUND, run_id, commit) for run_id, commit in (("run-1", "0123abcd"), ("run-2", None))]
    first, second = map(json.loads, "".join(lines).splitlines())
    assert (first["run_id"], first["commit"], first["decision"]) == ("run-1", "0123abcd", "fails")
    assert [line["ratio"] for line in first["lines"]] == [0.8, 1.01, 1.0]
    assert (second["run_id"], second["commit"]) == ("run-2", None)


def test_more_time_is_advised_only_where_it_helps() -> None:
    undecided = GateFindings(GATE, LINES[2:], (), "open", may_go_on=False)
    assert gate.format_text(undecided).endswith(
        "Not decided. A longer --time-budget or a wider --margin may give an answer."
    )
    bound = GatedMetric("most", "throughput", 0.05, "bound", 20, 1.0, 1.0, 1.0, Interval(0.99, 1.01))
    assert gate.format_text(GateFindings(GATE, (bound,), (), "open", may_go_on=False)).endswith("\nNot decided.")


NOTHING = GatedMetric("most", "throughput", 0.05, "open", 0, math.nan, math.nan, math.nan, None)
DIED = NoFigures((Fault("died", 8, 8, "exit code 1: \x1b[31mgone"),), "")
SILENT = Unmeasured("most", DIED, NoFigures((), "the load did not end"))


def test_where_nothing_was_measured_it_says_what_each_server_did() -> None:
    faults = (Faults("most", 8, 8, 8),)
    verdict = GateFindings(GATE, (NOTHING,), faults, "unmeasured", may_go_on=False, unmeasured=(SILENT,))
    missing, decision = gate.format_text(verdict).splitlines()[-2:]
    assert missing == (
        "most: nothing was measured: the old server ended by itself in 8 of 8 trials: exit code 1: \\x1b[31mgone; "
        "the new server has no valid trial: the load did not end."
    )
    assert decision == "Nothing was measured. No block has figures of both servers: most."
    suite = ElementTree.fromstring(gate.format_junit(verdict, "run-1"))
    assert (suite.get("errors"), suite.get("skipped"), suite[1][0].tag) == ("1", "0", "error")


def test_where_no_reply_was_right_it_says_what_came_and_which_option_accepts_it() -> None:
    scenario = Scenario(name="most", workload="http", contestants=("before", "after"), path=("/a",))
    exchange = FirstExchange(sent=r"GET /a HTTP/1.1\r\n", received=r"HTTP/1.1 404 Not Found\r\n")
    (text,) = filter(None, [prose.describe_exchange(Faults("most", 0, 1, 1, exchange), scenario)])
    assert text == (
        r"most: Sent: GET /a HTTP/1.1\r\n. Expected: a whole reply of HTTP/1.1 with status 2xx. "
        r"Came: HTTP/1.1 404 Not Found\r\n. --path requests something else; --expect-status 404 accepts it."
    )
    assert not prose.describe_exchange(Faults("most", 0, 1, 1), scenario)


def test_a_fault_of_the_old_server_alone_is_named() -> None:
    unsound = replace(NOTHING, outcome="unsound", faults=DIED.faults)
    verdict = GateFindings(GATE, (unsound,), (Faults("most", 8, 0, 8),), "open", may_go_on=False)
    assert gate.format_text(verdict).endswith(
        "Not decided. The old server has a fault that the new server does not have: in 'most' it ended by itself in "
        "8 of 8 trials: exit code 1: \\x1b[31mgone."
    )


def test_a_new_fault_is_not_called_worse() -> None:
    faulty = GatedMetric("most", "throughput", 0.05, "faulty", 8, 1000.0, 1000.0, 1.0, Interval(0.99, 1.01))
    verdict = GateFindings(GATE, (faulty,), (Faults("most", 0, 8, 8),), "fails", may_go_on=False)
    assert gate.format_text(verdict).endswith("\nThe new server has a fault that the old server does not have.")
    suite = ElementTree.fromstring(gate.format_junit(verdict, "run-1"))
    assert (suite.get("failures"), suite[1][0].tag) == ("1", "failure")


def test_a_cpu_quota_is_stated_once() -> None:
    run = made_run()
    limited = msgspec.structs.replace(run, environment={**run.environment, "limit.cpu_quota_cores": 0.4})
    scenarios = analyse(limited).scenarios
    assert len(scenarios) > 1
    undecided = GateFindings(GATE, (), (), "open", may_go_on=False)
    assert prose.list_notes(undecided, scenarios) == (
        "Measured under a CPU quota of 0.4 cores for server, generator and netdyno together.",
    )
    assert prose.list_notes(undecided, analyse(run).scenarios) == ()

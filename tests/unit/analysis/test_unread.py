"""Clients that write and never read rank no server: what they wrote stands apart, and in the claims by the program of a
source, which may name an unsafe server."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.notices import Unread
from netdyno.analysis.found.run import Analysis
from netdyno.kit.errors import UserError
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.findings_json import make_document
from netdyno.present.prose import unread as words
from netdyno.present.prose.verdict import answer
from netdyno.question import experiment
from tests.support.builders.made_claims import WRITES, TruthPoint, of_points
from tests.support.builders.made_run import ABOUT, LOCK, SNAPSHOT
from tests.support.printed import print_in_one_line
from tests.support.undrawn import page_without_panels

HEAD = f"""
question = "Which one do clients that never read write most to?"
contestants = ["{LOCK}", "{SNAPSHOT}"]
blocks = 6
warmup = "0s"
duration = "1s"
[[scenario]]
name = "talk"
workload = "chat"
[[scenario]]
name = "writes"
workload = "chat"
messages = 10
generator-threads = 1
[scenario.factors]
connections = [50, 100]
[[claim]]
id = "X1"
text = "So it is"
[claim.test]
kind = "ratio"
metric = "throughput"
cells = {{ scenario = "talk" }}
a = {{ contestant = "{LOCK}" }}
b = {{ contestant = "{SNAPSHOT}" }}
above = 1
"""
BY_SCRIPT = f"""
[claim.script]
because = "Nobody reads."
[claim.script.test]
kind = "ratio"
metric = "written"
cells = {{ scenario = "writes", connections = 50 }}
a = {{ contestant = "{LOCK}" }}
b = {{ contestant = "{SNAPSHOT}" }}
above = 2
"""


def written_run(lock: float, *, faster: float = 0.5) -> Run:
    """The lock answers `faster` times as many requests as the snapshot, which is unsafe, and clients write `lock` times
    as many messages to it."""
    parsed = experiment.parse(HEAD + BY_SCRIPT, "made", "made.toml")
    points = [
        TruthPoint("talk", LOCK, {}, {"throughput": 100 * faster}),
        TruthPoint("talk", SNAPSHOT, {}, {"throughput": 100}),
        *(TruthPoint("writes", LOCK, {"connections": count}, {"written": 1000 * lock}) for count in (50, 100)),
        *(TruthPoint("writes", SNAPSHOT, {"connections": count}, {"written": 1000}) for count in (50, 100)),
    ]
    run = of_points(parsed, points, end_every_other)
    return replace(run, about=tuple(replace(ABOUT[0], name=name, family=()) for name in (LOCK, SNAPSHOT)))


def end_every_other(trial: Trial, point: TruthPoint) -> Trial:
    """The snapshot is ended by every second burst of a hundred clients."""
    if point.scenario != "writes" or trial.load is None:
        return trial
    ends = point.contestant == SNAPSHOT and point.levels["connections"] == 100 and trial.block % 2 == 0
    writes = replace(WRITES, finished=25, per_second=point.figures["written"])
    plan = replace(trial.load.plan, connections=50)
    return replace(
        trial, ended_by="signal SIGPIPE" if ends else "", load=replace(trial.load, plan=plan, write_only=writes)
    )


def mark_unsafe(run: Run) -> Run:
    about = tuple(replace(entry, unsafe="frames mix") if entry.name == SNAPSHOT else entry for entry in run.about)
    return replace(run, about=about)


@pytest.fixture(scope="module")
def unread_analysis() -> Analysis:
    return analyse(mark_unsafe(written_run(3)))


def test_nothing_is_ranked_and_every_server_stands_with_what_clients_wrote(unread_analysis: Analysis) -> None:
    talk, writes = unread_analysis.scenarios
    assert talk.unread == ()
    assert (writes.verdict, writes.standings, writes.absent, writes.unsafe) == ("not_ranked", (), (), ())
    assert answer(writes).headline == words.HEADLINE
    rows = {(row.contestant, row.level): row for row in writes.unread}
    assert list(rows) == [(name, f"{count} connections") for name in (LOCK, SNAPSHOT) for count in (50, 100)]
    assert rows[SNAPSHOT, "100 connections"] == Unread(SNAPSHOT, "100 connections", 6, 0.5, 1000, 3)
    assert words.make_row(rows[SNAPSHOT, "100 connections"])[2:] == ("6", "50%", "1.00k/s", "3 of 6")


def test_table_report_and_document_say_so(unread_analysis: Analysis) -> None:
    text, page = print_in_one_line(unread_analysis), page_without_panels(unread_analysis)
    for shown in (text, re.sub(r"\s+", " ", page)):
        assert words.WHY_NOT_RANKED in shown
        assert "3 of 6" in shown
    assert page.count("What clients wrote, and no client read") == 1
    (_, question) = make_document(unread_analysis)["questions"]
    assert [row["ended"] for row in question["unread"]] == [0, 0, 0, 3]


@pytest.mark.parametrize(
    ("lock", "faster", "by_text", "by_script"),
    [(3, 0.5, "refuted", "confirmed"), (1, 2, "confirmed", "refuted"), (3, 2, "confirmed", "confirmed")],
)
def test_a_claim_has_a_verdict_by_its_text_and_one_by_its_script(
    lock: float, faster: float, by_text: str, by_script: str
) -> None:
    analysis = analyse(written_run(lock, faster=faster))
    (judged,) = analysis.claims
    assert judged.by_script is not None
    assert (judged.verdict, judged.by_script.verdict) == (by_text, by_script)
    assert f"by its script: {by_script}; messages written" in print_in_one_line(analysis)
    assert "Nobody reads." in page_without_panels(analysis)
    assert make_document(analysis)["claims"][0]["by_script"]["verdict"] == by_script


def test_a_second_verdict_can_be_by_the_build() -> None:
    """That of the source's own program: its sentence says so."""
    parsed = experiment.parse(HEAD + BY_SCRIPT.replace("because", 'by = "build"\nbecause'), "made", "made.toml")
    analysis = analyse(replace(written_run(3), experiment=parsed))
    assert "by its build: confirmed; messages written" in print_in_one_line(analysis)
    assert "by its script" not in print_in_one_line(analysis)


def test_an_unsafe_server_is_in_a_claim_only_where_none_reads(unread_analysis: Analysis) -> None:
    (judged,) = unread_analysis.claims
    assert judged.by_script is not None
    assert (judged.verdict, judged.by_script.verdict) == ("not_testable", "confirmed")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("[claim.script]\nbecause = 'so'", "script: key 'test': a claim has one [claim.test] table"),
        (BY_SCRIPT.replace("because", "becuase"), "script: unknown key 'becuase' (did you mean 'because'?)"),
        (BY_SCRIPT.replace('because = "Nobody reads."', ""), "script: key 'because': must be a text"),
        (BY_SCRIPT.replace("because", 'by = "luck"\nbecause'), "script: key 'by': 'luck' is not"),
        ("[claim.account]\nobjection = 'x'", "account: key 'overturn': must be a text"),
    ],
)
def test_a_mistake_in_it_is_one_clear_line(script: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        experiment.parse(HEAD + script, "made", "made.toml")
    assert message in str(error.value)

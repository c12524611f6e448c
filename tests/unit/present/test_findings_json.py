"""The findings for programs: the document names every key, and what is printed is JSON without a made-up number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from netdyno.base.paths import ROOT
from netdyno.model.run import Run
from netdyno.present.findings_json import make_document
from netdyno.present.prose.verdict import answer
from tests.support.builders.analysed import analysed
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_charts import charts_run
from tests.support.builders.made_run import late_run, made_run, messages_run, paired_run, unsafe_run

DOCUMENT = ROOT / "protocol" / "findings.md"
pytestmark = pytest.mark.xdist_group("runs that are exported")  # they are analysed once for both files
RUNS: dict[str, Callable[[], Run]] = {
    "made": made_run,
    "messages": messages_run,
    "pairs": paired_run,
    "capacity": experiment_run,
    "late": late_run,
    "charts": charts_run,
    "unsafe": unsafe_run,
}


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in ("by_contestant", "causes", "slices_again", "slices_by_contestant"):
                yield str(key)
                if key != "at":  # coordinates have names of their own
                    yield from keys(below)
    if isinstance(value, list):
        for below in value:
            yield from keys(below)


@pytest.mark.parametrize("name", RUNS)
def test_it_is_json_and_every_key_is_documented(name: str) -> None:
    text = json.dumps(make_document(analysed(RUNS[name]())), allow_nan=False)
    documented = set(re.findall(r"`([a-z0-9_]+)`", DOCUMENT.read_text()))
    assert set(keys(json.loads(text))) - documented - {"version"} == set()


def test_it_says_what_the_table_says() -> None:
    analysis = analysed(made_run())
    written = json.loads(json.dumps(make_document(analysis)))
    for findings, question in zip(analysis.scenarios, written["questions"], strict=True):
        assert question["sentence"] == answer(findings).sentence
        assert [standing["name"] for standing in question["contestants"]] == [
            standing.contestant for standing in findings.standings
        ]
        assert [axis["metric"] for axis in question["axes"]] == [axis.metric for axis in findings.axes]
        for axis, written_axis in zip(findings.axes, question["axes"], strict=True):
            assert [score["rank"] for score in written_axis["scores"]] == [score.rank for score in axis.scores]
    assert written["questions"][0]["axes"][0]["unit"] == "messages/s"

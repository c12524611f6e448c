"""The findings for programs: the schema explains every object, and what is printed is JSON without a made-up number."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from netdyno.model.run import Run
from netdyno.present.export.schema import Findings
from netdyno.present.findings_json import make_document
from netdyno.present.plain import derive_type
from netdyno.present.prose.verdict import answer
from tests.support.builders.analysed import analysed
from tests.support.builders.made_capacity import experiment_run
from tests.support.builders.made_charts import charts_run
from tests.support.builders.made_run import late_run, made_run, messages_run, paired_run, unsafe_run

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


_, DEFINITIONS = msgspec.json.schema_components([derive_type(Findings)])


@pytest.mark.parametrize("name", RUNS)
def test_it_is_json_with_the_keys_of_its_types(name: str) -> None:
    text = json.dumps(make_document(analysed(RUNS[name]())), allow_nan=False)
    msgspec.json.decode(text, type=derive_type(Findings))


def test_the_schema_explains_every_object() -> None:
    assert [name for name, definition in DEFINITIONS.items() if not definition.get("description")] == []


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


def test_its_keys_are_those_of_version_1() -> None:
    """The fields have names of their own by now, which the other tests take from the types."""
    written = make_document(analysed(charts_run()))
    assert {"made_again", "set_aside"} < set(written)
    assert {"made_again", "struck_out"} < set(written["trials"])
    assert "set_aside" in written["charts"][0]["panels"][0]["spots"][0]

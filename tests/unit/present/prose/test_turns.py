"""What took no turns is said with its reason."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.found.notices import MeasuredAlone
from netdyno.present.prose.notices import describe_turns
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run


def test_each_reason_against_turns_is_a_sentence_and_without_one_there_is_none() -> None:
    findings = {found.scenario.name: found for found in analysed(made_run()).scenarios}
    assert describe_turns(findings["echo"]) == ()
    assert describe_turns(findings["chat"]) == ()
    alone = (MeasuredAlone(("a", "b"), "turns are off"), MeasuredAlone(("c",), "it is the only contestant"))
    assert describe_turns(replace(findings["chat"], alone=alone)) == (
        "a and b took no turns with others, because turns are off.",
        "c took no turns with others, because it is the only contestant.",
    )

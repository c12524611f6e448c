"""What turns leave out of a figure is said where it matters."""

from __future__ import annotations

from msgspec.structs import replace

from netdyno.analysis.found.notices import MeasuredAlone
from netdyno.present.prose.notices import describe_turns
from tests.support.builders.analysed import analysed
from tests.support.builders.made_run import made_run


def test_a_room_in_turns_is_called_the_beginning_of_a_load() -> None:
    findings = {found.scenario.name: found for found in analysed(made_run()).scenarios}
    (text,) = describe_turns(findings["chat"])
    assert text.startswith("In turns, these are figures of the first 0.2 s of a load")
    assert describe_turns(findings["echo"]) == ()
    names = tuple(standing.contestant for standing in findings["chat"].standings)
    alone = replace(findings["chat"], alone=(MeasuredAlone(names, "turns are off"),))
    assert len(describe_turns(alone)) == 1
    assert "first 0.2 s" not in describe_turns(alone)[0]

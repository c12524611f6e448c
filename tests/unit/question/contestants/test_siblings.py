"""--vary makes a contestant of each level of a knob of the user's server."""

from __future__ import annotations

import pytest

from netdyno.kit.errors import UserError
from netdyno.model.contestant import Own
from netdyno.question.contestants.siblings import expand_all, parse_knobs

APP = Own(command="app --workers {workers} --pool {pool} --port {port}", workload="http")
PLAIN = Own(command="plain {port}", workload="http")


def test_a_knob_makes_a_server_of_each_level() -> None:
    server = Own(command="app -w {workers} {port}", workload="http")
    siblings, names = expand_all([server], [], parse_knobs(["workers=1,2,4"]))
    assert names == ["workers=1", "workers=2", "workers=4"]
    assert [sibling.command for sibling in siblings] == ["app -w 1 {port}", "app -w 2 {port}", "app -w 4 {port}"]
    assert {sibling.template for sibling in siblings} == {server.command}
    assert siblings[1].knobs == {"workers": "2"}


def test_two_knobs_are_a_grid_and_a_server_without_them_stays_one() -> None:
    siblings, names = expand_all([APP, PLAIN], ["app"], parse_knobs(["workers=1,2", "pool=5, 10"]))
    assert names == [
        "app.workers=1,pool=5",
        "app.workers=1,pool=10",
        "app.workers=2,pool=5",
        "app.workers=2,pool=10",
        "",
    ]
    assert siblings[-1] == PLAIN


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["workers"], "write NAME=LEVEL,LEVEL"),
        (["port=1,2"], "write NAME=LEVEL,LEVEL"),
        (["workers=1,2", "workers=3,4"], "once for each name"),
        (["workers=2"], "at least two different levels"),
        (["workers=2,2"], "at least two different levels"),
        (["workers=1,,2"], "at least two different levels"),
        (["threads=1,2"], "no --server has a place for it: write {threads} there"),
        (["workers=1,2,3,4,5", "pool=1,2,3,4"], "20 servers are too many"),
    ],
)
def test_a_knob_that_cannot_be_varied_is_refused(texts: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why.replace("{", r"\{")):
        expand_all([APP], [], parse_knobs(texts))

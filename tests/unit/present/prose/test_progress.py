"""What disturbs a run is named, with what the user can do and what the run does."""

from __future__ import annotations

import pytest

from netdyno.measure.audits.neighbour import make_quota
from netdyno.measure.run.progress import NeighbourChange
from netdyno.model.observation import ForeignLoad
from netdyno.present.prose.progress import describe_event
from tests.unit.measure.audits.test_neighbour import STAYING


@pytest.mark.parametrize(
    ("foreign_load", "lost", "rule"),
    [("strike-out", "lost", ": disturbed trials are retried, as before"), ("count", "disturbed", "")],
)
def test_programs_come_and_go(foreign_load: ForeignLoad, lost: str, rule: str) -> None:
    assert describe_event(NeighbourChange("programs", STAYING, 12, foreign_load)) == (
        f"Other programs use this machine: 12 tries in a row were {lost}, beside 1.8 cores of clang++ on 2 cores. For "
        "undisturbed figures, end them, or stop here (Ctrl-C) and run again later. The run goes on: it compares where "
        "all contestants are disturbed equally; absolute figures are marked."
    )
    gone = describe_event(NeighbourChange("gone", STAYING, 0, foreign_load))
    assert gone == f"The machine is free again, without 1.8 cores of clang++{rule}."


def test_a_quota_is_named_with_the_way_to_raise_it() -> None:
    sentence = describe_event(NeighbourChange("quota", make_quota(0.6, cores=2), 12, "strike-out"))
    assert "12 tries in a row were lost, with 0.6 cores that a CPU quota withheld" in sentence
    assert "raise it (cpu.max; docker run --cpus)" in sentence

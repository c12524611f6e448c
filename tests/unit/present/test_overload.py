"""A server that answers less than the offered rate is reported as overloaded, with what to do."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netdyno.analysis.analysis import analyse
from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.notices import Company
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.measure.audits.neighbour import make_quota
from netdyno.present.prose import notices
from netdyno.present.prose.caveats import list_caveats
from tests.support.builders.made_run import made_run


def keep(share: float) -> ScenarioFindings:
    """Return findings at a fixed rate of which the first cell kept a share, and all others kept all of it."""
    findings = next(part for part in analyse(made_run()).scenarios if "kept" in part.cells[0].values)

    def values(share: float) -> dict[str, Estimate]:
        cell = findings.cells[0]
        return {**cell.values, "kept": replace(cell.values["kept"], value=share)}

    cells = tuple(replace(cell, values=values(1.0 if index else share)) for index, cell in enumerate(findings.cells))
    return replace(findings, cells=cells)


def test_an_overloaded_server_is_named_with_the_share_that_it_answered() -> None:
    findings = keep(0.705)
    (text,) = notices.describe_overload(findings)
    assert text.startswith(f"Overload: {findings.cells[0].contestant} answered 70.5% of the offered rate")
    assert text in list_caveats(findings)


def test_what_other_programs_took_is_not_called_the_servers_overload() -> None:
    beside = Company(4, 4, (make_quota(0.5, cores=2),))
    (text,) = notices.describe_overload(replace(keep(0.705), company=beside))
    assert "answered 70.5% of the offered rate" in text
    assert ", beside 0.5 cores" in text
    assert "Overload" not in text


@pytest.mark.parametrize("share", [1.0, 0.995])
def test_a_rate_kept_within_the_tolerance_is_no_overload(share: float) -> None:
    assert notices.describe_overload(keep(share)) == ()

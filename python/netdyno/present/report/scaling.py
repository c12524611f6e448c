"""The table of how throughput grew with the cores of the server, or with a knob. No HTML here."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.notices import Scaling
from netdyno.kit import quantities
from netdyno.present.prose.scaling import format_loss, format_speedup
from netdyno.present.report.report_table import ReportTable, make_sortable


def tabulate(scalings: Sequence[Scaling]) -> ReportTable:
    """Return a row for each contestant and its other levels, with a column for each number of cores."""
    counts = sorted({speedup.cores for scaling in scalings for speedup in scaling.speedups})
    is_of_cores = not any(scaling.knob for scaling in scalings)
    columns = [f"on {count} cores" if is_of_cores else f"at {count}" for count in counts]
    headings = ("contestant", "at", *columns, "serial", "contention", "coherency")
    return ReportTable(headings, tuple(_make_row(scaling, counts) for scaling in scalings))


def _make_row(scaling: Scaling, counts: Sequence[int]) -> tuple[str, ...]:
    texts = {speedup.cores: make_sortable(format_speedup(speedup), speedup.ratio.value) for speedup in scaling.speedups}
    return (
        scaling.contestant,
        ", ".join(filter(None, (scaling.knob, scaling.other_levels))) or quantities.DASH,
        *(texts.get(cores, quantities.DASH) for cores in counts),
        *map(_make_loss_cell, (scaling.serial, scaling.contention, scaling.coherency)),
    )


def _make_loss_cell(loss: Estimate | None) -> str:
    return make_sortable(format_loss(loss), loss.value) if loss else quantities.DASH

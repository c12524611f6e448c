"""The answer as a table: contestants down, axes across, each cell with the contestant's own figure and its rank there.
No HTML here."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

import msgspec
from msgspec.structs import replace

from netdyno.analysis.found.cells import BoundDirection
from netdyno.analysis.found.ranking import Axis, Score, Standing
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.statistics.stats import Comparison
from netdyno.model.metrics import METRICS
from netdyno.present.prose import company, loss, ranking, verdict
from netdyno.present.prose import faults as fault_words
from netdyno.present.prose import ground as ground_words
from netdyno.present.report.report_table import make_sortable

TITLES = {"cpu": "CPU per message", "memory": "peak memory"}
"""Titles where there is room for more than a metric's short title."""


class ScoreColumn(msgspec.Struct, frozen=True):
    """A column. `short` heads it where there is little room; `explained` describes it in full. `lost`: it is the share
    of lost messages, which has no rank."""

    title: str
    short: str
    explained: str
    lost: bool = False


class ScoreCell(msgspec.Struct, frozen=True):
    """A figure. `bound` is "", "at least" or "at most". `rank` is empty where there is none; `best`: none is ranked
    above it, and some are below. `warns`: a loss above the bound."""

    figure: str
    bound: BoundDirection = ""
    rank: str = ""
    best: bool = False
    warns: bool = False

    @property
    def sign(self) -> str:
        return verdict.BOUND_SIGNS[self.bound]

    @property
    def spoken_rank(self) -> str:
        """The rank in words: "rank 2, shared"."""
        return f"rank {self.rank.replace('=', ', shared')}" if self.rank else ""


class ScoreRow(msgspec.Struct, frozen=True):
    """A contestant. `cells` is empty where it has no figure."""

    contestant: str
    cells: tuple[ScoreCell, ...]


class Group(msgspec.Struct, frozen=True):
    """Contestants that are ranked among themselves; `reason` says why separately, and is empty for the first group."""

    reason: str
    rows: tuple[ScoreRow, ...]
    lossy: bool = False


class Scoreboard(msgspec.Struct, frozen=True):
    columns: tuple[ScoreColumn, ...]
    groups: tuple[Group, ...]
    note: str


def make_view(findings: ScenarioFindings) -> Scoreboard | None:
    """Return the table; None where no contestant was measured, validly or not."""
    groups = tuple(_split_into_groups(findings))
    if not groups:
        return None
    return Scoreboard(tuple(_list_columns(findings)), groups, _describe_figures(findings))


# --- columns -----------------------------------------------------------------------------------------------------


def _list_columns(findings: ScenarioFindings) -> Iterator[ScoreColumn]:
    metric = findings.scenario.metric
    if not findings.axes:
        yield ScoreColumn(metric, metric, METRICS[metric].title)
    for axis in findings.axes:
        short = METRICS[axis.metric].short
        yield ScoreColumn(TITLES.get(axis.metric, short), short, METRICS[axis.metric].title)
        if findings.may_lose and axis is findings.axes[0]:
            yield ScoreColumn("lost", "lost", "share of messages lost, at the load where it was largest", lost=True)


def _describe_figures(findings: ScenarioFindings) -> str:
    """Describe the figures, and the loads that the ranks are over; how to read a rank stands once on the page."""
    text = ranking.describe_loads(findings) if findings.axes and findings.cells else ""
    return f"{text[0].upper()}{text[1:]}." if text else ""


# --- rows --------------------------------------------------------------------------------------------------------


def _split_into_groups(findings: ScenarioFindings) -> Iterator[Group]:
    """Yield those without a fault, those that lost too much, each faulty one with its faults, and last those without a
    valid trial."""
    for peers, standings in groupby(findings.standings, key=lambda standing: standing.peers):
        ground, kind = peers
        kinds = {standing.kind for standing in findings.standings if standing.group == ground}
        prefix = f"{_describe_cores(findings, ground)}{'Ranked separately: ' if len(kinds) > 1 else ''}"
        if kind == 2:
            for standing in standings:
                yield Group(f"{prefix}{fault_words.list_faults(standing.faults)}", (_make_row(findings, standing),))
        else:
            lossy = f"more than {quantities.share(findings.loss_bound)} lost" if kind == 1 and len(kinds) > 1 else ""
            reason = f"{prefix}{lossy}" if lossy else _describe_cores(findings, ground).removesuffix(": ")
            yield Group(reason, tuple(_make_row(findings, standing) for standing in standings), lossy=kind == 1)
    ranked = {standing.contestant for standing in findings.standings}
    for faulty in findings.faulty:
        if faulty.contestant not in ranked:
            yield Group(f"No valid trial: {fault_words.list_faults(faulty.faults)}", (ScoreRow(faulty.contestant, ()),))


def _describe_cores(findings: ScenarioFindings, ground: int) -> str:
    """Return the cores that a group could use, with a colon; nothing where all could use the same."""
    groups = findings.ground.together
    return f"On {ground_words.describe_usable_cores(groups[ground].cores)}: " if len(groups) > 1 else ""


def _make_row(findings: ScenarioFindings, standing: Standing) -> ScoreRow:
    if not findings.axes:
        return ScoreRow(standing.contestant, (_make_lone_cell(findings, standing),))
    peers = {peer.contestant for peer in findings.standings if peer.group == standing.group}
    mark = company.mark(findings.company)
    cells = [_make_cell(axis, standing.contestant, peers, mark) for axis in findings.axes]
    if findings.may_lose:
        cells.insert(
            1, ScoreCell(make_sortable(loss.format_largest(standing), standing.loss or 0.0), warns=standing.lossy)
        )
    return ScoreRow(standing.contestant, tuple(cells))


def _make_cell(axis: Axis, contestant: str, peers: Collection[str], mark: str) -> ScoreCell:
    score = axis.score(contestant)
    if score is None or score.shown is None:
        return ScoreCell(quantities.DASH)
    figure = make_sortable(f"{METRICS[axis.metric].speak(score.shown)}{mark}", score.shown)
    rivals = [rival for rival in axis.scores if rival.contestant in peers]
    return _add_rank(ScoreCell(figure, axis.bound), score, rivals, axis.comparisons)


def _make_lone_cell(findings: ScenarioFindings, standing: Standing) -> ScoreCell:
    """Return the cell of a metric that stands alone."""
    if not math.isfinite(standing.value):
        return ScoreCell(quantities.DASH)
    text = f"{verdict.format_value(findings.scenario, standing.value)}{company.mark(findings.company)}"
    figure = make_sortable(text, standing.value)
    rivals = [rival for rival in findings.standings if rival.group == standing.group]
    return _add_rank(ScoreCell(figure, standing.bound), standing, rivals, findings.comparisons)


def _add_rank(
    cell: ScoreCell, own: Score | Standing, rivals: Sequence[Score | Standing], family: Sequence[Comparison]
) -> ScoreCell:
    """Return the cell with its rank, where the comparisons could have proven one."""
    if own.rank is None or not any(comparison.decidable for comparison in family):
        return cell
    is_best = own.rank == 1 and any(rival.rank is not None and rival.rank > 1 for rival in rivals)
    return replace(cell, rank=f"{own.rank}=" if own.shared else str(own.rank), best=is_best)

"""The `[[figure]]` tables of an experiment file, parsed once into frozen values (docs/experiments.md).

A figure draws cells and never a mean over them, so every coordinate of its cells is drawn or held at one value.
A key or value that is not understood is an error that names the file, the figure, the key and the nearest valid one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from netdyno.kit.errors import UserError, check_keys, table_in
from netdyno.model.base import type_level
from netdyno.model.claim import CONTESTANT, Cells
from netdyno.model.experiment import Scenario
from netdyno.model.figure import SCENARIO, Figure, FigureKind, Published
from netdyno.model.metrics import CLAIMED, METRICS
from netdyno.question.selection import (
    PATTERNS,
    CellReader,
    TomlTable,
    fail,
    flatten_coordinates,
    parse_finite,
    read_amount,
    read_text,
    read_word,
)

_COMMON = ("kind", "title", "scenario", "metric", "cells", "along", "panels", "scale", "published")
FIGURE_KEYS: Mapping[str, tuple[str, ...]] = {
    "bars": (*_COMMON, "across"),
    "surface": (*_COMMON, "across"),
    "ladder": _COMMON,
    "curves": (*_COMMON, "across", "below", "x-scale"),
}
PUBLISHED_KEYS = ("at", "value")
SCALES = ("linear", "log")
MOST_PANEL_COORDINATES = 2
OF_TRIALS = (*(name for name in CLAIMED if METRICS[name].of_code is None), "handshake")
"""The metrics of figures: those of claims that trials have, and one that is part of them where a connection is new."""
_NUMERIC_AXES: Mapping[str, tuple[str, ...]] = {"curves": ("along",), "surface": ("along", "across")}
"""The axes on which a published figure may stand between the experiment's levels, if they are numbers."""


def parse(tables: object, scenarios: Sequence[Scenario], where: str) -> tuple[Figure, ...]:
    """Parse all figures of an experiment with these scenarios. Raises UserError with one clear line."""
    if not isinstance(tables, list):
        raise UserError(f"{where}: 'figure' must be one or more [[figure]] tables")
    reader = FigureReader(scenarios)
    return tuple(reader.figure(table, f"{where}: figure {number}") for number, table in enumerate(tables, 1))


class FigureReader:
    """Reads figures of the cells of these scenarios."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._cells = CellReader(scenarios)

    def figure(self, table: object, where: str) -> Figure:
        if not isinstance(table, dict):
            raise UserError(f"{where}: must be a table")
        if isinstance(table.get("title"), str):
            where = f"{where} ({table['title']!r})"
        kind = read_word(where, table, "kind", FIGURE_KEYS)
        check_keys(where, table, FIGURE_KEYS[kind])
        metric = read_word(where, table, "metric", OF_TRIALS)
        cells = self._read_selected(where, table, metric)
        along, across, panels = self._read_drawn(where, table, kind, cells)
        figure = Figure(
            kind=cast("FigureKind", kind),
            title=read_text(where, table, "title"),
            metric=metric,
            cells=cells,
            along=along,
            across=across,
            panels=panels,
            below=_read_below(where, table, metric),
            log=_is_log(where, table, "scale", "log" if kind == "ladder" and METRICS[metric].scale == "ratio" else ""),
            x_log=_is_log(where, table, "x-scale"),
        )
        if figure.log and METRICS[metric].scale == "share":
            fail(where, "scale", f"{metric!r} is a share and may be 0, which a log scale does not have")
        self._check_fixed(where, figure)
        return msgspec.structs.replace(
            figure, published=self._read_published(where, table.get("published", []), figure)
        )

    # --- cells ---------------------------------------------------------------------------------------------------

    def _read_selected(self, where: str, table: TomlTable, metric: str) -> tuple[Cells, ...]:
        """Read the cells of each scenario that the figure draws."""
        listed = table.get("scenario")
        names = [self._cells.scenario(where, name) for name in (listed if isinstance(listed, list) else [listed])]
        if not names or len(set(names)) != len(names):
            fail(where, "scenario", "must be a scenario, or a list of some, each once")
        selection = table_in(where, table, "cells")
        if "scenario" in selection:
            fail(f"{where}: cells", "scenario", "a figure names it outside 'cells'")
        return tuple(
            self._cells.cells(f"{where}: cells", {**selection, "scenario": name}, METRICS[metric]) for name in names
        )

    def _list_coordinates(self, cells: Sequence[Cells]) -> list[str]:
        """The coordinates in which the cells of all these scenarios differ."""
        shared = [
            name
            for name in self._cells.coordinates(cells[0].scenario)
            if all(name in self._cells.coordinates(selection.scenario) for selection in cells)
        ]
        return [*shared, SCENARIO] if len(cells) > 1 else shared

    def _read_drawn(
        self, where: str, table: TomlTable, kind: str, cells: Sequence[Cells]
    ) -> tuple[str, str, tuple[str, ...]]:
        """Read the coordinates of the axis, of the series on it, and of the panels: none of them twice."""
        valid = self._list_coordinates(cells)
        axis = table.get("along", CONTESTANT if kind == "ladder" else None)
        along = read_word(where, {"along": axis}, "along", valid)
        across = read_word(where, table, "across", valid) if kind == "surface" or "across" in table else ""
        listed = table.get("panels", [])
        listed = listed if isinstance(listed, list) else [listed]
        if len(listed) > MOST_PANEL_COORDINATES:
            fail(where, "panels", f"names more than {MOST_PANEL_COORDINATES} coordinates")
        panels = tuple(read_word(where, {"panels": name}, "panels", valid) for name in listed)
        named = [along, across, *panels]
        repeated = next((name for name in named if named.count(name) > 1), None)
        if repeated is not None:
            raise UserError(f"{where}: {repeated!r} is drawn twice; 'along', 'across' and 'panels' each name another")
        if kind == "curves" and not self._is_numeric(along, cells):
            fail(where, "along", f"the levels of {along!r} are no numbers, so they have no place on an axis; draw bars")
        return along, across, panels

    def _is_numeric(self, name: str, cells: Sequence[Cells]) -> bool:
        if name in (*PATTERNS, SCENARIO):
            return False
        return not any(
            isinstance(value, str) for selection in cells for value in self._cells.known(selection.scenario, name)
        )

    def _check_fixed(self, where: str, figure: Figure) -> None:
        """Check that every coordinate that is not drawn has one value, as a figure draws cells."""
        for cells in figure.cells:
            for name in self._cells.coordinates(cells.scenario):
                if name in figure.drawn:
                    continue
                values = self._values(cells, name)
                if values is None or len(values) != 1:
                    raise UserError(
                        f"{where}: {name!r} has several values there: name it in 'along', 'across' or 'panels', "
                        "or one of them in 'cells'"
                    )
        for first, second in itertools.combinations(figure.cells, 2):
            if SCENARIO not in figure.drawn and not any(
                self._are_disjoint(name, first, second) for name in figure.drawn
            ):
                raise UserError(f"{where}: {SCENARIO!r} has several values there: name it in 'panels'")

    def _values(self, cells: Cells, name: str) -> tuple[type_level, ...] | None:
        """The values of a coordinate that a selection has; None where the file does not name them."""
        values = cells.at.get(name, tuple(self._cells.known(cells.scenario, name)))
        vague = name in PATTERNS and any(mark in str(value) for value in values for mark in "*?[")
        return None if vague else values

    def _are_disjoint(self, name: str, left: Cells, right: Cells) -> bool:
        """Whether the cells of two scenarios differ in a coordinate, as when each has contestants of its own."""
        first, second = self._values(left, name), self._values(right, name)
        return first is not None and second is not None and not set(first) & set(second)

    # --- what the source published -------------------------------------------------------------------------------

    def _read_published(self, where: str, tables: object, figure: Figure) -> tuple[Published, ...]:
        if not isinstance(tables, list):
            fail(where, "published", "must be one or more tables, each with 'at' and 'value'")
        points = [
            self._read_point(point, f"{where}: published {number}", figure) for number, point in enumerate(tables, 1)
        ]
        for number, point in enumerate(points, 1):
            if any(point.at == earlier.at for earlier in points[: number - 1]):
                fail(f"{where}: published {number}", "at", "another figure is published at the same place")
        return tuple(points)

    def _read_point(self, table: object, where: str, figure: Figure) -> Published:
        if not isinstance(table, dict):
            raise UserError(f"{where}: must be a table")
        check_keys(where, table, PUBLISHED_KEYS)
        if "value" not in table:
            raise UserError(f"{where}: the key 'value' is missing")
        place = flatten_coordinates(f"{where}: at", table_in(where, table, "at"))
        fixed = {name for cells in figure.cells for name in cells.at if name not in figure.drawn}
        check_keys(f"{where}: at", place, (*figure.drawn, *sorted(fixed)))
        for name in (figure.along, figure.across):
            if name and name not in place:
                raise UserError(f"{where}: at: the key {name!r} is missing; the figure draws it")
        return Published(
            at={name: self._place(f"{where}: at", figure, place, name) for name in figure.drawn if name in place},
            value=read_amount(where, "value", table["value"], figure.metric),
        )

    def _place(self, where: str, figure: Figure, places: TomlTable, name: str) -> type_level:
        """Read the place of a published figure: a level of the experiment, or any number on an axis of numbers."""
        value = places[name]
        scenarios = [cells.scenario for cells in figure.cells]
        if name == SCENARIO:
            return read_word(where, places, name, scenarios)
        number = parse_finite(value)
        axes = {getattr(figure, key) for key in _NUMERIC_AXES.get(figure.kind, ())}
        if name in axes and number is not None and self._is_numeric(name, figure.cells):
            return int(number) if number.is_integer() else number
        if isinstance(value, list):
            fail(where, name, "a published figure stands at one value")
        chosen = [str(places[SCENARIO])] if places.get(SCENARIO) in scenarios else scenarios
        scenario_name = next((scenario for scenario in chosen if self._cells.has(scenario, name, value)), chosen[0])
        (level,) = self._cells.values(where, scenario_name, name, value)
        return level


def _read_below(where: str, table: TomlTable, metric: str) -> tuple[str, ...]:
    listed = table.get("below", [])
    if not isinstance(listed, list):
        fail(where, "below", "must be a list of metrics, such as ['cpu', 'memory']")
    metrics = tuple(read_word(where, {"below": name}, "below", OF_TRIALS) for name in listed)
    if len({metric, *metrics}) != len(metrics) + 1:
        fail(where, "below", "names a metric twice")
    return metrics


def _is_log(where: str, table: TomlTable, key: str, default: str = "") -> bool:
    return read_word(where, {key: table.get(key, default or "linear")}, key, SCALES) == "log"

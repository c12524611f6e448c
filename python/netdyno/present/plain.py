"""A finding as JSON data: an object of its fields. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import msgspec

from netdyno.analysis.found.capacity import FailedAudits, Incomplete, Missed, NoAnswer, Overload
from netdyno.analysis.found.cells import Estimate
from netdyno.analysis.found.set_aside import SetAside
from netdyno.model.figure import Figure
from netdyno.model.objective import Objective
from netdyno.model.trial import Traced
from netdyno.present.prose import capacity, set_aside
from netdyno.statistics.stats import Comparison, Interval

LEFT_OUT: Mapping[type, tuple[str, ...]] = {
    Estimate: ("points",),  # the trials have them
    Figure: ("cells", "published", "log", "x_log"),  # the request and how it is drawn; panels have the rest
    Traced: ("scenario", "contestant", "levels", "log"),  # it stands with its contestant and level
    # what its interval comes from
    Comparison: ("pairs", "p", "p_corrected", "single", "spread", "relative", "axis", "error", "freedom"),
}


def make_plain(value: object) -> object:
    """Convert a value to JSON data: reasons and objectives become sentences; an interval its two ends."""
    match value:
        case Interval(low, high):
            return [low, high]
        case SetAside():
            return set_aside.describe_cause(value)
        case Objective():
            return value.text
        case FailedAudits() | Incomplete() | Overload() | NoAnswer() | Missed():
            return capacity.explain_failure(value)
        case msgspec.Struct():
            return _convert_fields(value, value.__struct_fields__)
        case Mapping():
            return {str(name): make_plain(item) for name, item in value.items()}
        case list() | tuple():
            return [make_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return _convert_fields(value, [field.name for field in dataclasses.fields(value)])
    return value


def _convert_fields(value: object, names: tuple[str, ...] | list[str]) -> dict[str, object]:
    left_out = LEFT_OUT.get(type(value), ())
    return {name: make_plain(getattr(value, name)) for name in names if name not in left_out}

"""A finding as JSON data: an object of its fields; and the type of that data, which has a schema. Pure."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from netdyno.analysis.found.capacity import Reason
from netdyno.analysis.found.cells import Estimate, LevelInfo
from netdyno.analysis.found.exclusions import ExclusionCause, Faulty, TrialNote
from netdyno.analysis.found.gate import Faults, GatedMetric, GateFindings
from netdyno.analysis.found.notices import Retries, Unsteady, WarmedUp
from netdyno.analysis.found.ranking import Censored
from netdyno.kit.statistics.stats import Comparison, Interval
from netdyno.model.base import Frozen, type_level
from netdyno.model.figure import Figure
from netdyno.model.objective import Objective
from netdyno.model.trial import Traced
from netdyno.present.prose import capacity, exclusions

LEFT_OUT: Mapping[type, tuple[str, ...]] = {
    Estimate: ("points",),  # the trials have them
    LevelInfo: ("values",),
    Figure: ("cells", "published", "log", "x_log"),  # the request and how it is drawn; panels have the rest
    Traced: ("scenario", "contestant", "levels", "log"),  # it stands with its contestant and level
    # what its interval comes from
    Comparison: ("pairs", "p", "p_corrected", "single", "spread", "relative", "axis", "error", "freedom"),
    GateFindings: ("gate", "may_go_on"),  # what was asked for, and the state of an unfinished run
    TrialNote: ("client", "log"),  # the level has the client
}
KEYS: Mapping[type, Mapping[str, str]] = {
    Censored: {"share": "generator_share"},
    Faults: {"scenario": "question"},
    Faulty: {"contestant": "name"},
    GatedMetric: {"scenario": "question"},
    Retries: {"p": "p_even", "slices_p": "slices_p_even"},
    TrialNote: {"scenario": "question"},
    Unsteady: {"contestant": "name", "moved": "trials", "trials": "of"},
    WarmedUp: {"warmups": "each"},
}
"""The keys of fields that have another name there."""
WORDS: Mapping[type, Callable[[Any], str]] = {
    Objective: lambda objective: objective.text,
    ExclusionCause: exclusions.describe_cause,
    **dict.fromkeys(get_args(Reason), capacity.explain_failure),
}
NAMES: Mapping[type, str] = {Figure: "ChartFigure", GateFindings: "Gate"}
"""The names of types in the schema, where their own are those of others, or say little."""


def make_plain(value: object) -> Any:
    """Convert a value to JSON data: reasons and objectives become sentences; an interval its two ends; and a number
    that is not finite null (such as the cost per message of a trial without replies), as JSON has no such numbers."""
    if describe := WORDS.get(type(value)):
        return describe(value)
    match value:
        case Interval(low, high):
            return [make_plain(low), make_plain(high)]
        case float():
            return value if math.isfinite(value) else None
        case None | str() | int():
            return value
        case Mapping():
            return {str(name): make_plain(item) for name, item in value.items()}
        case list() | tuple() if not hasattr(value, "_fields"):
            return [make_plain(item) for item in value]
    kind: type = type(value)
    keys = list_keys(kind)
    assert keys, kind  # a value of another library, which has no form in JSON
    return {key: make_plain(getattr(value, name)) for name, key in keys.items()}


@functools.cache
def list_keys(kind: type) -> dict[str, str]:
    """Return the key of each field that is written: those of the type itself first."""
    if issubclass(kind, msgspec.Struct):
        fields = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        names = dict(sorted(fields, key=lambda field: field[0] not in kind.__annotations__))
    else:
        names = {name: name for name in getattr(kind, "_fields", ())}
    names |= KEYS.get(kind, {})
    return {name: key for name, key in names.items() if name not in LEFT_OUT.get(kind, ())}


def derive_type(kind: Any, *, computed: bool = False) -> Any:
    """Return the type of what `make_plain` makes of values of this type. A `computed` number may be null."""
    if kind == type_level or get_origin(kind) in (Literal, Annotated):
        return kind
    if kind in WORDS:
        return str
    if kind is Interval:
        return tuple[float | None, float | None]
    if kind is float and computed:
        return float | None
    if parts := get_args(kind):
        derived = [part if part is ... else derive_type(part, computed=computed) for part in parts]
        origin: Any = get_origin(kind)
        if origin in (Union, UnionType):
            return functools.reduce(operator.or_, derived)
        return (dict if issubclass(origin, Mapping) else origin)[tuple(derived)]
    return _derive_struct(kind) if isinstance(kind, type) and list_keys(kind) else kind


@functools.cache
def _derive_struct(kind: type) -> type:
    """Return a type with the keys of this one. What the analysis computes is no `Frozen`."""
    hints = get_type_hints(kind, include_extras=True)
    computed = issubclass(kind, msgspec.Struct) and not issubclass(kind, Frozen)
    return msgspec.defstruct(
        NAMES.get(kind, kind.__name__),
        [(key, derive_type(hints[name], computed=computed)) for name, key in list_keys(kind).items()],
        module=kind.__module__,
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )

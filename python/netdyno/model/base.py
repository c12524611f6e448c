"""The base types of all frozen data of the project. Units are in the names."""

from __future__ import annotations

from typing import Annotated, dataclass_transform

import msgspec

type_level = int | float | str
Name = str
"""The name of a contestant, scenario, metric, counter, audit, option or run; the key or label of a combination of
levels."""
Quoted = str
"""A text from elsewhere, passed on unchanged: a question, a text of a manifest, the reason or the log of a trial, the
detail of an audit, a time stamp."""

MOST = 10**15
Number = Annotated[float, msgspec.Meta(ge=-MOST, le=MOST)]
Whole = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST)]
"""A measured or requested number. No measurement exceeds the bounds, and beyond them sums and units would overflow. A
number from outside that exceeds them is refused; its plausibility is checked elsewhere
(measure/audits/plausible.py)."""
MOST_CELLS = 10**6
"""The most cells of a run: a week of the shortest trials."""
MOST_COMBINATIONS = 10_000
"""The most combinations of levels of all scenarios together: each costs some of the time before the first trial."""
Span = Annotated[float, msgspec.Meta(gt=0, le=MOST)]
"""Seconds that serve as a divisor."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The base of all data that is parsed from outside: immutable, unknown keys are errors."""

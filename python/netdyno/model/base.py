"""What every frozen word of the project is made of. Units are in the names."""

from __future__ import annotations

from typing import Annotated, dataclass_transform

import msgspec

type_level = int | float | str
Name = str
"""Of a contestant, scenario, metric, counter, audit, option or run; of a combination of levels, key or label."""
Quoted = str
"""What somebody else wrote, handed on as it is: a question, what a manifest says, the reason or the log of a trial, the
detail of an audit, a time stamp."""

MOST = 10**15
Number = Annotated[float, msgspec.Meta(ge=-MOST, le=MOST)]
Whole = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST)]
"""What is measured or asked for. Nobody has ever measured more, and beyond it sums and units would overflow. Who reads
one from outside and finds it elsewhere refuses it; whether it is plausible is asked elsewhere (audits/plausible.py)."""
Span = Annotated[float, msgspec.Meta(gt=0, le=MOST)]
"""Seconds that are divided by."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of everything that is parsed from outside: immutable, unknown keys are errors."""

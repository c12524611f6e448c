"""Why the blocks of a scenario ended, in words. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netdyno.analysis.findings import Ending, ScenarioFindings
from netdyno.base import quantities
from netdyno.base.units import format_clock
from netdyno.model.claim import Ratio
from netdyno.model.verdicts import Judged


def sentence(ending: Ending) -> str:
    """Why the blocks ended and how far they brought it, as a clause without a full stop."""
    after = f"after {quantities.plural(ending.blocks, 'block')}"
    return {
        "precise": f"precise enough {after}{_width(ending)}",
        "alone": f"nothing to compare, so no more blocks {after}",
        "unfinished": f"not finished {after}{_width(ending)}",
        "blocks": f"budget used up {after}{_width(ending)}",
        "time": f"time budget{_time(ending)} used up {after}{_width(ending)}",
    }[ending.why]


def _time(ending: Ending) -> str:
    return f" ({format_clock(ending.time_budget_s)})" if ending.time_budget_s is not None else ""


def _width(ending: Ending) -> str:
    asked = f"requested ±{quantities.share(ending.asked)}"
    if ending.widest is None:
        return f" ({asked})"
    widest = f"±{quantities.share(float(f'{ending.widest:.2g}'))}" if math.isfinite(ending.widest) else "none yet"
    return f" (widest interval {widest}, {' against '.join(ending.of)}; {asked})"


def of_claim(judged: Judged, scenarios: Sequence[ScenarioFindings]) -> tuple[str, ...]:
    """Why the blocks of its scenarios ended, of a claim that is undecided."""
    if judged.verdict != "undecided":
        return ()
    endings = {one.scenario.name: one.ending for one in scenarios if one.ending is not None}
    names: dict[str, None] = {}
    for test in judged.claim.tests:
        names |= dict.fromkeys([test.a.scenario, test.b.scenario] if isinstance(test, Ratio) else [test.cells.scenario])
    several = len(endings) > 1
    return tuple(f"{f'{name}: ' if several else ''}{sentence(endings[name])}" for name in names if name in endings)

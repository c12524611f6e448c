"""The reason why the blocks of a scenario ended, in words. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from netdyno.analysis.found.ranking import EndOfBlocks
from netdyno.analysis.found.run import ScenarioFindings
from netdyno.kit import quantities
from netdyno.kit.units import format_clock
from netdyno.model.claim import Ratio
from netdyno.model.verdicts import JudgedClaim


def explain_end(ending: EndOfBlocks) -> str:
    """Say why the blocks ended and how precise the result is, as a clause without a full stop."""
    after = f"after {quantities.plural(ending.blocks, 'block')}"
    return {
        "precise": f"precise enough {after}{_describe_width(ending)}",
        "alone": f"nothing to compare, so ended {after}",
        "unfinished": f"not finished {after}{_describe_width(ending)}",
        "blocks": f"limit reached {after}{_describe_width(ending)}",
        "time": f"time budget{_format_budget(ending)} used up {after}{_describe_width(ending)}",
    }[ending.why]


def _format_budget(ending: EndOfBlocks) -> str:
    return f" ({format_clock(ending.time_budget_s)})" if ending.time_budget_s is not None else ""


def _describe_width(ending: EndOfBlocks) -> str:
    requested = f"requested ±{quantities.share(ending.requested)}"
    if ending.widest is None:
        return f" ({requested})"
    widest = f"±{quantities.share(float(f'{ending.widest:.2g}'))}" if math.isfinite(ending.widest) else "none yet"
    return f" (widest interval {widest}, {' against '.join(ending.pair)}; {requested})"


def explain_undecided_claim(judged: JudgedClaim, scenarios: Sequence[ScenarioFindings]) -> tuple[str, ...]:
    """Say why the blocks of an undecided claim's scenarios ended."""
    if judged.verdict != "undecided":
        return ()
    endings = {findings.scenario.name: findings.ending for findings in scenarios if findings.ending is not None}
    names: dict[str, None] = {}
    for test in judged.claim.tests:
        names |= dict.fromkeys([test.a.scenario, test.b.scenario] if isinstance(test, Ratio) else [test.cells.scenario])
    are_several = len(endings) > 1
    return tuple(
        f"{f'{name}: ' if are_several else ''}{explain_end(endings[name])}" for name in names if name in endings
    )

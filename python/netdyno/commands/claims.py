"""`netdyno claims`: the verdicts of stored runs side by side, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from netdyno.analysis.claims.across import Across, across
from netdyno.base import quantities
from netdyno.base.errors import UserError
from netdyno.model.verdicts import ClaimVerdict
from netdyno.present.prose import verdicts
from netdyno.present.terminal.console import Console
from netdyno.store import read


def run(names: Sequence[str], results: Path, as_json: bool) -> int:
    """Raises UserError where a run cannot be read, or makes no claim."""
    found = across([read.load(read.find(results, name)) for name in names])
    if not found:
        raise UserError(f"the run {names[0]} has no claims (see: netdyno list claims)")
    if as_json:
        print(json.dumps([_told(one) for one in found], allow_nan=False))
    else:
        Console().print(render(found))
    return 0


def _told(one: Across) -> dict[str, object]:
    each = {run_id: {"verdict": judged.verdict, "here": verdicts.here(judged)} for run_id, judged in one.each}
    return {"id": one.claim.id, "text": one.claim.text, "runs": each, "together": one.together}


def render(found: Sequence[Across]) -> Table:
    """Each claim with the verdict of every run, and where it is about platforms that of all of them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("claim", no_wrap=True, style="bold")
    table.add_column("what was found", overflow="fold")
    for one in found:
        lines = [Text(one.claim.text)]
        for run_id, judged in one.each:
            found_here = verdicts.here(judged)
            lines.append(Text(f"{run_id}: {verdicts.word(judged)}; {found_here}", style="dim"))
        if one.together is not None:
            lines.append(Text(_of_platforms(one.together, one.platforms), style="bold"))
        table.add_row(one.claim.id, Text("\n").join(lines))
    return table


def _of_platforms(together: ClaimVerdict, platforms: int) -> str:
    if platforms < 2:
        return "together: not testable, because all runs were made on one platform; add a run of another"
    on = quantities.plural(platforms, "platform")
    return f"together, on {on}: {verdicts.VERDICT_WORDS[together]}"

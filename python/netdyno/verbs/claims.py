"""`netdyno claims`: the verdicts of stored runs side by side, and the verdict of all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from netdyno.analysis.claims.across import Across, judge_across_runs
from netdyno.kit import quantities
from netdyno.kit.errors import UserError
from netdyno.model.verdicts import ClaimVerdict
from netdyno.present.prose import claim_verdicts
from netdyno.present.terminal.console import Console
from netdyno.store import read


def run(names: Sequence[str], results: Path, as_json: bool) -> int:
    """Show the verdicts. Raises UserError where a run cannot be read, or has no claim."""
    judged_claims = judge_across_runs([read.load(read.find(results, name)) for name in names])
    if not judged_claims:
        raise UserError(f"the run {names[0]} has no claims (see: netdyno list claims)")
    if as_json:
        print(json.dumps([_encode_claim(claim) for claim in judged_claims], allow_nan=False))
    else:
        Console().print(render(judged_claims))
    return 0


def _encode_claim(across_runs: Across) -> dict[str, object]:
    run_verdicts = {
        run_id: {"verdict": judged.verdict, "here": claim_verdicts.describe_outcome(judged)}
        for run_id, judged in across_runs.by_run
    }
    return {
        "id": across_runs.claim.id,
        "text": across_runs.claim.text,
        "runs": run_verdicts,
        "together": across_runs.together,
    }


def render(judged_claims: Sequence[Across]) -> Table:
    """Return each claim with the verdict of every run, and for claims about platforms that of all runs."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("claim", no_wrap=True, style="bold")
    table.add_column("what was found", overflow="fold")
    for across_runs in judged_claims:
        lines = [Text(across_runs.claim.text)]
        for run_id, judged in across_runs.by_run:
            found_here = claim_verdicts.describe_outcome(judged)
            lines.append(Text(f"{run_id}: {claim_verdicts.name_verdict(judged)}; {found_here}", style="dim"))
        if across_runs.together is not None:
            lines.append(Text(_describe_together(across_runs.together, across_runs.platforms), style="bold"))
        table.add_row(across_runs.claim.id, Text("\n").join(lines))
    return table


def _describe_together(together: ClaimVerdict, platforms: int) -> str:
    if platforms < 2:
        return "together: not testable, because all runs were made on one platform; add a run of another"
    count = quantities.plural(platforms, "platform")
    return f"together, on {count}: {claim_verdicts.VERDICT_WORDS[together]}"

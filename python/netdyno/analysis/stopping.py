"""Why the blocks of a scenario ended, where it asks for a precision: from what is stored, by the rule that ended them.
Pure functions of a run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from netdyno.analysis import excluded, measured
from netdyno.analysis.findings import Ending, EndReason
from netdyno.analysis.samples import samples
from netdyno.experiment import blocks
from netdyno.model import transports
from netdyno.model.experiment import Scenario
from netdyno.model.run import Run
from netdyno.statistics import precision, stats
from netdyno.statistics.stats import Pairs

Family = Mapping[tuple[str, str], Pairs]
"""The comparisons of a ranking, each by the names of both."""


def wants_more(run: Run, scenario: Scenario) -> bool:
    """Whether another block would serve the precision that a scenario asks for, with the trials that there are."""
    family = _family(run, scenario)
    return scenario.precision is not None and bool(family) and not _all_settled(family, scenario.precision, run)


def widest_first(run: Run, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Who has most to gain from another block: whose metric has the widest interval, of comparisons that are not beyond
    doubt. How wide an interval is decides, and never what it says: blocks cannot be added until a difference appears.
    Where nothing can be compared yet, the fewest blocks come first."""
    widths = {scenario.name: _widest(run, scenario) for scenario in scenarios}
    return sorted(scenarios, key=lambda one: (-widths[one.name], _blocks(run, one)))


def _widest(run: Run, scenario: Scenario) -> float:
    return max(
        (
            width
            for pairs in _family(run, scenario).values()
            if not precision.is_clear(pairs, width := precision.half_width(pairs))
        ),
        default=0.0,
    )


def _blocks(run: Run, scenario: Scenario) -> int:
    return len({trial.block for trial in run.trials if trial.scenario == scenario.name})


def ending(run: Run, scenario: Scenario) -> Ending | None:
    """Why its blocks ended; None where it asks for no precision."""
    if scenario.precision is None:
        return None
    family = _family(run, scenario)
    widths = {of: precision.half_width(pairs) for of, pairs in family.items()}
    of = max(widths, key=lambda one: widths[one], default=("", ""))
    number = _blocks(run, scenario)
    return Ending(
        why=_why(run, scenario, family, number),
        blocks=number,
        asked=scenario.precision,
        widest=widths.get(of),
        of=of,
        time_budget_s=run.experiment.time_budget_s,
    )


def _why(run: Run, scenario: Scenario, family: Family, number: int) -> EndReason:
    if family and scenario.precision is not None and _all_settled(family, scenario.precision, run):
        return "precise"
    if run.finished_at is None:
        return "unfinished"
    if not family:
        return "alone"
    return "blocks" if number >= blocks.most(scenario) else "time"


def _all_settled(family: Family, asked: float, run: Run) -> bool:
    return all(precision.settled(pairs, asked) for pairs in family.values())


def _family(run: Run, scenario: Scenario) -> Family:
    """The comparisons of its ranking: everybody who has a figure, those that lost more than the bound among themselves.
    Two that share no cell cannot be compared, however many blocks there are."""
    safe = excluded.without(run)
    names = sorted({trial.contestant for trial in safe.trials if trial.scenario == scenario.name})
    figures = samples(safe, scenario, names)
    apart = {
        trial.contestant
        for trial, load in measured.valid(safe, scenario)
        if (transports.share_lost(load) or 0.0) > scenario.loss_bound
    }
    pairs = {
        (a, b): stats.pair(figures[a], figures[b])
        for a, b in itertools.combinations(figures, 2)
        if (a in apart) == (b in apart)
    }
    return {of: one for of, one in pairs.items() if len(one)}

"""How throughput grew with the cores of the server. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netdyno.analysis.found.notices import Scaling, Speedup
from netdyno.analysis.ranking.cells import average_blocks
from netdyno.analysis.trials.split import ScenarioTrials
from netdyno.model.levels import level_key, level_words
from netdyno.model.metrics import METRICS
from netdyno.model.trial import Trial
from netdyno.statistics.scaling import fit_amdahl, fit_gunther

FACTOR = "server-cores"
Throughputs = Mapping[int, Mapping[int, float]]
"""Messages per second by number of cores, then by block."""


def find_scaling(part: ScenarioTrials) -> tuple[Scaling, ...]:
    """Return how each contestant scaled, where it was measured on one core and on more. None where a schedule decides
    the throughput: in an open loop, and in rounds."""
    if FACTOR not in part.scenario.factors or part.scenario.scheduled:
        return ()
    scalings = (
        _describe_scaling(name, at, throughputs, limited)
        for (name, at), (throughputs, limited) in sorted(_collect_throughputs(part).items())
        if 1 in throughputs and 1 not in limited
    )
    return tuple(scaling for scaling in scalings if scaling is not None)


def _collect_throughputs(part: ScenarioTrials) -> dict[tuple[str, str], tuple[Throughputs, frozenset[int]]]:
    """Return throughputs by contestant and its other levels, and the numbers of cores at which the generator was at its
    limit with any contestant."""
    saturated = {cell.level for cell in part.saturated}
    throughputs: dict[tuple[str, str], dict[int, dict[int, float]]] = {}
    limited: dict[tuple[str, str], set[int]] = {}
    for trial, load in part.ranked:
        key = trial.contestant, ", ".join(level_words(*level) for level in trial.levels.items() if level[0] != FACTOR)
        cores = _count_cores(trial)
        figure = METRICS["throughput"].of(trial, load)
        if cores and figure:
            throughputs.setdefault(key, {}).setdefault(cores, {})[trial.block] = figure
        if cores and level_key(trial.levels) in saturated:
            limited.setdefault(key, set()).add(cores)
    return {key: (by_cores, frozenset(limited.get(key, ()))) for key, by_cores in throughputs.items()}


def _count_cores(trial: Trial) -> int | None:
    """Return the cores of the server; None where it had all there were, of an unknown number."""
    cores = trial.levels[FACTOR]
    if isinstance(cores, int):
        return cores
    return len(trial.pinning.server) or None if trial.pinning else None


def _describe_scaling(contestant: str, at: str, throughputs: Throughputs, limited: frozenset[int]) -> Scaling | None:
    """Return None where no block has a throughput on one core and on more."""
    shared = {cores: _compute_ratios(throughputs, [cores]) for cores in sorted(throughputs) if cores > 1}
    averaged = {
        cores: average_blocks({block: ratios[cores] for block, ratios in by_block.items()}, geometric=True)
        for cores, by_block in shared.items()
    }
    speedups = tuple(
        Speedup(cores, ratio, "at least" if cores in limited else "") for cores, ratio in averaged.items() if ratio
    )
    if not speedups:
        return None
    most = max(map(len, shared.values()))
    exact = [entry.cores for entry in speedups if not entry.bound and 2 * len(shared[entry.cores]) >= most]
    blocks = _compute_ratios(throughputs, exact) if exact else {}
    serial = {block: fit_amdahl(ratios) for block, ratios in blocks.items()}
    losses = {block: fit_gunther(ratios) for block, ratios in blocks.items()} if len(exact) > 1 else {}
    return Scaling(
        contestant=contestant,
        at=at,
        speedups=speedups,
        serial=average_blocks(serial, geometric=False),
        contention=average_blocks({block: loss.contention for block, loss in losses.items()}, geometric=False),
        coherency=average_blocks({block: loss.coherency for block, loss in losses.items()}, geometric=False),
    )


def _compute_ratios(throughputs: Throughputs, cores: Sequence[int]) -> dict[int, dict[int, float]]:
    """Return the speedups of each block that has a throughput on one core and on all of `cores`."""
    return {
        block: {count: throughputs[count][block] / single for count in cores}
        for block, single in sorted(throughputs[1].items())
        if all(block in throughputs[count] for count in cores)
    }

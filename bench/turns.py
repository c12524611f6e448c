"""Compares measurements in turns (docs/adr/turns.md) with those of contestants that run alone.

    python bench/turns.py [--same] [--order] [--experiment quick] [--scenario NAME ...] [--contestant NAME ...]
                          [--minutes 10] [--seed 1] [--results DIR] [--runs DIR ...]

--same: every contestant that is there, of `quick` or another experiment, in turns against alone, both in every block
of one run. The ratio with its 90% interval lies within the margin where two one-sided tests at 5% reject every larger
difference.
--order: whether a place in a turn or the contestant before matters: the largest effects on the messages of a slice
(closed loops) and on the CPU of a message, both over whole slices, of the runs of --same and of --runs.

Without any of them, both. --same ends when another batch would not fit into --minutes, after one batch at the least.
--results keeps the runs; $NETDYNO_BUILD names the build. `./netdyno aa` compares contestants with themselves.
"""

from __future__ import annotations

import argparse
import io
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.analysis.ranking import samples
from netdyno.analysis.trials.split import split
from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir
from netdyno.kit.statistics import stats
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import BlockLevel
from netdyno.measure.run import runner
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Experiment
from netdyno.model.levels import level_key
from netdyno.model.run import Run
from netdyno.model.trial import Slice, Trial
from netdyno.present.terminal.display import PlainDisplay
from netdyno.question import experiment as experiments
from netdyno.question.contestants import contestants
from netdyno.store import read, schema

MARGINS = {"throughput": 0.03, "p50": 0.03, "p99": 0.1, "cpu": 0.03}
"""The largest relative difference of each metric between turns and alone."""
LARGEST_EFFECT = 0.01
"""The largest effect allowed to the order within a turn."""
ALONE = "-alone"
"""Added to the name of a scenario whose contestants take no turns."""
BLOCKS_OF_A_BATCH = 2


class SliceRatio(NamedTuple):
    """A ratio with its 90% interval."""

    middle: float
    low: float
    high: float
    blocks: int

    def __str__(self) -> str:
        return f"{self.middle - 1:+8.2%} [{self.low - 1:+7.2%}, {self.high - 1:+7.2%}]"

    def is_within(self, margin: float) -> bool:
        """Whether two one-sided tests at 5% reject a ratio beyond the margin, on the log scale."""
        return 1 / (1 + margin) < self.low and self.high < 1 + margin


def estimate_ratio(log_ratios: Sequence[float], significance: float = 0.1) -> SliceRatio:
    """Return the ratio of independent blocks with the interval by Student's t; infinite for fewer than two. Pure."""
    middle = statistics.fmean(log_ratios)
    count = len(log_ratios)
    half = math.inf
    if count > 1:
        half = stats.student(count - 1, significance) * statistics.stdev(log_ratios) / math.sqrt(count)
    high = math.inf if half > stats.MOST_LOG else math.exp(middle + half)
    return SliceRatio(math.exp(middle), math.exp(middle - half), high, count)


class Batches:
    """Counts down a time limit: another batch begins while the longest so far still fits."""

    def __init__(self, limit_s: float) -> None:
        self.began_s = time.monotonic()
        self.limit_s = limit_s

    @property
    def left_s(self) -> float:
        return self.limit_s - (time.monotonic() - self.began_s)

    def __iter__(self) -> Iterator[int]:
        longest_s = 0.0
        for number in itertools.count():
            if number and self.left_s < longest_s:
                return
            before_s = time.monotonic()
            yield number
            longest_s = max(longest_s, time.monotonic() - before_s)


def measure(experiment: Experiment, servers: Sequence[Contestant], results: Path) -> Run:
    """Run an experiment and return what was stored. Raises SystemExit where it was interrupted."""
    outcome = runner.execute(
        experiment,
        servers,
        results=results,
        build=build_dir(),
        argv=["bench", experiment.name],
        display=PlainDisplay(io.StringIO()),
        foreign_load="count" if os.environ.get("NETDYNO_FOREIGN_LOAD") == "count" else "strike-out",
        trace="never",
    )
    if outcome.interrupted:
        raise SystemExit(outcome.interrupted)
    return read.load(outcome.folder / schema.FILE_NAME)


def load_experiment(
    name: str, scenarios: Sequence[str], names: Sequence[str]
) -> tuple[Experiment, tuple[Contestant, ...]]:
    """Return an experiment, or these scenarios of it, without claims and figures, and its contestants that are there,
    or those with these names. Raises SystemExit where a scenario is unknown, or has fewer than two of them."""
    loaded = experiments.load(experiments.find(name, experiments.find_experiments_folder()))
    if unknown := set(scenarios) - {scenario.name for scenario in loaded.scenarios}:
        raise SystemExit(f"{name} has no scenario {', '.join(sorted(unknown))}")
    built = [server for server in contestants.discover(build=build_dir()) if server.available]
    available = [server for server in built if not names or server.name in names]
    chosen = experiments.choose_contestants(
        loaded, lambda patterns: [server.name for server in _list_matching(available, patterns)]
    )
    kept = tuple(scenario for scenario in chosen.scenarios if not scenarios or scenario.name in scenarios)
    if too_small := [scenario.name for scenario in kept if len(scenario.contestants) < 2]:
        raise SystemExit(f"fewer than two contestants are built: {', '.join(too_small)}")
    chosen_names = {name for scenario in kept for name in scenario.contestants}
    servers = tuple(server for server in available if server.name in chosen_names)
    return msgspec.structs.replace(chosen, scenarios=kept, claims=(), figures=()), servers


def _list_matching(servers: Sequence[Contestant], patterns: Sequence[str]) -> list[Contestant]:
    """Return the servers that a pattern selects, each once; a pattern that none matches is of one that is not there."""
    matching: dict[str, Contestant] = {}
    for pattern in patterns:
        with suppress(UserError):
            matching |= {server.name: server for server in contestants.select(servers, [pattern])}
    return list(matching.values())


# --- in turns and alone -------------------------------------------------------------------------------------------


def add_alone(experiment: Experiment) -> Experiment:
    """Return the experiment with each scenario a second time, without turns. Pure."""
    alone_scenarios = (
        msgspec.structs.replace(scenario, name=f"{scenario.name}{ALONE}", turns="off")
        for scenario in experiment.scenarios
    )
    return msgspec.structs.replace(experiment, scenarios=(*experiment.scenarios, *alone_scenarios))


def collect_log_ratios(run: Run, metric: str) -> dict[tuple[str, str], dict[BlockLevel, float]]:
    """Return the log ratios of turns to alone by scenario and contestant, and by block and level. Pure."""
    by_scenario = {
        part.scenario.name: samples.collect_metric(part.ranked, metric) for part in split(outcomes.judge_run(run))
    }
    log_ratios = {}
    for scenario, in_turns in by_scenario.items():
        alone = by_scenario.get(f"{scenario}{ALONE}", {})
        for name in in_turns.keys() & alone.keys():
            shared = in_turns[name].keys() & alone[name].keys()
            ratios = {cell: math.log(in_turns[name][cell] / alone[name][cell]) for cell in sorted(shared)}
            if ratios:
                log_ratios[scenario, name] = ratios
    return log_ratios


def average_by_block(ratios: Iterable[Mapping[tuple[int, BlockLevel], float]]) -> list[float]:
    """Return the mean of each block of each run over all ratios. Pure."""
    blocks: dict[tuple[int, int], list[float]] = defaultdict(list)
    for mapping in ratios:
        for (number, (block, _)), value in mapping.items():
            blocks[number, block].append(value)
    return [statistics.fmean(values) for values in blocks.values()]


def print_same(runs: Sequence[Run]) -> None:
    """Print turns over alone for every scenario and contestant, and over all contestants together."""
    print("\nSame: in turns / alone, 90% interval; * within the margin by two one-sided tests at 5%")
    margins = ", ".join(f"{metric} {margin:.0%}" for metric, margin in MARGINS.items())
    print(f"margins: {margins}\n{'scenario':10}{'contestant':21}{'metric':12}{'ratio':>28}{'blocks':>8}")
    for metric, margin in MARGINS.items():
        ratios_of: dict[tuple[str, str], dict[tuple[int, BlockLevel], float]] = defaultdict(dict)
        for number, run in enumerate(runs):
            for key, ratios in collect_log_ratios(run, metric).items():
                ratios_of[key] |= {(number, cell): value for cell, value in ratios.items()}
        closed = {scenario.name for scenario in runs[0].experiment.scenarios if scenario.arrivals == "closed"}
        shown = {key: value for key, value in ratios_of.items() if metric != "throughput" or key[0] in closed}
        for scenario in sorted({scenario for scenario, _ in shown}):
            members = {
                name: value for (member_scenario, name), value in sorted(shown.items()) if member_scenario == scenario
            }
            _print_ratio(scenario, "all", metric, margin, average_by_block(members.values()))
            for name, value in members.items():
                _print_ratio(scenario, name, metric, margin, average_by_block([value]))


def _print_ratio(scenario: str, name: str, metric: str, margin: float, log_ratios: Sequence[float]) -> None:
    ratio = estimate_ratio(log_ratios)
    mark = "*" if ratio.is_within(margin) else " "
    print(f"{scenario:10}{name:21}{metric:12}{ratio} {mark}{ratio.blocks:6}")


# --- effects of the order -----------------------------------------------------------------------------------------

SliceGroup = Mapping[str, Sequence[Slice]]
"""The slices of every contestant that stood side by side."""
SliceFigure = Callable[[Slice], float]


def find_groups(runs: Sequence[Run]) -> list[tuple[str, SliceGroup]]:
    """Return the groups whose trials count, each with its scenario. Pure."""
    groups: dict[tuple[object, ...], dict[str, Sequence[Slice]]] = defaultdict(dict)
    for number, run in enumerate(runs):
        for trial in outcomes.judge_run(run).all_trials:
            if trial.slices and trial.status in outcomes.RANKED:
                key = (number, trial.scenario, trial.block, level_key(trial.levels), trial.attempt)
                groups[key][_name_side(trial)] = trial.slices
    return [(str(key[1]), group) for key, group in groups.items() if len(group) > 1]


def _name_side(trial: Trial) -> str:
    return f"{trial.contestant} (twin)" if trial.twin else trial.contestant


def find_effects(group: SliceGroup, figure: SliceFigure) -> dict[tuple[str, str], float]:
    """Return the effects of order within one group, as log ratios: of the first place against the later ones, and of
    each contestant after each other (or after itself, from one turn to the next) against it after the rest. The means
    of turns and of contestants are taken out. Pure."""
    logs = {
        (slice_.turn, name): math.log(value)
        for name, slices in group.items()
        for slice_ in slices
        if slice_.kept and (value := figure(slice_)) > 0
    }
    turns = [turn for turn in {turn for turn, _ in logs} if all((turn, name) in logs for name in group)]
    if len(turns) < 2:
        return {}
    mean_of_turn = {turn: statistics.fmean(logs[turn, name] for name in group) for turn in turns}
    mean_of_name = {name: statistics.fmean(logs[turn, name] for turn in turns) for name in group}
    middle = statistics.fmean(mean_of_turn.values())
    places = {(slice_.turn, slice_.place): name for name, slices in group.items() for slice_ in slices}
    first: list[float] = []
    later: list[float] = []
    after: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (turn, place), name in places.items():
        if turn not in mean_of_turn:
            continue
        residual = logs[turn, name] - mean_of_turn[turn] - mean_of_name[name] + middle
        (later if place else first).append(residual)
        before = places.get((turn, place - 1) if place else (turn - 1, len(group) - 1))
        if before is not None:
            after[name][before].append(residual)
    effects = {("first place", ""): statistics.fmean(first) - statistics.fmean(later)}
    for name, by_before in after.items():
        for before, residuals in by_before.items():
            rest = [value for predecessor, values in by_before.items() if predecessor != before for value in values]
            if rest:
                effects[name, before] = statistics.fmean(residuals) - statistics.fmean(rest)
    return effects


def print_order(runs: Sequence[Run]) -> None:
    """Print the effect of the first place, and the largest effect of the contestant before."""
    groups = find_groups(runs)
    closed = {scenario.name for run in runs for scenario in run.experiment.scenarios if scenario.arrivals == "closed"}
    figures: dict[str, tuple[SliceFigure, list[tuple[str, SliceGroup]]]] = {
        "messages": (lambda slice_: slice_.sent, [(name, group) for name, group in groups if name in closed]),
        "CPU/message": (lambda slice_: slice_.cpu_s / slice_.sent if slice_.sent else 0.0, groups),
    }
    print(f"\nOrder: effects on a slice, 90% interval; * within {LARGEST_EFFECT:.0%}")
    for label, (figure, figure_groups) in figures.items():
        effects_of: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for scenario, group in figure_groups:
            for (name, before), effect in find_effects(group, figure).items():
                effects_of["" if name == "first place" else scenario, name, before].append(effect)
        ratios = {key: estimate_ratio(effects) for key, effects in effects_of.items() if len(effects) >= FEWEST_BLOCKS}
        if not ratios:
            print(f"{label:12} too few groups of slices ({len(figure_groups)})")
            continue
        first = ratios.pop(("", "first place", ""), None)
        if first is not None:
            print(f"{label:12} first place against later: {first} {'*' if first.is_within(LARGEST_EFFECT) else ' '}")
        if ratios:
            (scenario, name, before), largest = max(ratios.items(), key=lambda item: abs(math.log(item[1].middle)))
            different = sum(not ratio.low <= 1 <= ratio.high for ratio in ratios.values())
            within = sum(ratio.is_within(LARGEST_EFFECT) for ratio in ratios.values())
            print(f"{label:12} largest of {len(ratios)}: {largest}, {scenario}: {name} after {before}")
            print(
                f"{label:12} {different} of {len(ratios)} intervals leave out 0 (10% by chance), "
                f"{within} within the margin"
            )


# --- all of it ----------------------------------------------------------------------------------------------------


def run_batches(
    experiment: Experiment, servers: Sequence[Contestant], limit_s: float, seed: int, results: Path
) -> list[Run]:
    """Run an experiment repeatedly, each time with another seed, until the time is up. Exits where nothing ran."""
    runs, batches = [], Batches(limit_s)
    for number in batches:
        seeded = msgspec.structs.replace(
            experiment, seed=seed + number, time_budget_s=None, time_limit_s=max(60.0, batches.left_s)
        )
        runs.append(run := measure(seeded, servers, results))
        if all(trial.load is None for trial in run.trials):
            reasons = [trial.reason for trial in run.trials if trial.reason]
            sys.exit(f"no trial ran: {reasons[0] if reasons else 'none was planned'}")
        print(f"{experiment.name}: {number + 1} runs, {batches.left_s:.0f} s left", file=sys.stderr, flush=True)
    return runs


def main() -> None:
    """Parse the options and run the parts that they name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("same", "order"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--experiment", default="quick")
    parser.add_argument("--scenario", nargs="+", default=[])
    parser.add_argument("--contestant", nargs="+", default=[])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--runs", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    kinds = [name for name in ("same", "order") if getattr(options, name)] or ["same", "order"]
    if kinds == ["order"] and not options.runs:
        parser.error("--order alone needs --runs: it looks at slices that are stored")
    began_s = time.monotonic()
    runs = [read.load(folder / schema.FILE_NAME) for folder in options.runs]
    experiment, servers = load_experiment(options.experiment, options.scenario, options.contestant)
    with tempfile.TemporaryDirectory() as temporary:
        results = options.results or Path(temporary)
        if "same" in kinds:
            same_experiment = add_alone(experiment).with_each(blocks=BLOCKS_OF_A_BATCH, most_blocks=None)
            same_runs = run_batches(
                msgspec.structs.replace(same_experiment, name="same", aa_share=0.0),
                servers,
                60 * options.minutes,
                options.seed,
                results,
            )
            print_same(same_runs)
            runs += same_runs
        if "order" in kinds:
            print_order(runs)
    print(f"\n{(time.monotonic() - began_s) / 60:.1f} minutes, load average {os.getloadavg()[1]:.1f}")


if __name__ == "__main__":
    main()

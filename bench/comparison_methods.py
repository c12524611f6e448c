"""Compares methods of finding differences between contestants: the figures of docs/adr/statistics.md, from simulation.

    python bench/comparison_methods.py [RUNS]                   the tables; a stored machine from TABLE
    python bench/comparison_methods.py --look [RUNS]            what a further look does (measure/run/further_look.py)
    python bench/comparison_methods.py --distil RUN.sqlite...   write TABLE from stored runs

Methods: a run has five contestants on five axes. The ten comparisons of the first axis, which the question is about,
are one family, the forty of the others a second. A method gives each comparison a p-value from the figures of the
blocks, corrected by Bonferroni; as all move with the figures, their intervals hold together just as often as equals get
no false difference. `moderated` is netdyno's (stats.corrected).

Corrections: the width of the intervals of the first axis, by the number of comparisons that are corrected together, for
two to twelve contestants. `chosen` is netdyno's (axes.compare_contestants): as all `pairs`, but where one is better
than each other when it alone is compared with them, that is proven. Beside it stand how often some interval of it does
not hold (`missed`), and how often a bound on the distance behind the best does not (`behind`, stats.most_above)."""

from __future__ import annotations

import csv
import importlib
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.analysis.found.ranking import Decision, Standing
from netdyno.analysis.ranking import answers, axes
from netdyno.kit.statistics.block_counts import FEWEST_BLOCKS
from netdyno.kit.statistics.stats import BORROWED, FEWEST_LENDERS, LEVEL, Comparison, Floats
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.metrics import METRICS
from netdyno.model.observation import ServerObservation
from netdyno.store.read import load

TABLE = Path(__file__).with_name("disturbed_blocks.csv")
CONTESTANTS, AXES = 5, 5
PAIRS = np.array(list(itertools.combinations(range(CONTESTANTS), 2)))
SPREADS = np.array([0.01, 0.05, 0.12, 0.25, 1.0])
"""The spreads of a log ratio between blocks, by axis: CPU time and the p99 of a busy machine are that far apart."""
BLOCKS = (5, 8, 11)
BLOCKS_FOR_POWER = (5, 6, 8, 11)
RATIOS = (1.1, 1.3, 2.0)
SPREADS_FOR_POWER = (0.05, 0.10, 0.25)
AT_ONCE = 50
FEWEST_RUNS_SHARE = 4
"""Power is read from this many times fewer runs."""

Bools = NDArray[np.bool_]
Method = Callable[[Floats], Floats]
"""A function from log figures over (runs, blocks, contestants, axes) to p-values over (runs, comparisons)."""


# --- methods -----------------------------------------------------------------------------------------------------


def special() -> object:
    return importlib.import_module("scipy.special")


def two_sided(t: Floats, freedom: Floats | float) -> Floats:
    return np.asarray(2 * special().stdtr(freedom, -np.abs(t)))  # type: ignore[attr-defined]


def differences(logs: Floats) -> Floats:
    """Return the log ratios of all pairs over (runs, blocks, pairs, axes)."""
    return np.asarray(logs[:, :, PAIRS[:, 0]] - logs[:, :, PAIRS[:, 1]])


def flat(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def student(logs: Floats) -> Floats:
    log_ratios, blocks = differences(logs), logs.shape[1]
    return flat(two_sided(log_ratios.mean(1) / log_ratios.std(1, ddof=1) * math.sqrt(blocks), blocks - 1))


def moderated(logs: Floats) -> Floats:
    """stats.moderated for all runs at once; a test holds the two together."""
    log_ratios, blocks = differences(logs), logs.shape[1]
    variances = log_ratios.var(1, ddof=1)
    others = [np.median(np.delete(variances, number, axis=1), axis=1) for number in range(len(PAIRS))]
    variance = (variances + BORROWED * np.stack(others, axis=1)) / (1 + BORROWED)
    return flat(two_sided(log_ratios.mean(1) / np.sqrt(variance / blocks), (blocks - 1) * (1 + BORROWED)))


def pooled(logs: Floats) -> Floats:
    """Use one variance for all contestants of an axis, from the residuals after blocks and contestants."""
    log_ratios, blocks = differences(logs), logs.shape[1]
    residuals = logs - logs.mean(2, keepdims=True)
    residuals -= residuals.mean(1, keepdims=True)
    freedom = (blocks - 1) * (CONTESTANTS - 1)
    error = np.sqrt(2 * (residuals**2).sum((1, 2)) / freedom / blocks)
    return flat(two_sided(log_ratios.mean(1) / error[:, None], freedom))


def trimmed(logs: Floats) -> Floats:
    """Yuen (1974): the mean without the least and the largest, with the Winsorised variance."""
    log_ratios, blocks = np.sort(differences(logs), axis=1), logs.shape[1]
    kept = blocks - 2
    pulled = log_ratios.copy()
    pulled[:, 0], pulled[:, -1] = log_ratios[:, 1], log_ratios[:, -2]
    error = np.sqrt((blocks - 1) * pulled.var(1, ddof=1) / (kept * (kept - 1)))
    return flat(two_sided(log_ratios[:, 1:-1].mean(1) / error, kept - 1))


def huber(logs: Floats, bend: float = 1.345) -> Floats:
    """Huber's mean with the median deviation for scale, and Student's t for its error."""
    log_ratios, blocks = differences(logs), logs.shape[1]
    middle = np.median(log_ratios, 1, keepdims=True)
    scale = 1.4826 * np.median(np.abs(log_ratios - middle), 1, keepdims=True) * math.sqrt(blocks / (blocks - 1.5))
    for _ in range(30):
        weights = np.minimum(1, bend / np.maximum(np.abs(log_ratios - middle) / scale, 1e-12))
        middle = (weights * log_ratios).sum(1, keepdims=True) / weights.sum(1, keepdims=True)
    residuals = (log_ratios - middle) / scale
    inside = np.maximum((np.abs(residuals) <= bend).mean(1), 1 / blocks)
    error = scale[:, 0] * np.sqrt((np.clip(residuals, -bend, bend) ** 2).sum(1) / (blocks - 1) / blocks) / inside
    return flat(two_sided(middle[:, 0] / error * inside / (inside + (1 - inside) / blocks), blocks - 1))


def flipped(terms: Floats) -> Floats:
    """Return the share of random signs that give a sum as far from 0: exact."""
    runs, blocks, comparisons = terms.shape
    signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=blocks - 1)], dtype=np.float64)
    p_values = np.empty((runs, comparisons))
    for start in range(0, runs, AT_ONCE):
        part = terms[start : start + AT_ONCE].transpose(1, 0, 2).reshape(blocks, -1)
        threshold = np.abs(part.sum(0)) - 1e-12 * np.abs(part).sum(0)
        p_values[start : start + AT_ONCE] = (np.abs(signs @ part) >= threshold).mean(0).reshape(-1, comparisons)
    return p_values


def block_flips(logs: Floats) -> Floats:
    log_ratios = differences(logs)
    return flipped(log_ratios.reshape(*log_ratios.shape[:2], -1))


def signed_ranks(logs: Floats) -> Floats:
    """Wilcoxon's test; Hodges and Lehmann's interval is its inversion."""
    log_ratios = differences(logs)
    ranks = np.abs(log_ratios).argsort(1).argsort(1) + 1.0
    return flipped((np.sign(log_ratios) * ranks).reshape(*log_ratios.shape[:2], -1))


METHODS: dict[str, Method] = {
    "moderated": moderated,
    "t": student,
    "pooled": pooled,
    "trimmed": trimmed,
    "Huber": huber,
    "flips": block_flips,
    "ranks": signed_ranks,
}


def told_apart(p_values: Floats) -> Bools:
    """Return which comparisons are different. They stand pair by pair, and for each pair axis by axis."""
    is_first_axis = np.arange(p_values.shape[1]) % AXES == 0
    family_size = np.where(is_first_axis, is_first_axis.sum(), (~is_first_axis).sum())
    return np.asarray(p_values <= LEVEL / family_size)


# --- machines ----------------------------------------------------------------------------------------------------

DrawSample = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def log_normal(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw noise that is skewed on the log scale, too; mean 0, standard deviation 1."""
    variance = 0.75**2
    spread = math.sqrt(math.expm1(variance) * math.exp(variance))
    return np.asarray((np.exp(random.normal(0, 0.75, shape)) - math.exp(variance / 2)) / spread)


NOISE: dict[str, DrawSample] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "log-normal": log_normal,
    "t, 2 df": lambda random, shape: random.standard_t(2, shape) * 0.826,
    "bursts": lambda random, shape: (
        random.normal(size=shape) + (random.random(shape) < 0.05) * random.uniform(4, 12, shape)
    ),
}
"""The noise of one contestant in one block, with a standard deviation of 1 (t: with the quartiles of that; bursts:
without the bursts)."""


def four_times(logs: Floats, _: np.random.Generator) -> Floats:
    logs[:, :, 0] *= 4
    return logs


def each_its_own(logs: Floats, random: np.random.Generator) -> Floats:
    return np.asarray(logs * np.exp(random.normal(0, 0.7, (len(logs), 1, CONTESTANTS, AXES))))


def opposed(logs: Floats, random: np.random.Generator) -> Floats:
    """Give two contestants good blocks and bad ones in turn."""
    luck = random.normal(size=(*logs.shape[:2], AXES))
    logs[:, :, 0] += luck
    logs[:, :, 1] -= luck
    return logs


def slow(share: float, *, equal_means: bool, spread: float) -> Callable[[Floats, np.random.Generator], Floats]:
    """Make some trials of the first slower by a fifth to four fifths, on all axes alike, at one spread of all axes."""

    def draw(logs: Floats, random: np.random.Generator) -> Floats:
        hit = (random.random(logs.shape[:2]) < share) * random.uniform(0.2, 0.6, logs.shape[:2])
        logs *= spread / SPREADS
        logs[:, :, 0] += (hit - (share * 0.4 if equal_means else 0))[..., None] / (SPREADS / math.sqrt(2))
        return logs

    return draw


def shared_luck(logs: Floats, random: np.random.Generator) -> Floats:
    """Draw the mean of four levels, which a contestant's luck in a block moves together: a correlation of a half."""
    luck = random.normal(size=logs.shape) * math.sqrt(0.5)
    return np.asarray(luck + logs * math.sqrt(0.5 / 4))


BENDS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "one scatters 4 times as far": four_times,
    "each scatters by its own": each_its_own,
    "two have opposite luck": opposed,
    "levels share luck (0.5)": shared_luck,
    "10% slow in one, typical trial equal": slow(0.1, equal_means=False, spread=0.1),
    "10% slow in one, means equal": slow(0.1, equal_means=True, spread=0.1),
    "the same at a spread of 2%": slow(0.1, equal_means=True, spread=0.02),
    "30% slow in one, means equal": slow(0.3, equal_means=True, spread=0.1),
}


def machines() -> dict[str, Callable[[int, int], Floats]]:
    """Return functions from (runs, blocks) to log figures of equal contestants, by name."""

    def make_machine(
        draw: DrawSample, bend: Callable[[Floats, np.random.Generator], Floats] | None
    ) -> Callable[[int, int], Floats]:
        def logs(runs: int, blocks: int) -> Floats:
            random = np.random.default_rng(blocks)
            drawn = draw(random, (runs, blocks, CONTESTANTS, AXES))
            return np.asarray((bend(drawn, random) if bend else drawn) * SPREADS / math.sqrt(2))

        return logs

    machine_of = {name: make_machine(draw, None) for name, draw in NOISE.items()}
    machine_of |= {name: make_machine(NOISE["normal"], bend) for name, bend in BENDS.items()}
    if TABLE.exists():
        machine_of["stored, disturbed machine"] = stored(read())
    return machine_of


# --- stored runs -------------------------------------------------------------------------------------------------

CPU_TICK_S = 0.001
FIGURES = ("rate", "p50", "p99", "cpu", "switches")


def distil(paths: Iterable[Path]) -> list[tuple[str, int, str, list[float]]]:
    """Return question, turn, contestant and the mean log of each figure over the levels. A turn is a block, or of a
    repeated block the first time, the second, ...; invalid trials count, for they show the machine. Whole turns
    only."""
    rows = []
    for number, path in enumerate(paths, 1):
        run = load(path)
        for scenario in run.experiment.scenarios:
            turns: Counter[tuple[int, str, str]] = Counter()
            cells: dict[tuple[int, str], list[Floats]] = {}
            for trial in run.trials:
                if trial.scenario == scenario.name and trial.load and trial.server and trial.load.requests.completed:
                    turns[cell := (trial.block, trial.contestant, level_key(trial.levels))] += 1
                    turn = 100 * trial.block + turns[cell]
                    cells.setdefault((turn, trial.contestant), []).append(figures(trial.load, trial.server))
            levels = max(map(len, cells.values()), default=0)
            rows += [
                (f"{number} {scenario.name}", *cell, [float(log) for log in np.mean(logs, axis=0)])
                for cell, logs in sorted(cells.items())
                if len(logs) == levels
            ]
    return rows


def figures(load: LoadResult, server: ServerObservation) -> Floats:
    """Return the logarithms of FIGURES, in their order."""
    messages = load.requests.completed
    cpu = max(server.cpu_user_s + server.cpu_system_s, CPU_TICK_S)
    switches = server.voluntary_switches + server.involuntary_switches + 1
    response = load.latency.response_ns
    return np.log([messages, response.p50, response.p99, cpu / messages, switches / messages])


def write(rows: Sequence[tuple[str, int, str, list[float]]]) -> None:
    with TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("question", "turn", "contestant", *FIGURES))
        for question, turn, contestant, logs in rows:
            table.writerow((question, turn, contestant, *(f"{log:.4f}" for log in logs)))


def read() -> list[Floats]:
    """Read for each question the logs over (turns, contestants, axes), of turns that have all of its five
    contestants."""
    questions: dict[str, dict[int, dict[str, list[float]]]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            logs_of = questions.setdefault(row["question"], {}).setdefault(int(row["turn"]), {})
            logs_of[row["contestant"]] = [float(row[name]) for name in FIGURES]
    logs = []
    for blocks in questions.values():
        whole_turns = [
            [logs_of[name] for name in sorted(logs_of)][:CONTESTANTS]
            for logs_of in blocks.values()
            if len(logs_of) >= CONTESTANTS
        ]
        if len(whole_turns) >= FEWEST_BLOCKS:
            logs.append(np.array(whole_turns))
    return logs


def stored(questions: Sequence[Floats]) -> Callable[[int, int], Floats]:
    """Draw whole blocks, without each contestant's mean and with names dealt again in each block: the same server under
    five names, with the noise of the machine and what it does to all at once."""

    def logs(runs: int, blocks: int) -> Floats:
        random = np.random.default_rng(blocks)
        drawn_logs = np.empty((runs, blocks, CONTESTANTS, AXES))
        for run in range(runs):
            question = questions[run % len(questions)]
            centred = question - question.mean(0)
            drawn = centred[random.integers(0, len(centred), blocks)]
            names = random.permuted(np.tile(np.arange(CONTESTANTS), (blocks, 1)), axis=1)
            drawn_logs[run] = np.take_along_axis(drawn, names[:, :, None], axis=1)
            drawn_logs[run] += random.normal(0, 1e-4, drawn_logs[run].shape)  # a block drawn twice is no exact count
        return drawn_logs

    return logs


# --- corrections -------------------------------------------------------------------------------------------------

CORRECTIONS = ("all axes", "pairs", "chosen", "Tukey", "with the best")
COUNTS = (2, 3, 5, 12)
BLOCKS_TO_RANK = (6, 8, 10, 15)
LEADS = ((0.02, 1.05), (0.03, 1.05), (0.10, 1.20))
"""The spread of a log ratio between blocks, and the ratio by which one leads."""


def critical(correction: str, contestants: int, freedom: float) -> float:
    """Return the number of standard errors that an interval reaches to each side."""
    pairs = contestants * (contestants - 1) // 2
    if correction == "Tukey":
        ranges = importlib.import_module("scipy.stats").studentized_range
        return float(ranges.ppf(1 - LEVEL, contestants, freedom)) / math.sqrt(2)
    tail = {
        "all axes": LEVEL / 2 / (AXES * pairs),
        "pairs": LEVEL / 2 / pairs,
        "with each other": LEVEL / 2 / (contestants - 1),
        "with the best": LEVEL / (contestants - 1),
    }
    return float(special().stdtrit(freedom, 1 - tail[correction]))  # type: ignore[attr-defined]


def of_one_axis(kind: str, contestants: int, blocks: int, runs: int, lead: float = 0.0) -> Floats:
    """Draw log figures by (runs, blocks, contestants), with a spread of 1 between two; the last one leads."""
    random = np.random.default_rng(blocks)
    logs = NOISE["normal" if kind == "one scatters 4 times as far" else kind](random, (runs, blocks, contestants))
    if kind == "one scatters 4 times as far":
        logs[:, :, 0] *= 4
    logs /= math.sqrt(2)
    logs[:, :, -1] += lead
    return np.asarray(logs)


def compared(logs: Floats) -> tuple[Floats, Floats, float]:
    """Return means and standard errors over (runs, winner, loser), and the degrees of freedom, as stats.corrected
    does."""
    runs, blocks, contestants = logs.shape
    pairs = list(itertools.combinations(range(contestants), 2))
    log_ratios = np.stack([logs[:, :, first] - logs[:, :, second] for first, second in pairs], axis=2)
    variance, freedom = log_ratios.var(1, ddof=1), float(blocks - 1)
    if len(pairs) > FEWEST_LENDERS:
        others = [np.median(np.delete(variance, number, axis=1), axis=1) for number in range(len(pairs))]
        variance = (variance + BORROWED * np.stack(others, axis=1)) / (1 + BORROWED)
        freedom *= 1 + BORROWED
    means, errors = np.zeros((runs, contestants, contestants)), np.ones((runs, contestants, contestants))
    for number, (first, second) in enumerate(pairs):
        means[:, first, second], means[:, second, first] = log_ratios.mean(1)[:, number], -log_ratios.mean(1)[:, number]
        errors[:, first, second] = errors[:, second, first] = np.sqrt(variance[:, number] / blocks)
    return means, errors, freedom


def ranked(logs: Floats, lead: float) -> dict[str, tuple[float, float, float]]:
    """Return for each correction the share of runs in which equals are called different, the last alone is first, and
    the last is not among the first."""
    means, errors, freedom = compared(logs)
    contestants = logs.shape[2]
    equals = range(contestants - 1 if lead else contestants)
    shares = {}
    for correction in CORRECTIONS:
        beats = means > reached(correction, means, errors, freedom)
        first = ~beats.any(1)
        alone = first[:, -1] & (first.sum(1) == 1)
        false = beats[:, equals][:, :, equals].any((1, 2))
        shares[correction] = float(false.mean()), float(alone.mean()), float((~first[:, -1]).mean())
    return shares


def reached(correction: str, means: Floats, errors: Floats, freedom: float) -> Floats:
    """Return the reach of each interval, over (runs, winner, loser)."""
    contestants = means.shape[1]
    if correction != "chosen":
        return critical(correction, contestants, freedom) * errors
    reaches = critical("pairs", contestants, freedom) * errors
    with_each_other = critical("with each other", contestants, freedom) * errors
    not_itself = ~np.eye(contestants, dtype=bool)
    best = ((means > with_each_other) | ~not_itself).all(2)
    reaches[best] = with_each_other[best]
    return np.minimum(reaches, reaches.transpose(0, 2, 1))


def intervals_missed(logs: Floats, lead: float) -> float:
    """Return the share of runs in which some interval does not hold the truth."""
    means, errors, freedom = compared(logs)
    last = np.arange(logs.shape[2]) == logs.shape[2] - 1
    truth = lead * (last[:, None].astype(float) - last[None, :])
    missed = np.abs(means - truth) > reached("chosen", means, errors, freedom) + 1e-12
    return float(missed.any((1, 2)).mean())


def bound_missed(logs: Floats, lead: float) -> float:
    """Return the share of runs in which some contestant is further behind the best than its bound."""
    means, errors, freedom = compared(logs)
    contestants = logs.shape[2]
    bound = means + critical("with the best", contestants, freedom) * errors
    bound[:, range(contestants), range(contestants)] = 0.0
    behind = np.where(np.arange(contestants) == contestants - 1, 0.0, lead)
    return float((bound.max(1) < behind - 1e-12).any(1).mean())


# --- tables ------------------------------------------------------------------------------------------------------


def false_differences(logs: Floats) -> dict[str, tuple[float, float]]:
    """Return the shares of runs in which a method finds some difference between equals: first axis, others."""
    different_by_method = {name: told_apart(method(logs)) for name, method in METHODS.items()}
    is_first_axis = np.arange(len(PAIRS) * AXES) % AXES == 0
    return {
        name: (float(different[:, is_first_axis].any(1).mean()), float(different[:, ~is_first_axis].any(1).mean()))
        for name, different in different_by_method.items()
    }


def power(draw: DrawSample, spread: float, blocks: int, ratio: float, runs: int) -> dict[str, float]:
    """Return how often the first contestant is proven different from each of four equals, on the question's axis."""
    logs = spread / math.sqrt(2) * draw(np.random.default_rng(blocks), (runs, blocks, CONTESTANTS, AXES))
    logs[:, :, 0] += math.log(ratio)
    with_first = np.repeat(PAIRS[:, 0] == 0, AXES) & (np.arange(len(PAIRS) * AXES) % AXES == 0)
    return {name: float(told_apart(method(logs))[:, with_first].mean()) for name, method in METHODS.items()}


def print_methods(runs: int) -> None:
    print(f"{'false differences':38}{'blocks':>7}" + "".join(f"{name:>14}" for name in METHODS))
    for machine, draw in machines().items():
        for blocks in BLOCKS:
            shares = false_differences(draw(runs, blocks))
            row = "".join(f"{first_share:8.1%}/{others_share:5.1%}" for first_share, others_share in shares.values())
            print(f"{machine:38}{blocks:7}{row}", flush=True)
    print(f"{'power':12}{'spread':>8}{'ratio':>7}{'blocks':>7}" + "".join(f"{name:>10}" for name in METHODS))
    for noise, spread, ratio, blocks in itertools.product(
        ("normal", "bursts"), SPREADS_FOR_POWER, RATIOS, BLOCKS_FOR_POWER
    ):
        powers = power(NOISE[noise], spread, blocks, ratio, runs // FEWEST_RUNS_SHARE)
        row = "".join(f"{powers[name]:10.0%}" for name in METHODS)
        print(f"{noise:12}{spread:8.0%}{ratio:7}{blocks:7}{row}", flush=True)


def print_corrections(runs: int) -> None:
    head = "".join(f"{name:>15}" for name in CORRECTIONS)
    print(f"{'equals called different':30}{'count':>6}{'blocks':>7}{head}{'missed':>9}{'behind':>9}")
    for kind in ("normal", "t, 2 df", "log-normal", "bursts", "one scatters 4 times as far"):
        for contestants, blocks in itertools.product(COUNTS, BLOCKS_TO_RANK):
            logs = of_one_axis(kind, contestants, blocks, runs)
            shares = ranked(logs, 0.0)
            row = "".join(f"{shares[name][0]:15.1%}" for name in CORRECTIONS)
            missed = f"{intervals_missed(logs, 0.0):9.1%}{bound_missed(logs, 0.0):9.1%}"
            print(f"{kind:30}{contestants:6}{blocks:7}{row}{missed}", flush=True)
    print(f"{'the leader alone is first':30}{'count':>6}{'blocks':>7}{head}{'missed':>9}{'behind':>9}")
    for (spread, ratio), kind in itertools.product(LEADS, ("normal", "t, 2 df")):
        lead = math.log(ratio) / spread
        for contestants, blocks in itertools.product(COUNTS, BLOCKS_TO_RANK):
            logs = of_one_axis(kind, contestants, blocks, runs, lead)
            shares = ranked(logs, lead)
            row = "".join(f"{shares[name][1]:8.0%} ({shares[name][2]:4.1%})" for name in CORRECTIONS)
            name = f"{kind}, {spread:.0%}, {ratio}"
            missed = f"{intervals_missed(logs, lead):9.1%}{bound_missed(logs, lead):9.1%}"
            print(f"{name:30}{contestants:6}{blocks:7}{row}{missed}", flush=True)


# --- a further look ----------------------------------------------------------------------------------------------

METRIC = "throughput"
SCENARIO = Scenario(name="look", workload="echo", metric=METRIC)
LOOKED_BLOCKS = ((6, 4), (9, 4), (40, 4))
"""The blocks at the end of the budget, and the most that a further look adds: a scenario of `quick` has nine, and a
tenth of the budget is four of them."""


def decide(logs: Floats, level: float) -> tuple[Decision, tuple[Comparison, ...]]:
    """Return netdyno's answer to log figures over (blocks, contestants)."""
    names = [str(number) for number in range(logs.shape[1])]
    samples = {
        name: {(block, ""): math.exp(log) for block, log in enumerate(logs[:, number])}
        for number, name in enumerate(names)
    }
    family = axes.compare_contestants({METRIC: samples}, [names], level)[METRIC]
    ranks, _ = axes.order(names, family, METRICS[METRIC].better)
    standings = [Standing(rank, False, name, math.nan, None, None, 0) for name, rank in ranks.items()]
    return answers.decide(answers.Basis(SCENARIO, standings, family, (), level)), family


def errs(family: Sequence[Comparison], lead: float) -> tuple[bool, bool]:
    """Return whether two equals are called different, and whether some interval does not hold the truth. The last
    contestant leads."""
    last = max(name for comparison in family for name in (comparison.a, comparison.b))
    false = any(comparison.different and last not in (comparison.a, comparison.b) for comparison in family)
    if lead == 0:
        false = any(comparison.different for comparison in family)
    missed = False
    for comparison in family:
        truth = lead * ((comparison.a == last) - (comparison.b == last))
        ends = comparison.interval
        missed |= ends is not None and not math.log(ends.low) <= truth <= math.log(ends.high)
    return false, missed


def look_again(kind: str, contestants: int, spread: float, lead: float, counts: tuple[int, int], runs: int) -> Floats:
    """Return shares of runs: those with a further look, and those that it decides; false differences and missed
    intervals at the budget's end, after a further look, and after one at the whole level."""
    blocks, most_more = counts
    logs = spread * of_one_axis(kind, contestants, blocks + most_more, runs, lead / spread)
    totals = np.zeros(8)
    for run in logs:
        decision, family = decide(run[:blocks], LEVEL)
        before, after, whole, decided = *[errs(family, lead)] * 3, False
        more = decision.blocks_to_settle
        if looked := more is not None and more <= most_more:
            decision, family = decide(run[: blocks + more], answers.halve_for_looks(LEVEL))
            after, decided = errs(family, lead), decision.blocks_to_settle is None
            whole = errs(decide(run[: blocks + more], LEVEL)[1], lead)
        totals += (looked, decided, *before, *after, *whole)
    return np.asarray(totals / runs)


def print_looks(runs: int) -> None:
    headings = ("looked", "decided", "false", "missed", "after: false", "missed", "whole: false", "missed")
    print(
        f"{'noise':30}{'count':>6}{'spread':>8}{'lead':>6}{'blocks':>8}"
        + "".join(f"{heading:>13}" for heading in headings)
    )
    kinds = ("normal", "t, 2 df", "log-normal", "bursts", "one scatters 4 times as far")
    cases = itertools.product(kinds, (2, CONTESTANTS), (0.03, 0.06), (1.0, 1.05), LOOKED_BLOCKS)
    for kind, contestants, spread, ratio, counts in cases:
        shares = look_again(kind, contestants, spread, math.log(ratio), counts, runs)
        row = "".join(f"{share:13.1%}" for share in shares)
        print(f"{kind:30}{contestants:6}{spread:8.0%}{ratio:6}{counts[0]:5}+{counts[1]}{row}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--look"]:
        print_looks(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
    elif sys.argv[1:2] == ["--distil"]:
        write(distil(map(Path, sys.argv[2:])))
    else:
        print_corrections(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
        print_methods(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

"""Which method tells contestants apart best: the figures of docs/adr/statistics.md, from simulation.

    python bench/comparison_methods.py [RUNS]                   the tables; a stored machine from TABLE
    python bench/comparison_methods.py --distil RUN.sqlite...   write TABLE anew from stored runs

Methods: five contestants on five axes, and that is one run. The ten comparisons of the first axis, which the question
is about, are one family, the forty of the others a second. A method gives each comparison a p-value from what the
blocks say, corrected by Bonferroni; as all move with the figures, their intervals hold together just as often as equals
get no false difference. `moderated` is netdyno's (stats.corrected).

Corrections: how wide the intervals of the first axis are, by how many comparisons are corrected together, for two to
twelve contestants. `chosen` is netdyno's (axes.compared): as all `pairs`, but where one is better than each other when
it alone is compared with them, that is proven. Beside it stand how often some interval of it does not hold (`missed`),
and the bound of how far one may be behind the best (`behind`, stats.most_above)."""

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
from netdyno.model.levels import level_key
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import ServerObservation
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.stats import BORROWED, FEWEST_LENDERS, LEVEL, Floats
from netdyno.store.read import load

TABLE = Path(__file__).with_name("disturbed_blocks.csv")
CONTESTANTS, AXES = 5, 5
PAIRS = np.array(list(itertools.combinations(range(CONTESTANTS), 2)))
SPREADS = np.array([0.01, 0.05, 0.12, 0.25, 1.0])
"""Of a log ratio between blocks, axis by axis: CPU time and the p99 of a busy machine are that far apart."""
BLOCKS = (5, 8, 11)
BLOCKS_FOR_POWER = (5, 6, 8, 11)
RATIOS = (1.1, 1.3, 2.0)
SPREADS_FOR_POWER = (0.05, 0.10, 0.25)
AT_ONCE = 50
FEWEST_RUNS_SHARE = 4
"""Power is read from so many times fewer runs."""

Bools = NDArray[np.bool_]
Method = Callable[[Floats], Floats]
"""From log figures over (runs, blocks, contestants, axes) to p-values over (runs, comparisons)."""


# --- methods -----------------------------------------------------------------------------------------------------


def special() -> object:
    return importlib.import_module("scipy.special")


def two_sided(t: Floats, freedom: Floats | float) -> Floats:
    return np.asarray(2 * special().stdtr(freedom, -np.abs(t)))  # type: ignore[attr-defined]


def differences(logs: Floats) -> Floats:
    """Over (runs, blocks, pairs, axes)."""
    return np.asarray(logs[:, :, PAIRS[:, 0]] - logs[:, :, PAIRS[:, 1]])


def flat(values: Floats) -> Floats:
    return values.reshape(len(values), -1)


def student(logs: Floats) -> Floats:
    found, blocks = differences(logs), logs.shape[1]
    return flat(two_sided(found.mean(1) / found.std(1, ddof=1) * math.sqrt(blocks), blocks - 1))


def moderated(logs: Floats) -> Floats:
    """stats.moderated for all runs at once; a test holds the two together."""
    found, blocks = differences(logs), logs.shape[1]
    own = found.var(1, ddof=1)
    others = [np.median(np.delete(own, number, axis=1), axis=1) for number in range(len(PAIRS))]
    variance = (own + BORROWED * np.stack(others, axis=1)) / (1 + BORROWED)
    return flat(two_sided(found.mean(1) / np.sqrt(variance / blocks), (blocks - 1) * (1 + BORROWED)))


def pooled(logs: Floats) -> Floats:
    """One variance for all contestants of an axis, from what is left after blocks and contestants."""
    found, blocks = differences(logs), logs.shape[1]
    left = logs - logs.mean(2, keepdims=True)
    left -= left.mean(1, keepdims=True)
    freedom = (blocks - 1) * (CONTESTANTS - 1)
    error = np.sqrt(2 * (left**2).sum((1, 2)) / freedom / blocks)
    return flat(two_sided(found.mean(1) / error[:, None], freedom))


def trimmed(logs: Floats) -> Floats:
    """Yuen (1974): the mean without the least and the largest, with the Winsorised variance."""
    found, blocks = np.sort(differences(logs), axis=1), logs.shape[1]
    kept = blocks - 2
    pulled = found.copy()
    pulled[:, 0], pulled[:, -1] = found[:, 1], found[:, -2]
    error = np.sqrt((blocks - 1) * pulled.var(1, ddof=1) / (kept * (kept - 1)))
    return flat(two_sided(found[:, 1:-1].mean(1) / error, kept - 1))


def huber(logs: Floats, bend: float = 1.345) -> Floats:
    """Huber's mean with the median deviation for scale, and Student's t for its error."""
    found, blocks = differences(logs), logs.shape[1]
    middle = np.median(found, 1, keepdims=True)
    scale = 1.4826 * np.median(np.abs(found - middle), 1, keepdims=True) * math.sqrt(blocks / (blocks - 1.5))
    for _ in range(30):
        weights = np.minimum(1, bend / np.maximum(np.abs(found - middle) / scale, 1e-12))
        middle = (weights * found).sum(1, keepdims=True) / weights.sum(1, keepdims=True)
    left = (found - middle) / scale
    inside = np.maximum((np.abs(left) <= bend).mean(1), 1 / blocks)
    error = scale[:, 0] * np.sqrt((np.clip(left, -bend, bend) ** 2).sum(1) / (blocks - 1) / blocks) / inside
    return flat(two_sided(middle[:, 0] / error * inside / (inside + (1 - inside) / blocks), blocks - 1))


def flipped(terms: Floats) -> Floats:
    """How often signs by chance give a sum as far from 0: exact."""
    runs, blocks, comparisons = terms.shape
    signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=blocks - 1)], dtype=np.float64)
    p_values = np.empty((runs, comparisons))
    for start in range(0, runs, AT_ONCE):
        part = terms[start : start + AT_ONCE].transpose(1, 0, 2).reshape(blocks, -1)
        threshold = np.abs(part.sum(0)) - 1e-12 * np.abs(part).sum(0)
        p_values[start : start + AT_ONCE] = (np.abs(signs @ part) >= threshold).mean(0).reshape(-1, comparisons)
    return p_values


def block_flips(logs: Floats) -> Floats:
    found = differences(logs)
    return flipped(found.reshape(*found.shape[:2], -1))


def signed_ranks(logs: Floats) -> Floats:
    """Wilcoxon's test, of which Hodges and Lehmann's interval is the inversion."""
    found = differences(logs)
    ranks = np.abs(found).argsort(1).argsort(1) + 1.0
    return flipped((np.sign(found) * ranks).reshape(*found.shape[:2], -1))


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
    """Comparisons stand pair by pair, and of each pair axis by axis."""
    first = np.arange(p_values.shape[1]) % AXES == 0
    among = np.where(first, first.sum(), (~first).sum())
    return np.asarray(p_values <= LEVEL / among)


# --- machines ----------------------------------------------------------------------------------------------------

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def log_normal(random: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Skewed on the log scale, too; mean 0, standard deviation 1."""
    variance = 0.75**2
    spread = math.sqrt(math.expm1(variance) * math.exp(variance))
    return np.asarray((np.exp(random.normal(0, 0.75, shape)) - math.exp(variance / 2)) / spread)


NOISE: dict[str, Draw] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "log-normal": log_normal,
    "t, 2 df": lambda random, shape: random.standard_t(2, shape) * 0.826,
    "bursts": lambda random, shape: (
        random.normal(size=shape) + (random.random(shape) < 0.05) * random.uniform(4, 12, shape)
    ),
}
"""Of one contestant in one block, with a standard deviation of 1 (of t: the quartiles of that; of bursts: without)."""


def four_times(logs: Floats, _: np.random.Generator) -> Floats:
    logs[:, :, 0] *= 4
    return logs


def each_its_own(logs: Floats, random: np.random.Generator) -> Floats:
    return np.asarray(logs * np.exp(random.normal(0, 0.7, (len(logs), 1, CONTESTANTS, AXES))))


def opposed(logs: Floats, random: np.random.Generator) -> Floats:
    """Two contestants have good blocks and bad ones in turn."""
    luck = random.normal(size=(*logs.shape[:2], AXES))
    logs[:, :, 0] += luck
    logs[:, :, 1] -= luck
    return logs


def slow(share: float, *, equal_means: bool, spread: float) -> Callable[[Floats, np.random.Generator], Floats]:
    """Some trials of the first are slower by a fifth to four fifths, on all axes alike, at one spread of all axes."""

    def draw(logs: Floats, random: np.random.Generator) -> Floats:
        hit = (random.random(logs.shape[:2]) < share) * random.uniform(0.2, 0.6, logs.shape[:2])
        logs *= spread / SPREADS
        logs[:, :, 0] += (hit - (share * 0.4 if equal_means else 0))[..., None] / (SPREADS / math.sqrt(2))
        return logs

    return draw


def shared_luck(logs: Floats, random: np.random.Generator) -> Floats:
    """Four levels, which a contestant's luck in a block moves together: a correlation of a half."""
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
    """Log figures of equal contestants by (runs, blocks)."""

    def made(draw: Draw, bend: Callable[[Floats, np.random.Generator], Floats] | None) -> Callable[[int, int], Floats]:
        def logs(runs: int, blocks: int) -> Floats:
            random = np.random.default_rng(blocks)
            found = draw(random, (runs, blocks, CONTESTANTS, AXES))
            return np.asarray((bend(found, random) if bend else found) * SPREADS / math.sqrt(2))

        return logs

    found = {name: made(draw, None) for name, draw in NOISE.items()}
    found |= {name: made(NOISE["normal"], bend) for name, bend in BENDS.items()}
    if TABLE.exists():
        found["stored, disturbed machine"] = stored(read())
    return found


# --- stored runs -------------------------------------------------------------------------------------------------

CPU_TICK_S = 0.001
FIGURES = ("rate", "p50", "p99", "cpu", "switches")


def distil(paths: Iterable[Path]) -> list[tuple[str, int, str, list[float]]]:
    """By question, turn and contestant: the mean log of each figure over the levels. A turn is a block, or of a block
    that was made again the first time, the second, ...; what was struck out counts, for it is the machine that is
    wanted here. Turns that are whole only."""
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
    """In the order of FIGURES, as logarithms."""
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
            table.writerow((question, turn, contestant, *(f"{one:.4f}" for one in logs)))


def read() -> list[Floats]:
    """By question the logs over (turns, contestants, axes), of turns that have all of its five contestants."""
    questions: dict[str, dict[int, dict[str, list[float]]]] = {}
    with TABLE.open(newline="") as file:
        for row in csv.DictReader(file):
            of = questions.setdefault(row["question"], {}).setdefault(int(row["turn"]), {})
            of[row["contestant"]] = [float(row[name]) for name in FIGURES]
    found = []
    for blocks in questions.values():
        whole = [[of[name] for name in sorted(of)][:CONTESTANTS] for of in blocks.values() if len(of) >= CONTESTANTS]
        if len(whole) >= FEWEST_BLOCKS:
            found.append(np.array(whole))
    return found


def stored(questions: Sequence[Floats]) -> Callable[[int, int], Floats]:
    """Blocks drawn whole, each contestant's mean taken out and names dealt anew in each block: the same server under
    five names, with the noise of the machine and what it does to all at once."""

    def logs(runs: int, blocks: int) -> Floats:
        random = np.random.default_rng(blocks)
        found = np.empty((runs, blocks, CONTESTANTS, AXES))
        for run in range(runs):
            one = questions[run % len(questions)]
            centred = one - one.mean(0)
            drawn = centred[random.integers(0, len(centred), blocks)]
            names = random.permuted(np.tile(np.arange(CONTESTANTS), (blocks, 1)), axis=1)
            found[run] = np.take_along_axis(drawn, names[:, :, None], axis=1)
            found[run] += random.normal(0, 1e-4, found[run].shape)  # a block drawn twice is no exact count
        return found

    return logs


# --- corrections -------------------------------------------------------------------------------------------------

CORRECTIONS = ("all axes", "pairs", "chosen", "Tukey", "with the best")
COUNTS = (2, 3, 5, 12)
BLOCKS_TO_RANK = (6, 8, 10, 15)
LEADS = ((0.02, 1.05), (0.03, 1.05), (0.10, 1.20))
"""The spread of a log ratio between blocks, and the ratio by which one leads."""


def critical(correction: str, contestants: int, freedom: float) -> float:
    """How many standard errors an interval reaches to each side."""
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
    """Log figures by (runs, blocks, contestants), with a spread of 1 between two; the last one leads."""
    random = np.random.default_rng(blocks)
    logs = NOISE["normal" if kind == "one scatters 4 times as far" else kind](random, (runs, blocks, contestants))
    if kind == "one scatters 4 times as far":
        logs[:, :, 0] *= 4
    logs /= math.sqrt(2)
    logs[:, :, -1] += lead
    return np.asarray(logs)


def compared(logs: Floats) -> tuple[Floats, Floats, float]:
    """Means and standard errors over (runs, winner, loser), and the degrees of freedom, as stats.corrected has them."""
    runs, blocks, contestants = logs.shape
    pairs = list(itertools.combinations(range(contestants), 2))
    found = np.stack([logs[:, :, a] - logs[:, :, b] for a, b in pairs], axis=2)
    variance, freedom = found.var(1, ddof=1), float(blocks - 1)
    if len(pairs) > FEWEST_LENDERS:
        others = [np.median(np.delete(variance, number, axis=1), axis=1) for number in range(len(pairs))]
        variance = (variance + BORROWED * np.stack(others, axis=1)) / (1 + BORROWED)
        freedom *= 1 + BORROWED
    means, errors = np.zeros((runs, contestants, contestants)), np.ones((runs, contestants, contestants))
    for number, (a, b) in enumerate(pairs):
        means[:, a, b], means[:, b, a] = found.mean(1)[:, number], -found.mean(1)[:, number]
        errors[:, a, b] = errors[:, b, a] = np.sqrt(variance[:, number] / blocks)
    return means, errors, freedom


def ranked(logs: Floats, lead: float) -> dict[str, tuple[float, float, float]]:
    """Of each correction: in how many runs equals are called different, the last alone is first, and the last is not
    among the first."""
    means, errors, freedom = compared(logs)
    contestants = logs.shape[2]
    equals = range(contestants - 1 if lead else contestants)
    found = {}
    for correction in CORRECTIONS:
        beats = means > reached(correction, means, errors, freedom)
        first = ~beats.any(1)
        alone = first[:, -1] & (first.sum(1) == 1)
        false = beats[:, equals][:, :, equals].any((1, 2))
        found[correction] = float(false.mean()), float(alone.mean()), float((~first[:, -1]).mean())
    return found


def reached(correction: str, means: Floats, errors: Floats, freedom: float) -> Floats:
    """How far each interval reaches, over (runs, winner, loser)."""
    contestants = means.shape[1]
    if correction != "chosen":
        return critical(correction, contestants, freedom) * errors
    found = critical("pairs", contestants, freedom) * errors
    with_each = critical("with each other", contestants, freedom) * errors
    others = ~np.eye(contestants, dtype=bool)
    best = ((means > with_each) | ~others).all(2)
    found[best] = with_each[best]
    return np.minimum(found, found.transpose(0, 2, 1))


def intervals_missed(logs: Floats, lead: float) -> float:
    """In how many runs some interval does not hold the truth."""
    means, errors, freedom = compared(logs)
    last = np.arange(logs.shape[2]) == logs.shape[2] - 1
    truth = lead * (last[:, None].astype(float) - last[None, :])
    far = np.abs(means - truth) > reached("chosen", means, errors, freedom) + 1e-12
    return float(far.any((1, 2)).mean())


def bound_missed(logs: Floats, lead: float) -> float:
    """In how many runs some contestant is further behind the best than its bound says."""
    means, errors, freedom = compared(logs)
    contestants = logs.shape[2]
    most = means + critical("with the best", contestants, freedom) * errors
    most[:, range(contestants), range(contestants)] = 0.0
    behind = np.where(np.arange(contestants) == contestants - 1, 0.0, lead)
    return float((most.max(1) < behind - 1e-12).any(1).mean())


# --- tables ------------------------------------------------------------------------------------------------------


def false_differences(logs: Floats) -> dict[str, tuple[float, float]]:
    """In how many runs a method finds some difference between equals on the first axis, and on the others."""
    apart = {name: told_apart(method(logs)) for name, method in METHODS.items()}
    first = np.arange(len(PAIRS) * AXES) % AXES == 0
    return {
        name: (float(told[:, first].any(1).mean()), float(told[:, ~first].any(1).mean()))
        for name, told in apart.items()
    }


def power(draw: Draw, spread: float, blocks: int, ratio: float, runs: int) -> dict[str, float]:
    """How often the first contestant is told from each of four equal others on the axis that the question is about."""
    logs = spread / math.sqrt(2) * draw(np.random.default_rng(blocks), (runs, blocks, CONTESTANTS, AXES))
    logs[:, :, 0] += math.log(ratio)
    with_first = np.repeat(PAIRS[:, 0] == 0, AXES) & (np.arange(len(PAIRS) * AXES) % AXES == 0)
    return {name: float(told_apart(method(logs))[:, with_first].mean()) for name, method in METHODS.items()}


def print_methods(runs: int) -> None:
    print(f"{'false differences':38}{'blocks':>7}" + "".join(f"{name:>14}" for name in METHODS))
    for machine, draw in machines().items():
        for blocks in BLOCKS:
            found = false_differences(draw(runs, blocks))
            row = "".join(f"{own:8.1%}/{others:5.1%}" for own, others in found.values())
            print(f"{machine:38}{blocks:7}{row}", flush=True)
    print(f"{'power':12}{'spread':>8}{'ratio':>7}{'blocks':>7}" + "".join(f"{name:>10}" for name in METHODS))
    for noise, spread, ratio, blocks in itertools.product(
        ("normal", "bursts"), SPREADS_FOR_POWER, RATIOS, BLOCKS_FOR_POWER
    ):
        told = power(NOISE[noise], spread, blocks, ratio, runs // FEWEST_RUNS_SHARE)
        row = "".join(f"{told[name]:10.0%}" for name in METHODS)
        print(f"{noise:12}{spread:8.0%}{ratio:7}{blocks:7}{row}", flush=True)


def print_corrections(runs: int) -> None:
    head = "".join(f"{name:>15}" for name in CORRECTIONS)
    print(f"{'equals called different':30}{'count':>6}{'blocks':>7}{head}{'missed':>9}{'behind':>9}")
    for kind in ("normal", "t, 2 df", "log-normal", "bursts", "one scatters 4 times as far"):
        for contestants, blocks in itertools.product(COUNTS, BLOCKS_TO_RANK):
            logs = of_one_axis(kind, contestants, blocks, runs)
            told = ranked(logs, 0.0)
            row = "".join(f"{told[name][0]:15.1%}" for name in CORRECTIONS)
            missed = f"{intervals_missed(logs, 0.0):9.1%}{bound_missed(logs, 0.0):9.1%}"
            print(f"{kind:30}{contestants:6}{blocks:7}{row}{missed}", flush=True)
    print(f"{'the leader alone is first':30}{'count':>6}{'blocks':>7}{head}{'missed':>9}{'behind':>9}")
    for (spread, ratio), kind in itertools.product(LEADS, ("normal", "t, 2 df")):
        lead = math.log(ratio) / spread
        for contestants, blocks in itertools.product(COUNTS, BLOCKS_TO_RANK):
            logs = of_one_axis(kind, contestants, blocks, runs, lead)
            told = ranked(logs, lead)
            row = "".join(f"{told[name][1]:8.0%} ({told[name][2]:4.1%})" for name in CORRECTIONS)
            name = f"{kind}, {spread:.0%}, {ratio}"
            missed = f"{intervals_missed(logs, lead):9.1%}{bound_missed(logs, lead):9.1%}"
            print(f"{name:30}{contestants:6}{blocks:7}{row}{missed}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--distil"]:
        write(distil(map(Path, sys.argv[2:])))
    else:
        print_corrections(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
        print_methods(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

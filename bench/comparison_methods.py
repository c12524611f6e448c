"""Which method tells contestants apart best: the figures of docs/measurements/comparisons.md, from simulation.

    python bench/comparison_methods.py [RUNS]                   the tables; a stored machine from TABLE
    python bench/comparison_methods.py --distil RUN.sqlite...   write TABLE anew from stored runs

Five contestants on five axes are 50 comparisons in one correction, and that is one run. A method gives each comparison
a p-value from what the blocks say; all but `max t` are corrected by Bonferroni, and as all move with the figures, their
intervals hold together just as often as equals get no false difference. `moderated` is netdyno's (stats.corrected)."""

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
from netdyno.statistics.stats import BORROWED, LEVEL, Floats
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
RESAMPLES = 400
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
    return np.asarray(p_values <= LEVEL / p_values.shape[1])


def told_by_holm(p_values: Floats) -> Bools:
    """Step by step. An interval at the level at which each was tested agrees with it, and holds less often."""
    order = p_values.argsort(1)
    steps = p_values.shape[1] - np.arange(p_values.shape[1])
    passed = np.logical_and.accumulate(np.take_along_axis(p_values, order, 1) * steps <= LEVEL, axis=1)
    result = np.zeros_like(passed)
    np.put_along_axis(result, order, passed, 1)
    return result


def told_by_largest_t(logs: Floats) -> Bools:
    """Bootstrap over whole blocks of the largest t of all comparisons."""
    blocks = logs.shape[1]
    found = differences(logs).reshape(len(logs), blocks, -1)
    drawn = np.random.default_rng(1).multinomial(blocks, [1 / blocks] * blocks, size=RESAMPLES).astype(np.float64)
    apart = np.zeros((len(found), found.shape[2]), dtype=bool)
    for number, one in enumerate(found):
        centred = one - one.mean(0)
        means = drawn @ centred / blocks
        variances = np.maximum((drawn @ centred**2 / blocks - means**2) * blocks / (blocks - 1), 1e-30)
        largest = np.quantile((np.abs(means) / np.sqrt(variances / blocks)).max(1), 1 - LEVEL)
        apart[number] = np.abs(one.mean(0)) / (one.std(0, ddof=1) / math.sqrt(blocks)) > largest
    return apart


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


# --- tables ------------------------------------------------------------------------------------------------------


def false_differences(logs: Floats) -> dict[str, float]:
    """In how many runs a method finds some difference between equals."""
    found = {name: float(told_apart(method(logs)).any(1).mean()) for name, method in METHODS.items()}
    some = logs[: len(logs) // FEWEST_RUNS_SHARE]
    return found | {"max t": float(told_by_largest_t(some).any(1).mean())}


def power(draw: Draw, spread: float, blocks: int, ratio: float, runs: int) -> dict[str, float]:
    """How often the first contestant is told from each of four equal others."""
    logs = spread / math.sqrt(2) * draw(np.random.default_rng(blocks), (runs, blocks, CONTESTANTS, AXES))
    logs[:, :, 0] += math.log(ratio)
    with_first = np.repeat(PAIRS[:, 0] == 0, AXES)
    found = {name: float(told_apart(method(logs))[:, with_first].mean()) for name, method in METHODS.items()}
    holm = float(told_by_holm(moderated(logs))[:, with_first].mean())
    return found | {"max t": float(told_by_largest_t(logs[:AT_ONCE])[:, with_first].mean()), "Holm": holm}


def held_by_holm(runs: int) -> float:
    """How often intervals at Holm's levels hold together where half of the comparisons differ."""
    logs = 0.07 * np.random.default_rng(1).normal(size=(runs, 8, CONTESTANTS, AXES))
    p_values = moderated(logs)
    moved = logs.copy()
    moved[:, :, 0] += 5
    apart = told_by_holm(moderated(moved))
    order = np.where(apart, moderated(moved), 2).argsort(1).argsort(1)
    among = p_values.shape[1] - np.where(apart, order, apart.sum(1, keepdims=True))
    return float(1 - (p_values <= LEVEL / among).any(1).mean())


def main(runs: int) -> None:
    names = [*METHODS, "max t", "Holm"]
    print(f"{'false differences':38}{'blocks':>7}" + "".join(f"{name:>10}" for name in names[:-1]))
    for machine, draw in machines().items():
        for blocks in BLOCKS:
            found = false_differences(draw(runs, blocks))
            print(f"{machine:38}{blocks:7}" + "".join(f"{found[name]:10.1%}" for name in names[:-1]), flush=True)
    print(f"intervals at Holm's levels that hold together: {held_by_holm(runs):.1%}")
    print(f"{'power':12}{'spread':>8}{'ratio':>7}{'blocks':>7}" + "".join(f"{name:>10}" for name in names))
    for noise, spread, ratio, blocks in itertools.product(
        ("normal", "bursts"), SPREADS_FOR_POWER, RATIOS, BLOCKS_FOR_POWER
    ):
        told = power(NOISE[noise], spread, blocks, ratio, runs // FEWEST_RUNS_SHARE)
        row = "".join(f"{told[name]:10.0%}" for name in names)
        print(f"{noise:12}{spread:8.0%}{ratio:7}{blocks:7}{row}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--distil"]:
        write(distil(map(Path, sys.argv[2:])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)

"""Counts how often a run answers right: six servers, of which one is equal to the first and four are worse by a planted
amount, within the time of one scenario of `quick`, in turns and with turns = "off"; --turns leaves one of these out.

    python bench/answers.py [--seconds 70] [--runs 20] [--minutes 10] [--only cpu p99] [--turns on off]
                            [--disturbed] [--seed 1] [--server PATH] [--results DIR]

cpu: a closed loop of 10 connections; a message costs 100 us of work, and 2, 5, 10 and 20% more. The scenario is about
throughput and CPU per message. p99: 5000 messages a second over 100 connections; two in a hundred wait 2 ms, and 10, 25
and 50% longer; of the last server, one more in a hundred waits 10 ms ("1 in 100"). The scenario is about p99. For each
planted difference to the first server it prints the share of runs that proved it, and that proved its opposite; the
median of the measured ratio, and the median of half the interval's width. Every difference of the equal server is
wrong.

The settings and the scenarios take turns, so that a change of the machine meets all alike; it ends when another round
would not fit into --minutes, after one round at the least. --disturbed runs bench/disturb.py beside each run, and
$NETDYNO_FOREIGN_LOAD decides about disturbed trials. $NETDYNO_BUILD names the build.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))
from turns import Batches, measure

from netdyno.analysis.analysis import analyse
from netdyno.kit.paths import build_dir
from netdyno.kit.statistics.stats import Comparison
from netdyno.model.contestant import Contestant, Own
from netdyno.model.experiment import Experiment, OnOff, Scenario
from netdyno.model.run import Run
from netdyno.question.contestants import own

BASE = "plain"
WORK_NS, LATE_US, RARE_US = 100_000, 2000, 10_000
SIZE = 64
"""Bytes of a message, as in bench/planted_server.cpp."""
EQUAL = "equal"
PLANTED: Mapping[str, Mapping[str, tuple[int, int, int]]] = {
    "cpu": {
        BASE: (WORK_NS, 0, 0),
        EQUAL: (WORK_NS, 0, 0),
        "2-percent": (WORK_NS * 102 // 100, 0, 0),
        "5-percent": (WORK_NS * 105 // 100, 0, 0),
        "10-percent": (WORK_NS * 110 // 100, 0, 0),
        "20-percent": (WORK_NS * 120 // 100, 0, 0),
    },
    "p99": {
        BASE: (0, LATE_US, 0),
        EQUAL: (0, LATE_US, 0),
        "10-percent": (0, LATE_US * 110 // 100, 0),
        "25-percent": (0, LATE_US * 125 // 100, 0),
        "50-percent": (0, LATE_US * 150 // 100, 0),
        "1-in-100": (0, LATE_US, RARE_US),
    },
}
"""The servers of each question, with the arguments of bench/planted_server.cpp."""
METRICS = {"cpu": ("throughput", "cpu"), "p99": ("p99",)}
WORSE = {"throughput": "lower", "cpu": "higher", "p99": "higher"}
TURNS: tuple[OnOff, ...] = ("on", "off")
DISTURB = Path(__file__).with_name("disturb.py")
MOST_DISTURBED_S = 1200


class RunVerdict(NamedTuple):
    """The result of one run for a server against the first: `ratio` is its metric over the first's."""

    ratio: float
    half_width: float
    different: bool

    def is_right(self, metric: str) -> bool:
        """Whether the server is proven worse, as planted."""
        return self.different and (self.ratio > 1) == (WORSE[metric] == "higher")


class Summary(NamedTuple):
    """The counts of right and wrong decisions over many runs, and the medians of ratio and half width."""

    runs: int
    right: int
    wrong: int
    ratio: float
    half_width: float


def summarise(verdicts: Sequence[RunVerdict], metric: str, *, equal: bool = False) -> Summary:
    """Count the decisions of the runs. Of equal servers every difference is wrong. Pure."""
    ratios = [verdict.ratio for verdict in verdicts if not math.isnan(verdict.ratio)]
    right = 0 if equal else sum(verdict.is_right(metric) for verdict in verdicts)
    return Summary(
        runs=len(verdicts),
        right=right,
        wrong=sum(verdict.different for verdict in verdicts) - right,
        ratio=statistics.median(ratios) if ratios else math.nan,
        half_width=statistics.median(verdict.half_width for verdict in verdicts),
    )


def find_verdict(comparison: Comparison, base: str) -> RunVerdict:
    """Return a comparison as a verdict on the side that is not the base. Pure."""
    ratio = comparison.ratio if comparison.b == base else 1 / comparison.ratio
    interval = comparison.interval
    half_width = math.sqrt(interval.high / interval.low) - 1 if interval is not None and interval.low > 0 else math.inf
    return RunVerdict(ratio, half_width, comparison.different)


def find_verdicts(run: Run, question: str) -> dict[tuple[str, str], RunVerdict]:
    """Return the verdicts on each planted server by name and metric. A server that was not compared is
    undecided. Pure."""
    (findings,) = analyse(run).scenarios
    undecided = RunVerdict(math.nan, math.inf, different=False)
    verdicts = {(name, metric): undecided for metric in METRICS[question] for name in PLANTED[question] if name != BASE}
    for axis in findings.axes:
        for comparison in axis.comparisons:
            if comparison.axis in METRICS[question] and BASE in (comparison.a, comparison.b):
                verdicts[comparison.b if comparison.a == BASE else comparison.a, comparison.axis] = find_verdict(
                    comparison, BASE
                )
    return verdicts


def make_experiment(question: str, turns: OnOff, seconds: float, seed: int) -> Experiment:
    """Return the experiment of one run: that of a question of `quick`, with its blocks and a share of its time.
    Pure."""
    load = (
        {"connections": 10, "metric": "throughput"}
        if question == "cpu"
        else {"connections": 100, "arrivals": "poisson", "rate": 5000.0, "metric": "p99"}
    )
    plain = Scenario(
        name=question,
        workload="echo",
        contestants=tuple(PLANTED[question]),
        blocks=6,
        most_blocks=60,
        warmup_s=0.1,
        duration_s=0.4,
        timeout_s=5.0,
        size=SIZE,
        turns=turns,
    )
    return Experiment(
        name=f"answers-{question}-{turns}",
        question="Which one is worse?",
        scenarios=(msgspec.structs.replace(plain, **load),),
        seed=seed,
        time_budget_s=seconds,
        time_limit_s=2 * seconds,
    )


def make_servers(program: Path, question: str) -> tuple[Contestant, ...]:
    """Return the planted servers as a user's own."""
    lines = [shlex.join([str(program), "{port}", *map(str, arguments)]) for arguments in PLANTED[question].values()]
    return own.make_contestants([Own(command=line, workload="echo") for line in lines], list(PLANTED[question]), [])


@contextmanager
def disturb_machine(seed: int, *, is_on: bool) -> Iterator[None]:
    """Run bench/disturb.py within the context, if `is_on`. Its parent ends at once: a child of this process would be a
    program of the run, which no audit takes for a neighbour."""
    if not is_on:
        yield
        return
    command = [sys.executable, str(DISTURB), "--seconds", str(MOST_DISTURBED_S), "--seed", str(seed)]
    shell = ["sh", "-c", '"$@" >/dev/null & echo $!', "sh", *command]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        neighbour = int(parent.stdout.readline())
        try:
            if "bursts on cores" not in parent.stderr.readline():
                raise SystemExit("bench/disturb.py did not begin")
            yield
        finally:
            os.kill(neighbour, signal.SIGTERM)


def print_summary(
    verdicts_by_cell: Mapping[tuple[str, OnOff, str, str], Sequence[RunVerdict]],
    minutes: Mapping[tuple[str, OnOff], Sequence[float]],
) -> None:
    """Print one line for each planted difference, metric and setting."""
    print(
        f"{'scenario':10}{'planted':12}{'metric':12}{'turns':>6}{'runs':>6}{'proven':>8}{'wrong':>7}{'ratio':>8}{'±':>8}{'minutes':>9}"
    )
    for question, name, metric in dict.fromkeys(
        (question, name, metric) for question, _, name, metric in verdicts_by_cell
    ):
        for turns in TURNS:
            if verdicts := verdicts_by_cell.get((question, turns, name, metric)):
                summary = summarise(verdicts, metric, equal=name == EQUAL)
                proven = "-" if name == EQUAL else f"{summary.right / summary.runs:.0%}"
                run_minutes = statistics.median(minutes[question, turns])
                print(
                    f"{question:10}{name:12}{metric:12}{turns:>6}{summary.runs:6}{proven:>8}"
                    f"{summary.wrong / summary.runs:7.0%}{summary.ratio:8.3f}{summary.half_width:8.1%}"
                    f"{run_minutes:9.1f}"
                )


def main() -> None:
    """Run the rounds and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=70.0, help="time budget of one run")
    parser.add_argument("--runs", type=int, default=20, help="of each scenario and setting, at most")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--only", choices=tuple(PLANTED), nargs="+", default=list(PLANTED))
    parser.add_argument("--turns", choices=TURNS, nargs="+", default=list(TURNS))
    parser.add_argument("--disturbed", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", type=Path, default=build_dir() / "bench" / "planted_server")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    if not options.server.is_file():
        raise SystemExit(f"{options.server} is not built: cmake --build {build_dir()} --target planted_server")
    verdicts_by_cell: dict[tuple[str, OnOff, str, str], list[RunVerdict]] = defaultdict(list)
    minutes: dict[tuple[str, OnOff], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        for number in Batches(60 * options.minutes):
            if number == options.runs:
                break
            for question in options.only:
                for turns in options.turns if number % 2 == 0 else options.turns[::-1]:
                    began_s = time.monotonic()
                    experiment = make_experiment(question, turns, options.seconds, options.seed + number)
                    with disturb_machine(options.seed + number, is_on=options.disturbed):
                        run = measure(
                            experiment, make_servers(options.server, question), options.results or Path(temporary)
                        )
                    minutes[question, turns].append((time.monotonic() - began_s) / 60)
                    for (name, metric), verdict in find_verdicts(run, question).items():
                        verdicts_by_cell[question, turns, name, metric].append(verdict)
            print(f"round {number + 1} of at most {options.runs}", file=sys.stderr, flush=True)
    neighbour = "beside bench/disturb.py" if options.disturbed else "undisturbed"
    print(f"planted differences, {options.seconds:g} s a run, {neighbour}, load average {os.getloadavg()[1]:.1f}")
    print_summary(verdicts_by_cell, minutes)


if __name__ == "__main__":
    main()

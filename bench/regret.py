#!/usr/bin/env python3
"""How good the advice is: workloads drawn at random that no run has seen, what `netdyno advise` says of each within a
small budget, and what a longer run of everybody says then, in other blocks.

    python bench/regret.py [--workloads 40] [--budget 2h] [--advice 2m] [--blocks 16] [--contestants 'epoll-*,go-net']

Of each workload: by how much the one to take is worse than the best that meets the objective (regret), whether the
advice's bound on that holds (`nobody is better by more than`), and whether its intervals hold the ratios of the longer
run. What a longer run says is measured, too: `best of halves` takes the best from one half of its blocks and its
advantage from the other, so that nobody is the best by luck alone. Where the longer run's generator was at its limit,
throughputs are bounds and tell no regret: such workloads are counted, and left out of everything else.

Every workload is stored when it is done (--store, bench/regret.json): it may be stopped at any time, and goes on from
there when it is called again. No workload is begun that would not fit into --budget. --page writes the page under
docs/measurements/ from what is stored, and does nothing else. $NETDYNO_BUILD names the build.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from netdyno.analysis.advice.judge import keeps
from netdyno.analysis.samples import of_metric
from netdyno.analysis.split import Part, split
from netdyno.base import quantities
from netdyno.base.files import write_whole
from netdyno.base.paths import ROOT
from netdyno.base.units import parse_duration
from netdyno.experiment import workload
from netdyno.machine import environment
from netdyno.model import outcomes
from netdyno.model.experiment import Advise
from netdyno.model.metrics import METRICS
from netdyno.statistics import stats
from netdyno.statistics.stats import Samples
from netdyno.store import read

STORE = ROOT / "bench" / "regret.json"
PAGE = ROOT / "docs" / "measurements" / "regret.md"
GOAL, COVERAGE = 0.05, 0.95
OTHER_SEED = 1_000_003
"""Added to a workload's seed, so that the longer run has other orders and arrivals."""
LIMITS_MS = (2, 5, 20, 100)
COLUMNS = 120
SETTINGS = ("advice", "blocks", "seed", "contestants")


# --- workloads -------------------------------------------------------------------------------------------------------


def drawn(seed: int, number: int) -> dict[str, Any]:
    """A workload, as a file of `netdyno advise` has it; the same seed and number give the same."""
    draw = random.Random(f"{seed} {number}")

    def between(low: float, high: float) -> int:
        return round(math.exp(draw.uniform(math.log(low), math.log(high))))

    found: dict[str, Any] = {"connections": between(2, 200), "size": between(32, 4096), "seed": 1 + number}
    kind = draw.choice(("rate", "rate", "closed", "room"))
    if kind == "room":
        found |= {"fan-out": "room", "connections": between(4, 40), "rate": between(50, 500)}
    elif kind == "rate":
        found["rate"] = between(200, 6000)
    if kind != "room" and draw.random() < 0.6:
        waits = draw.random() < 0.5
        longest_us = 2000 if waits else 50 if "rate" not in found else min(500, 0.3e6 / found["rate"])
        service = {"service-time": f"{between(5, longest_us)}us", "service-kind": "wait" if waits else "cpu"}
        found |= service
    objectives = ["throughput"] if kind == "closed" else ["cpu", "memory", f"p99<{draw.choice(LIMITS_MS)}ms"]
    found["objective"] = draw.choice(objectives)
    workload.check({name: workload.value_of(name, value, name) for name, value in found.items()})
    return found


def as_toml(one: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in one.items())


# --- advice and truth ------------------------------------------------------------------------------------------------


def netdyno(*words: str) -> dict[str, Any]:
    """The last line of JSON that it prints. Raises CalledProcessError."""
    done = subprocess.run(
        [sys.executable, "-m", "netdyno", *words, "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def advised(one: Mapping[str, Any], asked: argparse.Namespace, results: Path) -> dict[str, Any]:
    path = results / "workload.toml"
    path.write_text(as_toml(one))
    named = ("--contestants", asked.contestants) if asked.contestants else ()
    budget = ("--time-budget", asked.advice, "--no-along", "--again")
    return netdyno("advise", "--workload", str(path), *named, *budget, "--results", str(results))


def measured(said: Mapping[str, Any], seed: int, blocks: int, results: Path) -> Part:
    """Everybody who might have been taken, in so many blocks of another seed."""
    text = (Path(said["folder"]) / "advise.toml").read_text()
    path = results / "truth.toml"
    path.write_text(re.sub(r"^(time-budget|time-limit|most-blocks) = .*\n", "", text, flags=re.MULTILINE))
    words = ("--blocks", str(blocks), "--seed", str(seed), "--trace", "never", "--foreign-load", "count")
    done = netdyno("run", str(path), *words, "--results", str(results))
    (part,) = split(outcomes.judged(read.load(read.find(results, done["run_id"]))))
    return part


def better_by(one: Samples, other: Samples, metric: str) -> float:
    """By how much one is better than the other, on the log scale; NaN where they share no block."""
    pairs = stats.pair(one, other)
    sign = 1 if METRICS[metric].better == "higher" else -1
    return sign * stats.log_ratio(pairs) if len(pairs) else math.nan


def half(samples: Samples, odd: int) -> Samples:
    return {at: figure for at, figure in samples.items() if at[0] % 2 == odd}


def judged(said: Mapping[str, Any], part: Part) -> dict[str, Any]:
    """The advice beside the longer run."""
    metric, first = said["metric"], said["take"][0]
    samples = of_metric(part.ranked, metric)
    meets = {one.contestant: all(term.value < term.term.limit for term in one.terms) for one in _kept(said, part)}
    faulty = {trial.contestant for trial in part.trials if trial.status == "faulty"}
    able = [name for name in samples if name not in faulty and meets.get(name, True)]
    missed = first not in samples or (first not in able and bool(able))
    rivals = [name for name in able or samples if name != first]
    ahead = {name: better_by(samples[name], samples[first], metric) for name in rivals if first in samples}
    ahead = {name: lead for name, lead in ahead.items() if math.isfinite(lead)}
    best = max(ahead, key=lambda name: ahead[name], default="unknown")
    regret = math.inf if missed else math.expm1(max(0.0, ahead.get(best, 0.0)))
    return {
        "first": first,
        "best": best if regret else first,
        "regret": _finite(regret),
        "best_of_halves": _finite(math.inf if missed else _of_halves(samples, first, rivals, metric)),
        "bound": None if said["behind"] is None else said["behind"] - 1,
        "bound_holds": None if said["behind"] is None else not missed and regret <= said["behind"] - 1 + 1e-9,
        "intervals": list(_intervals(said, samples)),
        "missed": missed,
        "settled": said["settled"],
        "saturated": metric == "throughput" and bool(part.saturated),
    }


def _kept(said: Mapping[str, Any], part: Part) -> Sequence[Any]:
    return keeps(Advise(slo=said["slo"]), part)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _of_halves(samples: Mapping[str, Samples], first: str, rivals: Sequence[str], metric: str) -> float:
    """The best of one half, as the other half has it; the mean of both ways."""
    found = []
    for odd in (0, 1):
        chosen = {name: better_by(half(samples[name], odd), half(samples[first], odd), metric) for name in rivals}
        chosen = {name: lead for name, lead in chosen.items() if math.isfinite(lead) and lead > 0}
        if chosen:
            best = max(chosen, key=lambda name: chosen[name])
            lead = better_by(half(samples[best], 1 - odd), half(samples[first], 1 - odd), metric)
            found.append(0.0 if math.isnan(lead) else lead)
        else:
            found.append(0.0)
    return math.expm1(statistics.fmean(found))


def _intervals(said: Mapping[str, Any], samples: Mapping[str, Samples]) -> Iterator[dict[str, Any]]:
    """Of the first against each other: whether the interval holds the ratio of the longer run, and whether the two
    contradict each other, for that has an interval, too."""
    first = said["take"][0]
    for one in said["beside"]:
        if one["low"] is None or first not in samples or one["contestant"] not in samples:
            continue
        pairs = stats.pair(samples[first], samples[one["contestant"]])
        found = stats.mean_interval(pairs) if len(pairs) else None
        if found is None:
            continue
        ratio = math.exp(stats.log_ratio(pairs))
        apart = math.exp(found.high) < one["low"] or math.exp(found.low) > one["high"]
        yield {"contestant": one["contestant"], "holds": one["low"] <= ratio <= one["high"], "contradicted": apart}


# --- what came of it -----------------------------------------------------------------------------------------------


def line(one: Mapping[str, Any]) -> str:
    """One workload in a line of the table, no wider than a page."""
    said = short(one["workload"])
    if one["run"] is None:
        return f"{said} | {'an error' if 'error' in one else 'nobody'} | | |"
    regret = "unknown" if one["saturated"] else "misses" if one["missed"] else _share(one["regret"])
    bound = "none" if one["bound"] is None else _share(one["bound"])
    return f"{said} | {one['first']} | {one['best']} | {regret} | {bound}"


def short(one: Mapping[str, Any]) -> str:
    """Connections and bytes, and what else there is to say; a closed loop is asked for throughput."""
    words = [f"{one['connections']} x {one['size']} B"]
    words += [f"{one['rate']}/s", str(one["objective"])] if "rate" in one else ["closed loop"]
    if "fan-out" in one:
        words.append(str(one["fan-out"]))
    if "service-time" in one:
        words.append(f"{one['service-kind']} {one['service-time']}")
    return ", ".join(words)


def summary(done: Sequence[Mapping[str, Any]]) -> list[str]:
    every = [one for one in done if one["run"] is not None]
    settled = sum(one["settled"] for one in every)
    lines = [f"{len(done)} workloads, {len(every)} with an answer, {settled} of them settled within the budget"]
    if failed := sum("error" in one for one in done):
        lines.append(f"ended with an error, and have none: {failed}")
    answers = [one for one in every if not one["saturated"]]
    if saturated := len(every) - len(answers):
        lines.append(
            f"the longer run's generator was at its limit: {saturated}; who is best there is unknown, and all below is "
            f"of the other {len(answers)}"
        )
    if not answers:
        return lines
    for name, title in (("regret", "regret"), ("best_of_halves", "best of halves")):
        values = [math.inf if one[name] is None else one[name] for one in answers]
        low, middle, high = quartiles(values)
        goal = f" (goal: at most {quantities.share(GOAL)})" if name == "regret" else ""
        lines.append(f"{title}: median {_share(middle)}{goal}, quartiles {_share(low)} and {_share(high)}")
    missed = sum(one["missed"] for one in answers)
    lines.append(f"took somebody who then missed the objective, had a fault or no valid trial: {missed}")
    bounds = [one["bound_holds"] for one in answers if one["bound_holds"] is not None]
    goal = f"(goal: {quantities.share(COVERAGE)})"
    lines.append(
        f"the stated bound holds: {_of(sum(bounds), len(bounds))} {goal}; no bound was stated of "
        f"{len(answers) - len(bounds)}"
    )
    some = [one["intervals"] for one in answers if one["intervals"]]
    whole = sum(all(each["holds"] for each in one) for one in some)
    agree = sum(not any(each["contradicted"] for each in one) for one in some)
    each = [interval["holds"] for one in some for interval in one]
    lines.append(
        f"all stated intervals hold the longer run's ratios: {_of(whole, len(some))}; contradicted by none of "
        f"its intervals: {_of(agree, len(some))}; of single intervals {_of(sum(each), len(each))} hold"
    )
    return lines


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Of values of which some may be infinite."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
        return low if low == high else low + (high - low) * (place - math.floor(place))

    return at(0.25), at(0.5), at(0.75)


def _share(value: float) -> str:
    return quantities.share(value) if math.isfinite(value) else "beyond"


def _of(count: int, among: int) -> str:
    return f"{count} of {among} ({quantities.share(count / among)})" if among else "0 of 0"


def page(stored: Mapping[str, Any]) -> str:
    answers = stored["answers"]
    settings = " ".join(f"--{name} {stored[name]}" for name in SETTINGS if stored[name])
    lines = [
        "# How good the advice is",
        "",
        "What these mean: [advice](../advise.md#how-good-it-is).",
        "",
        *_wrapped(f"Made by `python bench/regret.py {settings}` on {stored['machine']}."),
        *_wrapped(f"Load average at the end, with its own: {stored['load']:.1f}."),
        "",
        *(line for text in summary(answers) for line in _wrapped(f"* {text}")),
        "",
        "| connections x size, rate, objective | taken | best | regret | bound |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {line(one)} |" for one in answers]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    hang = "  " if text.startswith("* ") else ""
    return textwrap.wrap(text, COLUMNS, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


# --- all of them -----------------------------------------------------------------------------------------------------


def kept(store: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """What is stored of the same question; begun anew where there is none. Ends the program where it is of another."""
    settings = {name: getattr(asked, name) for name in SETTINGS}
    machine = environment.cpu_model(Path("/proc/cpuinfo").read_text()) or "a machine"
    fresh = {**settings, "machine": f"{machine}, {os.cpu_count()} cores", "load": 0.0, "answers": []}
    if not store.is_file():
        return fresh
    found: dict[str, Any] = json.loads(store.read_text())
    if any(found[name] != value for name, value in settings.items()):
        sys.exit(f"{store} is of other settings: take another --store")
    return found


def answered(number: int, asked: argparse.Namespace) -> dict[str, Any]:
    """A workload with what came of it. An error is that, too: else one that always ends so would end the bench."""
    one = drawn(asked.seed, number)
    try:
        said = advised(one, asked, asked.results)
        if not said["take"]:
            return {"workload": one, "run": None}
        part = measured(said, OTHER_SEED + number, asked.blocks, asked.results)
    except subprocess.CalledProcessError as failed:
        if failed.returncode != 1:  # a signal, or what whoever called has to put right
            raise
        print(failed.stderr, file=sys.stderr)
        return {"workload": one, "run": None, "error": failed.stderr}
    return {"workload": one, "run": said["run"], **judged(said, part)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", type=int, default=40)
    parser.add_argument("--budget", default="2h", help="no workload that would end later (default 2h)")
    parser.add_argument("--advice", default="2m", help="the time budget of each advice")
    parser.add_argument("--blocks", type=int, default=16, help="of the longer run")
    parser.add_argument("--contestants", default="", help="as of advise (default: all that can be run)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "regret")
    parser.add_argument("--page", action="store_true")
    asked = parser.parse_args()
    stored = kept(asked.store, asked) if not asked.page else json.loads(asked.store.read_text())
    if asked.page:
        PAGE.write_text(page(stored))
        return
    budget_s = 3600 * float(asked.budget[:-1]) if asked.budget.endswith("h") else parse_duration(asked.budget)
    asked.results.mkdir(parents=True, exist_ok=True)
    began_s, durations = time.monotonic(), list[float]()
    try:
        for number in range(len(stored["answers"]), asked.workloads):
            spent_s = time.monotonic() - began_s
            if durations and spent_s + statistics.fmean(durations) > budget_s:
                break
            stored["answers"].append(answered(number, asked))
            stored["load"] = os.getloadavg()[2]
            write_whole(asked.store, json.dumps(stored, indent=1, allow_nan=False) + "\n")
            durations.append(time.monotonic() - began_s - spent_s)
            print(f"{number + 1}: {line(stored['answers'][-1])}", flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    print("\n".join(summary(stored["answers"])))


if __name__ == "__main__":
    main()

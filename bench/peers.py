#!/usr/bin/env python3
"""Compares netdyno-load with the load programs that a person can install, over the same servers, in interleaved rounds.

A round runs every case with every program that is installed, in random order: a closed loop, three rates, and a rate
during which the server stands still for a tenth of the window, on an http server of this project; then other people's
servers, in a closed loop. Server on core 0, load on core 1; CPU is the kernel's figure for the program at its end, its
start included. Rounds go on until another would not fit into --budget. Run by hand on a quiet machine:

    bench/peers.py [--build build/release] [--budget 45m] [--seconds 2] [--install DIR] [--write]

Programs are taken from PATH. --install DIR puts what cargo, go and npm offer by name into DIR, where it is missing, and
takes it from there; programs that only a person can install are named. --write keeps the runs in bench/peers.json,
beside those of other commands, and writes their page under docs/measurements/; --pages does only that. For a few alone:
--cases 'stall' 'redis, GET', --only wrk oha.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from peer_programs import OURS, PEERS, Peer, PeerFigures, Task, UnreadableError, find_program
from peer_servers import OUR_HTTP, SERVERS, PeerServer, run_server
from serving import LOAD_CORE, ROOT, RunningServer, pin_to_core

sys.path.insert(0, str(ROOT / "python"))
from netdyno.kit import quantities, units
from netdyno.measure.machine import environment
from netdyno.verbs.instruments.calibrate.truths import stall_percentile

STORE = ROOT / "bench" / "peers.json"
PAGE = ROOT / "docs" / "measurements" / "peers.md"
GRACE_S = 15
"""The seconds that a program may take beyond its requested time."""
CLOSED, STALL = "closed loop", "stall"


@dataclass(frozen=True)
class PeerCase:
    name: str
    server: PeerServer
    seconds: int
    rate: int | None = None
    stall_s: float = 0.0

    def takes(self, peer: Peer) -> bool:
        """Whether a program can run the case; one that keeps no rate meets the stall in its closed loop."""
        keeps = peer.closed if self.rate is None else peer.rates or bool(self.stall_s)
        return self.server.speaks in peer.speaks and keeps


@dataclass(frozen=True)
class PeerRun:
    """One program in one case. Times in microseconds, CPU for each request; `true_p99_us` is the effect of the
    stall."""

    case: str
    peer: str
    round: int
    rate: float = 0.0
    cpu_us: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    true_p99_us: float | None = None
    failed: str = ""


@dataclass
class PeerResults:
    """The measurements of one command."""

    command: str
    machine: str
    connections: int
    seconds: int
    stall_seconds: int
    server_seconds: int
    versions: dict[str, str]
    absent: dict[str, str]
    cases: list[str]
    runs: list[PeerRun] = field(default_factory=list)

    def select_case(self, case: str) -> dict[str, list[PeerRun]]:
        """Return the runs of a case by program, in the order of PEERS."""
        order = {peer.name: number for number, peer in enumerate(PEERS)}
        runs_by_peer: dict[str, list[PeerRun]] = {}
        for run in sorted((run for run in self.runs if run.case == case), key=lambda run: (order[run.peer], run.round)):
            runs_by_peer.setdefault(run.peer, []).append(run)
        return runs_by_peer

    @property
    def rounds(self) -> int:
        return max(run.round for run in self.runs)


def list_cases(options: argparse.Namespace) -> list[PeerCase]:
    return [
        PeerCase(CLOSED, OUR_HTTP, options.seconds),
        *(PeerCase(f"{rate:,}/s", OUR_HTTP, options.seconds, rate) for rate in options.rates),
        PeerCase(STALL, OUR_HTTP, options.stall_seconds, options.stall_rate, options.stall_seconds / 10),
        *(PeerCase(server.name, server, options.server_seconds) for server in SERVERS),
    ]


# --- what there is ------------------------------------------------------------------------------------------------


def install_missing(folder: Path, path: str, peers: Iterable[Peer]) -> None:
    """Install missing programs with cargo, go and npm. A failure is printed, and the program left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for peer in peers:
        if find_program(peer, path) is not None or not peer.install:
            continue
        command = [word.format(folder=folder) for word in peer.install]
        print(f"installing {peer.name}: {shlex.join(command)}", file=sys.stderr, flush=True)
        log = folder / f"{peer.name.split()[0]}.log"
        with log.open("w") as out:
            is_installable = shutil.which(command[0]) is not None
            if not is_installable or subprocess.run(command, stdout=out, stderr=out, check=False).returncode:
                print(f"  it could not be had ({log})", file=sys.stderr, flush=True)


_GO_VERSION = re.compile(r"\s+mod\s+\S+\s+v([\d.]+)")
_VERSION = re.compile(r".*?(?<![\d.])(\d+\.\d+(?:\.\d+)?)(?![\d.])")


def read_version(program: str) -> str:
    """Return the version that Go wrote into a program, or that it prints; empty where neither is there."""
    commands = [(("go", "version", "-m", program), _GO_VERSION)]
    commands += [((program, option), _VERSION) for option in ("--version", "-V", "-v")]
    for command, pattern in commands:
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=GRACE_S, check=False)
        except OSError:
            continue
        lines = [line for line in (process.stdout + process.stderr).splitlines() if line.strip()]
        matches = (pattern.match(line) for line in (lines if pattern is _GO_VERSION else lines[:1]))
        versions = [match[1] for match in matches if match is not None]
        if versions:
            return versions[0]
    return ""


def describe_machine() -> str:
    cpu = environment.parse_cpu_model(Path("/proc/cpuinfo").read_text())
    system = environment.parse_os_name(Path("/etc/os-release").read_text())
    cores = quantities.plural(len(os.sched_getaffinity(0)), "core")
    return f"{cpu or platform.machine()}, {cores}, Linux {platform.release()}, {system}"


# --- one run ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    stdout: str
    cpu_s: float
    code: int


def run_to_end(command: Sequence[str], most_s: float, folder: Path) -> Ended:
    """Run a program to its end on the core of the load; kill it where it takes too long."""
    with (folder / "stdout").open("w+") as out, (folder / "stderr").open("w+") as err:
        command_on_core = [*pin_to_core(LOAD_CORE), *command]
        process = subprocess.Popen(
            command_on_core, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        timer = threading.Timer(most_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        text = out.read() or err.read()
        return Ended(text, usage.ru_utime + usage.ru_stime, process.returncode)


class Stall(threading.Thread):
    """Stops a server for a while in the middle of a window. `lasted_s` is the time for which it stood still."""

    def __init__(self, up: RunningServer, case: PeerCase) -> None:
        super().__init__(daemon=True)
        self._up, self._case = up, case
        self.lasted_s = 0.0

    def run(self) -> None:
        time.sleep(0.45 * self._case.seconds)
        begins = time.monotonic()
        os.kill(self._up.pid, signal.SIGSTOP)
        try:
            time.sleep(self._case.stall_s)
        finally:
            os.kill(self._up.pid, signal.SIGCONT)
        self.lasted_s = time.monotonic() - begins


def run(case: PeerCase, peer: Peer, program: str, connections: int, number: int, build: Path, folder: Path) -> PeerRun:
    with run_server(case.server, folder / "server", build) as up:
        rate = case.rate if peer.rates else None
        task = Task(up.url, connections, case.seconds, rate, folder)
        stall = Stall(up, case) if case.stall_s else None
        if stall is not None:
            stall.start()
        try:
            result = run_to_end(peer.command(program, task), case.seconds + GRACE_S, folder)
        finally:
            if stall is not None:
                stall.join()
    started = PeerRun(case.name, peer.name, number)
    if result.code == -signal.SIGKILL:
        return replace(started, failed=f"still running {GRACE_S} s after its time")
    try:
        reading = peer.read(result.stdout, task)
    except (UnreadableError, LookupError, TypeError, ValueError, OSError) as error:
        reason = str(error) if isinstance(error, UnreadableError) else f"unreadable figures ({error!r})"
        return replace(started, failed=reason)
    true_p99 = stall_percentile(stall.lasted_s, case.seconds, 0.99) * 1e6 if stall is not None else None
    return add_figures(started, reading, result.cpu_s, true_p99)


def add_figures(started: PeerRun, reading: PeerFigures, cpu_s: float, true_p99_us: float | None) -> PeerRun:
    if not reading.requests or not reading.seconds:
        return replace(started, failed=reading.failed or "no request was answered")
    return replace(
        started,
        rate=reading.requests / reading.seconds,
        cpu_us=1e6 * cpu_s / reading.requests,
        p50_us=reading.p50_us,
        p99_us=reading.p99_us,
        true_p99_us=true_p99_us,
        failed=reading.failed,
    )


PeerPrograms = Sequence[tuple[Peer, str]]


def run_rounds(
    results: PeerResults,
    cases: Sequence[PeerCase],
    programs: PeerPrograms,
    options: argparse.Namespace,
    rng: random.Random,
) -> None:
    """Run rounds until another as long as the longest does not fit; an interrupted one leaves its finished runs."""
    begins, longest, number = time.monotonic(), 0.0, 0
    with tempfile.TemporaryDirectory(prefix="netdyno-peers-") as temporary:
        while not number or time.monotonic() - begins + longest <= options.budget:
            number += 1
            began = time.monotonic()
            pairs = [(case, peer, program) for case in cases for peer, program in programs if case.takes(peer)]
            # Case by case, so that the programs of one case run near each other in time.
            keys = {case: rng.random() for case in cases}
            pairs.sort(key=lambda pair: (keys[pair[0]], rng.random()))
            for place, (case, peer, program) in enumerate(pairs, 1):
                folder = Path(temporary) / f"{number}-{place}"
                folder.mkdir()
                result = run(case, peer, program, options.connections, number, options.build, folder)
                shutil.rmtree(folder, ignore_errors=True)
                results.runs.append(result)
                print(f"[{number}: {place}/{len(pairs)}] {format_line(result)}", file=sys.stderr, flush=True)
            longest = max(longest, time.monotonic() - began)


def format_line(run: PeerRun) -> str:
    parts = [f"{run.case}, {run.peer}: {run.rate:,.0f}/s"]
    if run.cpu_us is not None:
        parts.append(f"CPU {run.cpu_us:.1f} us")
    times = {"p50": run.p50_us, "p99": run.p99_us, "true p99": run.true_p99_us}
    parts += [f"{name} {value:,.0f} us" for name, value in times.items() if value is not None]
    return ", ".join([*parts, *([run.failed] if run.failed else [])])


# --- tables -------------------------------------------------------------------------------------------------------


def spread(samples: Sequence[float], format_value: Callable[[float], str], unit: str = "") -> str:
    """Format the median and, in brackets, the quartiles. Pure."""
    if not samples:
        return quantities.DASH
    median = f"{format_value(statistics.median(samples))}{unit}"
    if len(samples) < 2:
        return median
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return f"{median} ({format_value(low)}{quantities.DASH}{format_value(high)})"


def collect_values(runs: Iterable[PeerRun], name: str) -> list[float]:
    return [value for run in runs if run.rate and (value := getattr(run, name)) is not None]


def format_rate(samples: Sequence[float]) -> str:
    """Return rates in thousands where their median has five digits: a line has 120 columns."""
    if samples and statistics.median(samples) >= 1e4:
        return spread([value / 1e3 for value in samples], quantities.three_digits, "k")
    return spread(samples, "{:,.0f}".format)


def format_seconds(value: float) -> str:
    return f"{value / 1e6:.3f}"


def format_duration(samples: Sequence[float]) -> str:
    """Format times given in microseconds in the unit that their median fills."""
    unit, size = ("ms", 1e3) if samples and statistics.median(samples) >= 1e3 else ("µs", 1.0)
    return spread([value / size for value in samples], quantities.three_digits, f" {unit}")


def format_failures(runs: Iterable[PeerRun]) -> str:
    """Return the failures, the first of each kind."""
    kinds = {re.sub(r"\d+", "N", run.failed): run.failed for run in reversed(list(runs)) if run.failed}
    return quantities.shortened("; ".join(kinds.values()).replace("|", "/"), 90)


def format_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in rows)]


def describe_our_server(results: PeerResults) -> list[str]:
    """Return a row for each program of http, with the middle one of the rates, and the columns of what was measured."""
    rates = [case for case in results.cases if case.endswith("/s")]
    rate_case = rates[len(rates) // 2] if rates else ""
    requested_hz = float(rate_case.removesuffix("/s").replace(",", "") or "nan")
    closed, rated, stalled = (results.select_case(case) for case in (CLOSED, rate_case, STALL))
    truths = [value for runs in stalled.values() for value in collect_values(runs, "true_p99_us")]
    rows = []
    for name in (peer.name for peer in PEERS if peer.name in {*closed, *rated, *stalled}):
        cells = (
            spread(
                [value / 1e3 for value in collect_values(closed.get(name, []), "rate")], quantities.three_digits, "k"
            ),
            spread(collect_values(closed.get(name, []), "cpu_us"), quantities.three_digits),
            # No quartiles: a line has 120 columns.
            format_median(
                [100 * value / requested_hz for value in collect_values(rated.get(name, []), "rate")], "{:.1f}%".format
            ),
            format_median(collect_values(rated.get(name, []), "cpu_us"), quantities.three_digits),
            format_duration(collect_values(rated.get(name, []), "p50_us")),
            spread(collect_values(stalled.get(name, []), "p99_us"), format_seconds),
        )
        rows.append((f"`{name}`", *cells))
    true = f"stall: p99, true {format_seconds(statistics.median(truths)) if truths else quantities.DASH} s"
    heads = ("", "closed loop: requests/s", "CPU each, µs", f"{rate_case}: kept", "CPU", "p50", true)
    shown = (True, *[bool(closed)] * 2, *[bool(rated)] * 3, bool(stalled))
    return format_table(list(compress(heads, shown)), [list(compress(row, shown)) for row in rows])


@dataclass(frozen=True)
class Race:
    """The rates of this program and of the one that got most requests of a server, and the ratio in each round."""

    ours: list[float]
    best: str
    theirs: list[float]
    ratios: list[float]


def find_race(results: PeerResults, case: str) -> Race | None:
    """Return nothing where this program or all others have no figures."""
    rates = {
        name: {run.round: run.rate for run in runs if run.rate} for name, runs in results.select_case(case).items()
    }
    ours = rates.pop(OURS.name, {})
    others = {name: by_round for name, by_round in rates.items() if by_round}
    if not ours or not others:
        return None
    best, theirs = max(others.items(), key=lambda item: statistics.median(item[1].values()))
    ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys()]
    return Race(list(ours.values()), best, list(theirs.values()), ratios)


def describe_others_servers(results: PeerResults, earlier: Sequence[PeerResults] = ()) -> list[str]:
    """Return a row for each server, with the range of the earlier commands' median ratios in the last column."""
    rows = []
    for case in (server.name for server in SERVERS if server.name in results.cases):
        if (current := find_race(results, case)) is None:
            continue
        medians = [
            statistics.median(earlier_race.ratios)
            for command in earlier
            if (earlier_race := find_race(command, case)) and earlier_race.ratios
        ]
        cells = [case, format_rate(current.ours), f"`{current.best}`", format_rate(current.theirs)]
        cells += [spread(current.ratios, "{:.2f}".format)]
        ends = sorted({f"{ratio:.2f}" for ratio in (min(medians), max(medians))}) if medians else []
        rows.append([*cells, quantities.DASH.join(ends)])
    heads = ["", f"`{OURS.name}`: requests/s", "best other", "its requests/s", "ratio", "before"]
    columns = slice(None) if any(row[-1] for row in rows) else slice(-1)
    return format_table(heads[columns], [row[columns] for row in rows])


def format_median(samples: Sequence[float], format_value: Callable[[float], str]) -> str:
    return format_value(statistics.median(samples)) if samples else quantities.DASH


def format_page(stored_results: Sequence[PeerResults]) -> str:
    """Return the page of the measurements: for each command its conditions, the table of our http server or of other
    people's servers, and the failures."""
    about = (
        "[The generator alone](../load.md) and others ran on one core, the server on another; in each round every "
        "program met every case. Medians (quartiles); CPU is the whole process's over its counted requests. Stall: the "
        "server stops for a tenth of the window. Other people's servers get a closed loop; a ratio compares "
        f"runs of one round, `before` is the range of its earlier medians. `{STORE.relative_to(ROOT)}` has every run."
    )
    lines = ["# `netdyno-load` beside other load programs", "", *wrap(about)]
    previous: PeerResults | None = None
    commands = sorted(enumerate(choose_latest(stored_results)), key=lambda command: -len(command[1].versions))
    for number, results in commands:  # those of most programs first
        tables = [describe_our_server(results)] if CLOSED in results.cases else []
        if any(server.name in results.cases for server in SERVERS):
            tables.append(describe_others_servers(results, stored_results[:number]))
        if not tables:
            continue
        lines += ["", *format_part(results, previous), *(line for table_lines in tables for line in ["", *table_lines])]
        previous = results
        if failed := list_notes(results):
            lines += ["", *failed]
    return "\n".join(lines) + "\n"


def choose_latest(stored_results: Sequence[PeerResults]) -> list[PeerResults]:
    """Return each command with the cases that no later command has measured with as many connections."""

    def find_later_cases(number: int) -> set[str]:
        connections = stored_results[number].connections
        later = (results for results in stored_results[number + 1 :] if results.connections == connections)
        return {case for results in later for case in results.cases}

    return [
        replace(results, cases=[case for case in results.cases if case not in find_later_cases(number)])
        for number, results in enumerate(stored_results)
    ]


def list_notes(results: PeerResults) -> list[str]:
    """Return the notes on the figures of each program, and its failures, an item each."""
    lines = []
    for peer in PEERS:
        runs = {
            case: runs_by_peer[peer.name]
            for case in results.cases
            if peer.name in (runs_by_peer := results.select_case(case))
        }
        remarks = [f"{case}: {failure}" for case, case_runs in runs.items() if (failure := format_failures(case_runs))]
        if peer.note and runs:
            remarks.insert(0, peer.note)
        if remarks:
            first, *rest = wrap(f"* `{peer.name}`: {'; '.join(remarks)}")
            lines += [first, *(f"  {line}" for line in rest)]
    return lines


def format_part(results: PeerResults, previous: PeerResults | None) -> list[str]:
    """Return the conditions of a command; machine and versions only where they are not those of the part above."""
    known_versions = previous.versions.items() if previous else ()
    versions = ", ".join(f"{name} {number}".strip() for name, number in results.versions.items())
    programs = "as above" if results.versions.items() <= set(known_versions) else versions
    machine = "the same machine" if previous and results.machine == previous.machine else results.machine
    absent = "; ".join(f"{name} ({how})" for name, how in results.absent.items())
    missing = f" Absent: {absent}." if absent else ""
    count = quantities.plural(results.rounds, "round")
    others_cases = {server.name for server in SERVERS}.intersection(results.cases)
    length_s = results.server_seconds if others_cases else results.seconds
    lengths = []
    if others_cases < set(results.cases):
        stall = f", with a stall {results.stall_seconds} s" if STALL in results.cases else ""
        lengths.append(f"{results.seconds} s a run{stall}")
    if others_cases:
        lengths.append(f"other people's servers {results.server_seconds} s")
    about = f"on {machine}. {results.connections} connections; {', '.join(lengths)}. Programs {programs}.{missing}"
    return [
        f"## {count}, {quantities.plural(len(results.versions), 'program')}, {length_s} s",
        "",
        "```text",
        *wrap(results.command),
        "```",
        "",
        *wrap(about),
    ]


def wrap(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def format_stored(stored_results: Sequence[PeerResults]) -> str:
    """Format the results as JSON, one run a line."""
    return "[\n" + ",\n".join(map(_format_results, stored_results)) + "\n]\n"


def _format_results(results: PeerResults) -> str:
    head = {name: value for name, value in asdict(results).items() if name != "runs"}
    runs = [{name: value for name, value in asdict(run).items() if value not in (None, "")} for run in results.runs]
    lines = [json.dumps(run) for run in runs]
    return json.dumps(head, indent=1)[:-2] + ',\n "runs": [\n  ' + ",\n  ".join(lines) + "\n ]\n}"


def read(text: str) -> list[PeerResults]:
    return [PeerResults(**{**entry, "runs": [PeerRun(**run) for run in entry["runs"]]}) for entry in json.loads(text)]


def merge_results(stored_results: Sequence[PeerResults], new: PeerResults) -> list[PeerResults]:
    """Add the results of a command, in place of its earlier ones."""
    return [*(results for results in stored_results if results.command != new.command), new]


def write_page(stored_results: Sequence[PeerResults]) -> None:
    PAGE.write_text(format_page(stored_results))


# --- the command line ---------------------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--budget", type=units.parse_duration, default="45m", help="no round that ends later")
    parser.add_argument("--seconds", type=int, default=2, help="of each run; most programs take whole ones only")
    parser.add_argument("--stall-seconds", type=int, default=5, help="of each run with a stall of a tenth of it")
    parser.add_argument("--server-seconds", type=int, default=10, help="of each run over other people's servers")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rates", type=int, nargs="+", default=[1_000, 10_000, 40_000])
    parser.add_argument("--stall-rate", type=int, default=2_000)
    parser.add_argument("--cases", nargs="+", help="of the cases these only, by name")
    parser.add_argument("--only", nargs="+", help="of the programs these only, by name")
    parser.add_argument("--install", type=Path, metavar="DIR")
    parser.add_argument("--write", action="store_true", help="keep the runs, and write the pages from them")
    parser.add_argument("--pages", action="store_true", help="measure nothing; write the pages from what is kept")
    parser.add_argument("--seed", type=int, default=1, help="of the order within the rounds")
    return parser.parse_args()


def format_request(words: Sequence[str]) -> str:
    """Return the command as others can run it: their folders have other names. Pure."""
    renamed = [
        "DIR" if previous in ("--build", "--install") else word
        for previous, word in zip(["", *words], words, strict=False)
    ]
    return shlex.join(["bench/peers.py", *renamed])


def choose(items: Sequence[Any], names: Sequence[str] | None, kind: str) -> list[Any]:
    unknown = set(names or ()) - {item.name for item in items}
    if unknown:
        known_names = ", ".join(repr(item.name) for item in items)
        raise SystemExit(f"no {kind} {', '.join(sorted(unknown))}; there are {known_names}")
    return [item for item in items if names is None or item.name in names]


def main() -> None:
    options = parse_arguments()
    if options.pages:
        write_page(read(STORE.read_text()))
        return
    peers = choose(PEERS, options.only, "program")
    chosen_cases = choose(list_cases(options), options.cases, "case")
    path = os.environ["PATH"]
    if options.install is not None:
        folder = options.install.resolve()
        path = os.pathsep.join([str(folder / "bin"), str(folder / "node_modules/.bin"), path])
        install_missing(folder, path, peers)
    build = options.build.resolve()
    own_program = build / "loadgen" / OURS.name
    program_of_peer = {
        peer: str(own_program) if peer is OURS and own_program.is_file() else find_program(peer, path) for peer in peers
    }
    absent = {peer.name: peer.how for peer, program in program_of_peer.items() if program is None}
    programs = [(peer, program) for peer, program in program_of_peer.items() if program is not None]
    missing = {
        case.server.name: case.server.how
        for case in chosen_cases
        if case.server.needs and not shutil.which(case.server.needs)
    }
    for name, how in {**absent, **missing}.items():
        print(f"absent: {name} ({how})", file=sys.stderr)
    chosen_cases = [case for case in chosen_cases if case.server.name not in missing]
    if not programs or not chosen_cases:
        raise SystemExit("nothing to compare")
    versions = {peer.name: read_version(program) for peer, program in programs if " " not in peer.name}
    results = PeerResults(
        format_request(sys.argv[1:]),
        describe_machine(),
        options.connections,
        options.seconds,
        options.stall_seconds,
        options.server_seconds,
        versions,
        {**absent, **missing},
        [case.name for case in chosen_cases],
    )
    try:
        run_rounds(results, chosen_cases, programs, options, random.Random(options.seed))
    except KeyboardInterrupt:
        print("interrupted: what follows is of the runs until then", file=sys.stderr)
    if not results.runs:
        raise SystemExit("no run has ended")
    if options.write:
        stored_results = merge_results(read(STORE.read_text()) if STORE.exists() else [], results)
        STORE.write_text(format_stored(stored_results))
        write_page(stored_results)
    print(format_page([results]), end="")


if __name__ == "__main__":
    main()

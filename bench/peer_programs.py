"""The load programs that a person can install, with the ways to get, start and read each. bench/peers.py compares
them."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

REDIS_KEY, REDIS_VALUE = "key:__rand_int__", "xxx"
"""The key that redis-benchmark gets without -r, and its value."""
MEMCACHED_KEY, MEMCACHED_VALUE = "k" * 64, "v" * 1024
"""As long as those of memcaslap."""


@dataclass(frozen=True)
class Task:
    """The load of one run."""

    url: str
    connections: int
    seconds: int
    rate: int | None  # requests a second in all; none: as fast as the connections go
    folder: Path  # where a program may write

    @property
    def place(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def port(self) -> str:
        return str(urlsplit(self.url).port)


@dataclass(frozen=True)
class PeerFigures:
    """The figures that a program prints of its run. `failed`: the faults it reports; empty where there are none."""

    requests: float
    seconds: float
    p50_us: float | None = None
    p99_us: float | None = None
    failed: str = ""


@dataclass(frozen=True)
class Peer:
    name: str
    how: str  # to get it, in words
    command: Callable[[str, Task], Sequence[str]]
    read: Callable[[str, Task], PeerFigures]
    install: tuple[str, ...] = ()  # the same as a command, {folder} for the target; empty: not by us
    speaks: tuple[str, ...] = ("http",)
    closed: bool = True
    rates: bool = True
    note: str = ""  # what its figures count beyond the others


class UnreadableError(Exception):
    """A program ended without its figures."""


def find_in(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise UnreadableError(f"no figures: {' '.join(text.split())[-160:] or 'it said nothing'}")
    return match


def read_number(pattern: str, text: str, default: float | None = None) -> float:
    """Return the number in the first group of a pattern."""
    if default is not None and re.search(pattern, text, re.MULTILINE) is None:
        return default
    return float(find_in(pattern, text)[1])


def list_faults(**counts: float) -> str:
    """Describe the faults whose count is not 0."""
    return ", ".join(f"{count:.0f} {fault.replace('_', ' ')}" for fault, count in counts.items() if count)


def read_json(text: str) -> dict:
    begin = text.find("{")
    if begin < 0:
        raise UnreadableError(f"no figures: {' '.join(text.split())[-160:] or 'it said nothing'}")
    return json.JSONDecoder().raw_decode(text[begin:])[0]


# --- ours ---------------------------------------------------------------------------------------------------------


def run_ours(program: str, task: Task) -> list[str]:
    url, message = task.url, ()
    if task.url.startswith("redis://"):
        url, words = f"tcp://{task.place}", f"*2\r\n$3\r\nGET\r\n${len(REDIS_KEY)}\r\n{REDIS_KEY}\r\n"
        reply = f"${len(REDIS_VALUE)}\r\n{REDIS_VALUE}\r\n"
        message = ("--send", escape(words), "--expect", escape(reply), "--reply-size", str(len(reply)))
    elif task.url.startswith("memcached://"):
        url = f"tcp://{task.place}"
        head = f"VALUE {MEMCACHED_KEY} 0 {len(MEMCACHED_VALUE)}\r\n"
        size = len(head) + len(MEMCACHED_VALUE) + len("\r\nEND\r\n")
        message = ("--send", escape(f"get {MEMCACHED_KEY}\r\n"), "--expect", escape(head), "--reply-size", str(size))
    rate = () if task.rate is None else ("--rate", str(task.rate))
    window = ("--warmup", "0", "--duration", f"{task.seconds}s", "--json", "-")
    return [program, url, "-c", str(task.connections), *message, *rate, *window]


def escape(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")


def read_ours(text: str, task: Task) -> PeerFigures:
    result = read_json(text)
    times = result["latency"]["response_ns"]
    fault_counts = {fault["what"]: fault["count"] for fault in (result.get("replies") or {}).get("faults", [])}
    faults_text = ", ".join(f"{count} {name}" for name, count in fault_counts.items())
    return PeerFigures(
        result["requests"]["completed"], task.seconds, times["p50"] / 1e3, times["p99"] / 1e3, faults_text
    )


# --- in C ---------------------------------------------------------------------------------------------------------

_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}


def run_wrk(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-R", str(task.rate)]  # of wrk2
    return [program, "-t1", f"-c{task.connections}", f"-d{task.seconds}s", *rate, "--latency", task.url]


def read_wrk(text: str, _: Task) -> PeerFigures:
    requests = find_in(r"^\s*(\d+) requests in ([\d.]+)(\w+),", text)
    times = [find_in(rf"^\s*{share}(?:\.0+)?%\s+([\d.]+)(us|ms|s|m)$", text) for share in (50, 99)]
    p50, p99 = (float(match[1]) * _UNITS[match[2]] for match in times)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    connect, read, write, timeout = map(int, errors.groups()) if errors else (0, 0, 0, 0)
    status = read_number(r"Non-2xx or 3xx responses: (\d+)", text, 0)
    faults_text = list_faults(
        connect_errors=connect, read_errors=read, write_errors=write, timeouts=timeout, other_status=status
    )
    return PeerFigures(
        float(requests[1]) - status, float(requests[2]) * _UNITS[requests[3]] / 1e6, p50, p99, faults_text
    )


def run_gcannon(program: str, task: Task) -> list[str]:
    return [program, task.url, "-t", "1", "-c", str(task.connections), "-d", f"{task.seconds}s", "--json"]


def read_gcannon(text: str, _: Task) -> PeerFigures:
    result = read_json(text)
    status, times = result["status"], result["latency_us"]
    other = result["responses"] - status["2xx"] - status["3xx"]
    faults_text = list_faults(
        other_status=other, **{f"{name}_errors": count for name, count in result["errors"].items()}
    )
    return PeerFigures(result["responses"] - other, result["elapsed_sec"], times["p50"], times["p99"], faults_text)


def run_h2load(program: str, task: Task) -> list[str]:
    """Return h2load's command. Only its log has percentiles: it is written where a rate is kept, but not where speed is
    measured."""
    log = task.folder / "h2load.log"
    log.unlink(missing_ok=True)
    rate = [] if task.rate is None else [f"--rps={task.rate / task.connections:g}", f"--log-file={log}"]
    return [program, "--h1", "-t1", f"-c{task.connections}", f"-D{task.seconds}", *rate, task.url]


def read_h2load(text: str, task: Task) -> PeerFigures:
    succeeded = read_number(r"^requests: .* (\d+) succeeded", text)
    failed = read_number(r"^requests: .* (\d+) failed", text)
    p50 = p99 = None
    if task.rate is not None:
        lines = (task.folder / "h2load.log").read_text().splitlines()
        times = sorted(int(line.split("\t")[2]) for line in lines if line)
        p50, p99 = (float(times[int(share * len(times))]) for share in (0.5, 0.99)) if times else (None, None)
    return PeerFigures(succeeded, task.seconds, p50, p99, list_faults(failed=failed))


def run_ab(program: str, task: Task) -> list[str]:
    percentiles = task.folder / "ab.csv"
    percentiles.unlink(missing_ok=True)
    count = ["-t", str(task.seconds), "-n", "5000000"]  # -t alone ends after 50,000
    return [program, "-q", "-k", "-r", "-c", str(task.connections), *count, "-e", str(percentiles), task.url]


def read_ab(text: str, task: Task) -> PeerFigures:
    completed, seconds = (
        read_number(r"^Complete requests:\s+(\d+)", text),
        read_number(r"^Time taken for tests:\s+([\d.]+)", text),
    )
    failed, status = (
        read_number(r"^Failed requests:\s+(\d+)", text),
        read_number(r"^Non-2xx responses:\s+(\d+)", text, 0),
    )
    rows = csv.reader((task.folder / "ab.csv").read_text().splitlines())
    times = {row[0]: float(row[1]) * 1e3 for row in rows if row[0].isdigit()}
    faults_text = list_faults(failed=failed, other_status=status)
    return PeerFigures(completed - max(failed, status), seconds, times.get("50"), times.get("99"), faults_text)


def run_redis_benchmark(program: str, task: Task) -> list[str]:
    """Return redis-benchmark's command. It counts requests and not seconds: as many as a redis on one core answers in
    about the time."""
    count = str(60_000 * task.seconds)
    address = ["-h", "127.0.0.1", "-p", task.port]
    return [program, *address, "-c", str(task.connections), "-n", count, "-t", "get", "--csv"]


def read_redis_benchmark(text: str, task: Task) -> PeerFigures:
    row = find_in(r'^"GET",(.*)$', text)[1]
    rate, _, _, p50, _, p99, _ = (float(value) for value in row.replace('"', "").split(","))
    count = 60_000 * task.seconds
    return PeerFigures(count, count / rate, p50 * 1e3, p99 * 1e3)


def run_memcaslap(program: str, task: Task) -> list[str]:
    settings = task.folder / "memcaslap"
    size = len(MEMCACHED_VALUE)
    # Gets, and one set in a hundred: without any it fills no cache, and ends without figures.
    settings.write_text(f"key\n64 64 1\nvalue\n{size} {size} 1\ncmd\n0 0.01\n1 0.99\n")
    load = ["-T", "1", "-c", str(task.connections), "-t", f"{task.seconds}s", "-F", str(settings)]
    return [program, "-s", task.place, *load]


def read_memcaslap(text: str, _: Task) -> PeerFigures:
    finished = find_in(r"^Run time: ([\d.]+)s Ops: (\d+)", text)
    return PeerFigures(
        float(finished[2]), float(finished[1]), failed=list_faults(misses=read_number(r"^get_misses: (\d+)", text, 0))
    )


# --- in Go, Rust and JavaScript -----------------------------------------------------------------------------------


def run_hey(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-q", f"{task.rate / task.connections:g}"]  # of each of its workers
    return [program, "-c", str(task.connections), "-z", f"{task.seconds}s", *rate, task.url]


def read_hey(text: str, _: Task) -> PeerFigures:
    seconds = read_number(r"Total:\s+([\d.]+) secs", text)
    statuses = {int(code): int(count) for code, count in re.findall(r"^\s*\[(\d+)\]\s+(\d+) responses", text, re.M)}
    answered = sum(count for code, count in statuses.items() if code < 400)
    _, _, errors = text.partition("Error distribution:")
    failed = sum(int(count) for count in re.findall(r"^\s*\[(\d+)\]", errors, re.M))
    p50, p99 = (read_number(rf"^\s*{share}%+ in ([\d.]+) secs", text, -1) for share in (50, 99))
    faults_text = list_faults(errors=failed, other_status=sum(statuses.values()) - answered)
    return PeerFigures(answered, seconds, *(value * 1e6 if value >= 0 else None for value in (p50, p99)), faults_text)


def run_oha(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-q", str(task.rate)]
    options = ["--no-tui", "--output-format", "json"]
    return [program, *options, "-c", str(task.connections), "-z", f"{task.seconds}s", *rate, task.url]


def run_oha_corrected(program: str, task: Task) -> list[str]:
    """Return oha's command with times from when a request was due."""
    return [*run_oha(program, task), "--latency-correction"]


def read_oha(text: str, _: Task) -> PeerFigures:
    result = read_json(text)
    times, statuses = result["latencyPercentiles"], result["statusCodeDistribution"]
    answered = sum(count for code, count in statuses.items() if int(code) < 400)
    failed = {
        error: count for error, count in result["errorDistribution"].items() if error != "aborted due to deadline"
    }
    p50, p99 = (None if times[name] is None else times[name] * 1e6 for name in ("p50", "p99"))
    faults_text = list_faults(errors=sum(failed.values()), other_status=sum(statuses.values()) - answered)
    return PeerFigures(answered, result["summary"]["total"], p50, p99, faults_text)


def run_vegeta(program: str, task: Task) -> list[str]:
    """Return vegeta's command. An attack writes its results, and `vegeta report` makes figures of them: both are its
    work."""
    (task.folder / "vegeta.txt").write_text(f"GET {task.url}\n")
    rate = f"-rate={task.rate or 0}/s"
    most_workers = f"-max-workers={task.connections}"
    return [
        "sh",
        "-c",
        'program=$1 targets=$2; shift 2; "$program" attack -targets="$targets" "$@" | "$program" report -type=json',
        "vegeta",
        program,
        str(task.folder / "vegeta.txt"),
        rate,
        most_workers,
        f"-workers={task.connections}",
        f"-connections={task.connections}",
        f"-duration={task.seconds}s",
    ]


def read_vegeta(text: str, task: Task) -> PeerFigures:
    result = read_json(text)
    times = result["latencies"]
    answered = sum(count for code, count in result["status_codes"].items() if 200 <= int(code) < 400)
    return PeerFigures(
        answered,
        task.seconds,
        times["50th"] / 1e3,
        times["99th"] / 1e3,
        list_faults(failed=result["requests"] - answered),
    )


def run_fortio(program: str, task: Task) -> list[str]:
    options = ["-quiet", "-loglevel", "Critical", "-json", "-", "-p", "50,99", "-allow-initial-errors"]
    rate = str(task.rate or 0)
    return [program, "load", *options, "-c", str(task.connections), "-qps", rate, "-t", f"{task.seconds}s", task.url]


def read_fortio(text: str, _: Task) -> PeerFigures:
    result = read_json(text)
    times = {
        percentile["Percentile"]: percentile["Value"] * 1e6
        for percentile in result["DurationHistogram"]["Percentiles"] or []
    }
    codes = result["RetCodes"]
    answered = sum(count for code, count in codes.items() if 200 <= int(code) < 400)
    faults_text = list_faults(failed=sum(codes.values()) - answered)
    return PeerFigures(answered, result["ActualDuration"] / 1e9, times.get(50), times.get(99), faults_text)


_K6 = """import http from 'k6/http';
const load = %s;
export const options = {discardResponseBodies: true, scenarios: {load}, summaryTrendStats: ['med', 'p(99)']};
export default function () { http.get(%s); }
export function handleSummary(data) { return {stdout: JSON.stringify(data.metrics)}; }
"""


def run_k6(program: str, task: Task) -> list[str]:
    script = task.folder / "k6.js"
    load: dict[str, object] = {"duration": f"{task.seconds}s", "gracefulStop": "0s"}
    if task.rate is None:
        load |= {"executor": "constant-vus", "vus": task.connections}
    else:
        limits = {"preAllocatedVUs": task.connections, "maxVUs": task.connections}
        load |= {"executor": "constant-arrival-rate", "rate": task.rate, "timeUnit": "1s", **limits}
    script.write_text(_K6 % (json.dumps(load), json.dumps(task.url)))
    return [program, "run", "--quiet", "--no-usage-report", str(script)]


def read_k6(text: str, task: Task) -> PeerFigures:
    metrics = read_json(text)
    times = metrics["http_req_duration"]["values"]
    requests = metrics["http_reqs"]["values"]["count"]
    failed = metrics["http_req_failed"]["values"]["passes"]  # how often it was true that one failed
    dropped = metrics.get("dropped_iterations", {"values": {"count": 0}})["values"]["count"]
    return PeerFigures(
        requests - failed,
        task.seconds,
        times["med"] * 1e3,
        times["p(99)"] * 1e3,
        list_faults(failed=failed, dropped=dropped),
    )


def run_bombardier(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-r", str(task.rate)]
    options = ["-l", "-p", "r", "-o", "json"]
    return [program, *options, "-c", str(task.connections), "-d", f"{task.seconds}s", *rate, task.url]


def read_bombardier(text: str, _: Task) -> PeerFigures:
    result = read_json(text)["result"]
    times = (result.get("latency") or {}).get("percentiles") or {}
    answered = result["req2xx"] + result["req3xx"]
    failed = sum(result[name] for name in ("req1xx", "req4xx", "req5xx", "others"))
    return PeerFigures(
        answered, result["timeTakenSeconds"], times.get("50"), times.get("99"), list_faults(failed=failed)
    )


def run_autocannon(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-R", str(task.rate)]
    return [program, "--json", "--no-progress", "-c", str(task.connections), "-d", str(task.seconds), *rate, task.url]


def read_autocannon(text: str, _: Task) -> PeerFigures:
    result = read_json(text)
    times = result["latency"]
    faults_text = list_faults(errors=result["errors"], timeouts=result["timeouts"], other_status=result["non2xx"])
    return PeerFigures(result["2xx"], result["duration"], times["p50"] * 1e3, times["p99"] * 1e3, faults_text)


# --- all of them --------------------------------------------------------------------------------------------------

OURS = Peer("netdyno-load", "./netdyno load builds it", run_ours, read_ours, speaks=("http", "redis", "memcached"))


def _make_go_source(module: str) -> tuple[str, tuple[str, ...]]:
    return f"go install {module}", ("env", "GOBIN={folder}/bin", "go", "install", module)


def _describe_package(package: str) -> str:
    return f"Debian: apt-get install {package}"


_OHA = ("cargo install --locked oha", ("cargo", "install", "--locked", "--root", "{folder}", "oha"))
_AUTOCANNON = ("npm install autocannon", ("npm", "install", "--prefix", "{folder}", "autocannon"))


def _make_peer(
    name: str,
    source: tuple[str, tuple[str, ...]],
    command: Callable[[str, Task], Sequence[str]],
    read: Callable[[str, Task], PeerFigures],
) -> Peer:
    how, install = source
    return Peer(name, how, command, read, install)


PEERS = (
    OURS,
    Peer("wrk", _describe_package("wrk"), run_wrk, read_wrk, rates=False),
    Peer("gcannon", "in no registry: build github.com/MDA2AV/gcannon", run_gcannon, read_gcannon, rates=False),
    Peer(
        "wrk2", "in no registry: build github.com/giltene/wrk2, and call its wrk wrk2", run_wrk, read_wrk, closed=False
    ),
    Peer("h2load", _describe_package("nghttp2-client"), run_h2load, read_h2load),
    Peer("ab", _describe_package("apache2-utils"), run_ab, read_ab, rates=False),
    _make_peer("hey", _make_go_source("github.com/rakyll/hey@latest"), run_hey, read_hey),
    _make_peer("oha", _OHA, run_oha, read_oha),
    Peer("oha (corrected)", _OHA[0], run_oha_corrected, read_oha, _OHA[1], closed=False),
    _make_peer("vegeta", _make_go_source("github.com/tsenart/vegeta/v12@latest"), run_vegeta, read_vegeta),
    _make_peer("fortio", _make_go_source("fortio.org/fortio@v1.66.5"), run_fortio, read_fortio),
    _make_peer("k6", _make_go_source("go.k6.io/k6@latest"), run_k6, read_k6),
    _make_peer(
        "bombardier", _make_go_source("github.com/codesenberg/bombardier@v1.2.6"), run_bombardier, read_bombardier
    ),
    _make_peer("autocannon", _AUTOCANNON, run_autocannon, read_autocannon),
    Peer(
        "redis-benchmark",
        _describe_package("redis-tools"),
        run_redis_benchmark,
        read_redis_benchmark,
        (),
        ("redis",),
        rates=False,
    ),
    Peer(
        "memcaslap",
        _describe_package("libmemcached-tools"),
        run_memcaslap,
        read_memcaslap,
        speaks=("memcached",),
        rates=False,
        note="one in a hundred of its requests is a set",
    ),
)


def find_program(peer: Peer, path: str) -> str | None:
    """Find a peer's program; its name may have more behind it."""
    return shutil.which(peer.name.split()[0], path=path)

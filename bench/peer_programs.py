"""The load programs that a person can install: how each is got, started and read. What bench/peers.py compares."""

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
"""What redis-benchmark asks for, without -r."""
MEMCACHED_KEY, MEMCACHED_VALUE = "k" * 64, "v" * 1024
"""As long as those of memcaslap."""


@dataclass(frozen=True)
class Task:
    """What one run has to do."""

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
class Said:
    """What a program says of its run. `failed`: what it says went wrong; empty where nothing did."""

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
    read: Callable[[str, Task], Said]
    install: tuple[str, ...] = ()  # the same as a command, {folder} for where to; empty: not by us
    speaks: tuple[str, ...] = ("http",)
    closed: bool = True
    rates: bool = True
    note: str = ""  # what its figures hold beside what the others count


class UnreadableError(Exception):
    """A program ended without its figures."""


def found(pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise UnreadableError(f"no figures: {' '.join(text.split())[-160:] or 'it said nothing'}")
    return match


def number(pattern: str, text: str, default: float | None = None) -> float:
    """What the first group of a pattern holds."""
    if default is not None and re.search(pattern, text, re.MULTILINE) is None:
        return default
    return float(found(pattern, text)[1])


def faults(**counts: float) -> str:
    """Those that there are, in words."""
    return ", ".join(f"{count:.0f} {what.replace('_', ' ')}" for what, count in counts.items() if count)


def json_of(text: str) -> dict:
    begin = text.find("{")
    if begin < 0:
        raise UnreadableError(f"no figures: {' '.join(text.split())[-160:] or 'it said nothing'}")
    return json.JSONDecoder().raw_decode(text[begin:])[0]


# --- ours ---------------------------------------------------------------------------------------------------------


def ours(program: str, task: Task) -> list[str]:
    where, what = task.url, ()
    if task.url.startswith("redis://"):
        where, words = f"tcp://{task.place}", f"*2\r\n$3\r\nGET\r\n${len(REDIS_KEY)}\r\n{REDIS_KEY}\r\n"
        reply = f"${len(REDIS_VALUE)}\r\n{REDIS_VALUE}\r\n"
        what = ("--send", escaped(words), "--expect", escaped(reply), "--reply-size", str(len(reply)))
    elif task.url.startswith("memcached://"):
        where = f"tcp://{task.place}"
        head = f"VALUE {MEMCACHED_KEY} 0 {len(MEMCACHED_VALUE)}\r\n"
        size = len(head) + len(MEMCACHED_VALUE) + len("\r\nEND\r\n")
        what = ("--send", escaped(f"get {MEMCACHED_KEY}\r\n"), "--expect", escaped(head), "--reply-size", str(size))
    rate = () if task.rate is None else ("--rate", str(task.rate))
    window = ("--warmup", "0", "--duration", f"{task.seconds}s", "--json", "-")
    return [program, where, "-c", str(task.connections), *what, *rate, *window]


def escaped(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")


def of_ours(text: str, task: Task) -> Said:
    result = json_of(text)
    times = result["latency"]["response_ns"]
    wrong = {fault["what"]: fault["count"] for fault in (result.get("replies") or {}).get("faults", [])}
    said = ", ".join(f"{count} {what}" for what, count in wrong.items())
    return Said(result["requests"]["completed"], task.seconds, times["p50"] / 1e3, times["p99"] / 1e3, said)


# --- in C ---------------------------------------------------------------------------------------------------------

_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}


def wrk(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-R", str(task.rate)]  # of wrk2
    return [program, "-t1", f"-c{task.connections}", f"-d{task.seconds}s", *rate, "--latency", task.url]


def of_wrk(text: str, _: Task) -> Said:
    requests = found(r"^\s*(\d+) requests in ([\d.]+)(\w+),", text)
    times = [found(rf"^\s*{share}(?:\.0+)?%\s+([\d.]+)(us|ms|s|m)$", text) for share in (50, 99)]
    p50, p99 = (float(one[1]) * _UNITS[one[2]] for one in times)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    connect, read, write, timeout = map(int, errors.groups()) if errors else (0, 0, 0, 0)
    status = number(r"Non-2xx or 3xx responses: (\d+)", text, 0)
    said = faults(connect_errors=connect, read_errors=read, write_errors=write, timeouts=timeout, other_status=status)
    return Said(float(requests[1]) - status, float(requests[2]) * _UNITS[requests[3]] / 1e6, p50, p99, said)


def h2load(program: str, task: Task) -> list[str]:
    """Only its log has percentiles: it is written where a rate is kept, and not where speed is the question."""
    log = task.folder / "h2load.log"
    log.unlink(missing_ok=True)
    rate = [] if task.rate is None else [f"--rps={task.rate / task.connections:g}", f"--log-file={log}"]
    return [program, "--h1", "-t1", f"-c{task.connections}", f"-D{task.seconds}", *rate, task.url]


def of_h2load(text: str, task: Task) -> Said:
    done = number(r"^requests: .* (\d+) succeeded", text)
    failed = number(r"^requests: .* (\d+) failed", text)
    p50 = p99 = None
    if task.rate is not None:
        lines = (task.folder / "h2load.log").read_text().splitlines()
        times = sorted(int(line.split("\t")[2]) for line in lines if line)
        p50, p99 = (float(times[int(share * len(times))]) for share in (0.5, 0.99)) if times else (None, None)
    return Said(done, task.seconds, p50, p99, faults(failed=failed))


def ab(program: str, task: Task) -> list[str]:
    percentiles = task.folder / "ab.csv"
    percentiles.unlink(missing_ok=True)
    count = ["-t", str(task.seconds), "-n", "5000000"]  # -t alone ends after 50,000
    return [program, "-q", "-k", "-r", "-c", str(task.connections), *count, "-e", str(percentiles), task.url]


def of_ab(text: str, task: Task) -> Said:
    done, seconds = number(r"^Complete requests:\s+(\d+)", text), number(r"^Time taken for tests:\s+([\d.]+)", text)
    failed, status = number(r"^Failed requests:\s+(\d+)", text), number(r"^Non-2xx responses:\s+(\d+)", text, 0)
    rows = csv.reader((task.folder / "ab.csv").read_text().splitlines())
    times = {row[0]: float(row[1]) * 1e3 for row in rows if row[0].isdigit()}
    said = faults(failed=failed, other_status=status)
    return Said(done - max(failed, status), seconds, times.get("50"), times.get("99"), said)


def redis_benchmark(program: str, task: Task) -> list[str]:
    """It counts requests and not seconds: so many as a redis on one core answers in about the time."""
    count = str(60_000 * task.seconds)
    where = ["-h", "127.0.0.1", "-p", task.port]
    return [program, *where, "-c", str(task.connections), "-n", count, "-t", "get", "--csv"]


def of_redis_benchmark(text: str, task: Task) -> Said:
    row = found(r'^"GET",(.*)$', text)[1]
    rate, _, _, p50, _, p99, _ = (float(value) for value in row.replace('"', "").split(","))
    count = 60_000 * task.seconds
    return Said(count, count / rate, p50 * 1e3, p99 * 1e3)


def memcaslap(program: str, task: Task) -> list[str]:
    settings = task.folder / "memcaslap"
    size = len(MEMCACHED_VALUE)
    # Gets, and one set in a hundred: without any it fills no cache, and ends without figures.
    settings.write_text(f"key\n64 64 1\nvalue\n{size} {size} 1\ncmd\n0 0.01\n1 0.99\n")
    load = ["-T", "1", "-c", str(task.connections), "-t", f"{task.seconds}s", "-F", str(settings)]
    return [program, "-s", task.place, *load]


def of_memcaslap(text: str, _: Task) -> Said:
    done = found(r"^Run time: ([\d.]+)s Ops: (\d+)", text)
    return Said(float(done[2]), float(done[1]), failed=faults(misses=number(r"^get_misses: (\d+)", text, 0)))


# --- in Go, Rust and JavaScript -----------------------------------------------------------------------------------


def hey(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-q", f"{task.rate / task.connections:g}"]  # of each of its workers
    return [program, "-c", str(task.connections), "-z", f"{task.seconds}s", *rate, task.url]


def of_hey(text: str, _: Task) -> Said:
    seconds = number(r"Total:\s+([\d.]+) secs", text)
    statuses = {int(code): int(count) for code, count in re.findall(r"^\s*\[(\d+)\]\s+(\d+) responses", text, re.M)}
    done = sum(count for code, count in statuses.items() if code < 400)
    _, _, errors = text.partition("Error distribution:")
    failed = sum(int(count) for count in re.findall(r"^\s*\[(\d+)\]", errors, re.M))
    p50, p99 = (number(rf"^\s*{share}%+ in ([\d.]+) secs", text, -1) for share in (50, 99))
    said = faults(errors=failed, other_status=sum(statuses.values()) - done)
    return Said(done, seconds, *(value * 1e6 if value >= 0 else None for value in (p50, p99)), said)


def oha(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-q", str(task.rate)]
    how = ["--no-tui", "--output-format", "json"]
    return [program, *how, "-c", str(task.connections), "-z", f"{task.seconds}s", *rate, task.url]


def oha_corrected(program: str, task: Task) -> list[str]:
    """Its times from when a request was due."""
    return [*oha(program, task), "--latency-correction"]


def of_oha(text: str, _: Task) -> Said:
    result = json_of(text)
    times, statuses = result["latencyPercentiles"], result["statusCodeDistribution"]
    done = sum(count for code, count in statuses.items() if int(code) < 400)
    failed = {what: count for what, count in result["errorDistribution"].items() if what != "aborted due to deadline"}
    p50, p99 = (None if times[name] is None else times[name] * 1e6 for name in ("p50", "p99"))
    said = faults(errors=sum(failed.values()), other_status=sum(statuses.values()) - done)
    return Said(done, result["summary"]["total"], p50, p99, said)


def vegeta(program: str, task: Task) -> list[str]:
    """An attack writes its results, and `vegeta report` makes figures of them: both are its work."""
    (task.folder / "vegeta.txt").write_text(f"GET {task.url}\n")
    rate = f"-rate={task.rate or 0}/s"
    most = f"-max-workers={task.connections}"
    return [
        "sh",
        "-c",
        'program=$1 targets=$2; shift 2; "$program" attack -targets="$targets" "$@" | "$program" report -type=json',
        "vegeta",
        program,
        str(task.folder / "vegeta.txt"),
        rate,
        most,
        f"-workers={task.connections}",
        f"-connections={task.connections}",
        f"-duration={task.seconds}s",
    ]


def of_vegeta(text: str, task: Task) -> Said:
    result = json_of(text)
    times = result["latencies"]
    done = sum(count for code, count in result["status_codes"].items() if 200 <= int(code) < 400)
    return Said(done, task.seconds, times["50th"] / 1e3, times["99th"] / 1e3, faults(failed=result["requests"] - done))


def fortio(program: str, task: Task) -> list[str]:
    how = ["-quiet", "-loglevel", "Critical", "-json", "-", "-p", "50,99", "-allow-initial-errors"]
    rate = str(task.rate or 0)
    return [program, "load", *how, "-c", str(task.connections), "-qps", rate, "-t", f"{task.seconds}s", task.url]


def of_fortio(text: str, _: Task) -> Said:
    result = json_of(text)
    times = {one["Percentile"]: one["Value"] * 1e6 for one in result["DurationHistogram"]["Percentiles"] or []}
    codes = result["RetCodes"]
    done = sum(count for code, count in codes.items() if 200 <= int(code) < 400)
    said = faults(failed=sum(codes.values()) - done)
    return Said(done, result["ActualDuration"] / 1e9, times.get(50), times.get(99), said)


_K6 = """import http from 'k6/http';
const load = %s;
export const options = {discardResponseBodies: true, scenarios: {load}, summaryTrendStats: ['med', 'p(99)']};
export default function () { http.get(%s); }
export function handleSummary(data) { return {stdout: JSON.stringify(data.metrics)}; }
"""


def k6(program: str, task: Task) -> list[str]:
    script = task.folder / "k6.js"
    load: dict[str, object] = {"duration": f"{task.seconds}s", "gracefulStop": "0s"}
    if task.rate is None:
        load |= {"executor": "constant-vus", "vus": task.connections}
    else:
        most = {"preAllocatedVUs": task.connections, "maxVUs": task.connections}
        load |= {"executor": "constant-arrival-rate", "rate": task.rate, "timeUnit": "1s", **most}
    script.write_text(_K6 % (json.dumps(load), json.dumps(task.url)))
    return [program, "run", "--quiet", "--no-usage-report", str(script)]


def of_k6(text: str, task: Task) -> Said:
    metrics = json_of(text)
    times = metrics["http_req_duration"]["values"]
    requests = metrics["http_reqs"]["values"]["count"]
    failed = metrics["http_req_failed"]["values"]["passes"]  # how often it was true that one failed
    dropped = metrics.get("dropped_iterations", {"values": {"count": 0}})["values"]["count"]
    return Said(
        requests - failed,
        task.seconds,
        times["med"] * 1e3,
        times["p(99)"] * 1e3,
        faults(failed=failed, dropped=dropped),
    )


def bombardier(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-r", str(task.rate)]
    how = ["-l", "-p", "r", "-o", "json"]
    return [program, *how, "-c", str(task.connections), "-d", f"{task.seconds}s", *rate, task.url]


def of_bombardier(text: str, _: Task) -> Said:
    result = json_of(text)["result"]
    times = (result.get("latency") or {}).get("percentiles") or {}
    done = result["req2xx"] + result["req3xx"]
    failed = sum(result[name] for name in ("req1xx", "req4xx", "req5xx", "others"))
    return Said(done, result["timeTakenSeconds"], times.get("50"), times.get("99"), faults(failed=failed))


def autocannon(program: str, task: Task) -> list[str]:
    rate = [] if task.rate is None else ["-R", str(task.rate)]
    return [program, "--json", "--no-progress", "-c", str(task.connections), "-d", str(task.seconds), *rate, task.url]


def of_autocannon(text: str, _: Task) -> Said:
    result = json_of(text)
    times = result["latency"]
    said = faults(errors=result["errors"], timeouts=result["timeouts"], other_status=result["non2xx"])
    return Said(result["2xx"], result["duration"], times["p50"] * 1e3, times["p99"] * 1e3, said)


# --- all of them --------------------------------------------------------------------------------------------------

OURS = Peer("netdyno-load", "./netdyno load builds it", ours, of_ours, speaks=("http", "redis", "memcached"))


def _go(module: str) -> tuple[str, tuple[str, ...]]:
    return f"go install {module}", ("env", "GOBIN={folder}/bin", "go", "install", module)


def _debian(package: str) -> str:
    return f"Debian: apt-get install {package}"


_OHA = ("cargo install --locked oha", ("cargo", "install", "--locked", "--root", "{folder}", "oha"))
_AUTOCANNON = ("npm install autocannon", ("npm", "install", "--prefix", "{folder}", "autocannon"))


def _peer(
    name: str,
    got: tuple[str, tuple[str, ...]],
    command: Callable[[str, Task], Sequence[str]],
    read: Callable[[str, Task], Said],
) -> Peer:
    how, install = got
    return Peer(name, how, command, read, install)


PEERS = (
    OURS,
    Peer("wrk", _debian("wrk"), wrk, of_wrk, rates=False),
    Peer("wrk2", "in no registry: build github.com/giltene/wrk2, and call its wrk wrk2", wrk, of_wrk, closed=False),
    Peer("h2load", _debian("nghttp2-client"), h2load, of_h2load),
    Peer("ab", _debian("apache2-utils"), ab, of_ab, rates=False),
    _peer("hey", _go("github.com/rakyll/hey@latest"), hey, of_hey),
    _peer("oha", _OHA, oha, of_oha),
    Peer("oha (corrected)", _OHA[0], oha_corrected, of_oha, _OHA[1], closed=False),
    _peer("vegeta", _go("github.com/tsenart/vegeta/v12@latest"), vegeta, of_vegeta),
    _peer("fortio", _go("fortio.org/fortio@v1.66.5"), fortio, of_fortio),
    _peer("k6", _go("go.k6.io/k6@latest"), k6, of_k6),
    _peer("bombardier", _go("github.com/codesenberg/bombardier@v1.2.6"), bombardier, of_bombardier),
    _peer("autocannon", _AUTOCANNON, autocannon, of_autocannon),
    Peer("redis-benchmark", _debian("redis-tools"), redis_benchmark, of_redis_benchmark, (), ("redis",), rates=False),
    Peer(
        "memcaslap",
        _debian("libmemcached-tools"),
        memcaslap,
        of_memcaslap,
        speaks=("memcached",),
        rates=False,
        note="one in a hundred of its requests is a set",
    ),
)


def program_of(peer: Peer, path: str) -> str | None:
    """Where its program is; a peer's name may have more behind it."""
    return shutil.which(peer.name.split()[0], path=path)

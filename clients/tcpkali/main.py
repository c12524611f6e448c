"""Runs an installed tcpkali in the place of the load generator, with the flags of source D, and translates its last
lines into the words of protocol/load-result.md. No figure is added to tcpkali's own: README.md has how each comes
about, and which are missing.

    main.py TCPKALI URL [options of protocol/client.md, "Load programs of others"]
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import NamedTuple

from netdyno.kit.child import die_with
from netdyno.kit.escape import harmless
from netdyno.kit.held_signals import list_ending_signals
from netdyno.kit.statistics.histogram import Histogram
from netdyno.kit.units import format_duration, parse_duration
from netdyno.kit.url import TcpUrl, parse_tcp_url
from netdyno.model.load_result import (
    Audit,
    Bytes,
    Connections,
    Generator,
    GeneratorThread,
    Latency,
    LoadPlan,
    LoadResult,
    Messages,
    Requests,
    TimeSeries,
)
from netdyno_client.command_line import Parser, accept_one_of, make_reader
from netdyno_client.output import write_event, write_result
from netdyno_client.recorder import distribution

MARKER = r"\{message.marker}\n"
SIZE = 31
"""Bytes of the marker and its newline: the message of source D."""
PERCENTS = (*(f"{tenth / 10:g}" for tenth in range(1, 1000)), "99.95", "99.99", "100")
"""The percentiles requested of its histogram: its counts follow from these to a tenth of a per cent."""
STEP_MS = 0.1
"""The step of its printed times; a time below that is 0.0, and counts as half of it here."""
POLL_S = 0.5
"""The interval at which its memory is read."""
PATIENCE_S = 5.0
"""The time that it may take to end after its own time. It may connect for as long as it then sends."""
INTERRUPTED = 64
"""Its exit code after a signal (EX_USAGE): it has printed its figures by then."""


# --- the request -----------------------------------------------------------------------------------------------------


class LoadProgramRequest(NamedTuple):
    """The command line, parsed once. Times in seconds; the rate is that of each connection."""

    tcpkali: str
    url: TcpUrl
    connections: int
    rate_hz: float
    connect_rate_hz: float
    duration_s: float
    warmup_s: float
    timeout_s: float
    connect_timeout_s: float
    nodelay: bool
    joined: bool
    seed: int
    json_file: str
    events_fd: int


def parse(arguments: Sequence[str]) -> LoadProgramRequest:
    """Read the command line. Ends the program on --help (exit 0) and on a request that tcpkali cannot carry out (exit
    2)."""
    parser = Parser(prog="tcpkali", allow_abbrev=False, description="tcpkali as a load program (protocol/client.md)")

    def add(name: str, read: Callable[[str], object], default: object, text: str, *short_names: str) -> None:
        parser.add_argument(*short_names, name, type=make_reader(read), default=default, metavar="X", help=text)

    parser.add_argument("tcpkali", help="the program")
    parser.add_argument(
        "url", type=make_reader(parse_tcp_url), help="where the server listens, e.g. tcp://127.0.0.1:7000"
    )
    add("--workload", accept_one_of("echo"), "echo", "echo alone: what comes back must hold what was sent")
    add("--connections", _parse_whole_number, 1, "connections, all opened before the window", "-c")
    add("--size", accept_one_of(str(SIZE)), SIZE, f"{SIZE} bytes: its marker and a newline")
    add("--rate", str, "", "messages a second in all, or on each connection with /conn")
    add("--connect-rate", _parse_positive, None, "connections opened a second")
    add("--duration", _parse_duration, 10.0, "the measured window")
    add("--warmup", _parse_duration, 0.0, "load before it, which its figures hold as well")
    add("--connect-timeout", _parse_duration, 5.0, "how long a connect may take")
    add("--timeout", _parse_duration, 10.0, "no effect: tcpkali waits for no answer after its end")
    add("--linger", _parse_duration, 0.0, "has no effect: it closes its connections at its end")
    add("--nodelay", accept_one_of("on", "off"), "on", "TCP_NODELAY")
    add("--write-mode", accept_one_of("gathered"), "gathered", "a message is one write")
    add("--write-due", accept_one_of("each", "joined"), "each", "each: --write-combine off, as source D has it")
    add("--seed", _parse_whole_number, 1, "only recorded: nothing here is random")
    add("--json", str, "", "write the result as JSON to this file; - is stdout")
    add("--events-fd", int, -1, "write what happens, one JSON object a line, to this descriptor")
    options = parser.parse_args(arguments)
    if options.duration <= 0:
        parser.error("--duration must be longer than 0")
    if options.connect_rate is None:
        parser.error("--connect-rate: want connections a second; it cannot open them all at once")
    if options.connections / options.connect_rate > options.warmup + options.duration:
        parser.error("--connect-rate: it gives up when its connections take longer than --warmup and --duration")
    return LoadProgramRequest(
        tcpkali=options.tcpkali,
        url=options.url,
        connections=options.connections,
        rate_hz=_parse_rate_of_each(parser, options.rate, options.connections),
        connect_rate_hz=options.connect_rate,
        duration_s=options.duration,
        warmup_s=options.warmup,
        timeout_s=options.timeout,
        connect_timeout_s=options.connect_timeout,
        nodelay=options.nodelay == "on",
        joined=options.write_due == "joined",
        seed=options.seed,
        json_file=options.json,
        events_fd=options.events_fd,
    )


def _parse_rate_of_each(parser: Parser, text: str, connections: int) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)(/conn)?", text)
    if match is None or float(match[1]) <= 0:
        parser.error(f"--rate: {text!r} is no rate; want messages a second: 5000, or 100/conn")
    return float(match[1]) if match[2] else float(match[1]) / connections


def _parse_duration(text: str) -> float:
    return 0.0 if text == "0" else parse_duration(text)


def _parse_whole_number(text: str) -> int:
    if re.fullmatch(r"[1-9]\d{0,18}", text, re.ASCII) is None:
        raise ValueError(f"{text!r} is not a whole number above 0")
    return int(text)


def _parse_positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(f"{text!r} is not a number above 0")
    return value


def command(request: LoadProgramRequest) -> list[str]:
    """Return the command line of tcpkali: source D's, with more percentiles."""
    return [
        *(request.tcpkali, "-c", str(request.connections), "--connect-rate", f"{request.connect_rate_hz:.12g}"),
        *("-r", f"{request.rate_hz:.12g}", "-T", f"{request.warmup_s + request.duration_s:.12g}s"),
        *("--connect-timeout", f"{request.connect_timeout_s:.12g}s", "-em", MARKER),
        *(() if request.joined else ("--write-combine", "off")),
        *("--nagle", "off" if request.nodelay else "on", "--latency-percentiles", ",".join(PERCENTS)),
        f"{request.url.host}:{request.url.port}",
    ]


# --- its figures -----------------------------------------------------------------------------------------------------


class Report(NamedTuple):
    """The figures that tcpkali prints at its end. Rates and bytes are of the time since its connections stood
    (`seconds`); the latencies, each with its per cent, of its whole life."""

    bytes_sent: int
    bytes_received: int
    received_hz: float
    sent_hz: float
    latencies_ms: tuple[tuple[float, float], ...]
    seconds: float


class NoFiguresError(ValueError):
    """tcpkali ended without one of its lines."""


def read_report(text: str) -> Report:
    """Read tcpkali's output. Pure. Raises NoFiguresError, which names the missing line."""

    def find(line: str, pattern: str) -> re.Match[str]:
        match = re.search(f"^{line}: +{pattern}", text, re.MULTILINE)
        if match is None:
            raise NoFiguresError(f"tcpkali ended without its line {line!r}")
        return match

    rates = find("Aggregate message rate", r"([\d.]+)↓, ([\d.]+)↑ mps")
    latencies = find("Message latency at percentiles", r"([\d./]+) ms \(([\d./]+)%\)")
    values, percents = (tuple(map(float, group.split("/"))) for group in latencies.groups())
    if len(values) != len(percents):
        raise NoFiguresError("tcpkali ended without a value for each percentile")
    return Report(
        bytes_sent=int(find("Total data sent", r".*\((\d+) bytes\)")[1]),
        bytes_received=int(find("Total data received", r".*\((\d+) bytes\)")[1]),
        received_hz=float(rates[1]),
        sent_hz=float(rates[2]),
        latencies_ms=tuple(zip(percents, values, strict=True)),
        seconds=float(find("Test duration", r"([\d.e+]+) s\.")[1]),
    )


def histogram(latencies_ms: Sequence[tuple[float, float]], count: int) -> Histogram:
    """Return the histogram of `count` values that has these percentiles: between two of them, all have the upper one.
    Pure."""
    result, counted = Histogram(), 0
    for percent, value_ms in latencies_ms:
        rank = round(count * percent / 100)
        if rank > counted:
            result.record(round(1e6 * max(value_ms, STEP_MS / 2)), rank - counted)
        counted = max(counted, rank)
    return result


# --- how it runs -----------------------------------------------------------------------------------------------------


class Used(NamedTuple):
    """CPU seconds of the program so far, user and system, and the most memory that it has had, in bytes. `began_ns`:
    the beginning of the window in which it used them."""

    user_s: float
    system_s: float
    memory: int
    began_ns: int = 0


class Run:
    """tcpkali, from its start to its end."""

    def __init__(self, request: LoadProgramRequest) -> None:
        self._request = request
        self._is_ending = False
        self._child = subprocess.Popen(
            command(request),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=partial(prepare_child, os.getpid()),
        )
        self._ended = os.pidfd_open(self._child.pid)
        self._peak = 0
        self._limit_s = 2 * (request.warmup_s + request.duration_s) + PATIENCE_S
        self._was_too_long = False
        self._timer = threading.Timer(self._limit_s, self._give_up)
        self._timer.daemon = True
        self._timer.start()
        for number in list_ending_signals():
            signal.signal(number, self._end)

    def follow(self) -> tuple[str, str, Used, bool]:
        """Announce connections and window. Returns its output, its last words on stderr, its CPU time and memory in the
        window, and whether the window was whole."""
        last_line = self._await_connections()
        write_event(self._request.events_fd, event="connected", established=self._request.connections)
        start = monotonic() + self._request.warmup_s
        self._wait_until(start)
        write_event(self._request.events_fd, event="window_start")
        before = self._used()
        self._wait_until(start + self._request.duration_s)
        write_event(self._request.events_fd, event="window_end")
        after = self._used()
        began_ns = round(1e9 * start)
        used = Used(after.user_s - before.user_s, after.system_s - before.system_s, after.memory, began_ns)
        printed, complaints = self._child.communicate()
        self._timer.cancel()
        if self._was_too_long:
            sys.exit(_print_complaint(f"tcpkali did not end within {self._limit_s:g} s"))
        return printed.decode(errors="replace"), _find_last_line(complaints) or last_line, used, not self._is_ending

    @property
    def exit_code(self) -> int:
        return self._child.returncode

    def _await_connections(self) -> str:
        """Read stderr until its connections stand; returns the last line. Ends the program where they never do."""
        assert self._child.stderr is not None
        last_line = ""
        for line in self._child.stderr:
            if b"Ramped up to" in line:
                return ""
            last_line = _find_last_line(line) or last_line
        self._child.communicate()
        if self._was_too_long:
            last_line = f"tcpkali did not have its connections within {self._limit_s:g} s"
        sys.exit(_print_complaint(last_line or f"tcpkali ended with exit code {self.exit_code}"))

    def _wait_until(self, moment: float) -> None:
        """Wait until the moment, or until it has ended."""
        while (left_s := moment - monotonic()) > 0:
            if select.select([self._ended], [], [], min(left_s, POLL_S))[0]:
                return
            self._used()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        """Interrupt it: it prints its figures so far and ends."""
        self._is_ending = True
        with suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGINT)

    def _give_up(self) -> None:
        """Kill it: it may never end where it cannot carry out its request. Thread `_timer`."""
        self._was_too_long = True
        self._child.kill()

    def _used(self) -> Used:
        """Read the kernel's count, which stays until the program has been waited for (proc(5))."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        user, system = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields.split()[11:13])
        status = Path(f"/proc/{self._child.pid}/status").read_text(encoding="ascii", errors="replace")
        if peak := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE):
            self._peak = int(peak[1]) << 10
        return Used(user, system, self._peak)


def prepare_child(parent: int) -> None:
    """Let tcpkali end with this program, and have the kernel share the cores among its threads. Under SCHED_FIFO, which
    the harness starts a load with where it may, the threads that send leave none to the one that ends them
    (sched(7))."""
    die_with(parent)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _find_last_line(text: bytes) -> str:
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", text.decode(errors="replace")).strip())
    return lines[-1].strip()


def _print_complaint(words: str) -> int:
    print(f"tcpkali: {harmless(words)}", file=sys.stderr, flush=True)
    return 1


# --- the result ------------------------------------------------------------------------------------------------------


def load_result(request: LoadProgramRequest, report: Report, used: Used, *, whole: bool) -> LoadResult:
    """Return tcpkali's figures in the words of protocol/load-result.md. Pure."""
    window_s = request.duration_s if whole else min(request.duration_s, max(report.seconds - request.warmup_s, 0.0))
    bytes_sent = max(report.bytes_sent, report.bytes_received)  # echoes had been sent, if before it began to count
    received, sent = report.bytes_received // SIZE, bytes_sent // SIZE
    completed = min(round(report.received_hz * window_s), received)
    sent_in_window = min(round(report.sent_hz * window_s), sent)
    times = distribution(histogram(report.latencies_ms, min(completed, sent_in_window)))
    cpu_s = used.user_s + used.system_s
    window_ns = max(round(1e9 * window_s), 1_000_000)
    nothing = distribution(Histogram())
    return LoadResult(
        version=1,
        instrument="tcpkali",
        plan=_make_plan(request, window_s),
        began_ns=used.began_ns,
        requests=Requests(
            sent=sent_in_window, completed=completed, per_second=completed / window_s if window_s else 0.0
        ),
        latency=Latency(response_ns=times, service_ns=times),
        send_lag_ns=nothing,
        receive_lag_ns=nothing,
        connections=Connections(
            attempted=request.connections, established=request.connections, refused=0, timed_out=0, reset=0, other=0
        ),
        connect_ns=nothing,
        connection_mean_ns=nothing,
        messages=Messages(
            sent=sent, expected=received, received=received, lost=0, duplicated=0, reordered=0, corrupt=0
        ),
        bytes=Bytes(sent=bytes_sent, received=report.bytes_received, expected=report.bytes_received),
        generator=Generator(
            cpu_user_s=used.user_s,
            cpu_system_s=used.system_s,
            spun_s=0.0,
            cores_used=cpu_s / window_s if window_s else 0.0,
            cores=len(os.sched_getaffinity(0)),
            busiest=cpu_s / window_s if window_s else 0.0,
            max_rss_bytes=used.memory,
            threads=(GeneratorThread(cpu_user_s=used.user_s, cpu_system_s=used.system_s, spun_s=0.0),),
        ),
        errors={},
        timeseries=TimeSeries(
            interval_ns=min(window_ns, 10**12),
            completed=(completed,),
            p50_ns=(times.p50 if times.count else None,),
            p99_ns=(times.p99 if times.count else None,),
            errors=(0,),
        ),
        audits=tuple(_make_audits(request, report, whole=whole)),
    )


def _make_plan(request: LoadProgramRequest, window_s: float) -> LoadPlan:
    return LoadPlan(
        url=str(request.url),
        workload="echo",
        arrivals="constant",
        depth=1,
        rate_hz=request.rate_hz * request.connections,
        connections=request.connections,
        size=SIZE,
        threads=1,
        audience="others",
        seed=request.seed,
        warmup_s=request.warmup_s,
        duration_s=window_s,
        timeout_s=request.timeout_s,
        write_due="joined" if request.joined else "each",
    )


def _make_audits(request: LoadProgramRequest, report: Report, *, whole: bool) -> Iterator[Audit]:
    rates = f"it reports that it sent {report.sent_hz:.1f}/s and received {report.received_hz:.1f}/s"
    yield Audit(name="verification", passed=True, detail="not judged: tcpkali does not look at what comes back")
    yield Audit(name="connections", passed=True, detail=f"it reports {request.connections} connections")
    yield Audit(
        name="achieved_rate",
        passed=True,
        detail=f"not judged, because tcpkali's own figures are wanted: {rates}, of "
        f"{request.rate_hz * request.connections:.12g}/s requested",
    )
    yield Audit(name="generator", passed=True, detail="not judged: it does not report how late it sends or reads")
    detail = f"{format_duration(request.duration_s)}, as requested" if whole else "a signal ended it before its time"
    yield Audit(name="window", passed=whole, detail=detail)


def summary(request: LoadProgramRequest, result: LoadResult) -> str:
    """A few lines for people: the requested load, and the figures."""
    times = result.latency.response_ns
    percentiles = ", ".join(f"{name} {value / 1e6:.1f} ms" for name, value in (("p50", times.p50), ("p99", times.p99)))
    return "\n".join(
        [
            f"{request.url}: tcpkali, {request.connections} connections, {request.rate_hz:.12g} messages a second each",
            f"by its own figures: {result.requests.per_second:.1f} messages/s received, {percentiles}",
            *(f"INVALID  {audit.name}: {audit.detail}" for audit in result.audits if not audit.passed),
        ]
    )


def main() -> int:
    request = parse(sys.argv[1:])
    run = Run(request)
    printed, complaint, used, whole = run.follow()
    if run.exit_code not in (0, INTERRUPTED):
        return _print_complaint(complaint or f"tcpkali ended with exit code {run.exit_code}")
    try:
        report = read_report(printed)
    except NoFiguresError as error:
        return _print_complaint(str(error))
    result = load_result(request, report, used, whole=whole)
    if problem := write_result(result, request.json_file, summary(request, result)):
        return _print_complaint(problem)
    return 0 if result.messages.received else _print_complaint(f"no answer from {request.url}")


if __name__ == "__main__":
    sys.exit(main())

"""netdyno-load as a program: its result, its events, its exit codes, and what it says to a person."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.audits.plausible import populations
from netdyno.measure.machine.pinning import may_run_realtime
from netdyno.measure.machine.process import REALTIME_PRIORITY
from netdyno.measure.trial.load import INVALID_LOAD
from netdyno.model.load_result import LoadResult
from netdyno.protocol import wire
from tests.support import audit_names
from tests.support.foreign import MEASURED, expect_one_line, lines_of, tcp
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

PATIENCE_S = 20
QUICK = ("--warmup", "20ms", "--duration", "200ms")
SOON_NS = 1_000_000_000
"""Nanoseconds from the `go` message until the programs begin together."""
EndedLoad = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of an echo server."""
    with serving((str(build_dir() / "servers" / "threads-global-lock"),)) as serves:
        yield serves.endpoint


@contextmanager
def room() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of a chat server that keeps 64 KiB for a slow reader, and its process."""
    command = [str(build_dir() / "servers" / "epoll-reactor"), "--workload", "chat", "--audience", "all"]
    command += ["--outbox-limit", "65536"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["endpoint"], process
        finally:
            process.terminate()


@pytest.fixture
def unanswered_url() -> Iterator[str]:
    """A URL where no server listens: the port is bound and stays bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{bound.getsockname()[1]}"


def load(*arguments: str, descriptors: int | None = None, pass_fds: tuple[int, ...] = ()) -> EndedLoad:
    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    done = subprocess.run(
        [str(generator_path(build_dir())), *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit if descriptors else None,
        pass_fds=pass_fds,
    )
    if done.stdout.startswith("{"):
        result = msgspec.json.decode(done.stdout, type=LoadResult)
        assert [bound for bound in populations(result) if bound.broken] == []
    else:
        expect_one_line(done.stdout)
    return done


def test_the_result_has_the_schema_of_the_harness(server: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = load(server, "-c", "5", "--rate", "500", "--seed", "3", "--json", str(file), *QUICK)
    assert done.returncode in MEASURED
    assert done.stderr == ""
    result = msgspec.json.decode(file.read_bytes(), type=LoadResult)
    assert result.version == 1
    assert result.plan.rate_hz == 500
    assert result.plan.arrivals == "constant"
    assert (result.plan.connections, result.plan.seed, result.plan.duration_s) == (5, 3, 0.2)
    assert result.requests.sent == result.latency.response_ns.count == 100
    assert result.latency.clock == "kernel"
    assert result.receive_lag_ns is not None
    assert result.receive_lag_ns.count == 0, "it is in no response time"
    assert result.messages.sent == result.messages.received == 110
    assert result.bytes.sent == result.bytes.received == result.bytes.expected == 110 * 31
    assert result.connections.attempted == result.connections.established == result.connect_ns.count == 5
    assert sum(result.timeseries.completed) == result.requests.completed
    assert (result.timeseries.interval_ns, len(result.timeseries.completed)) == (10_000_000, 20)
    assert result.generator.max_rss_bytes > 1 << 20
    assert [audit.name for audit in result.audits] == [
        *("verification", "bytes", "connections", "achieved_rate", "little", "generator")
    ]
    assert {audit.name for audit in result.audits} == audit_names.of_generator()
    assert list(tmp_path.iterdir()) == [file], "nothing is left beside it"


def test_a_closed_loop_has_no_rate(server: str) -> None:
    done = load(server, "-c", "2", "--depth", "3", "--json", "-", *QUICK)
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert result.plan.rate_hz is None
    assert (result.plan.arrivals, result.plan.depth) == ("closed", 3)


def test_a_closed_loop_says_how_late_it_reads(server: str) -> None:
    result = msgspec.json.decode(load(server, "-c", "2", "--json", "-", *QUICK).stdout, type=LoadResult)
    assert result.latency.clock == "generator"
    assert result.receive_lag_ns is not None
    assert result.receive_lag_ns.count > 0
    assert 0 < result.receive_lag_ns.p50 < result.latency.response_ns.p50


PAUSE_S = 2.0


def pause_before_reply(listens: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Answer one request while the process that sent it is stopped, and let it go on only long after that."""
    connection, _ = listens.accept()
    with connection:
        request = connection.recv(1 << 16)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        connection.sendall(request)
        time.sleep(PAUSE_S)
        process.send_signal(signal.SIGCONT)
        while connection.recv(1 << 16):
            pass


@contextmanager
def arrivals_stamped() -> Iterator[None]:
    """While this lasts the kernel stamps whatever arrives. It begins to some time after a first socket has asked for it
    (net_enable_timestamp in net/core/dev.c, by a work queue)."""
    so_timestamping, received_by_software = 37, 1 << 3 | 1 << 4  # linux/net_tstamp.h
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asks:
        asks.bind(("127.0.0.1", 0))
        asks.setsockopt(socket.SOL_SOCKET, so_timestamping, received_by_software)
        ancillary: list[object] = []
        while not ancillary:
            asks.sendto(b"?", asks.getsockname())
            ancillary += asks.recvmsg(1, 128)[1]
        yield


@pytest.mark.parametrize("rate", [pytest.param(("--rate", "100"), id="kernel"), pytest.param((), id="generator")])
def test_a_reply_that_waits_for_the_generator_has_the_time_of_the_clock_that_the_result_names(
    rate: tuple[str, ...],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listens, arrivals_stamped():
        url = f"tcp://127.0.0.1:{listens.getsockname()[1]}"
        command = [str(generator_path(build_dir())), url, "-n", "1", "--json", "-", *rate]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            pause_before_reply(listens, process)
            stdout, _ = process.communicate(timeout=PATIENCE_S)
    latency = msgspec.json.decode(stdout, type=LoadResult).latency
    assert latency.response_ns.count == 1
    assert latency.clock == ("kernel" if rate else "generator")
    assert (latency.response_ns.max < PAUSE_S * 1e9) == (latency.clock == "kernel")


def trace_generator(strace: str, calls: str, trace: Path) -> list[str]:
    """The words that run the generator with these calls of it written into a file. The leak sanitizer cannot look at a
    process that strace holds."""
    tracer = (strace, "-f", "-qq", "-e", "signal=none", "-e", f"trace={calls}", "-E", "ASAN_OPTIONS=detect_leaks=0")
    return [*tracer, "-o", str(trace), str(generator_path(build_dir()))]


def calls_after_sends(strace: str, trace: Path, url: str, *options: str) -> list[str]:
    """The system call of the generator that follows each send of a message."""
    command = trace_generator(strace, "sendto,recvmsg,recvfrom,epoll_pwait2,clock_nanosleep", trace)
    command += [url, "--rate", "50", "-n", "20", *options]
    assert subprocess.run(command, capture_output=True, check=False, timeout=60).returncode in MEASURED
    calls = re.findall(r"^(\d+) +(\w+)\(", trace.read_text(), re.MULTILINE)
    (thread,) = {number for number, call in calls if call == "sendto"}
    return [after for call, after in pairwise(call for number, call in calls if number == thread) if call == "sendto"]


def test_replies_wait_until_the_generator_is_awake_anyway(server: str, strace_program: str, tmp_path: Path) -> None:
    """After a message it sleeps, and does not listen. A busy machine may take the core away for so long that it has to
    listen at once, but hardly each time."""
    assert "clock_nanosleep" in calls_after_sends(strace_program, tmp_path / "trace", server)
    assert "clock_nanosleep" not in calls_after_sends(strace_program, tmp_path / "on", server, "--spin", "on")


def halve_replies(listens: socket.socket) -> None:
    connection, _ = listens.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while request := connection.recv(1 << 16):
            connection.sendall(request[:10])
            time.sleep(0.01)
            connection.sendall(request[10:])


def test_replies_in_several_pieces_are_listened_for(strace_program: str, tmp_path: Path) -> None:
    """Its server may not go on before the first piece has been read, so after such a one no reply waits any more."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        answers = threading.Thread(target=halve_replies, args=(listens,))
        answers.start()
        url = f"tcp://127.0.0.1:{listens.getsockname()[1]}"
        after = calls_after_sends(strace_program, tmp_path / "trace", url)
        answers.join(PATIENCE_S)
    assert len(after) > 5, "what a late thread finds due leaves in one call"
    assert "clock_nanosleep" not in after[5:]


def test_clients_reconnect_after_their_requests(server: str) -> None:
    done = load(server, "-c", "3", "--requests-per-connection", "2", "--json", "-", "--warmup", "20ms", "-n", "60")
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert (result.plan.connections, result.plan.requests_per_connection) == (3, 2)
    made = result.connections
    assert made.attempted == made.established == result.connect_ns.count
    assert 3 < made.in_window < made.established
    assert 2 * (made.established - 3) <= result.messages.sent <= 2 * made.established
    assert result.messages.received == result.messages.sent
    assert sum(result.errors.values()) == 0
    assert [audit.detail for audit in result.audits if audit.name == "connections" and not audit.passed] == []


def test_each_connection_has_its_mean(server: str) -> None:
    done = load(server, "-c", "7", "--json", "-", *QUICK)
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    means = result.connection_mean_ns
    assert means is not None
    assert means.count == 7
    beyond = result.plan.duration_s * 1e9  # as one that a busy machine serves nothing in the window
    assert means.p50 <= means.max <= 1.001 * max(result.latency.response_ns.max, beyond)


def echo(connection: socket.socket, held_after_s: float) -> None:
    """Echo each message after 2 ms, and the first one after that time 400 ms later."""
    held_at = time.monotonic() + held_after_s
    with connection:
        while data := connection.recv(1 << 16):
            held = time.monotonic() >= held_at
            time.sleep(0.4 if held else 0.002)
            held_at = float("inf") if held else held_at
            connection.sendall(data)


def test_a_connection_that_is_held_up_beyond_the_window_is_not_the_best_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listens:
        url = f"tcp://127.0.0.1:{listens.getsockname()[1]}"
        command = [str(generator_path(build_dir())), url, "-c", "2", "--json", "-", *QUICK]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            for held_after_s in (0.1, float("inf")):
                connection, _ = listens.accept()
                threading.Thread(target=echo, args=(connection, held_after_s), daemon=True).start()
            stdout, _ = process.communicate(timeout=PATIENCE_S)
    result = msgspec.json.decode(stdout, type=LoadResult)
    means = result.connection_mean_ns
    assert means is not None
    assert means.count == 2
    assert means.max > 2 * result.latency.response_ns.p50


@pytest.mark.parametrize(
    "pace",
    [
        pytest.param((), id="closed"),
        pytest.param(("--rate", "1000"), id="constant"),
        pytest.param(("--rate", "250/conn", "--arrivals", "poisson"), id="poisson"),
    ],
)
def test_only_the_busy_connections_get_messages_and_the_others_stay(pace: tuple[str, ...]) -> None:
    """They are the first four of ten, dealt out to two threads. An idle connection ends without a byte."""
    heard: list[list[int]] = []

    def serve(connection: socket.socket, _number: int) -> None:
        senders: set[int] = set()
        for line in lines_of(connection):
            senders.add(wire.read_stamp(line.removesuffix(b"\n"))[0])
            connection.sendall(line)
        heard.append(sorted(senders))

    with tcp(serve) as url:
        idle = ("-c", "10", "--busy-connections", "4", "--threads", "2")
        done = load(url, *idle, *pace, "--json", "-", *QUICK)
    assert sorted(heard) == [[]] * 6 + [[0], [1], [2], [3]]
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert (result.plan.busy_connections, result.connections.established) == (4, 10)
    if pace:
        assert result.plan.rate_hz == 1000
    assert result.messages.received == result.messages.sent
    assert result.connection_mean_ns is not None
    assert result.connection_mean_ns.count == 4, "an idle connection has no times"
    judged = [audit for audit in result.audits if audit.name in ("verification", "bytes", "connections")]
    assert [audit.detail for audit in judged if not audit.passed] == []


def test_an_idle_connection_that_the_server_closes_is_an_error() -> None:
    """After the fifth message of the one that is busy."""
    connections: list[socket.socket] = []
    all_are_here = threading.Barrier(3)

    def serve(connection: socket.socket, _number: int) -> None:
        connections.append(connection)
        all_are_here.wait(PATIENCE_S)
        for count, line in enumerate(lines_of(connection), 1):
            connection.sendall(line)
            if count == 5:
                for idle in connections:
                    if idle is not connection:
                        idle.shutdown(socket.SHUT_RDWR)

    with tcp(serve) as url:
        done = load(url, "-c", "3", "--busy-connections", "1", "--rate", "50", "--json", "-", "--duration", "1s")
    assert done.returncode == INVALID_LOAD
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert (result.errors["closed_by_server"], result.messages.lost) == (2, 0)
    assert "connections" in {audit.name for audit in result.audits if not audit.passed}


def test_the_summary_says_how_many_connections_send(server: str) -> None:
    done = load(server, "-c", "5", "--busy-connections", "2", *QUICK)
    assert "over 5 connections, 2 of which send, closed loop" in done.stdout


TALKING = ("--workload", "chat", "--audience", "all", "--json", "-")


def test_slow_readers_say_nothing_and_only_the_others_are_measured() -> None:
    with room() as (url, _):
        done = load(url, *TALKING, "--rate", "200", "-c", "6", "--slow-readers", "2", *QUICK)
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert (result.plan.slow_readers, result.connections.established) == (2, 6)
    assert result.messages.sent > 20
    assert result.messages.expected == 4 * result.messages.sent == result.messages.received
    assert result.connection_mean_ns is not None
    assert result.connection_mean_ns.count <= 4
    judged = [audit for audit in result.audits if audit.name in ("verification", "bytes", "connections")]
    assert [audit.detail for audit in judged if not audit.passed] == []


@pytest.mark.calm
def test_a_slow_reader_that_the_server_closes_is_no_error() -> None:
    """A megabyte for each of twenty messages in a window, which no socket between them holds."""
    with room() as (url, process):
        done = load(url, *TALKING, "--rate", "100", "--size", "1000000", "-c", "3", "--slow-readers", "1", *QUICK)
        process.terminate()
        assert process.stdout is not None
        totals = json.loads(process.stdout.readline())
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert totals["slow_closed"] >= 1
    assert result.messages.sent > 5
    assert result.messages.received > result.messages.sent


def test_the_summary_says_how_many_connections_were_made(server: str) -> None:
    done = load(server, "-c", "3", "--requests-per-connection", "1", *QUICK)
    assert "over 3 connections at a time, reconnected after 1 request, closed loop" in done.stdout
    assert re.search(r"connections +(\d+) of \1 established.*\n +3 at a time, [\d.]+ made a second\n", done.stdout)


def test_in_rounds_everybody_sends_at_the_same_time(server: str) -> None:
    """Ten rounds of 20 ms for three connections, less what a busy machine misses; at once would be thousands."""
    options = ("--round", "20ms", "--warmup", "0", "--duration", "200ms", "--json", "-")
    result = msgspec.json.decode(load(server, "-c", "3", *options).stdout, type=LoadResult)
    assert result.plan.round_s == 0.02
    assert 3 <= result.requests.sent <= 30
    assert result.latency.response_ns.count == result.requests.sent


def test_sockets_are_polled_no_more_often_than_requested(server: str) -> None:
    """Each answer waits for the next poll, so a connection has 20 of them at most in a second of such polls. The
    wait is receive lag: the kernel has had the answers for long."""
    options = ("--look-every", "50ms", "--warmup", "100ms", "--duration", "1s", "--json", "-")
    result = msgspec.json.decode(load(server, "-c", "3", *options).stdout, type=LoadResult)
    assert result.plan.look_every_s == 0.05
    assert 3 <= result.requests.completed <= 3 * 21
    assert result.latency.response_ns.p50 > 40e6
    assert result.receive_lag_ns is not None
    assert result.receive_lag_ns.count == result.latency.response_ns.count
    assert 20e6 < result.receive_lag_ns.p50 <= result.latency.response_ns.p50
    assert result.messages.received == result.messages.sent


@pytest.mark.parametrize("how", ["each", "joined"])
def test_what_is_due_on_a_connection_leaves_in_one_call_where_it_is_joined(
    server: str, strace_program: str, tmp_path: Path, how: str
) -> None:
    """Each of ten connections has ten messages or more by the next poll. The calls are strace's count, and what was
    sent the generator's; both hold on any machine, for a late poll only finds more that is due."""
    trace, result_file = tmp_path / "trace", tmp_path / "result.json"
    pace = ("-c", "10", "--rate", "100/conn", "--look-every", "100ms", "--write-due", how)
    command = trace_generator(strace_program, "sendto", trace)
    command += [server, *pace, "--warmup", "0", "--duration", "1s"]
    done = subprocess.run([*command, "--json", str(result_file)], capture_output=True, check=False, timeout=60)
    assert done.returncode in (0, 3), done.stderr  # under strace it may not be believed
    result = msgspec.json.decode(result_file.read_bytes(), type=LoadResult)
    assert (result.plan.write_due, result.messages.lost, result.messages.corrupt) == (how, 0, 0)
    assert result.messages.received == result.messages.sent == 1000
    sizes = [int(size) for size in re.findall(r"sendto\(.* = (\d+)$", trace.read_text(), re.MULTILINE)]
    assert sum(sizes) == 31 * 1000
    if how == "each":
        assert sizes == [31] * 1000
    else:
        assert len(sizes) <= 10 * 11  # polls, that at the start among them
    assert result.send_lag_ns.p50 > 20e6, "whoever is late for a poll is late in the figures"


def test_what_is_due_is_joined_without_rare_polls_and_in_a_closed_loop(server: str) -> None:
    for pace in (("--rate", "5000/conn"), ("--depth", "20"), ()):
        done = load(server, "-c", "3", *pace, "--write-due", "joined", *QUICK, "--json", "-")
        result = msgspec.json.decode(done.stdout, type=LoadResult)
        assert result.requests.completed > 0
        assert (result.messages.lost, result.messages.corrupt, result.messages.unsent) == (0, 0, 0)


def test_datagrams_are_joined_into_one_call(strace_program: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    pace = ("-c", "2", "--rate", "100/conn", "--look-every", "100ms", "--write-due", "joined")
    with serving((str(build_dir() / "servers" / "udp-coroutines"),)) as serves:
        command = trace_generator(strace_program, "sendmsg,sendmmsg,sendto", trace)
        command += [serves.endpoint, *pace, "--warmup", "0", "--duration", "1s", "--json", "-"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    result = msgspec.json.decode(done.stdout, type=LoadResult)
    assert result.messages.sent == 200
    assert len(re.findall(r" send\w+\(", trace.read_text())) < 100


def test_a_schedule_that_no_machine_keeps_ends_with_its_time(server: str) -> None:
    """After the window and the timeout the rest is not sent late: it is reported as missing."""
    options = ("--rate", "1e7", "--warmup", "0", "--duration", "200ms", "--timeout", "50ms", "--json", "-")
    result = msgspec.json.decode(load(server, "-c", "2", *options).stdout, type=LoadResult)
    (audit,) = [audit for audit in result.audits if audit.name == "achieved_rate"]
    assert not audit.passed
    assert audit.detail.endswith("the generator fell behind")


def test_messages_that_outgrow_the_send_buffer_are_sent_in_pieces(server: str) -> None:
    """The kernel takes at most twice what was asked for (socket(7)): a message of 1 MiB waits for room many times."""
    options = ("--send-buffer", "16KiB", "--size", "1MiB", "--warmup", "0", "--duration", "200ms", "--json", "-")
    result = msgspec.json.decode(load(server, "-c", "1", *options).stdout, type=LoadResult)
    assert result.plan.send_buffer == 16 << 10
    assert result.messages.received == result.messages.sent > 0


def test_a_datagram_has_no_send_buffer_option() -> None:
    done = load("udp://127.0.0.1:7000", "--send-buffer", "16KiB")
    assert done.returncode == 2
    assert "--send-buffer is for tcp" in done.stderr


def test_a_connection_lingers_on_request(server: str) -> None:
    """It is still open when the window has long been over."""
    began = time.monotonic()
    done = load(server, "--linger", "700ms", "--warmup", "0", "--duration", "50ms")
    assert done.returncode in MEASURED
    assert time.monotonic() - began >= 0.75


@pytest.mark.skipif(not may_run_realtime(), reason="this user may not use real-time priority (ulimit -r)")
def test_at_real_time_priority_the_thread_that_announces_comes_before_those_that_load(server: str) -> None:
    """Else a load at the limit of its core would leave its window unannounced (sched(7), SCHED_FIFO)."""
    reader, writer = os.pipe()
    options = ("--events-fd", str(writer), "--warmup", "0", "--duration", "30s", "--rate", "100", "-c", "2")
    command = [str(generator_path(build_dir())), server, *options, "--threads", "2"]
    with (
        os.fdopen(reader) as lines,
        subprocess.Popen(
            ["chrt", "-f", str(REALTIME_PRIORITY), *command], stdout=subprocess.DEVNULL, pass_fds=(writer,)
        ) as generator,
    ):
        os.close(writer)
        while json.loads(lines.readline())["event"] != "window_start":
            pass
        tasks = sorted(int(task.name) for task in Path(f"/proc/{generator.pid}/task").iterdir())
        priorities = [os.sched_getparam(task).sched_priority for task in tasks]
        generator.send_signal(signal.SIGINT)
        assert generator.wait(PATIENCE_S) in MEASURED
    assert tasks[0] == generator.pid
    assert priorities == [REALTIME_PRIORITY, REALTIME_PRIORITY - 1, REALTIME_PRIORITY - 1]


def test_keys_keep_their_order(server: str) -> None:
    first, second = (json.loads(load(server, "--json", "-", *QUICK).stdout) for _ in range(2))

    def keys(value: object) -> object:
        return [(key, keys(field)) for key, field in value.items()] if isinstance(value, dict) else None

    assert keys(first) == keys(second)
    assert (first["messages"]["late"], first["generator"]["socket_drops"]) == (0, 0)
    assert list(first)[:4] == ["version", "plan", "began_ns", "requests"]


def test_every_thread_says_what_it_used(server: str) -> None:
    result = msgspec.json.decode(
        load(server, "-c", "4", "--threads", "2", "--json", "-", *QUICK).stdout, type=LoadResult
    )
    assert len(result.generator.threads) == 2
    assert result.generator.cpu_user_s == pytest.approx(sum(thread.cpu_user_s for thread in result.generator.threads))
    assert result.generator.cores == len(os.sched_getaffinity(0))
    busiest = max(thread.cpu_user_s + thread.cpu_system_s - thread.spun_s for thread in result.generator.threads)
    assert result.generator.busiest == pytest.approx(busiest / result.plan.duration_s)


def test_events_come_in_order_as_lines_of_json(server: str) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader) as lines:
        options = ("--events-fd", str(writer), "--warmup", "0", "--duration", "1200ms")
        assert load(server, "-c", "3", *options, pass_fds=(writer,)).returncode in MEASURED
        os.close(writer)
        events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["connected", "window_start", "progress", "progress", "window_end"]
    assert events[0]["established"] == 3
    assert [event["seconds"] for event in events[2:4]] == [0.5, 1.0]
    assert 0 <= events[2]["completed"] <= events[3]["completed"] > 0


def test_the_hdr_log_is_read_by_the_package(server: str, tmp_path: Path) -> None:
    log, file = tmp_path / "load.hlog", tmp_path / "result.json"
    load(server, "-c", "2", "--rate", "300", "--hdr", str(log), "--json", str(file), *QUICK)
    result = msgspec.json.decode(file.read_bytes(), type=LoadResult)
    module = importlib.import_module("hdrh.log")
    base = importlib.import_module("hdrh.histogram").HdrHistogram(1, 3_600_000_000_000, 3)
    reader = module.HistogramLogReader(str(log), base)
    seen = {}
    while histogram := reader.get_next_interval_histogram():
        seen[histogram.get_tag()] = histogram
    reader.close()
    for tag, expected in (
        ("response_ns", result.latency.response_ns),
        ("service_ns", result.latency.service_ns),
        ("send_lag_ns", result.send_lag_ns),
        ("receive_lag_ns", result.receive_lag_ns),
    ):
        assert expected is not None
        assert seen[tag].get_total_count() == expected.count
        assert seen[tag].get_value_at_percentile(99) == expected.p99


def test_the_summary_fits_a_screen_and_is_clean_on_a_pipe(server: str) -> None:
    done = load(server, "-c", "3", *QUICK)
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert "\r" not in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    assert "closed loop" in done.stdout
    assert "3 of 3 established" in done.stdout
    rows = [line.split("  ")[0] for line in lines]
    assert rows.index("receive lag") == rows.index("send lag") + 1
    assert "the two lags are the error bar" in done.stdout


def test_the_summary_says_that_the_kernel_ended_the_times(server: str) -> None:
    summary = load(server, "-c", "3", "--rate", "500", *QUICK).stdout
    assert "receive lag   none: times end when the kernel had the answers\n" in summary
    assert "the send lag is the error bar" in summary


def test_a_terminal_gets_a_live_line(server: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(generator_path(build_dir())), server, "--warmup", "0", "--duration", "700ms"],
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 4096):
                shown += data
        except OSError:  # EIO: the other side has closed the terminal
            pass
        os.close(ours)
    assert process.returncode in MEASURED
    assert b"\r" in shown
    assert b"/s" in shown
    assert b"0.5 of 0.7 s" in shown


def test_it_says_that_nothing_listens(unanswered_url: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = load(unanswered_url, "-c", "4", "--json", str(file), *QUICK)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "requested 4 connections" in done.stderr
    assert "refused 4" in done.stderr
    result = msgspec.json.decode(file.read_bytes(), type=LoadResult)
    assert result.connections.refused == 4
    assert not {audit.name: audit for audit in result.audits}["connections"].passed


def test_it_says_how_to_get_more_descriptors(server: str) -> None:
    done = load(server, "-c", "500", *QUICK, descriptors=100)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "ulimit -n" in done.stderr


def test_it_raises_the_soft_limit_itself(server: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        done = load(server, "-c", "100", *QUICK)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert done.returncode in MEASURED, done.stderr
    assert "100 of 100 established" in done.stdout


def test_a_file_that_cannot_be_written_is_stated(server: str, tmp_path: Path) -> None:
    done = load(server, "--json", str(tmp_path / "missing" / "result.json"), *QUICK)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert "No such file" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("quic://127.0.0.1:1",),
        ("udp://127.0.0.1:1", "--workload", "http"),
        ("tcp://127.0.0.1:1", "--frobnicate"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: tuple[str, ...]) -> None:
    done = load(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("netdyno-load: ")


def test_help_has_examples() -> None:
    done = load("--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert done.stdout.count("netdyno-load tcp://") >= 4
    assert "\n  netdyno-load tcp://127.0.0.1:7000 -c 100\n      as fast as 100 connections go" in done.stdout
    assert "--connect-rate" in done.stdout


def part(number: int, server: str, result: Path, *more: str) -> subprocess.Popen[str]:
    """One of two programs that make a load together, once all of its connections stand."""
    words = [server, "-c", "5", "--rate", "1000", "--share", f"{number}/2", "--await-go", *QUICK, *more]
    command = [str(generator_path(build_dir())), *words, "--json", str(result), "--events-fd", "1"]
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert json.loads(started.stdout.readline())["event"] == "connected"
    return started


def tell(load_part: subprocess.Popen[str], line: str) -> None:
    assert load_part.stdin is not None
    load_part.stdin.write(f"{line}\n")
    load_part.stdin.flush()


def sent_by(load_part: subprocess.Popen[str]) -> int:
    """The messages that it sent, once it will send no more."""
    assert load_part.stdout is not None
    return next(int(event["messages"]) for line in load_part.stdout if (event := json.loads(line))["event"] == "sent")


@pytest.mark.parametrize(
    ("audience", "slow", "too_many"), [("all", 0, 0), ("others", 0, 0), ("others", 1, 0), ("all", 0, 1)]
)
def test_each_part_of_a_chat_hears_all_that_all_have_sent(
    audience: str, slow: int, too_many: int, tmp_path: Path
) -> None:
    """Each part reports the messages that it missed, of those that it learns were sent."""
    results = [tmp_path / "1", tmp_path / "2"]
    of_room = ("--workload", "chat", "--audience", audience)
    command = (str(build_dir() / "servers" / "epoll-reactor"), *of_room)
    more = (*of_room, "--slow-readers", str(slow), "--timeout", "2s" if too_many else "10s")
    with (
        serving(command) as serves,
        part(1, serves.endpoint, results[0], *more) as first,
        part(2, serves.endpoint, results[1], *more) as second,
    ):
        start_ns = time.monotonic_ns() + SOON_NS
        for load_part in (first, second):
            tell(load_part, f"go {start_ns}")
        sent = [sent_by(load_part) for load_part in (first, second)]
        for load_part in (first, second):
            tell(load_part, f"sent {sum(sent) + too_many}")
        for load_part in (first, second):
            load_part.communicate(timeout=PATIENCE_S)
            assert load_part.returncode in MEASURED
    loads = [json.loads(result.read_text()) for result in results]
    for load, own, listeners in zip(loads, sent, (3 - slow, 2), strict=True):
        messages = load["messages"]
        assert messages["sent"] == own > 0
        heard = listeners * sum(sent) - (own if audience == "others" else 0)
        assert messages["received"] - messages["duplicated"] == heard
        assert messages["expected"] == heard + listeners * too_many
        assert messages["lost"] == listeners * too_many
        assert load["bytes"]["received"] == load["bytes"]["expected"]
        (verified,) = (audit for audit in load["audits"] if audit["name"] == "verification")
        assert verified["passed"] is (too_many == 0), verified["detail"]


def test_two_programs_make_one_load_from_a_common_moment(server: str, tmp_path: Path) -> None:
    results = [tmp_path / "1", tmp_path / "2"]
    with part(1, server, results[0]) as first, part(2, server, results[1]) as second:
        start_ns = time.monotonic_ns() + SOON_NS
        for load_part in (first, second):
            tell(load_part, f"go {start_ns}")
        for load_part in (first, second):
            load_part.communicate(timeout=PATIENCE_S)
            assert load_part.returncode in MEASURED
    assert time.monotonic_ns() - start_ns >= 220_000_000  # warm-up and window
    plans = [json.loads(result.read_text())["plan"] for result in results]
    assert [(plan["connections"], plan["rate_hz"]) for plan in plans] == [(3, 600), (2, 400)]
    times = json.loads(results[0].read_text())["timeseries"]
    assert len(times["histograms"]) == len(times["completed"])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "no start time came on stdin"),
        ("now\n", "no start time came on stdin"),
        ("go soon\n", "no start time came on stdin"),
        ("go 1\n", "the start time was already [0-9]+ us ago"),
    ],
)
def test_a_program_whose_moment_has_passed_measures_nothing(
    line: str, complaint: str, server: str, tmp_path: Path
) -> None:
    with part(1, server, tmp_path / "result") as load_part:
        assert re.search(complaint, load_part.communicate(line, timeout=PATIENCE_S)[1])
        assert load_part.returncode == 1
    assert not (tmp_path / "result").exists()


@pytest.mark.parametrize(
    ("reply", "received"),
    [(b"HTTP/1.1 500 \x1b[31m\xc2\x9b\r\n", r"HTTP/1.1 500 \x1b[31m\xc2\x9b\r\n"), (b"", "")],
    ids=["wrong", "mute"],
)
def test_where_no_reply_was_right_the_result_has_a_request_and_what_came(reply: bytes, received: str) -> None:
    def answer(connection: socket.socket, _number: int) -> None:
        while connection.recv(1 << 16):
            connection.sendall(reply)

    with tcp(answer) as url:
        printed = load(url, "--workload", "http", "--json", "-", "--timeout", "200ms", *QUICK).stdout
    exchange = json.loads(printed)["first_exchange"]
    assert exchange["sent"].startswith("GET /")
    assert exchange["received"].startswith(received)
    assert printed.isascii(), "nothing of it has an effect on a terminal"


def test_where_a_reply_was_right_the_result_has_none(server: str) -> None:
    assert "first_exchange" not in json.loads(load(server, "--json", "-", *QUICK).stdout)

"""A small generator that obeys the contract of netdyno-load, or breaks it in the way FAKE_LOAD names. With --as-client
it is a client contestant (protocol/client.md), which knows fewer options, and FAKE_CLIENT says how it misbehaves.

It really connects, sends a few messages and gets them back, so that the server's totals can be held against its own.
Over UDP it says hello first, and again after each message: what does not come back before that is answered is lost.
"steady" sends before its window, too, and all through it, and says how far it is; "hangs_after:FILE" hangs after so
many windows as the file says. With --turns it sends its messages in each slice that is announced, and its result
counts those of the slices that were kept. It is started some thousand times: to load argparse, json, pathlib, and the
Python halves of signal and socket would be most of its CPU time."""

import _signal  # type: ignore[import-not-found]
import _socket
import binascii
import fcntl
import os
import struct
import sys
import termios
import time
import zlib

IS_CLIENT = "--as-client" in sys.argv
MODE = os.environ.get("FAKE_CLIENT" if IS_CLIENT else "FAKE_LOAD", "good")
MESSAGES = 3
PATIENCE_S = 30.0
PROGRESS_S = 0.1
HELLO = b"\0\0\0\0HELO" + bytes(8)
# What every time is over the loopback, so that no figure depends on the machine; over a link, what it really took.
LOOPBACK_NS = 100 if MODE == "impossible" else 1000
connects_ns: list[int] = []
exchanges_ns: list[int] = []
window_began_ns: list[int] = []


class FakeLoadOptions:
    """The command line. A client contestant knows fewer options."""

    url = ""
    workload = duration = warmup = json = audience = rate = ""
    arrivals = "closed"
    size, connections, depth, threads, seed, events_fd = 31, 1, 1, 1, 1, -1
    turns = False
    flags = ("--as-client",) if IS_CLIENT else ("--turns", "--witness")
    ignored: tuple[str, ...] = (
        "--timeout",
        "--linger",
        "--nodelay",
        "--write-mode",
        "--service-time",
        "--connect-timeout",
    )
    texts: tuple[str, ...] = ("--workload", "--duration", "--warmup", "--json")
    numbers: tuple[str, ...] = ("-c", "--size", "--seed", "--events-fd")
    if not IS_CLIENT:
        ignored += ("--connect-rate", "--count")
        texts += ("--arrivals", "--audience", "--rate")
        numbers += ("--depth", "--threads")

    def __init__(self, words: list[str]) -> None:
        if "--help" in words:
            print("usage: load.py URL [--workload NAME] ...")
            sys.exit()
        left = iter(words)
        for word in left:
            name = "connections" if word == "-c" else word[2:].replace("-", "_")
            if word in self.flags:
                setattr(self, name, True)
            elif word in self.numbers:
                setattr(self, name, int(next(left)))
            elif word in self.texts:
                setattr(self, name, next(left))
            elif word in self.ignored:
                next(left)
            elif word.startswith("-") or self.url:
                print(f"load.py: error: unrecognized arguments: {word}", file=sys.stderr)
                sys.exit(2)
            else:
                self.url = word


options = FakeLoadOptions(sys.argv[1:])
IS_CHECK = options.events_fd < 0


def json_of(value: object) -> str:
    """Its text. No string here needs an escape but for quotes and backslashes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_of(key)}: {json_of(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_of, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
    return "null" if value is None else repr(value).lower()


def say(**event: object) -> None:
    if not IS_CHECK and MODE != "no_events":
        os.write(options.events_fd, json_of(event).encode() + b"\n")


def is_heard() -> bool:
    """Whether all that was said has been read (FIONREAD, pipe(7))."""
    return IS_CHECK or not any(fcntl.ioctl(options.events_fd, termios.FIONREAD, bytes(4)))


def begin_the_window() -> float:
    """Announce it, wait until the harness has read that, and return when it began. Nothing before it is observed."""
    say(event="window_start")
    while not is_heard():
        time.sleep(0.0005)
    window_began_ns.append(time.monotonic_ns())
    return window_began_ns[-1] / 1e9


def say_hello(to: tuple[str, int]) -> _socket.socket:
    client = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    client.connect(to)
    client.settimeout(PATIENCE_S)
    began_ns = time.monotonic_ns()
    client.send(HELLO)
    if not is_welcome(client.recv(100)):
        sys.exit("the server does not welcome anybody")
    connects_ns.append(time.monotonic_ns() - began_ns)
    return client


def connect(to: tuple[str, int]) -> _socket.socket:
    began_ns = time.monotonic_ns()
    client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    client.connect(to)
    connects_ns.append(time.monotonic_ns() - began_ns)
    return client


def is_welcome(answer: bytes) -> bool:
    return answer[4:8] == b"WELC"


def is_answered(client: _socket.socket, message: bytes) -> bool:
    """Whether it comes back: the server answers one after the other, so that no time has to say what is lost."""
    began_ns = time.monotonic_ns()
    client.send(message)
    client.send(HELLO)
    answer = client.recv(65536)
    if is_welcome(answer):
        return False
    exchanges_ns.append(time.monotonic_ns() - began_ns)
    return is_welcome(client.recv(100)) and answer == message


def read_seconds(text: str) -> float:
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text.removesuffix("s"))


def window_s() -> float:
    return read_seconds(options.duration)


def figured_s() -> float:
    """The window of its figures."""
    return window_s() if MODE == "steady" and not IS_CHECK else 0.1


def is_window_over(began_s: float) -> bool:
    return IS_CHECK or time.monotonic() >= began_s + window_s()


def see_the_window_out(began_s: float) -> None:
    """Wait for the end of the window: it is as long as requested, though all messages are sent at its beginning."""
    if not IS_CHECK:
        time.sleep(max(0.0, began_s + window_s() - time.monotonic()))


def converse_in_datagrams() -> int:
    host, port = options.url.removeprefix("udp://").rsplit(":", 1)
    clients = [say_hello((host, int(port))) for _ in range(options.connections)]
    say(event="connected", established=len(clients))
    began_s = begin_the_window()
    answered = sum(is_answered(client, b"x" * options.size) for client in clients for _ in range(MESSAGES))
    say(event="progress", completed=answered, seconds=0.5)
    see_the_window_out(began_s)
    say(event="window_end")
    return answered


def ask(connection: _socket.socket, message: bytes) -> None:
    began_ns = time.monotonic_ns()
    connection.sendall(message)
    left = len(message)
    while left:
        data = connection.recv(left)
        if not data:
            sys.exit("the server closed the connection")
        left -= len(data)
    exchanges_ns.append(time.monotonic_ns() - began_ns)


def converse() -> int:
    host, port = options.url.removeprefix("tcp://").rsplit(":", 1)
    connections = [connect((host, int(port))) for _ in range(options.connections)]
    say(event="connected", established=len(connections))
    message = b"x" * options.size
    rounds = 0
    if MODE == "steady":
        for connection in connections:
            ask(connection, message)
        rounds = 1
    reported_s = began_s = begin_the_window()
    while rounds < MESSAGES or (MODE == "steady" and not is_window_over(began_s)):
        for connection in connections:
            ask(connection, message)
        rounds += 1
        if MODE == "steady":
            time.sleep(0.002)
            if time.monotonic() >= reported_s + PROGRESS_S:
                reported_s = time.monotonic()
                say(event="progress", completed=rounds * len(connections), seconds=reported_s - began_s)
    say(event="progress", completed=rounds * len(connections), seconds=0.5)
    see_the_window_out(began_s)
    if MODE != "ends_early":
        say(event="window_end")
    for connection in connections:
        connection.close()
    return rounds * len(connections)


def take_turns() -> tuple[int, int]:
    """The messages of the slices that were kept, and of all."""
    host, port = options.url.removeprefix("tcp://").rsplit(":", 1)
    connections = [connect((host, int(port))) for _ in range(options.connections)]
    say(event="connected", established=len(connections))
    kept = undecided = everything = number = 0
    for line in sys.stdin:
        order, _, begins_ns = line.strip().partition(" ")
        if order == "go":
            time.sleep(max(0.0, int(begins_ns) / 1e9 + read_seconds(options.warmup) + 0.005 - time.monotonic()))
            for connection in [connection for connection in connections for _ in range(MESSAGES)]:
                ask(connection, b"x" * options.size)
            kept += undecided
            undecided = MESSAGES * len(connections)
            everything += undecided
            say(event="slice", number=number, sent=MESSAGES * len(connections))
            number += 1
        elif order == "drop":
            undecided = 0
        else:
            break
    for connection in connections:
        connection.close()
    return kept + undecided, everything


def took(times_ns: list[int]) -> int:
    return LOOPBACK_NS if "//127." in options.url else min(times_ns, default=0)


def distribution(count: int, value: int = LOOPBACK_NS) -> dict[str, object]:
    """The same value so many times (lib/measure/histogram.hpp)."""
    bucket = max(0, value.bit_length() - 11)
    step = value >> bucket
    counts = number(2 * ((bucket << 10) + step) - 1) + number(2 * count) if count else b""
    plain = struct.pack(">Iiiiqqd", 0x1C849313, len(counts), 0, 3, 1, 3_600_000_000_000, 1.0) + counts
    packed = zlib.compress(plain)
    histogram = binascii.b2a_base64(struct.pack(">Ii", 0x1C849314, len(packed)) + packed, newline=False).decode()
    highest = ((step + 1) << bucket) - 1 if count else 0
    names = ("mean", "p50", "p90", "p99", "p999", "max")
    return dict.fromkeys(names, highest) | {"count": count, "histogram": histogram}


def number(value: int) -> bytes:
    """LEB128."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + number(value >> 7)


def result(count: int, everything: int = 0) -> dict[str, object]:
    """`everything`: with --turns, the messages of all slices."""
    sent = everything or max(count, MESSAGES * options.connections)
    received = everything or count
    corrupt = 1 if MODE == "corrupt" and not IS_CHECK else 0
    size = received * options.size
    answered = distribution(count, took(exchanges_ns))
    plan = {"url": options.url, "workload": options.workload, "arrivals": options.arrivals, "depth": options.depth}
    rate = float(options.rate.removesuffix("/conn")) if options.rate else None
    plan |= {"rate_hz": rate, "connections": options.connections, "size": options.size, "seed": options.seed}
    plan |= {"threads": options.threads, "audience": options.audience or "others"}
    plan |= {"warmup_s": 0.0, "duration_s": figured_s(), "timeout_s": 1.0}
    connections = dict.fromkeys(("refused", "timed_out", "reset", "other"), 0)
    connections |= {"attempted": options.connections, "established": options.connections}
    if MODE == "no_ports" and not IS_CHECK:
        connections |= {"established": 0, "other": options.connections}
    messages = {"sent": sent, "expected": sent, "received": received, "lost": sent - received}
    messages |= {"duplicated": 0, "reordered": 0, "corrupt": corrupt, "late": 0}
    cpu = {"cpu_user_s": 0.01, "cpu_system_s": 0.02, "spun_s": 0.0}
    audits = [
        {"name": "verification", "passed": corrupt == 0, "detail": f"{corrupt} of {count} answers corrupt"},
        {"name": "connections", "passed": True, "detail": f"{options.connections} of {options.connections}"},
        {"name": "generator", "passed": MODE != "saturated", "detail": "1.00 of 1 cores"},
    ]
    stages = ("resolve_failed", "connect_refused", "connect_timed_out", "connect_other", "response_timeout")
    failures = dict.fromkeys((*stages, "closed", "reset", "protocol", "recovered"), 0)
    client = {"client": failures | {"tick_lag_ns": distribution(count)}} if IS_CLIENT else {}
    return client | {
        "version": 1,
        "plan": plan,
        "began_ns": window_began_ns[-1] if window_began_ns else 0,
        "requests": {"sent": count, "completed": count, "per_second": count / figured_s()},
        "latency": {"response_ns": answered, "service_ns": answered},
        "send_lag_ns": distribution(0),
        "connections": connections,
        "connect_ns": distribution(options.connections, took(connects_ns)),
        "messages": messages,
        "bytes": {"sent": sent * options.size, "received": size, "expected": size},
        "generator": cpu
        | {"cores_used": 0.03 / figured_s(), "max_rss_bytes": 1 << 20, "socket_drops": 0, "threads": [cpu]},
        "errors": {},
        "timeseries": {"interval_ns": 10**8, "completed": [count], "p50_ns": [1000], "p99_ns": [1000], "errors": [0]},
        "audits": audits,
    }


def hangs() -> bool:
    if not MODE.startswith("hangs_after:"):
        return MODE == "hangs"
    with open(MODE.removeprefix("hangs_after:"), "r+") as file:  # noqa: PTH123
        left = int(file.read())
        file.seek(0)
        file.truncate()
        file.write(str(left - 1))
    return left == 0


if not IS_CHECK and hangs():
    say(event="window_start")
    _signal.pause()
if MODE == "fails" and not IS_CHECK:
    sys.exit(f"{'client' if IS_CLIENT else 'netdyno-load'}: something is wrong here")
if MODE == "check_fails" and IS_CHECK:
    sys.exit("netdyno-load: nobody answers")
everything = 0
if options.turns:
    done, everything = take_turns()
else:
    done = converse_in_datagrams() if options.url.startswith("udp://") else converse()
if MODE == "no_result" and not IS_CHECK:
    sys.exit(0)
if MODE in ("nothing_right", "no_ports") and not IS_CHECK:
    done = 0
text = "{" if MODE == "unreadable" and not IS_CHECK else json_of(result(done, everything))
with open(options.json, "w") as file:  # noqa: PTH123
    file.write(text)
if MODE == "not_believed":
    sys.exit(3)
if MODE in ("nothing_right", "no_ports") and not IS_CHECK:
    sys.exit("netdyno-load: nothing was measured")

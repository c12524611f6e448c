"""The command line of a client contestant (protocol/client.md)."""

from __future__ import annotations

import argparse
import fcntl
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from netdyno.kit.units import parse_bytes, parse_duration
from netdyno.kit.url import TcpUrl, parse_tcp_url
from netdyno.protocol import wire
from netdyno_client.command_line import Parser, accept_one_of, make_reader

LARGEST_SIZE = 64 << 20
MOST_CONNECTIONS = 1_000_000
MOST_IN_FLIGHT = 100_000
LONGEST_SERVICE_S = 10.0
SPARE_DESCRIPTORS = 18
"""Descriptors for standard streams, files, the resolver, epoll and its wake-up."""


class ClientPlan(msgspec.Struct, frozen=True):
    """The plan, parsed once, never changed. `connections` counts the instances; each has `depth` messages in flight,
    for rpc one. `is_part`: other programs have the rest of the load. `speaks_at_once`: members of a chat send while
    others still connect."""

    program: str
    url: TcpUrl
    workload: str
    connections: int
    is_part: bool
    await_go: bool
    depth: int
    speaks_at_once: bool
    size: int
    duration_ns: int
    warmup_ns: int
    connect_timeout_ns: int
    timeout_ns: int
    retry_delay_ns: int
    linger_ns: int
    service_us: int
    nodelay: bool
    split: bool
    seed: int
    json_file: str
    events_fd: int


def parse_client_plan(program: str, arguments: Sequence[str], workloads: Sequence[str] = ("rpc",)) -> ClientPlan:
    """Parse the command line. Ends the program on --help (exit 0) and on an invalid one (exit 2, one line on stderr).
    `workloads`: those that the client supports."""
    parser = Parser(prog=program, allow_abbrev=False, description="netdyno client contestant (protocol/client.md)")
    _add_options(parser, workloads)
    options = parser.parse_args(arguments)
    plan = ClientPlan(
        program=program,
        url=options.url,
        workload=options.workload,
        connections=_count_share(options.connections, *options.share),
        is_part=options.share[1] > 1,
        await_go=options.await_go,
        depth=vars(options).get("depth", 1),
        speaks_at_once=vars(options).get("start") == "at-once",
        size=options.size,
        duration_ns=options.duration,
        warmup_ns=options.warmup,
        connect_timeout_ns=options.connect_timeout,
        timeout_ns=options.timeout,
        retry_delay_ns=options.retry_delay,
        linger_ns=options.linger,
        service_us=options.service_time // 1000,
        nodelay=options.nodelay == "on",
        split=options.write_mode == "split",
        seed=options.seed,
        json_file=options.json,
        events_fd=options.events_fd,
    )
    if options.share[1] > 1 and (options.workload == "chat" or options.share[1] > options.connections):
        parser.error("--share: every part needs a connection, and a chat cannot be parted")
    if problem := _find_contradiction(plan):
        parser.error(problem)
    if problem := _raise_descriptor_limit(plan.connections):
        parser.error(problem)
    return plan


def await_go(program: str) -> int:
    """Read the line on stdin with the moment at which the load begins, in nanoseconds of CLOCK_MONOTONIC. Ends the
    program if there is none, or the moment has passed."""
    go_line = re.fullmatch(r"go (\d{1,18})\n", sys.stdin.readline())
    if not go_line or int(go_line[1]) < time.monotonic_ns():
        reason = "the moment to begin has passed" if go_line else "stdin ended without a moment to begin"
        sys.exit(f"{program}: {reason}")
    return int(go_line[1])


def _add_options(parser: argparse.ArgumentParser, workloads: Sequence[str]) -> None:
    def add(name: str, read: Callable[[str], object], default: object, text: str, *short_names: str) -> None:
        shown = f" (default {default})" if default not in ("", -1) else ""
        parser.add_argument(*short_names, name, type=make_reader(read), default=default, metavar="X", help=text + shown)

    parser.add_argument(
        "url", type=make_reader(parse_tcp_url), help="where the server listens, e.g. tcp://127.0.0.1:7000"
    )
    add("--workload", accept_one_of(*workloads), "rpc", "application protocol")
    add("--connections", _make_integer_reader(1, MOST_CONNECTIONS), "1", "instances, each with one connection", "-c")
    if "chat" in workloads:
        add("--depth", _make_integer_reader(1, MOST_IN_FLIGHT), "1", "messages in flight on each connection of a chat")
        add("--start", accept_one_of("together", "at-once"), "together", "chat: when connected clients begin to send")
    add("--size", _parse_size, "31", "bytes of a message's stamp")
    add("--duration", _parse_duration_ns, "10s", "the measured window")
    add("--warmup", _parse_duration_ns, "1s", "load before the window")
    add("--connect-timeout", _parse_duration_ns, "5s", "how long a connect may take, over all addresses of the name")
    add("--timeout", _parse_duration_ns, "5s", "how long a response may take")
    add("--retry-delay", _parse_duration_ns, "100ms", "from a failure to the next attempt")
    add("--linger", _parse_duration_ns, "0", "how long connections stay open after the last answer")
    add("--service-time", _parse_duration_ns, "0", "service time that each request asks for")
    add("--nodelay", accept_one_of("on", "off"), "on", "TCP_NODELAY")
    add("--write-mode", accept_one_of("gathered", "split"), "gathered", "length and body in one write or two")
    add("--share", _parse_share, "1/1", "make one of several equal parts of this load: I/N")
    parser.add_argument("--await-go", action="store_true", help="begin at the moment that a line on stdin names: go N")
    add("--seed", _make_integer_reader(0, 2**64 - 1), "1", "only recorded: nothing here is random")
    add("--json", str, "", "write the result as JSON to this file; - is stdout")
    add(
        "--events-fd",
        _make_integer_reader(0, 1 << 20),
        -1,
        "write what happens, one JSON object a line, to this descriptor",
    )


def _parse_duration_ns(text: str) -> int:
    """Parse a duration into nanoseconds; a 0 needs no unit."""
    return 0 if re.fullmatch(r"0+(\.0+)?", text) else round(parse_duration(text) * 1e9)


def _parse_share(text: str) -> tuple[int, int]:
    """Parse I/N into the index of a part, from 0, and the number of parts."""
    if not (share := re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)) or not 1 <= int(share[1]) <= int(share[2]) <= 1024:
        raise ValueError(f"{text!r} is no share; want e.g. 1/2, or 2/2")
    return int(share[1]) - 1, int(share[2])


def _count_share(connections: int, index: int, count: int) -> int:
    return connections // count + (index < connections % count)


def _parse_size(text: str) -> int:
    size = parse_bytes(text)
    if not wire.STAMP_MINIMUM <= size <= LARGEST_SIZE:
        raise ValueError(f"{text!r}: a message that identifies itself has {wire.STAMP_MINIMUM} to {LARGEST_SIZE} bytes")
    return size


def _make_integer_reader(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if re.fullmatch(r"\d{1,20}", text, re.ASCII) is None or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def _find_contradiction(plan: ClientPlan) -> str:
    """Find a contradiction between options; empty when the plan can be carried out."""
    if plan.duration_ns <= 0:
        return "--duration must be longer than 0"
    if plan.timeout_ns <= 0:
        return "--timeout must be longer than 0"
    if plan.connect_timeout_ns <= 0:
        return "--connect-timeout must be longer than 0"
    if plan.depth > 1 and plan.workload != "chat":
        return "--depth is for chat: an instance of rpc has one request in flight"
    if plan.speaks_at_once and plan.workload != "chat":
        return "--start at-once is for chat"
    if plan.service_us and plan.workload != "rpc":
        return "--service-time is for rpc"
    if plan.service_us > LONGEST_SERVICE_S * 1e6:
        return f"--service-time is at most {LONGEST_SERVICE_S:g}s"
    if plan.events_fd >= 0 and not _is_open(plan.events_fd):
        return f"--events-fd: descriptor {plan.events_fd} is not open"
    return ""


def _is_open(fd: int) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def _raise_descriptor_limit(connections: int) -> str:
    """Raise the soft limit as far as needed; returns the reason where that is not enough, else ""."""
    needed = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ""
    if hard != resource.RLIM_INFINITY and hard < needed:
        return (
            f"{connections} connections need {needed} file descriptors, and the hard limit is {hard}: raise it "
            f"(as root: ulimit -n {needed}; for good: nofile in /etc/security/limits.conf)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return ""

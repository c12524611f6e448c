"""What a client contestant is asked to do: the command line of protocol/client.md."""

from __future__ import annotations

import argparse
import fcntl
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netdyno.base.units import parse_bytes, parse_duration
from netdyno.base.url import TcpUrl, parse_tcp_url
from netdyno.protocol import wire
from netdyno_client.command_line import Parser, one_of, reader

LARGEST_SIZE = 64 << 20
MOST_CONNECTIONS = 1_000_000
MOST_IN_FLIGHT = 100_000
LONGEST_SERVICE_S = 10.0
SPARE_DESCRIPTORS = 18
"""Standard streams, files, the resolver, epoll and its wake-up."""


@dataclass(frozen=True)
class ClientPlan:
    """Parsed once, never changed. `connections` counts the instances; each has `depth` messages in flight, of rpc
    one. `is_part`: other programs have the rest of the load."""

    program: str
    url: TcpUrl
    workload: str
    connections: int
    is_part: bool
    await_go: bool
    depth: int
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
    """Ends the program on --help (exit 0) and on what cannot be meant (exit 2, one line on stderr). `workloads`: those
    that the client speaks."""
    parser = Parser(prog=program, allow_abbrev=False, description="netdyno client contestant (protocol/client.md)")
    _add_options(parser, workloads)
    said = parser.parse_args(arguments)
    plan = ClientPlan(
        program=program,
        url=said.url,
        workload=said.workload,
        connections=_share_of(said.connections, *said.share),
        is_part=said.share[1] > 1,
        await_go=said.await_go,
        depth=vars(said).get("depth", 1),
        size=said.size,
        duration_ns=said.duration,
        warmup_ns=said.warmup,
        connect_timeout_ns=said.connect_timeout,
        timeout_ns=said.timeout,
        retry_delay_ns=said.retry_delay,
        linger_ns=said.linger,
        service_us=said.service_time // 1000,
        nodelay=said.nodelay == "on",
        split=said.write_mode == "split",
        seed=said.seed,
        json_file=said.json,
        events_fd=said.events_fd,
    )
    if said.share[1] > 1 and (said.workload == "chat" or said.share[1] > said.connections):
        parser.error("--share: every part needs a connection, and a chat cannot be parted")
    if why := _contradiction(plan):
        parser.error(why)
    if why := _too_few_descriptors(plan.connections):
        parser.error(why)
    return plan


def awaited_go(program: str) -> int:
    """Read the line on stdin that says when the load begins, nanoseconds of CLOCK_MONOTONIC. Ends the program
    if there is none, or the moment has passed."""
    found = re.fullmatch(r"go (\d{1,18})\n", sys.stdin.readline())
    if not found or int(found[1]) < time.monotonic_ns():
        why = "the moment to begin has passed" if found else "stdin ended without a moment to begin"
        sys.exit(f"{program}: {why}")
    return int(found[1])


def _add_options(parser: argparse.ArgumentParser, workloads: Sequence[str]) -> None:
    def add(name: str, read: Callable[[str], object], default: object, text: str, *also: str) -> None:
        shown = f" (default {default})" if default not in ("", -1) else ""
        parser.add_argument(*also, name, type=reader(read), default=default, metavar="X", help=text + shown)

    parser.add_argument("url", type=reader(parse_tcp_url), help="where the server listens, e.g. tcp://127.0.0.1:7000")
    add("--workload", one_of(*workloads), "rpc", "application protocol")
    add("--connections", _whole(1, MOST_CONNECTIONS), "1", "instances, each with one connection", "-c")
    if "chat" in workloads:
        add("--depth", _whole(1, MOST_IN_FLIGHT), "1", "messages in flight on each connection of a chat")
    add("--size", _size, "31", "bytes of a message's stamp")
    add("--duration", _duration, "10s", "the measured window")
    add("--warmup", _duration, "1s", "load before the window")
    add("--connect-timeout", _duration, "5s", "how long a connect may take, over all addresses of the name")
    add("--timeout", _duration, "5s", "how long a response may take")
    add("--retry-delay", _duration, "100ms", "from a failure to the next attempt")
    add("--linger", _duration, "0", "how long connections stay open after the last answer")
    add("--service-time", _duration, "0", "service time that each request asks for")
    add("--nodelay", one_of("on", "off"), "on", "TCP_NODELAY")
    add("--write-mode", one_of("gathered", "split"), "gathered", "length and body in one write or two")
    add("--share", _share, "1/1", "make one of several equal parts of this load: I/N")
    parser.add_argument("--await-go", action="store_true", help="begin at the moment that a line on stdin names: go N")
    add("--seed", _whole(0, 2**64 - 1), "1", "stands in the result; nothing here is random")
    add("--json", str, "", "write the result as JSON to this file; - is stdout")
    add("--events-fd", _whole(0, 1 << 20), -1, "write what happens, one JSON object a line, to this descriptor")


def _duration(text: str) -> int:
    """Nanoseconds; a 0 needs no unit."""
    return 0 if re.fullmatch(r"0+(\.0+)?", text) else round(parse_duration(text) * 1e9)


def _share(text: str) -> tuple[int, int]:
    """Which part of how many, from 0."""
    if not (found := re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)) or not 1 <= int(found[1]) <= int(found[2]) <= 1024:
        raise ValueError(f"{text!r} is no share; want e.g. 1/2, or 2/2")
    return int(found[1]) - 1, int(found[2])


def _share_of(connections: int, index: int, count: int) -> int:
    return connections // count + (index < connections % count)


def _size(text: str) -> int:
    size = parse_bytes(text)
    if not wire.STAMP_MINIMUM <= size <= LARGEST_SIZE:
        raise ValueError(f"{text!r}: a message that identifies itself has {wire.STAMP_MINIMUM} to {LARGEST_SIZE} bytes")
    return size


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if re.fullmatch(r"\d{1,20}", text, re.ASCII) is None or not least <= int(text) <= most:
            raise ValueError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def _contradiction(plan: ClientPlan) -> str:
    """What no single option can tell; empty when the plan can be carried out."""
    if plan.duration_ns <= 0:
        return "--duration must be longer than 0"
    if plan.timeout_ns <= 0:
        return "--timeout must be longer than 0"
    if plan.connect_timeout_ns <= 0:
        return "--connect-timeout must be longer than 0"
    if plan.depth > 1 and plan.workload != "chat":
        return "--depth is of chat: an instance of rpc has one request in flight"
    if plan.service_us and plan.workload != "rpc":
        return "--service-time is of rpc"
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


def _too_few_descriptors(connections: int) -> str:
    """Raise the soft limit as far as need be; why that is not enough, else empty."""
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

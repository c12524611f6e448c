"""A workload as its owner knows it, by flags or by a file, and the experiment that asks whom to take for it. Pure."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from netdyno.base.errors import UserError, check_keys
from netdyno.base.units import format_duration
from netdyno.model import objective
from netdyno.model.base import type_level
from netdyno.model.experiment import Advise, Experiment
from netdyno.model.options import SCENARIO, SERVER
from netdyno.model.values import LEAST_RATE, MOST_RATE, NAMES, TIME, Kind, Option, declared, read_duration, whole, word
from netdyno.statistics.block_counts import ADVICE_LOOKS

THROUGHPUT = "throughput"
METRICS = (THROUGHPUT, "cpu", "memory")
"""Objectives that are a metric; any other is what has to hold, and then the least CPU decides."""
SPEAKS = ("rpc", "http", "echo", "lines")
"""What servers may speak whose messages are answered to the sender alone."""
WINDOW_S, WARMUP_S = 0.4, 0.1
SLOW_WARMUP_S = 3.0
"""Until what a slow reader has not taken fills the kernel's buffers (experiments/slow-readers.toml)."""
FIRST_BLOCKS = 5
"""Of everybody: with fewer nobody can be told to be beaten."""


def _number(value: object) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", str(value))
    if match is None:
        raise ValueError(f"{value!r} is no rate: write messages per second, such as 500, 5k or 1.5M")
    found = float(match[1]) * {"": 1, "k": 1e3, "M": 1e6}[match[2]]
    if not LEAST_RATE <= found <= MOST_RATE:
        raise ValueError(f"{value} is not between {LEAST_RATE:g} and {MOST_RATE:g} messages per second")
    return found


def _share(value: object) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)(%?)", str(value))
    found = float(match[1]) / (100 if match[2] else 1) if match else math.nan
    if not 0 <= found < 1:
        raise ValueError(f"{value!r} is no share: write a percentage below 100%, such as 5%")
    return found


def _objective(value: object) -> str:
    if value in METRICS:
        return str(value)
    if not isinstance(value, str) or "<" not in value:
        raise ValueError(f"{value!r} is none: write {', '.join(METRICS)}, or what has to hold, such as 'p99<5ms'")
    try:
        objective.parse(value, "it")
    except UserError as error:
        raise ValueError(str(error)) from error
    return value


def _names(value: object) -> tuple[str, ...]:
    """As a list, or in one text with commas."""
    listed = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    return tuple(NAMES.read(listed))


def _of(name: str, takes: Kind, text: str, default: object = None) -> Option:
    return Option(takes, text, "search", name, name, default)


NAMED = Kind(_names, ",".join, metavar="NAME,...")
OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        replace(SCENARIO["connections"], default=None),
        _of(
            "rate",
            Kind(_number, metavar="RATE"),
            "Messages per second of all connections; without it, as many as possible.",
        ),
        replace(SCENARIO["size"], default=None, help="Bytes of a message (default 64)."),
        replace(SERVER["service-time"], help="How long the server works for a request, such as 500us."),
        replace(SERVER["service-kind"], help="How it is spent: wait (for a database) or cpu."),
        _of("fan-out", word("none", "room"), "Who receives a message: its sender (none), or all clients (room)."),
        _of("speaks", word(*SPEAKS), "Without a room: rpc, http, echo or lines (default rpc)."),
        _of(
            "slow-readers",
            Kind(_share, metavar="SHARE"),
            "In a room: the share of clients that read slowly, such as 5%.",
        ),
        _of("objective", Kind(_objective), "p99<5ms, and then the least CPU; or throughput, cpu or memory."),
        _of("cores", whole(1), "How many cores the server will have."),
        _of("languages", NAMED, "Servers in these only, such as c++,go."),
        _of("contestants", NAMED, "Only these servers: names or 'asio-*'."),
        _of("transports", NAMED, "What carries the messages: tcp (default), udp, multicast, zmq+tcp."),
        _of("time-budget", TIME, "The trials take no longer (default 5m)."),
        replace(declared(Experiment)["seed"], default=None),
    )
}
"""By name: keys of a file, and flags."""

Workload = Mapping[str, Any]
"""The values of those options that were given."""
DEFAULTS: Workload = {"connections": 100, "size": 64, "fan-out": "none", "service-time": "0s", "slow-readers": 0.0}
TIME_BUDGET_S = 300.0
TRANSPORTS_ASKED = ("tcp",)
"""Unless said: over others messages may be lost, or take another client."""


def read(path: Path) -> dict[str, Any]:
    """A file with the options as keys. Raises UserError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    check_keys(str(path), table, OPTIONS)
    return {name: value_of(name, value, f"{path}: key {name!r}") for name, value in table.items()}


def value_of(name: str, said: object, where: str) -> Any:
    """What an option is worth. Those of a server stay as they are written. Raises UserError."""
    try:
        value = OPTIONS[name].takes.read(said)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    return said if OPTIONS[name].place == "server" else value


def metric_of(workload: Workload) -> str:
    asked = str(workload.get("objective", THROUGHPUT if "rate" not in workload else "cpu"))
    return asked if asked in METRICS else "cpu"


def slo_of(workload: Workload) -> str:
    asked = str(workload.get("objective", ""))
    return "" if asked in METRICS else asked


def check(workload: Workload) -> None:
    """Raises UserError where it contradicts itself, or cannot be measured so."""
    room, rate = workload.get("fan-out") == "room", workload.get("rate")
    service_s = read_duration(workload.get("service-time", "0s"))
    if room and service_s:
        raise UserError("--service-time: in a room messages are only passed on; leave it out")
    if room and "speaks" in workload:
        raise UserError("--speaks: a room is 'chat', and nothing else")
    if service_s and workload.get("speaks", "rpc") not in ("rpc", "http"):
        raise UserError("--service-time: requests that take a time are of 'rpc' or 'http'")
    if service_s and "service-kind" not in workload:
        raise UserError("--service-time: does the server wait (--waits) or compute (--computes) that long?")
    if "service-kind" in workload and not service_s:
        raise UserError("--waits and --computes: for how long? (--service-time)")
    if workload.get("slow-readers") and not room:
        raise UserError("--slow-readers: only in a room (--fan-out room) do clients receive what others send")
    if slo_of(workload) and rate is None:
        raise UserError("--objective: response times need a --rate; without it, a slow server gets fewer requests")
    if workload.get("objective") == THROUGHPUT and rate is not None:
        raise UserError("--objective throughput: leave --rate out; at a rate use cpu, or 'p99<5ms'")
    if room and rate is None:
        raise UserError("--fan-out room: at which rate do clients send? (--rate)")


def question(workload: Workload) -> str:
    held = f", and that keeps {slo_of(workload)}" if slo_of(workload) else ""
    return f"Which server for this workload{held}?"


def toml(workload: Workload, names: Sequence[str], time_budget_s: float) -> str:
    """The experiment as a file of ./netdyno run: everybody in every block."""
    lines = _head(workload, question(workload), names, time_budget_s, MOST_BLOCKS, window_s(workload))
    return "\n".join([*lines, *_scenario(workload)]) + "\n"


def toml_along(workload: Workload, factors: Sequence[str], names: Sequence[str], time_budget_s: float) -> str:
    """The same beside half and double of each of these factors."""
    asked = f"Near which values of the workload does the answer change? ({', '.join(factors)})"
    fewer = 0.5 if "rate" in factors or "connections" in factors else 1.0
    lines = _head(workload, asked, names, time_budget_s, MOST_BLOCKS_ALONG, window_s(workload, fewer))
    return "\n".join([*lines, *(line for factor in factors for line in _scenario(workload, factor))]) + "\n"


def window_s(workload: Workload, share: float = 1.0) -> float:
    """Of a trial: with so much of its messages it has as many as its objective needs. A 99th percentile of forty is the
    worst of them, and half the time better than that of all."""
    wanted = slo_of(workload)
    if not wanted:
        return WINDOW_S
    given = {**DEFAULTS, **workload}
    heard = float(given["rate"]) * (int(given["connections"]) if given["fan-out"] == "room" else 1)
    needed_s = objective.parse(wanted, "objective").least_messages() / (share * heard)
    return max(WINDOW_S, math.ceil(10 * needed_s) / 10)


def _head(
    workload: Workload, asked: str, names: Sequence[str], time_budget_s: float, most_blocks: int, duration_s: float
) -> list[str]:
    slow = slow_readers(workload)
    return [
        f"question = {_text(asked)}",
        f"contestants = [{', '.join(map(_text, names))}]",
        f"blocks = {FIRST_BLOCKS}",
        f"seed = {workload.get('seed', 1)}",
        "aa-share = 0.0",
        f"time-budget = {_text(format_duration(time_budget_s))}",
        f"time-limit = {_text(format_duration(time_budget_s))}",
        f"most-blocks = {most_blocks}",
        f"warmup = {_text(format_duration(SLOW_WARMUP_S if slow else WARMUP_S))}",
        f"duration = {_text(format_duration(duration_s))}",
        'timeout = "5s"',
    ]


def _scenario(workload: Workload, factor: str = "") -> list[str]:
    given = {**DEFAULTS, **workload}
    room, slow = given["fan-out"] == "room", slow_readers(workload)
    load: dict[str, object] = {"connections": given["connections"], "size": given["size"]}
    if "rate" in given:
        load |= {"arrivals": "poisson", "rate": given["rate"]}
    if slow:
        load["slow-readers"] = slow
    server: dict[str, object] = {"threads": "cores"}
    if room:
        server["audience"] = "all"
    if "service-kind" in given:
        server |= {"service-time": given["service-time"], "service-kind": given["service-kind"]}
    of_factor = (
        ["[scenario.factors]", f"{factor} = [{', '.join(map(_text, around(workload, factor)))}]"] if factor else []
    )
    for values in (load, server):
        values.pop(factor.removeprefix("server."), None)
    return [
        "",
        "[[scenario]]",
        f"name = {_text(factor.removeprefix('server.') or NAME)}",
        f"workload = {_text('chat' if room else given.get('speaks', 'rpc'))}",
        f"metric = {_text(metric_of(workload))}",
        *(f"{key} = {_text(value)}" for key, value in load.items()),
        *of_factor,
        "[scenario.server]",
        *(f"{key} = {_text(value)}" for key, value in server.items()),
    ]


def slow_readers(workload: Workload) -> int:
    """How many: a share above 0 is one at least."""
    given = {**DEFAULTS, **workload}
    return math.ceil(float(given["slow-readers"]) * int(given["connections"]) - 1e-9)


def factors(workload: Workload) -> list[str]:
    """Along which of its values half and double can be asked for, the likeliest to matter first."""
    given = {**DEFAULTS, **workload}
    found = ["rate"] if "rate" in given else []
    if given["connections"] > 3 and not slow_readers(workload):
        found.append("connections")
    if "service-kind" in given:
        found.append("server.service-time")
    return found


def around(workload: Workload, factor: str) -> list[type_level]:
    """Half of a value, the value, and double."""
    value = {**DEFAULTS, **workload}[factor.removeprefix("server.")]
    if factor == "connections":
        return [max(1, round(value / 2)), value, 2 * value]
    if factor == "rate":
        return [value / 2, value, 2 * value]
    seconds = read_duration(value)
    return [format_duration(seconds / 2), format_duration(seconds), format_duration(2 * seconds)]


NAME, BESIDE = "workload", "advise-beside"
"""The scenario of the workload itself, and the experiment of half and double."""
MOST_BLOCKS = ADVICE_LOOKS[-1]
MOST_BLOCKS_ALONG = 12


def _text(value: object) -> str:
    """As TOML has it, in which a text and a number are what they are in JSON."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return msgspec.json.encode(value).decode()


def advise_of(workload: Workload) -> Advise:
    return Advise(slo=slo_of(workload))


def to_advise(found: Experiment, workload: Workload) -> Experiment:
    """The experiment as it is run: it goes on with those who may still be the one to take."""
    return msgspec.structs.replace(found, advise=advise_of(workload))

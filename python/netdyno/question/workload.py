"""A workload given by flags or by a file, and the experiment that asks which server to take for it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from netdyno.kit.errors import UserError, check_keys
from netdyno.kit.statistics.block_counts import ADVICE_LOOKS
from netdyno.kit.toml import read_table
from netdyno.kit.units import format_duration
from netdyno.model import objective
from netdyno.model.base import type_level
from netdyno.model.experiment import MOST_CONNECTIONS, Advise, Experiment
from netdyno.model.options import SCENARIO, SERVER, read_value
from netdyno.model.values import (
    LEAST_RATE,
    MOST_RATE,
    NAMES,
    TIME,
    Option,
    ValueKind,
    declared,
    read_duration,
    whole,
    word,
)

THROUGHPUT = "throughput"
METRICS = (THROUGHPUT, "cpu", "memory")
"""Objectives that are a metric; any other is a condition that has to hold, and then the least CPU decides."""
FRAMEWORKS_SPEAK = "web"
SPEAKS = ("rpc", "http", "echo", "lines", FRAMEWORKS_SPEAK)
"""The workloads in which a server answers the sender alone."""
TAKE_SERVICE_TIME = ("rpc", "http", FRAMEWORKS_SPEAK)
WINDOW_S, WARMUP_S = 0.4, 0.1
SLOW_WARMUP_S = 3.0
"""The time until unread data of a slow reader fills the kernel's buffers (experiments/slow-readers.toml)."""
FIRST_BLOCKS = 5
"""The first blocks of all contestants: fewer cannot prove that any is worse."""


def _read_rate(value: object) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kM]?)", str(value))
    if match is None:
        raise ValueError(f"{value!r} is no rate: write messages per second, such as 500, 5k or 1.5M")
    rate = float(match[1]) * {"": 1, "k": 1e3, "M": 1e6}[match[2]]
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError(f"{value} is not between {LEAST_RATE:g} and {MOST_RATE:g} messages per second")
    return rate


def _read_share(value: object) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)(%?)", str(value))
    share = float(match[1]) / (100 if match[2] else 1) if match else math.nan
    if not 0 <= share < 1:
        raise ValueError(f"{value!r} is no share: write a percentage below 100%, such as 5%")
    return share


def _read_objective(value: object) -> str:
    if value in METRICS:
        return str(value)
    if not isinstance(value, str) or "<" not in value:
        raise ValueError(f"{value!r} is no objective: write {', '.join(METRICS)}, or e.g. 'p99<5ms'")
    try:
        objective.parse(value, "it")
    except UserError as error:
        raise ValueError(str(error)) from error
    return value


def _read_names(value: object) -> tuple[str, ...]:
    """Read names from a list, or from a text with commas."""
    listed = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    return tuple(NAMES.read(listed))


def _make_option(name: str, takes: ValueKind, text: str) -> Option:
    return Option(takes, text, "search", name, name)


NAMED = ValueKind(_read_names, ",".join, metavar="NAME,...")
OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        replace(SCENARIO["connections"], default=None),
        _make_option(
            "rate",
            ValueKind(_read_rate, metavar="RATE"),
            "Messages per second of all connections; without it, as many as possible.",
        ),
        replace(SCENARIO["size"], default=None, help="Bytes of a message (default 64)."),
        replace(SERVER["service-time"], help="How long the server works for a request, such as 500us."),
        replace(SERVER["service-kind"], help="How that is spent: wait (for a database) or cpu."),
        _make_option(
            "fan-out", word("none", "room"), "Who receives a message: its sender (none), or all clients (room)."
        ),
        _make_option("speaks", word(*SPEAKS), "Without a room: rpc, http, echo, lines or web (default rpc)."),
        _make_option(
            "slow-readers",
            ValueKind(_read_share, metavar="SHARE"),
            "In a room: the share of clients that read slowly, such as 5%.",
        ),
        _make_option(
            "objective", ValueKind(_read_objective), "'p99<5ms' (then least CPU decides), throughput, cpu or memory."
        ),
        _make_option("cores", whole(1), "How many cores the server will have."),
        _make_option("languages", NAMED, "Only servers written in these: c++,go."),
        _make_option("contestants", NAMED, "Only these servers: names or 'asio-*'."),
        _make_option("transports", NAMED, "What carries the messages: tcp (default), udp, multicast, zmq+tcp."),
        _make_option("time-budget", TIME, "Time limit of all trials (default 5m)."),
        replace(declared(Experiment)["seed"], default=None),
    )
}
"""The options by name: keys of a file, and flags."""

Workload = Mapping[str, Any]
"""The values of those options that were given."""
DEFAULTS: Workload = {"connections": 100, "size": 64, "fan-out": "none", "service-time": "0s", "slow-readers": 0.0}
TIME_BUDGET_S = 300.0
DEFAULT_TRANSPORTS = ("tcp",)
"""The default transports: over others messages may be lost, or need another client."""


def read(path: Path) -> dict[str, Any]:
    """Read a file with the options as keys. Raises UserError."""
    table = read_table(path)
    check_keys(str(path), table, OPTIONS)
    return {name: read_option(name, value, f"{path}: key {name!r}") for name, value in table.items()}


def read_option(name: str, given: object, where: str) -> Any:
    """Read the value of an option. Those of a server stay as they are written. Raises UserError."""
    value = read_value(where, OPTIONS[name], given)
    return given if OPTIONS[name].place == "server" else value


def list_words(workload: Workload) -> list[str]:
    """Return the workload as options of a command line."""
    values = {
        name: given if isinstance(given, str) else OPTIONS[name].takes.text(given) for name, given in workload.items()
    }
    return [word for name, text in values.items() for word in (f"--{name}", text)]


def choose_metric(workload: Workload) -> str:
    objective_text = str(workload.get("objective", THROUGHPUT if "rate" not in workload else "cpu"))
    return objective_text if objective_text in METRICS else "cpu"


def find_objective(workload: Workload) -> str:
    """Return the objective that response times have to meet; empty where the workload names a metric, or nothing."""
    objective_text = str(workload.get("objective", ""))
    return "" if objective_text in METRICS else objective_text


def check(workload: Workload) -> None:
    """Raise UserError where the workload contradicts itself, or cannot be measured."""
    in_room, rate = workload.get("fan-out") == "room", workload.get("rate")
    service_s = read_duration(workload.get("service-time", "0s"))
    if in_room and service_s:
        raise UserError("--service-time: in a room messages are only passed on; leave it out")
    if in_room and "speaks" in workload:
        raise UserError("--speaks: a room is 'chat', and nothing else")
    if service_s and workload.get("speaks", "rpc") not in TAKE_SERVICE_TIME:
        raise UserError("--service-time: only requests of 'rpc', 'http' or 'web' take it")
    if service_s and "service-kind" not in workload:
        raise UserError("--service-time: say whether the server --waits or --computes that long")
    if "service-kind" in workload and not service_s:
        raise UserError("--waits and --computes: need a --service-time")
    if workload.get("slow-readers") and not in_room:
        raise UserError("--slow-readers: only in a room (--fan-out room) do clients receive what others send")
    if find_objective(workload) and rate is None:
        raise UserError("--objective: response times need a --rate; without it, a slow server gets fewer requests")
    if workload.get("objective") == THROUGHPUT and rate is not None:
        raise UserError("--objective throughput: leave --rate out; at a rate use cpu, or 'p99<5ms'")
    if in_room and rate is None:
        raise UserError("--fan-out room: needs the --rate at which clients send")


def write_question(workload: Workload) -> str:
    objective_text = find_objective(workload)
    condition = f" meets {objective_text}" if objective_text else ""
    return f"Which server for this workload{condition}?"


def write_toml(workload: Workload, names: Sequence[str], time_budget_s: float) -> str:
    """Write the experiment as a file of ./netdyno run: all contestants in every block."""
    lines = _write_head(workload, write_question(workload), names, time_budget_s, MOST_BLOCKS, compute_window(workload))
    return "\n".join([*lines, *_write_scenario(workload)]) + "\n"


def write_neighbours_toml(
    workload: Workload, factors: Sequence[str], names: Sequence[str], time_budget_s: float
) -> str:
    """Write the experiment with half and double of each of these factors."""
    question_text = f"Near which values of the workload does the answer change? ({', '.join(factors)})"
    smallest_share = 0.5 if "rate" in factors or "connections" in factors else 1.0
    lines = _write_head(
        workload, question_text, names, time_budget_s, MOST_BLOCKS_ALONG, compute_window(workload, smallest_share)
    )
    return "\n".join([*lines, *(line for factor in factors for line in _write_scenario(workload, factor))]) + "\n"


def compute_window(workload: Workload, share: float = 1.0) -> float:
    """The window of a trial, in seconds: with this share of its messages it has as many as its objective needs. A 99th
    percentile of forty is the worst of them, and half the time better than that of all."""
    objective_text = find_objective(workload)
    if not objective_text:
        return WINDOW_S
    given = {**DEFAULTS, **workload}
    received_per_second = float(given["rate"]) * (int(given["connections"]) if given["fan-out"] == "room" else 1)
    needed_s = objective.parse(objective_text, "objective").least_messages() / (share * received_per_second)
    return max(WINDOW_S, math.ceil(10 * needed_s) / 10)


def _write_head(
    workload: Workload,
    question_text: str,
    names: Sequence[str],
    time_budget_s: float,
    most_blocks: int,
    duration_s: float,
) -> list[str]:
    readers = count_slow_readers(workload)
    return [
        f"question = {_write_value(question_text)}",
        f"contestants = [{', '.join(map(_write_value, names))}]",
        f"blocks = {FIRST_BLOCKS}",
        f"seed = {workload.get('seed', 1)}",
        "aa-share = 0.0",
        f"time-budget = {_write_value(format_duration(time_budget_s))}",
        f"time-limit = {_write_value(format_duration(time_budget_s))}",
        f"most-blocks = {most_blocks}",
        f"warmup = {_write_value(format_duration(SLOW_WARMUP_S if readers else WARMUP_S))}",
        f"duration = {_write_value(format_duration(duration_s))}",
        'timeout = "5s"',
    ]


def _write_scenario(workload: Workload, factor: str = "") -> list[str]:
    given = {**DEFAULTS, **workload}
    in_room, readers = given["fan-out"] == "room", count_slow_readers(workload)
    load: dict[str, object] = {"connections": given["connections"], "size": given["size"]}
    if "rate" in given:
        load |= {"arrivals": "poisson", "rate": given["rate"]}
    if readers:
        load["slow-readers"] = readers
    server: dict[str, object] = {"threads": "cores"}
    if in_room:
        server["audience"] = "all"
    if "service-kind" in given:
        server["service-kind"] = given["service-kind"]
        timed = load if given.get("speaks") == FRAMEWORKS_SPEAK else server
        timed["service-time"] = given["service-time"]
    of_factor = (
        ["[scenario.factors]", f"{factor} = [{', '.join(map(_write_value, list_neighbours(workload, factor)))}]"]
        if factor
        else []
    )
    for values in (load, server):
        values.pop(factor.removeprefix("server."), None)
    return [
        "",
        "[[scenario]]",
        f"name = {_write_value(factor.removeprefix('server.') or NAME)}",
        f"workload = {_write_value('chat' if in_room else given.get('speaks', 'rpc'))}",
        f"metric = {_write_value(choose_metric(workload))}",
        *(f"{key} = {_write_value(value)}" for key, value in load.items()),
        *of_factor,
        "[scenario.server]",
        *(f"{key} = {_write_value(value)}" for key, value in server.items()),
    ]


def count_slow_readers(workload: Workload) -> int:
    """The number of slow readers: a share above 0 is one at least."""
    given = {**DEFAULTS, **workload}
    return math.ceil(float(given["slow-readers"]) * int(given["connections"]) - 1e-9)


def list_factors(workload: Workload) -> list[str]:
    """List the values that can be halved and doubled, the likeliest to matter first."""
    given = {**DEFAULTS, **workload}
    names = ["rate"] if "rate" in given else []
    if given["connections"] > 3 and not count_slow_readers(workload):
        names.append("connections")
    if "service-kind" in given:
        names.append("service-time" if given.get("speaks") == FRAMEWORKS_SPEAK else "server.service-time")
    return names


def list_neighbours(workload: Workload, factor: str) -> list[type_level]:
    """Half of a value, the value, and double."""
    value = {**DEFAULTS, **workload}[factor.removeprefix("server.")]
    if factor == "connections":
        return [level for level in (max(1, round(value / 2)), value, 2 * value) if level <= MOST_CONNECTIONS]
    if factor == "rate":
        return [value / 2, value, 2 * value]
    seconds = read_duration(value)
    return [format_duration(seconds / 2), format_duration(seconds), format_duration(2 * seconds)]


NAME, NEIGHBOURS = "workload", "advise-beside"
"""The scenario of the workload itself, and the experiment of half and double."""
MOST_BLOCKS = ADVICE_LOOKS[-1]
MOST_BLOCKS_ALONG = 12


def _write_value(value: object) -> str:
    """Write a value for TOML, in which texts and numbers are as in JSON."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return msgspec.json.encode(value).decode()


def advise_of(workload: Workload) -> Advise:
    return Advise(objective=find_objective(workload))

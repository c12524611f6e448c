"""The questions that `netdyno advise` asks in a terminal where nothing says the workload."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import typer

from netdyno.kit.errors import UserError
from netdyno.question import workload

ASKED = (
    ("connections", "How many connections?", "100"),
    ("rate", "How many messages a second in all (0: as many as possible)?", "0"),
    ("size", "How many bytes does a message have?", "64"),
    ("fan-out", "Who receives a message: its sender (none), or all clients (room)?", "none"),
    ("service-time", "How long does the server work for a request (0s: not at all)?", "0s"),
    ("service-kind", "Does it wait that long, or compute (wait, cpu)?", "wait"),
    ("slow-readers", "What share of the clients reads slowly?", "0"),
    ("objective", "What matters: throughput, cpu, memory, or an objective such as p99<5ms?", ""),
    ("languages", "In which languages (c++,go; empty: any)?", ""),
    ("time-budget", "How long may it take?", "5m"),
)


def ask_questions() -> dict[str, Any]:
    """Ask for the workload in a terminal. Raises UserError elsewhere."""
    if not sys.stdin.isatty():
        raise UserError("say what the workload is, such as: advise --connections 200 --rate 5k --objective 'p99<5ms'")
    answers: dict[str, Any] = {}
    for name, text, default in ASKED:
        if _is_moot(name, answers):
            continue
        text_given = typer.prompt(text, default=default, show_default=bool(default)).strip()
        if text_given and not (text_given == default and name in ("rate", "slow-readers", "service-time", "fan-out")):
            value: object = int(text_given) if name in ("connections", "size") and text_given.isdigit() else text_given
            answers[name] = workload.read_option(name, value, text)
    return answers


def _is_moot(name: str, answers: Mapping[str, Any]) -> bool:
    room = answers.get("fan-out") == "room"
    return {
        "service-time": room,
        "service-kind": "service-time" not in answers,
        "slow-readers": not room,
    }.get(name, False)

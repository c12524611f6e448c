"""The questions that `netdyno advise` asks in a terminal where nothing says the workload."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import typer

from netdyno.kit.errors import UserError
from netdyno.kit.escape import harmless
from netdyno.kit.units import parse_bytes
from netdyno.question import workload

AnswerCheck = Callable[[Mapping[str, Any]], object]
"""Raises UserError where the answers so far contradict each other."""
QUESTIONS = (
    ("connections", "How many connections?", "100"),
    ("size", "How many bytes does a message have?", "64"),
    ("fan-out", "Who receives a message: its sender (none), or all clients (room)?", "none"),
    ("service-time", "How long does the server work for a request (0s: not at all)?", "0s"),
    ("service-kind", "Does it wait that long, or compute (wait, cpu)?", "wait"),
    ("slow-readers", "What share of the clients reads slowly?", "0"),
    ("objective", "What matters: throughput, cpu, memory, or an objective such as p99<5ms?", ""),
    ("rate", "How many messages a second in all (0: as many as possible)?", "0"),
    ("languages", "In which languages (c++,go; empty: any)?", ""),
    ("time-budget", "How long may it take?", "5m"),
)


def ask_questions(check_candidates: AnswerCheck) -> dict[str, Any]:
    """Ask for the workload in a terminal; `check_candidates` judges the languages. Raises UserError elsewhere."""
    if not sys.stdin.isatty():
        raise UserError("say what the workload is, such as: advise --connections 200 --rate 5k --objective 'p99<5ms'")
    # The rate decides last whether a room and an objective are possible, so its answer can mend both.
    checks: dict[str, AnswerCheck] = {"rate": workload.check, "languages": check_candidates}
    answers: dict[str, Any] = {}
    for name, text, default in QUESTIONS:
        if not _is_moot(name, answers):
            answers = _ask_until_understood(name, text, default, answers, checks.get(name))
    return answers


def _ask_until_understood(
    name: str, text: str, default: str, answers: Mapping[str, Any], check: AnswerCheck | None
) -> dict[str, Any]:
    """Ask one question, again where the answer is mistyped or contradicts those before it, which are kept. Returns all
    answers; the workload may be without this one."""
    while True:
        text_given = typer.prompt(text, default=default, show_default=bool(default)).strip()
        is_left_out = text_given == default and name in ("rate", "slow-readers", "service-time", "fan-out")
        try:
            given = {} if is_left_out or not text_given else {name: _read_answer(name, text_given)}
            if check is not None:
                check({**answers, **given})
        except (UserError, ValueError) as error:
            print(f"netdyno: {harmless(str(error))}; try again", file=sys.stderr)
        else:
            return {**answers, **given}


def _read_answer(name: str, text: str) -> Any:
    return workload.read_option(name, _convert(name, text), name)


def _convert(name: str, text: str) -> object:
    """Convert the text of a number. Raises ValueError for a size that is none."""
    if name == "size":
        return parse_bytes(text)
    return int(text) if name == "connections" and text.isdecimal() else text


def _is_moot(name: str, answers: Mapping[str, Any]) -> bool:
    room = answers.get("fan-out") == "room"
    return {
        "service-time": room,
        "service-kind": "service-time" not in answers,
        "slow-readers": not room,
    }.get(name, False)

"""A run in which every text that could come from outside holds an attack on its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from netdyno.model.run import Run

NOTES = frozenset(
    {
        "answer",
        "caveats",
        "copies",
        "detail",
        "help",
        "log",
        "model",
        "question",
        "reason",
        "source",
        "summary",
        "text",
        "title",
        "unranked",
        "unsafe",
        "why_no_code",
    }
)
"""Keys whose values are texts, and stand for nothing but themselves."""


def hostile(run: Run, evil: str) -> Run:
    """The run with `evil` in its texts, in the names of its contestants, scenarios and programs, and in what is
    recorded of its machine. Names that are the same stay the same."""
    scenarios = run.experiment.scenarios
    names = {scenario.name for scenario in scenarios} | {
        name for scenario in scenarios for name in scenario.contestants
    }
    names |= {code.name for code in run.about} | {trial.contestant for trial in run.all_trials} | {run.experiment.name}
    renamed = {name: f"{name}{evil}" for name in names}
    built: dict[str, Any] = msgspec.to_builtins(run)
    built["environment"] = {f"{key}{evil}": _text(value, evil) for key, value in built["environment"].items()}
    built["run_id"] += evil
    return msgspec.convert(_walk(built, renamed, evil), Run)


def _walk(value: Any, renamed: Mapping[str, str], evil: str) -> Any:
    if isinstance(value, str):
        return renamed.get(value, value)
    if isinstance(value, dict):
        return {key: _text(item, evil) if key in NOTES else _walk(item, renamed, evil) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, renamed, evil) for item in value]
    return value


def _text(value: Any, evil: str) -> Any:
    if isinstance(value, str):
        return f"{value}{evil}"
    if isinstance(value, list | tuple):
        return [_text(item, evil) for item in value]
    return value

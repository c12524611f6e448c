"""What the machine was and how it was shared, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.base import quantities
from netdyno.model.observation import Pinning


def pinning(way: Pinning) -> str:
    """What was done about pinning."""
    note = f" ({way.note})" if way.note else ""
    return f"server on {_cores(way.server)}, generator on {_cores(way.generator)}{note}"


def _cores(cores: Sequence[int]) -> str:
    if not cores:
        return "any core"
    return f"core{'s' if len(cores) > 1 else ''} {quantities.listed([str(core) for core in cores])}"


def entry(value: str | float | bool | list[str]) -> str:
    """What was recorded of the environment under one name."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\n".join(value) if isinstance(value, list) else str(value)

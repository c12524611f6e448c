"""The machine and how it was shared, in words. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.kit import quantities
from netdyno.model.observation import Pinning


def describe_pinning(pinning: Pinning) -> str:
    """Describe the pinning of server and generator."""
    note = f" ({pinning.note})" if pinning.note else ""
    return f"server on {_list_cores(pinning.server)}, generator on {_list_cores(pinning.generator)}{note}"


def _list_cores(cores: Sequence[int]) -> str:
    if not cores:
        return "any core"
    return f"core{'s' if len(cores) > 1 else ''} {quantities.listed([str(core) for core in cores])}"


def format_entry(value: str | float | bool | list[str]) -> str:
    """Write an entry of the recorded environment."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\n".join(value) if isinstance(value, list) else str(value)

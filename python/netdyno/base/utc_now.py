"""The time as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """The time, as it is stored: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")

"""The current time in its stored form."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> str:
    """Return the current time in its stored form: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")

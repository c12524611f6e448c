"""What is submitted to a host of servers; Dask finds it there by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from distributed import get_worker

if TYPE_CHECKING:
    from netdyno.cluster.daemon import Worker


def perform(request: bytes, topic: str) -> bytes:
    """A Request and its Reply, as JSON; `topic` is where the host says meanwhile that it lives."""
    return cast("Worker", get_worker()).perform(request, topic)

"""What the worker of a host takes of others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from netdyno.cluster.daemon import Worker


def test_a_load_of_a_hundred_hosts_with_many_cores_can_be_asked_for(tmp_path: Path) -> None:
    """Its line names the cores of each."""
    line = b"x" * (1 << 20) + b"\n"

    async def hears() -> bytes:
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def stand_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                heard.set_result(await reader.readline())
            except ValueError as too_long:
                heard.set_exception(too_long)
            writer.close()

        way = await Worker._open_way(cast(Any, SimpleNamespace(_stand_in=stand_in)), tmp_path / "way")
        async with way:
            _, writer = await asyncio.open_unix_connection(tmp_path / "way")
            writer.write(line)
            try:
                return await heard
            finally:
                writer.close()

    assert asyncio.run(hears()) == line

"""What the worker of a host takes of others."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from netdyno.base.errors import UserError
from netdyno.cluster import daemon, engine
from netdyno.cluster.daemon import Worker
from tests.support.patience import PATIENCE_S


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


class Stuck:
    """Dask's server, as it is seen rarely: it neither stands nor ends where it is cancelled."""

    def __await__(self) -> Generator[Any, None, None]:
        return self.start().__await__()

    async def start(self) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def close(self) -> None:
        await self.start()

    async def finished(self) -> None:
        """It has ended by itself, as far as it tells."""


def test_a_host_that_never_comes_to_stand_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 0.05)

    async def start() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await daemon._start(Stuck(), "no scheduler")

    with pytest.raises(UserError, match=r"no scheduler \(it took too long\)"):
        asyncio.run(start())


def test_a_host_that_does_not_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CONNECT_S", 0.05)

    async def end() -> bool:
        async with asyncio.timeout(PATIENCE_S):
            return await daemon._until_ended(Stuck())

    assert asyncio.run(end()) is False

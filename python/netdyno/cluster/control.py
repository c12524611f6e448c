"""The controller's side: one connection to the scheduler, through which hosts are found and told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from distributed import Client
from msgspec.structs import replace

from netdyno.base.errors import UserError
from netdyno.cluster import authority, clocks, engine
from netdyno.cluster.described import Description, Host
from netdyno.cluster.engine import GoneError
from netdyno.cluster.links import Link


class Control:
    """Used as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError where no scheduler lets it in."""
        address = authority.scheduler_of(folder)
        security = engine.security(folder, "control")
        try:
            self.client = Client(address, security=security, timeout=engine.CONNECT_S, set_as_default=False)
        except OSError as error:
            raise UserError(
                f"no scheduler answers at {address} as one of this cluster's "
                f"(./netdyno cluster scheduler --cluster {folder})"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close(timeout=engine.CONNECT_S)

    def hosts(self, *, links: bool = False) -> tuple[Host, ...]:
        """All that have joined, servers first. With `links` each is filled, one after the other, but while a host is
        at work. Raises UserError where one does not answer."""
        found: tuple[Host, ...] = self.client.sync(self._hosts, links=links)
        return tuple(sorted(found, key=lambda host: (host.description.role != "server", host.address)))

    def names(self) -> dict[str, str]:
        """Of all that are there still, by their addresses. Raises GoneError where the scheduler does not say."""
        try:
            known = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=engine.ANSWER_S)
        except OSError as error:
            raise GoneError("the scheduler is gone") from error
        return _names(known)

    def answers(self, address: str) -> bool:
        """Whether a host does; one whose link is down is missed by the scheduler some seconds later."""
        try:
            self.client.sync(self.client.rpc(address).netdyno_clock, callback_timeout=engine.CONNECT_S)
        except OSError:
            return False
        return True

    async def _hosts(self, *, links: bool) -> tuple[Host, ...]:
        names = _names(await _of_scheduler(self.client.scheduler.identity(n_workers=-1)))
        found = [await self._host(address, name) for address, name in names.items()]
        if not links:
            return tuple(found)
        return tuple([replace(host, links=await self._links(host.address, tuple(names))) for host in found])

    async def _host(self, address: str, name: str) -> Host:
        there = self.client.rpc(address)
        try:
            async with asyncio.timeout(engine.ANSWER_S):
                said = msgspec.json.decode(await there.netdyno_describe(), type=Description)
            clock = await clocks.measure(there.netdyno_clock, engine.ANSWER_S)
        except OSError as error:
            raise UserError(f"the host {address} has joined and does not answer") from error
        return Host(address=address, name=name, clock=clock, description=said, links={})

    async def _links(self, address: str, everyone: Sequence[str]) -> dict[str, Link]:
        """Of a host, from all others. Before each it is looked whether a host has something to do, which may begin at
        any time; what begins just then is the host's to see to (daemon.py)."""
        there = self.client.rpc(address)
        found: dict[str, Link] = {}
        for other in everyone:
            if other == address:
                continue
            tasks = await _of_scheduler(self.client.scheduler.processing())
            try:
                async with asyncio.timeout(engine.ANSWER_S):
                    round_trip_ns = await there.netdyno_round_trip(address=other)
                    rate = None if any(tasks.values()) else await there.netdyno_rate(address=other)
            except OSError as error:
                raise UserError(f"{other} does not answer {address}, or {address} us") from error
            found[other] = Link(round_trip_ns=round_trip_ns, bits_per_second=rate)
        return found


async def _of_scheduler(answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Raises UserError."""
    try:
        async with asyncio.timeout(engine.ANSWER_S):
            return await answer
    except OSError as error:
        raise UserError("the scheduler does not answer") from error


def _names(known: dict[str, Any]) -> dict[str, str]:
    """Of hosts, as the scheduler knows them."""
    return {address: worker["name"] for address, worker in known["workers"].items()}

"""The controller's side: one connection to the scheduler, through which hosts are found and told what to do."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from distributed import Client

from netdyno.base.errors import UserError
from netdyno.cluster import authority, clocks, engine
from netdyno.cluster.described import Description, Host
from netdyno.cluster.engine import GoneError


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

    def hosts(self) -> tuple[Host, ...]:
        """All that have joined, servers first. Raises UserError where one does not answer."""
        found: tuple[Host, ...] = self.client.sync(self._hosts)
        return tuple(sorted(found, key=lambda host: (host.description.role != "server", host.address)))

    def addresses(self) -> frozenset[str]:
        """Of all that are there still. Raises GoneError where the scheduler does not say."""
        try:
            known = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=engine.LOST_S)
        except OSError as error:
            raise GoneError("the scheduler is gone") from error
        return frozenset(known["workers"])

    def answers(self, address: str) -> bool:
        """Whether a host does; one whose link is down is missed by the scheduler some seconds later."""
        try:
            self.client.sync(self.client.rpc(address).netdyno_clock, callback_timeout=engine.CONNECT_S)
        except OSError:
            return False
        return True

    async def _hosts(self) -> tuple[Host, ...]:
        workers = (await self.client.scheduler.identity(n_workers=-1))["workers"]
        return tuple([await self._host(address, list(workers), workers[address]) for address in workers])

    async def _host(self, address: str, everyone: list[str], known: dict[str, Any]) -> Host:
        there = self.client.rpc(address)
        try:
            said = msgspec.json.decode(await there.netdyno_describe(), type=Description)
            clock = await clocks.measure(there.netdyno_clock)
            links = {other: await there.netdyno_round_trip(address=other) for other in everyone if other != address}
        except OSError as error:
            raise UserError(f"the host {address} has joined and does not answer") from error
        is_busy = bool(known["metrics"].get("executing"))
        return Host(address=address, is_busy=is_busy, clock=clock, description=said, links=links)

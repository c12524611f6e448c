"""The controller beside hosts that are stopped, over whose connections nothing comes, or that get to work while it
looks at them."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from netdyno.base.errors import UserError
from netdyno.cluster import control, described, engine
from tests.support.patience import PATIENCE_S


async def never(**_: object) -> Any:
    await asyncio.Event().wait()


def stopped(*, scheduler: bool) -> control.Control:
    """One whose scheduler is stopped, or the only host that it knows."""

    async def identity(**_: object) -> dict[str, object]:
        return {"workers": {"tls://10.0.0.3:8787": {"name": "client"}}}

    host = SimpleNamespace(netdyno_describe=never, netdyno_clock=never)
    return beside(SimpleNamespace(identity=never if scheduler else identity), host)


def beside(scheduler: SimpleNamespace, host: SimpleNamespace) -> control.Control:
    """One that knows this scheduler; all of its hosts say what that one does."""
    found = control.Control.__new__(control.Control)
    found.client = SimpleNamespace(
        scheduler=scheduler,
        rpc=lambda _address: host,
        sync=lambda asked, **words: asyncio.run(asyncio.wait_for(asked(**words), PATIENCE_S)),
    )
    return found


@pytest.mark.parametrize(
    ("scheduler", "complaint"),
    [(True, "the scheduler does not answer"), (False, r"10\.0\.0\.3:8787 has joined and does not answer")],
)
def test_who_is_stopped_is_told_of(*, scheduler: bool, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ANSWER_S", 0.01)
    with pytest.raises(UserError, match=complaint):
        stopped(scheduler=scheduler).hosts()


ADDRESSES = tuple(f"tls://10.0.0.{number}:8787" for number in (2, 3, 4))


def test_no_link_is_filled_once_a_trial_has_begun() -> None:
    """While the status is being taken, of which every link takes a part of a second."""
    looks = 0
    said = described.describe("client", (0,), "10.0.0.2", (), is_busy=False)

    async def identity(**_: object) -> dict[str, object]:
        return {"workers": {address: {"name": address} for address in ADDRESSES}}

    async def processing() -> dict[str, list[str]]:
        nonlocal looks
        looks += 1
        return {address: ["a trial"] if looks > 2 and address == ADDRESSES[-1] else [] for address in ADDRESSES}

    async def description() -> bytes:
        return msgspec.json.encode(said)

    async def clock() -> int:
        return time.monotonic_ns()

    async def figure(address: str) -> int:
        return len(address)

    host = SimpleNamespace(
        netdyno_describe=description, netdyno_clock=clock, netdyno_round_trip=figure, netdyno_rate=figure
    )
    hosts = beside(SimpleNamespace(identity=identity, processing=processing), host).hosts(links=True)
    rates = [link.bits_per_second for one in hosts for link in one.links.values()]
    assert [rate is not None for rate in rates] == [True, True, False, False, False, False]

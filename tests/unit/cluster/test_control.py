"""The controller beside hosts that are stopped: their connections stand, and nothing comes over them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from netdyno.base.errors import UserError
from netdyno.cluster import control, engine
from tests.support.patience import PATIENCE_S


async def never(**_: object) -> Any:
    await asyncio.Event().wait()


def stopped(*, scheduler: bool) -> control.Control:
    """One whose scheduler is stopped, or the only host that it knows."""

    async def identity(**_: object) -> dict[str, object]:
        return {"workers": {"tls://10.0.0.3:8787": {"name": "client"}}}

    host = SimpleNamespace(netdyno_describe=never, netdyno_clock=never)
    found = control.Control.__new__(control.Control)
    found.client = SimpleNamespace(
        scheduler=SimpleNamespace(identity=never if scheduler else identity),
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

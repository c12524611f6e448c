"""The controller and hosts that are stopped, that stay silent, or that begin work while it checks them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import described
from netdyno.measure.cluster.controller import Controller
from tests.support.patience import PATIENCE_S

ADDRESSES = tuple(f"tls://10.0.0.{number}:8787" for number in (2, 3, 4))
SCHEDULER = "tls://10.0.0.1:8786"
Answers = Callable[[str, str], Awaitable[object]]
"""By an address and an operation."""


async def never() -> Any:
    await asyncio.Event().wait()


class FakeComm:
    """A connection to a host that answers."""

    role = "client"

    def __init__(self, address: str, answers: Answers) -> None:
        self._address = address
        self._answers = answers
        self._asked = ""

    async def write(self, words: dict[str, Any]) -> None:
        self._asked = words["op"]

    async def read(self) -> object:
        return await self._answers(self._address, self._asked)

    def closed(self) -> bool:
        return False

    def abort(self) -> None:
        """Do nothing: there is no socket."""


def beside(answers: Answers, *hosts: str) -> Controller:
    """Return a controller that is connected to its scheduler and to these hosts."""
    controller = Controller.__new__(Controller)
    controller._scheduler = SCHEDULER
    controller._comms = {address: FakeComm(address, answers) for address in (SCHEDULER, *hosts)}
    controller._wait = lambda coroutine: asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))  # type: ignore[method-assign]
    return controller


def known(*hosts: str) -> dict[str, object]:
    return {"workers": {address: {"name": address} for address in hosts}}


@pytest.mark.parametrize(
    ("scheduler", "complaint"),
    [(True, "the scheduler does not answer"), (False, r"10\.0\.0\.3:8787 has joined and does not answer")],
)
def test_a_stopped_process_is_reported(*, scheduler: bool, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(address: str, _operation: str) -> object:
        return known(ADDRESSES[1]) if address == SCHEDULER and not scheduler else await never()

    controller = beside(answers, ADDRESSES[1])
    monkeypatch.setattr(controller, "_ask", partial(controller._ask, limit_s=0.01))
    with pytest.raises(UserError, match=complaint):
        controller.hosts()


def test_no_link_is_filled_once_a_trial_has_begun() -> None:
    """The status takes part of a second for every link; a trial may begin meanwhile."""
    descriptions = 0

    async def answers(address: str, operation: str) -> object:
        nonlocal descriptions
        if operation == "netdyno_describe":
            descriptions += 1  # each host's own first, then all before each link
            is_busy = descriptions > 3 + 2 * 3 and address == ADDRESSES[-1]
            return msgspec.json.encode(described.describe("client", (0,), "10.0.0.2", (), is_busy=is_busy))
        return {"identity": known(*ADDRESSES), "netdyno_rate": 1.5}.get(operation, 7)

    hosts = beside(answers, *ADDRESSES).hosts(links=True)
    rates = [link.bits_per_second for host in hosts for link in host.links.values()]
    assert [rate is not None for rate in rates] == [True, True, False, False, False, False]


DESCRIPTION = msgspec.json.encode(described.describe("client", (0,), "10.0.0.2", (), is_busy=False))


@pytest.mark.parametrize(
    ("operation", "answer", "complaint"),
    [
        ("identity", {"workers": {"tcp://10.0.0.2:8787": {"name": "client"}}}, "transport 'tcp' is not supported"),
        ("identity", {"workers": 5}, "the scheduler does not answer"),
        ("netdyno_clock", "soon", "its answer does not match the request: Expected `int`, got `str`"),
        ("netdyno_clock", {"exception_text": "no clock"}, "no clock"),
        ("netdyno_describe", b"{}", "does not describe itself: Object missing required field"),
        ("netdyno_describe", DESCRIPTION.replace(b"client", b"server"), "says it is server, and its .* is for client"),
        ("netdyno_round_trip", 0.5, "Expected `int`, got `float`"),
        ("netdyno_rate", b"much", "Expected `float | null`, got `bytes`"),
    ],
)
def test_what_was_not_requested_is_an_error_that_says_so(operation: str, answer: object, complaint: str) -> None:
    good: dict[str, object] = {"identity": known(*ADDRESSES), "netdyno_describe": DESCRIPTION}

    async def answers(_address: str, requested: str) -> object:
        return answer if requested == operation else good.get(requested, 7)

    with pytest.raises(UserError, match=complaint):
        beside(answers, *ADDRESSES).hosts(links=True)

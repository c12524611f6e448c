"""How a load is divided among hosts, and how their events become those of one load."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from netdyno.measure.cluster import engine, remote_load
from netdyno.measure.cluster.clocks import Offset, start_within_ns
from netdyno.measure.cluster.remote_load import LostError, _Host, make, split_request
from netdyno.measure.cluster.requests import LoadEnded, LoadHost, LoadRequest
from netdyno.measure.trial.parts import Parts
from tests.support.patience import PATIENCE_S

HOSTS = tuple(LoadHost(address=f"tls://10.0.0.{number}:8787", cores=(number,), realtime=False) for number in (3, 4, 5))


def request_load(*words: str) -> LoadRequest:
    return LoadRequest(hosts=HOSTS, foreign_load="count", program="netdyno-load", words=words, events=True)


def hear_event(parts: Parts, part: int, event: str, **more: float) -> dict[str, float]:
    line = parts.hear(part, json.dumps({"event": event, **more}).encode() + b"\n")
    heard: dict[str, float] = json.loads(line) if line else {}
    return {name: value for name, value in heard.items() if name in more}


def test_what_is_not_shared_is_made_by_the_first_host_as_it_was_requested() -> None:
    (only,) = split_request(request_load("tcp://10.0.0.2:7000", "-c", "5"))
    assert only.words == ("tcp://10.0.0.2:7000", "-c", "5")
    assert only.cores == (3,)


def test_the_first_host_makes_the_load_of_a_client_contestant() -> None:
    clients = msgspec.structs.replace(request_load("tcp://10.0.0.2:7000"), program="asyncio", processes=4)
    (only,) = split_request(clients)
    assert (only.program, only.processes, only.cores) == ("asyncio", 4, (3,))


def test_each_host_makes_its_part_and_awaits_the_common_moment() -> None:
    shares = split_request(request_load("tcp://10.0.0.2:7000", "--share", "1/2", "-c", "5"))
    assert [share.words for share in shares] == [
        ("tcp://10.0.0.2:7000", "--share", "1/2", "-c", "5", "--await-go"),
        ("tcp://10.0.0.2:7000", "--share", "2/2", "-c", "5", "--await-go"),
    ]
    assert [share.cores for share in shares] == [(3,), (4,)]


def test_one_host_is_passed_on_word_by_word() -> None:
    assert Parts(1).hear(0, b'{"event":"anything"}\n') == b'{"event":"anything"}\n'


def test_all_connections_stand_before_it_is_stated() -> None:
    parts = Parts(2)
    assert hear_event(parts, 1, "connected", established=3) == {}
    assert not parts.all_stand
    assert hear_event(parts, 0, "connected", established=2) == {"established": 5}
    assert parts.all_stand


def test_the_window_is_that_in_which_all_measure() -> None:
    parts = Parts(2)
    assert parts.hear(0, b'{"event":"window_start"}') == b""
    assert b"window_start" in parts.hear(1, b'{"event":"window_start"}')
    assert b"window_end" in parts.hear(1, b'{"event":"window_end"}')
    assert parts.hear(0, b'{"event":"window_end"}') == b""


def test_a_window_that_ends_for_one_before_it_begins_for_another_begins_before_it_ends() -> None:
    """A host stopped answering for a time. The common window is empty, which an audit sees."""
    start, end = b'{"event":"window_start"}', b'{"event":"window_end"}'
    parts = Parts(3)
    assert [parts.hear(part, line) for part, line in ((0, start), (1, start), (0, end), (1, end))] == [b""] * 4
    events = [json.loads(line)["event"] for line in parts.hear(2, start).splitlines()]
    assert events == ["window_start", "window_end"]
    assert parts.hear(2, end) == b""


def test_progress_is_the_sum() -> None:
    parts = Parts(2)
    assert hear_event(parts, 1, "progress", completed=100, seconds=0.5) == {}
    assert hear_event(parts, 0, "progress", completed=300, seconds=0.5) == {"completed": 400, "seconds": 0.5}
    assert hear_event(parts, 0, "progress", completed=600, seconds=1.0) == {"completed": 700, "seconds": 1.0}


def test_what_was_sent_in_a_room_is_known_when_all_have_sent_it_or_are_gone() -> None:
    parts = Parts(3)
    assert hear_event(parts, 0, "sent", messages=7) == hear_event(parts, 1, "sent", messages=5) == {}
    assert parts.all_sent is None
    parts.end(2)
    assert parts.all_sent == 12
    without_chat = Parts(1)
    without_chat.end(0)
    assert without_chat.all_sent is None, "of what is no chat nobody says it"


def test_a_clock_that_went_on_differently_adds_to_what_a_start_may_be_off() -> None:
    before = Offset(offset_ns=1_000_000, round_trip_ns=400_000)
    assert start_within_ns(before, Offset(offset_ns=1_000_100, round_trip_ns=900_000)) == 200_100


class _Standing:
    """A connection to a host that has its connections and keeps sending heartbeats."""

    def __init__(self) -> None:
        self._says = [{"line": b'{"event":"connected","established":1}', "last": False}]

    async def write(self, _words: dict[str, Any]) -> None:
        pass

    async def read(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        return self._says.pop() if self._says else {"beat": True}


class _StoppedClocks:
    """Hosts as remote_load.Reach; none answers the question for its clock."""

    @asynccontextmanager
    async def connected(self, _address: str) -> AsyncIterator[_Standing]:
        yield _Standing()

    async def ask_clock(self, _address: str) -> int:
        await asyncio.Event().wait()
        return 0


def test_a_host_that_stops_before_the_common_moment_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOST_S", 0.01)

    async def tell(_line: bytes) -> None:
        pass

    async def make_one() -> None:
        load = make(request_load("tcp://10.0.0.2:7000", "--share", "1/2"), _StoppedClocks(), tell)
        await asyncio.wait_for(load, PATIENCE_S)

    with pytest.raises(LostError, match=r"the host tls://10\.0\.0\.3:8787, which makes the load, was lost"):
        asyncio.run(make_one())


@pytest.mark.parametrize("turns", range(5))
def test_no_host_goes_on_hearing_one_whose_word_came_at_the_end(turns: int) -> None:
    """The loop turns this often after the reply; otherwise a failed load would end only with its last host."""

    async def hear() -> bool:
        word: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        async def read() -> dict[str, Any]:
            return await word

        hearing = asyncio.create_task(_Host("tls://10.0.0.3:8787", SimpleNamespace(read=read)).hear())
        for _ in range(3):
            await asyncio.sleep(0)
        word.set_result({"beat": True})
        for _ in range(turns):
            await asyncio.sleep(0)
        return not hearing.cancel() or isinstance(
            (await asyncio.gather(hearing, return_exceptions=True))[0], BaseException
        )

    assert asyncio.run(hear())


@pytest.mark.parametrize(
    ("code", "result", "is_failed"),
    [(0, "{}", False), (1, "{}", False), (3, "{}", False), (0, None, True), (1, None, True), (2, "{}", True)],
)
def test_a_load_to_which_no_reply_was_right_is_a_result(code: int, result: str | None, is_failed: bool) -> None:
    assert remote_load._is_failure(LoadEnded(code=code, output="", result=result)) == is_failed

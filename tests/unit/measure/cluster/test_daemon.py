"""The requests that a host's worker accepts, and those that it allows while it works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import daemon, engine, host_links
from netdyno.measure.cluster.daemon import HelperError, Worker
from netdyno.measure.cluster.requests import NotDone, Reply
from tests.support.patience import PATIENCE_S


def test_a_load_of_a_hundred_hosts_with_many_cores_can_be_requested(tmp_path: Path) -> None:
    """Its request line names the cores of each host."""
    line = b"x" * (1 << 20) + b"\n"

    async def hears() -> bytes:
        heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def stand_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                heard.set_result(await reader.readline())
            except ValueError as too_long:
                heard.set_exception(too_long)
            writer.close()

        way = await Worker._open_way(cast(Any, SimpleNamespace(_serve_load=stand_in)), tmp_path / "way")
        async with way:
            _, writer = await asyncio.open_unix_connection(tmp_path / "way")
            writer.write(line)
            try:
                return await heard
            finally:
                writer.close()

    assert asyncio.run(hears()) == line


class Stuck:
    """Dask's server in a rare state: it neither starts nor ends when it is cancelled."""

    def __await__(self) -> Generator[Any, None, None]:
        return self.start().__await__()

    async def start(self) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def close(self) -> None:
        await self.start()

    async def finished(self) -> None:
        """Return at once, as if the server had ended by itself."""


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
            return await daemon._await_end(Stuck(), asyncio.Event())

    assert asyncio.run(end()) is False


class Idle(SimpleNamespace):
    """The attributes of an idle worker."""

    def __init__(self, **more: object) -> None:
        super().__init__(
            netdyno_loading=asyncio.Lock(),
            netdyno_performing=asyncio.Lock(),
            netdyno_transfers=host_links.Transfers(),
            local_directory=None,
            **more,
        )

    def _is_busy(self) -> bool:
        return Worker._is_busy(cast(Any, self))


class FakeConnection:
    """A connection to another host, which closes it when it is read."""

    def __init__(self) -> None:
        self.written: list[object] = []
        self.stream = self

    async def write(self, words: object) -> None:
        self.written.append(words)

    async def read_bytes(self, _count: int) -> bytes:
        raise OSError

    def abort(self) -> None:
        self.written.append("end")


def test_a_host_at_work_has_no_link_filled() -> None:
    """The other host may have looked before the work began."""
    comm = FakeConnection()

    async def ask() -> None:
        host = Idle()
        async with host.netdyno_performing:
            await Worker.fill_link(cast(Any, host), comm)
            assert comm.written == [{"fills": False}, "end"]
            assert await Worker.tell_rate(cast(Any, host), "tls://10.0.0.3:8787") is None

    asyncio.run(ask())


def test_a_load_waits_for_a_link_that_is_being_filled_and_says_that_it_lives() -> None:
    comm, load_made = FakeConnection(), asyncio.Event()

    async def make(*_: object) -> None:
        load_made.set()

    async def wait() -> None:
        host = Idle(_make_load=make)
        with host.netdyno_transfers.count_transfer():
            loading = asyncio.create_task(Worker.make_load(cast(Any, host), comm, {}))
            while not comm.written:
                await asyncio.sleep(0)
            assert host._is_busy()
            assert not load_made.is_set()
        await loading

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))
    assert load_made.is_set()
    assert comm.written == [{"beat": True}]


class FakeController(FakeConnection):
    """The connection to a controller, which stays until it has the last piece of a reply."""

    async def read(self) -> object:
        await asyncio.sleep(0.001)
        if any(isinstance(word, dict) and word.get("last") for word in self.written):
            raise OSError
        return {"beat": True}


async def reply(host: Idle, comm: FakeController) -> Reply:
    """Return the reply that the controller receives in the end."""
    await Worker.perform(cast(Any, host), comm, b"{}")
    pieces = [word["piece"] for word in comm.written if isinstance(word, dict) and "piece" in word]
    answer: Reply = msgspec.json.decode(b"".join(pieces), type=Reply)
    return answer


def performing(helped: Callable[..., Awaitable[bytes]]) -> Idle:
    """Return a host with this helper."""
    host = Idle(_run_helper=helped)
    host._perform = partial(Worker._perform, cast(Any, host))
    return host


def test_a_trial_waits_for_a_link_that_is_being_filled_and_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BEAT_S", 0.001)
    comm, has_begun = FakeController(), asyncio.Event()

    async def help_it(*_: object) -> bytes:
        has_begun.set()
        return msgspec.json.encode(NotDone(why="all is well"))

    async def wait() -> Reply:
        host = performing(help_it)
        with host.netdyno_transfers.count_transfer():
            waiting = asyncio.create_task(reply(host, comm))
            while len(comm.written) < 2:
                await asyncio.sleep(0)
            assert host._is_busy()
            assert not has_begun.is_set()
        return await waiting

    assert asyncio.run(asyncio.wait_for(wait(), PATIENCE_S)) == NotDone(why="all is well")
    assert comm.written[:2] == [{"beat": True}, {"beat": True}]


def test_the_reason_why_a_host_could_not_do_it_is_stated() -> None:
    async def fail(*_: object) -> bytes:
        raise HelperError("no disk")

    assert asyncio.run(asyncio.wait_for(reply(performing(fail), FakeController()), PATIENCE_S)) == NotDone(
        why="no disk"
    )


def test_a_host_makes_one_trial_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long beside what a neighbour takes a core for: the controller must not seem silent before the host has answered.
    monkeypatch.setattr(engine, "LOST_S", 1.0)

    async def ask() -> Reply:
        host = performing(never)
        async with host.netdyno_performing:
            return await reply(host, FakeController())

    async def never(*_: object) -> bytes:
        raise AssertionError

    assert asyncio.run(asyncio.wait_for(ask(), PATIENCE_S)) == NotDone(why="it is busy with another run")


def test_a_trial_ends_when_its_controller_says_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOST_S", 0.01)
    ended = []

    async def go_on(*_: object) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return b""

    class SilentController(FakeController):
        async def read(self) -> object:
            return await asyncio.Event().wait()

    comm = SilentController()
    asyncio.run(asyncio.wait_for(Worker.perform(cast(Any, performing(go_on)), comm, b"{}"), PATIENCE_S))
    assert ended == [True]
    assert comm.written[-1] == "end"

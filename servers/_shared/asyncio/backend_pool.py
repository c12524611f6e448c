"""The pool of connections to a backend, on the same loop as the clients."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import cast

from netdyno_server.backend import connect_or_exit, encode_question, exit_without_backend, is_whole_answer
from netdyno_server.options import Options


class BackendPool:
    """The connections to the backend, one question in flight on each. A question without a free one waits, in the order
    of arrival."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self.options = options
        self._free: deque[AskedConnection] = deque()
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        for sock in connect_or_exit(options):
            loop.run_until_complete(loop.create_connection(lambda: AskedConnection(self), sock=sock))

    def ask(self, duration_ns: int, replied: Callable[[], None]) -> None:
        """Call `replied` when the backend has replied after this time."""
        self._waiting.append((duration_ns, replied))
        self._ask_next()

    def take_back(self, connection: AskedConnection) -> None:
        self._free.append(connection)
        self._ask_next()

    def _ask_next(self) -> None:
        if self._free and self._waiting:
            self._free.popleft().ask(*self._waiting.popleft())


class AskedConnection(asyncio.Protocol):
    """One connection to the backend."""

    def __init__(self, pool: BackendPool) -> None:
        self._pool = pool
        self._answer = b""
        self._replied: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._pool.take_back(self)

    def ask(self, duration_ns: int, replied: Callable[[], None]) -> None:
        self._replied = replied
        self._transport.write(encode_question(duration_ns))

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if is_whole_answer(self._answer):
            self._answer = b""
            replied = self._replied
            self._pool.take_back(self)
            replied()

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            exit_without_backend(self._pool.options)
        except SystemExit as end:
            os._exit(cast(int, end.code))  # within a callback the loop would go on

"""TLS as a session around the session, by OpenSSL without sockets; the counterpart of lib/session/tls.hpp in C++.

The transport of asyncio's own TLS closes at the peer's close_notify, and replies that are pending then are lost."""

from __future__ import annotations

import ssl
from contextlib import suppress

from netdyno_server.options import Options
from netdyno_server.session import Effect, Session, Totals

_RECORD = 16 << 10
"""The bytes that a record holds at most (RFC 8446, 5.1)."""


class TlsSession(Session):
    """A session whose bytes are encrypted on both ways; `plain` knows nothing of it. It asks for no broadcast."""

    def __init__(self, plain: Session, context: ssl.SSLContext, options: Options, totals: Totals) -> None:
        super().__init__(options, totals)
        self._plain = plain
        self._arrived, self._encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._encrypted, server_side=True)

    def _on_bytes(self, data: bytes) -> None:
        self._arrived.write(data)
        try:
            while self._arrived.pending and not self._closed:
                if plain := self._tls.read(_RECORD):
                    self._carry_over(self._plain.take(plain))
                else:  # close_notify
                    self._on_end()
        except ssl.SSLWantReadError:
            pass  # a handshake, or the rest of a record, is still to come
        except ssl.SSLError:
            self._count_protocol_error()

    def _on_end(self) -> None:
        self._carry_over(self._plain.end())

    def _carry_over(self, effects: list[Effect]) -> None:
        """Add the effects of the plain session, its writes encrypted."""
        for effect in effects:
            if effect[0] == "write":
                self._tls.write(effect[1])
                if self._split:
                    self._end_write()
            elif effect[0] == "close":
                with suppress(ssl.SSLError):  # before the end of the handshake, or of the peer's stream
                    self._tls.unwrap()
                self._close()
            else:
                self._end_write()
                self._effects.append(effect)

    def _end_write(self) -> None:
        if encrypted := self._encrypted.read():
            self._effects.append(("write", encrypted))

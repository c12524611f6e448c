"""A client over TLS, whose encrypted bytes are at hand."""

from __future__ import annotations

import functools
import ssl
from contextlib import suppress

from tests.support.client import Client


@functools.cache
def _make_context(maximum_version: ssl.TLSVersion) -> ssl.SSLContext:
    """Make the context of all with that version, as a session belongs to one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = maximum_version
    return context


class TlsClient(Client):
    """A Client that encrypts (PROTOCOL_TLS_CLIENT, any certificate). `piece`: so many bytes go to the server at a time;
    `session`: one to take up."""

    def __init__(
        self,
        address: tuple[str, int],
        receive_buffer: int | None = None,
        *,
        piece: int | None = None,
        session: ssl.SSLSession | None = None,
        maximum_version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ) -> None:
        super().__init__(address, receive_buffer)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._piece = piece
        self.tls = _make_context(maximum_version).wrap_bio(self._incoming, self._outgoing, session=session)
        self._shake_hands()

    def send(self, data: bytes) -> None:
        """Send all of it, encrypted."""
        self.send_encrypted(self.encrypt(data))

    def encrypt(self, data: bytes) -> bytes:
        """What is to be sent next for these bytes."""
        self.tls.write(data)
        return self._outgoing.read()

    def announce_end(self) -> None:
        """Send close_notify: this side has nothing more to send (RFC 8446, 6.1)."""
        self.send_encrypted(self.encrypt_end())

    def encrypt_end(self) -> bytes:
        """close_notify, as it is to be sent next."""
        with suppress(ssl.SSLWantReadError):  # the server's own
            self.tls.unwrap()
        return self._outgoing.read()

    def send_encrypted(self, encrypted: bytes) -> None:
        """Send bytes as they are."""
        step = self._piece or max(len(encrypted), 1)
        for start in range(0, len(encrypted), step):
            super().send(encrypted[start : start + step])

    def _shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.send_encrypted(self._outgoing.read())
                self._take_in()
            else:
                self.send_encrypted(self._outgoing.read())
                return

    def _recv(self) -> int:
        while True:
            try:
                data = self.tls.read(1 << 20)
            except ssl.SSLWantReadError:
                if not self._take_in():
                    return 0  # an end without close_notify
            except ssl.SSLZeroReturnError:
                return 0
            else:
                self._received += data
                return len(data)

    def _take_in(self) -> int:
        encrypted = self.socket.recv(1 << 20)
        self._incoming.write(encrypted)
        self.taken += len(encrypted)
        return len(encrypted)

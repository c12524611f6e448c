"""What a message of a chat looks like to a person. Pure: bytes in, one harmless line out.

Nobody vouches for a message, so nothing of it may reach a terminal but characters that can be seen: no escape sequence,
no newline (which would let one sender write lines in another's name), nothing that turns the direction of writing."""

from __future__ import annotations

from netdyno.base.escape import harmless
from netdyno.protocol import wire

LONGEST_SHOWN = 2000
"""Characters of a message that are shown, before what cannot be seen becomes escapes."""


def shown(body: bytes) -> str:
    """One line for a message. Bytes that are no UTF-8 are shown as \\xff, and a long message by its beginning."""
    text = harmless(body[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace"))
    if len(text) <= LONGEST_SHOWN and len(body) <= 4 * LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}… [{len(body)} bytes in all]"


class LoadTally:
    """Messages of the load generator, which come by the thousand and mean nothing to a person: counted, not shown."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing has come."""
        self._messages = 0
        self._bytes = 0
        self._clients: set[int] = set()

    def takes(self, body: bytes) -> bool:
        """Count the message if it is one of the generator's; says whether it was."""
        try:
            client, _ = wire.read_stamp(body)
        except wire.MalformedError:
            return False
        self._messages += 1
        self._bytes += len(body)
        self._clients.add(client)
        return True

    def take_line(self) -> str | None:
        """What has come since the last call, as one line; None when nothing has."""
        if not self._messages:
            return None
        line = f"[load generator: messages {self._messages}, bytes {self._bytes}, clients {len(self._clients)}]"
        self.reset()
        return line

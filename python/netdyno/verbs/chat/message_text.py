"""Format a message of a chat for a person. Pure: bytes in, one harmless line out.

A message is not trusted, so only visible characters of it may reach a terminal: no escape sequence, no newline (which
would let one sender write lines in another's name), nothing that turns the direction of writing."""

from __future__ import annotations

from netdyno.kit.escape import harmless
from netdyno.protocol import wire

LONGEST_SHOWN = 2000
"""The characters of a message that are shown, before invisible ones become escapes."""


def format_message(body: bytes) -> str:
    """Format a message as one line. Bytes that are no UTF-8 are shown as \\xff, and a long message by its beginning."""
    text = harmless(body[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace"))
    if len(text) <= LONGEST_SHOWN and len(body) <= 4 * LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}… [{len(body)} bytes in all]"


class LoadTally:
    """Messages of the load generator, which come by the thousand and mean nothing to a person: counted, not shown."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start an empty tally."""
        self._messages = 0
        self._bytes = 0
        self._clients: set[int] = set()

    def takes(self, body: bytes) -> bool:
        """Count the message if it is one of the generator's; return whether it was."""
        try:
            client, _ = wire.read_stamp(body)
        except wire.MalformedError:
            return False
        self._messages += 1
        self._bytes += len(body)
        self._clients.add(client)
        return True

    def take_line(self) -> str | None:
        """Describe the messages since the last call in one line; None when there were none."""
        if not self._messages:
            return None
        line = f"[load generator: messages {self._messages}, bytes {self._bytes}, clients {len(self._clients)}]"
        self.reset()
        return line

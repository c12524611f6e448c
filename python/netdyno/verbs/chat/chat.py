"""`netdyno chat URL`: a person in the room of a server that speaks the workload `chat` (protocol/WIRE.md).

Exit codes: 0 after /quit, Ctrl-D or the end of stdin; 1 when the server cannot be reached or goes away; 2 for a wrong
URL or name; 128 + signal after Ctrl-C or a signal."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import socket
import sys
from contextlib import aclosing, suppress
from typing import Any

from netdyno.kit import addresses
from netdyno.kit.errors import UserError, did_you_mean
from netdyno.kit.escape import harmless
from netdyno.kit.held_signals import list_ending_signals
from netdyno.kit.url import TcpUrl, parse_tcp_url
from netdyno.protocol import wire
from netdyno.verbs.chat.message_text import LoadTally, format_message
from netdyno.verbs.chat.screen import ChatScreen, InterruptedByKeyError, open_screen

CONNECT_TIMEOUT_S = 5.0
LEAVE_TIMEOUT_S = 2.0
TALLY_INTERVAL_S = 1.0
LONGEST_NAME = 40
LONGEST_SENT = 1 << 20
"""The servers' default --max-frame."""
LONGEST_RECEIVED = 64 << 20
"""A longer announced message means another protocol."""

COMMANDS = ("/quit", "/help")
HELP = "what you type goes to all clients; /quit, Ctrl-D or Ctrl-C leaves; //text sends /text"


class ChatError(Exception):
    """The conversation cannot begin or go on, through no fault of the user's input; the text is the line shown."""


def run(url: str, name: str | None) -> int:
    """Take part in a chat until it ends; return the exit code. Raises UserError for a wrong URL or name."""
    place = parse_tcp_url(url)
    checked_name = _check_name(name if name is not None else _find_login_name())
    try:
        return asyncio.run(_take_part(place, checked_name))
    except ChatError as error:
        print(f"netdyno: {error}", file=sys.stderr)
        return 1


def _find_login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without an entry in the password database
        return f"user-{os.getuid()}"


def _check_name(name: str) -> str:
    if not name.strip() or name != harmless(name) or len(name) > LONGEST_NAME:
        raise UserError(f"--name: {name!r} must be 1 to {LONGEST_NAME} visible characters")
    return name


async def _take_part(place: TcpUrl, name: str) -> int:
    reader, writer = await _connect(place)
    try:
        chat = Chat(reader, writer, open_screen(), name)
        return await chat.run(place)
    finally:
        writer.close()


async def _connect(place: TcpUrl) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of the host that answers. Raises ChatError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            resolved = await loop.run_in_executor(None, addresses.resolve, place.host, place.port)
            return await _connect_to_first([address.host for address in resolved], place)
    except socket.gaierror as error:
        raise ChatError(f"{place}: the host is not known: {error.strerror}") from error
    except UnicodeError as error:  # what getaddrinfo raises for a label that is empty or too long (RFC 1035, 2.3.4)
        raise ChatError(f"{place}: the host name is not valid") from error
    except TimeoutError as error:
        raise ChatError(f"{place}: no answer within {CONNECT_TIMEOUT_S:g} s") from error


async def _connect_to_first(hosts: list[str], place: TcpUrl) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    why = "no address"
    for host in hosts:
        try:
            return await asyncio.open_connection(host, place.port)
        except ConnectionRefusedError:
            why = "no server listens there (connection refused)"
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
    raise ChatError(f"{place}: {why}")


class Chat:
    """One conversation: typed lines are sent, received messages are shown, until either side ends it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, screen: ChatScreen, name: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._screen = screen
        self._name = name
        self._tally = LoadTally()
        self._tally_due: asyncio.TimerHandle | None = None

    async def run(self, place: TcpUrl) -> int:
        """Chat until the person leaves (0), a signal ends it (128 + signal), or the server is gone (ChatError)."""
        self._screen.note(f"you are {self._name} at {place}; {HELP}")
        listening = asyncio.create_task(self._listen())
        typing = asyncio.create_task(self._send_typed_lines())
        ended_by = _watch_signals()
        try:
            watched: set[asyncio.Future[Any]] = {listening, typing, ended_by}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if ended_by.done():
                return 128 + ended_by.result()
            if listening.done():
                listening.result()
                raise ChatError(f"the server at {place} has closed the connection")
            typing.result()
            await self._leave(listening)
            return 0
        except InterruptedByKeyError:
            return 128 + signal.SIGINT
        finally:
            await _cancel(typing, listening)
            self._flush_tally()

    # --- the room ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Show messages until the server ends the stream between two of them; ChatError when it ends otherwise."""
        while (body := await self._receive_message()) is not None:
            if self._tally.takes(body):
                self._tally_due = self._tally_due or asyncio.get_running_loop().call_later(
                    TALLY_INTERVAL_S, self._flush_tally
                )
            else:
                self._screen.show(format_message(body))

    async def _receive_message(self) -> bytes | None:
        try:
            header = await self._reader.readexactly(wire.FRAME_HEADER)
            size = int.from_bytes(header, "big")
            if not 0 < size <= LONGEST_RECEIVED:
                raise ChatError(f"this is no chat: the server announces a message of {size} bytes")
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            if not error.partial and error.expected == wire.FRAME_HEADER:
                return None
            raise ChatError("the server has closed the connection inside a message") from error
        except OSError as error:
            raise ChatError(f"the connection to the server is lost: {error.strerror or error}") from error

    def _flush_tally(self) -> None:
        self._tally_due = None
        if line := self._tally.take_line():
            self._screen.show(line)

    # --- the person -------------------------------------------------------------------------------------------------

    async def _send_typed_lines(self) -> None:
        """Send typed lines until the person leaves."""
        async with aclosing(self._screen.lines()) as lines:
            async for line in lines:
                if line.startswith(b"/") and not line.startswith(b"//"):
                    if self._obey(line.decode("utf-8", "backslashreplace").strip()):
                        return
                elif text := line.removeprefix(b"/").removesuffix(b"\r"):
                    await self._send(text)

    def _obey(self, command: str) -> bool:
        """Carry out a command; return whether it ends the conversation."""
        if command == "/quit":
            return True
        if command == "/help":
            self._screen.note(HELP)
        else:
            shown_command = harmless(command[:LONGEST_NAME])
            self._screen.note(f"there is no command '{shown_command}'{did_you_mean(shown_command, COMMANDS)}")
        return False

    async def _send(self, text: bytes) -> None:
        body = f"{self._name}: ".encode() + text
        if len(body) > LONGEST_SENT:
            self._screen.note(f"not sent: a message has at most {LONGEST_SENT} bytes, and this one has {len(body)}")
            return
        self._writer.write(wire.frame(body))
        # The listening side reports a lost connection.
        with suppress(ConnectionError):
            await self._writer.drain()

    async def _leave(self, listening: asyncio.Task[None]) -> None:
        """Half-close, so that nothing sent is lost: the server reads it all and then closes (WIRE.md)."""
        with suppress(OSError):  # gone already
            self._writer.write_eof()
        with suppress(TimeoutError, ChatError):  # either way it is over, and the person wanted it so
            await asyncio.wait_for(listening, LEAVE_TIMEOUT_S)


def _watch_signals() -> asyncio.Future[int]:
    """Return a future of the first signal that ends this program, so that the terminal is left in order."""
    loop = asyncio.get_running_loop()
    ended_by: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if not ended_by.done():
            ended_by.set_result(number)

    for number in list_ending_signals():
        loop.add_signal_handler(number, end, number)
    return ended_by


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait until they are over. Their results are either reported already or no longer needed."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

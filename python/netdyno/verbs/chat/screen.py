"""The input and output of a chat: a terminal with a person before it, or a pair of pipes."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncGenerator

PROMPT = "> "


class InterruptedByKeyError(Exception):
    """Ctrl-C at the prompt, which the terminal does not turn into a signal."""


class ChatScreen:
    """Lines in and lines out, as through pipes; notices go to stderr. One thread, the event loop's."""

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Yield lines until the end of stdin; the rest after the last newline is a line too."""
        begun = b""
        while data := await _read(sys.stdin.fileno()):
            *whole, begun = (begun + data).split(b"\n")
            for line in whole:
                yield line
        if begun:
            yield begun

    def show(self, line: str) -> None:
        """Show a message of the room. The text must be harmless already."""
        print(line, flush=True)

    def note(self, line: str) -> None:
        """Show a notice of this program."""
        print(f"netdyno: {line}", file=sys.stderr, flush=True)


class ChatTerminal(ChatScreen):
    """Messages appear above the line that is being typed, which stays as it is (prompt_toolkit)."""

    def __init__(self) -> None:
        # Imported here: it takes longer than everything else that a chat over pipes needs.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output.vt100 import Vt100_Output

        output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
        # Nothing below the prompt is drawn, so the terminal need not be asked where its cursor is (CPR); one that does
        # not answer would make prompt_toolkit complain.
        output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(output=output, interrupt_exception=InterruptedByKeyError)

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Yield lines until Ctrl-D on an empty line; Ctrl-C raises InterruptedByKeyError."""
        from prompt_toolkit.patch_stdout import patch_stdout

        with patch_stdout():
            while True:
                try:
                    line = await self._session.prompt_async(PROMPT, reserve_space_for_menu=0, handle_sigint=False)
                except EOFError:
                    return
                yield line.encode("utf-8", "surrogateescape")

    def note(self, line: str) -> None:
        print(f"* {line}", flush=True)


def open_screen() -> ChatScreen:
    """Open the terminal where both ends are one; else plain lines, without a prompt and without escape sequences."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show every letter gets its escape
            stream.reconfigure(errors="backslashreplace")
    return ChatTerminal() if sys.stdin.isatty() and sys.stdout.isatty() else ChatScreen()


async def _read(fd: int) -> bytes:
    """Read a descriptor as soon as it has data; empty at its end."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(fd, ready.set)
    except PermissionError:  # epoll_ctl(2): EPERM, a regular file or /dev/null, which never blocks
        return os.read(fd, 65536)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 65536)

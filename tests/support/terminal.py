"""A program before a person: in a pseudo-terminal (pty(7)) whose screen the test can look at.

The screen is a model of the few control sequences of ECMA-48 that a line editor needs. One that it does not know is a
failure, so nothing a program sends is overlooked."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.support.patience import PATIENCE_S, POLL_S

ROWS, COLUMNS = 24, 80
SEQUENCE = re.compile(r"\x1b\[(?P<parameters>[?0-9;]*)(?P<final>[A-Za-z])")
UNFINISHED = re.compile(r"\x1b(\[[?0-9;]*)?")


class EmulatedScreen:
    """Rows of characters and a cursor; what scrolls out at the top is kept."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self._wraps = True
        self._pending = ""

    def lines(self) -> list[str]:
        """All rows from the first on, without the blanks at their ends."""
        return ["".join(row).rstrip() for row in self.rows]

    def before_cursor(self) -> str:
        """What stands to the left of the cursor."""
        return "".join(self.rows[self.row])[: self.column].ljust(self.column)

    def feed(self, text: str) -> None:
        """Take what a program has written; a sequence may come in pieces."""
        text, self._pending = self._pending + text, ""
        position = 0
        while position < len(text):
            if text[position] != "\x1b":
                self._put(text[position])
                position += 1
            elif match := SEQUENCE.match(text, position):
                self._obey(match["parameters"], match["final"])
                position = match.end()
            else:
                assert UNFINISHED.fullmatch(text, position), (
                    f"a control sequence nobody foresaw: {text[position : position + 20]!r}"
                )
                self._pending = text[position:]
                return

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
        elif char == "\b":
            self.column = max(0, self.column - 1)
        else:
            assert char.isprintable(), f"a control character nobody foresaw: {char!r}"
            if self.column == COLUMNS and self._wraps:
                self.column = 0
                self._down()
            row = self.rows[self.row]
            row.extend(" " * (self.column + 1 - len(row)))
            row[self.column] = char
            self.column = min(self.column + 1, COLUMNS if self._wraps else COLUMNS - 1)

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _obey(self, parameters: str, final: str) -> None:
        if final == "m":  # how characters look
            return
        if parameters.startswith("?"):  # modes; only autowrap changes where characters go
            assert final in "hl", f"unknown private sequence {parameters}{final}"
            self._wraps = final == "h" if parameters == "?7" else self._wraps
            return
        count = int(parameters or 0)
        if final in "ABCD":
            step = max(count, 1)
            self.row = min(max(self.row + {"A": -step, "B": step}.get(final, 0), 0), len(self.rows) - 1)
            self.column = min(max(self.column + {"C": step, "D": -step}.get(final, 0), 0), COLUMNS - 1)
        elif final in "JK" and count == 0:
            del self.rows[self.row][self.column :]
            if final == "J":
                del self.rows[self.row + 1 :]
        else:
            raise AssertionError(f"a control sequence nobody foresaw: {parameters}{final}")


class EmulatedTerminal:
    """A running program and its terminal. `raw` is every byte that it has written."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self.screen = EmulatedScreen()
        self.raw = b""
        self._fd = fd
        self._decode = codecs.getincrementaldecoder("utf-8")().decode

    def type(self, keys: str) -> None:
        """Press keys: "\\r" is the return key, "\\x03" is Ctrl-C."""
        os.write(self._fd, keys.encode())

    def wait_for(self, shown: Callable[[EmulatedScreen], bool], what: str) -> None:
        """Wait until the screen is as expected; AssertionError with the screen when it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while not shown(self.screen):
            assert self._read(deadline), f"{what}: never on the screen:\n" + "\n".join(self.screen.lines())

    def wait_for_line(self, line: str) -> None:
        """Until a row of the screen is exactly this."""
        self.wait_for(lambda screen: line in screen.lines(), repr(line))

    def wait_ended(self) -> int:
        """Until the program has ended and all that it wrote is on the screen; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(time.monotonic() + POLL_S)
        while self._read(0):
            pass
        return self.process.wait(0)

    def is_cooked(self) -> bool:
        """The terminal echoes, and takes whole lines, as a shell expects to find it."""
        modes = termios.tcgetattr(self._fd)[3]
        return bool(modes & termios.ECHO) and bool(modes & termios.ICANON)

    def _read(self, deadline: float) -> bool:
        readable, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # EIO: no process has the other side open any more
            return False
        self.raw += data
        self.screen.feed(self._decode(data))
        return bool(data)


@contextmanager
def in_terminal(command: Sequence[str], environment: dict[str, str]) -> Iterator[EmulatedTerminal]:
    """A program in a terminal of its own, which is its controlling one. Killed by its pid if the test leaves it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    # `theirs` stays open here, so that its modes can still be looked at when the program has ended.
    try:
        yield EmulatedTerminal(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(theirs)
        os.close(ours)

"""Signals to end a program, held back while it starts another one, until the child can be ended."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import msgspec

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def list_ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a program, SIGHUP only where it is not ignored (nohup(1))."""
    return ENDING if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else (signal.SIGINT, signal.SIGTERM)


class HeldSignals(msgspec.Struct, frozen=True):
    """The mask from before, which the starting program and its child each restore by themselves."""

    before: Collection[int]

    def release(self) -> None:
        """Restore the mask in the starting program: signals that came meanwhile are handled now, and may raise."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def release_in_child(self) -> None:
        """Restore the mask in the child, between fork and exec: a signal that came ends it. The handlers of the parent,
        whose copy the child is, would raise there."""
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.release()


@contextmanager
def hold() -> Iterator[HeldSignals]:
    """Hold back the signals to end this program, until they are released or the block ends."""
    held = HeldSignals(signal.pthread_sigmask(signal.SIG_BLOCK, ENDING))
    try:
        yield held
    finally:
        held.release()

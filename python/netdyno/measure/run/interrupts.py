"""Signals that end a run, as exceptions."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from netdyno.kit.held_signals import list_ending_signals


class Interrupted(KeyboardInterrupt):
    """A signal ends the run, of the user, the system or a terminal that closes; the exit code is 128 + the signal."""

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.exit_code = 128 + signal_number


@contextmanager
def raise_on_signals() -> Iterator[Callable[[], None]]:
    """Let the signals that end a program raise Interrupted within the block, and restore the handlers after it. The
    yielded function raises it once more if it was lost: Python lets no exception out of a finaliser, nor out of a
    function called around a fork."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise Interrupted(number)

    def again() -> None:
        if received:
            raise Interrupted(received[0])

    hook = sys.unraisablehook

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            hook(unraisable)

    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
    for number in list_ending_signals():
        before[number] = signal.signal(number, interrupt)
    sys.unraisablehook = lost
    try:
        yield again
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)

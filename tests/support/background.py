"""Something that goes on beside a test, and whose failure is the test's failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.patience import PATIENCE_S


@contextmanager
def in_background(work: Callable[[], None]) -> Iterator[None]:
    """Run `work` in a thread while the block runs; its exception is raised when the block is done."""
    failures: list[Exception] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  (raised again below, in the thread that can report it)
            failures.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE_S)
        if failures:
            raise failures[0]
    assert not thread.is_alive(), "the work in the background never ends"

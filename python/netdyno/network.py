"""Where a trial's packets travel: the network of the machine, or one of its own that nothing leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from netdyno.namespace import NotAllowedError, private_namespace
from netdyno.transports import Transport


class NoNetworkError(Exception):
    """The trial cannot be had on this system; the text is the reason of the skip."""


class Network(NamedTuple):
    """`enter` stands before the command of each program of the trial; `counters` is where the kernel counts."""

    enter: tuple[str, ...]
    counters: Path


MACHINE = Network((), Path("/proc/net"))


@contextmanager
def network_for(transport: Transport) -> Iterator[Network]:
    """The network of one trial, which is gone with it. Raises NoNetworkError."""
    if not transport.private:
        yield MACHINE
        return
    try:
        with private_namespace() as made:
            yield Network(made.enter, Path(f"/proc/{made.pid}/net"))
    except NotAllowedError as error:
        raise NoNetworkError(
            f"{transport.name} is measured in a private network namespace only, and none can be had here: {error}"
        ) from error

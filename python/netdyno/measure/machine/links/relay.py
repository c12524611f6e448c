"""The relay of the link wan (link/README.md), as a child of the harness: from its ready line to its line of totals."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from netdyno.measure.machine.links.namespace import NotAllowedError
from netdyno.measure.machine.pinning import choose_relay_cores
from netdyno.measure.machine.process import RELAY_PRIORITY, LineReader, Process, TrialError, describe_exit
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.model.observation import Pinning, RelayTotals

_READY_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0


class Relay:
    """A relay that carries frames."""

    def __init__(self, process: Process, lines: LineReader) -> None:
        self._process = process
        self._lines = lines
        self.pid = process.pid

    def end(self) -> RelayTotals:
        """End it and return its totals. Raises TrialError when it had ended before, or prints no totals."""
        if self._process.has_ended():
            how = describe_exit(self._process.exit_code())
            raise TrialError(f"the link's relay had ended with {how}{self._process.read_reason()}")
        began = time.monotonic()
        self._process.terminate()
        line = self._lines.wait_line(began + _END_TIMEOUT_S)
        self._process.expect_end(began, _END_TIMEOUT_S)
        try:
            return msgspec.json.decode(line or "", type=RelayTotals)
        except msgspec.DecodeError as error:
            raise TrialError(f"the link's relay printed {(line or '')[:200]!r} instead of totals: {error}") from error


@contextmanager
def launch_relay(command: Sequence[str], log: TrialLog, pinning: Pinning) -> Iterator[Relay]:
    """Start a relay, and wait until both of its devices are there. It is gone when the block ends. Raises
    NotAllowedError, which says what the system lacks."""
    with (
        log.section("link", command) as output,
        Process(
            command,
            choose_relay_cores(pinning),
            output,
            name="link's relay",
            talks=True,
            realtime=pinning.realtime,
            priority=RELAY_PRIORITY,
        ) as process,
    ):
        lines = process.lines()
        if lines.wait_line(time.monotonic() + _READY_TIMEOUT_S) is None:
            reason = process.read_reason().removeprefix(": ")
            raise NotAllowedError(reason or f"the link's relay was not ready within {_READY_TIMEOUT_S:g} s")
        yield Relay(process, lines)

"""The reason why a trial failed, where its server ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netdyno.measure.machine.process import GoneServerError, LateServerError, TrialError
from netdyno.measure.trial import load


class EndedServer:
    """A server whose exit is known after a time, by a clock of its own."""

    def __init__(self, known_after_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known_after_s = known_after_s
        monkeypatch.setattr("time.monotonic", lambda: 0.0)

    def wait(self, until_s: float) -> bool:
        return until_s >= self.known_after_s

    def exit_code(self) -> int:
        return -11

    def read_reason(self) -> str:
        return ": last words"


@pytest.mark.parametrize(
    ("error", "known_after_s", "expected"),
    [
        pytest.param(GoneServerError(), 8.0, ("SIGSEGV", "last words"), id="gone, and its core is still written"),
        pytest.param(GoneServerError(), 11.0, ("gone when it was to be observed",), id="gone for ever"),
        pytest.param(TrialError("the load failed"), 0.5, ("SIGSEGV",), id="the load noticed it first"),
        pytest.param(TrialError("the load failed"), 8.0, ("the load failed",), id="the load's own failure"),
        pytest.param(LateServerError("late"), 0.0, ("late",), id="known already"),
    ],
)
def test_a_server_that_ended_is_named_with_its_signal(
    error: TrialError, known_after_s: float, expected: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = str(load.name_end(error, EndedServer(known_after_s, monkeypatch)))  # type: ignore[arg-type]
    assert all(part in reason for part in expected)

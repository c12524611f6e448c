"""The system calls by which a server sends, counted with strace(1) while something is said to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from netdyno.machine import strace
from netdyno.machine.trial_log import TrialLog

_SENDS = re.compile(r"\d+ +\d+\.\d+ (?:sendto|sendmsg|sendmmsg|write|writev)\(0x(?P<descriptor>[0-9a-f]+),.*")


def count_sending_calls(
    tool: str, pid: int, descriptors: Collection[int], converse: Callable[[], None], folder: Path
) -> int:
    """How many calls of a server sent to one of its descriptors in a conversation, which ends when all is received. A
    call that the socket took nothing from (EAGAIN) is left out."""
    trace = folder / "trace"
    with strace.attach_tracer(tool, pid, (), trace, TrialLog(folder / "log")) as tracer:
        converse()
        tracer.terminate()
        strace.let_go(tracer)
    lines = trace.read_text(encoding="utf-8").splitlines()
    calls = (_SENDS.fullmatch(line) for line in lines if " EAGAIN " not in line)
    return sum(call is not None and int(call["descriptor"], 16) in descriptors for call in calls)
